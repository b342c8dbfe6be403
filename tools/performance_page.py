#!/usr/bin/env python3
"""Makes the page of measured figures, and its plots, from the files of `iridium bench` (docs/benchmarks.md).

Reads bench*.json in every folder of --results, one folder per machine. A file that is not as the schema says ends
the program with status 1 and a message that names file and field; then nothing is written.
"""

import argparse
import os
import pathlib
import re
import sys

import performance_conditions
import svg_plot
from bench_results import MODES, ResultError, read_machines
from page_text import digits, line, ranks_of, words
from project_files import ROOT

MARK = "made by tools/performance_page.py"
LIMITS = ("memory_copy", "copy_kernel", "gather_copies")
CONTENDERS = ("iridium", "torch", "openmpi", *LIMITS)
PLOTTED_SIZES = 3
MOST_COLUMNS = 15

HEAD = f"# Performance\n\n<!-- {MARK}: do not edit -->\n"
NOTHING = "There are no result files yet.\n"
CELLS = (
    "The figures were made by `iridium bench`, with the commands and at the commits that the [result "
    "files](../bench/results/) name, and every number was checked in the same run: what was skipped, failed or had "
    "a wrong result has a dash, and a note that says why. [benchmarks.md](benchmarks.md) says what was measured and "
    "how, and what the fields of the files mean.\n\n"
    "A machine's name has the model of its GPUs, how many were used, and the worst link between two ranks, such as "
    "`h200x8-nvlink`. With `x1`, in `h200` and on CPUs ranks share what their machine has: one GPU, under MPS, or "
    "its cores. Bus bandwidths are then those of its memory, and not of links between GPUs. Iridium's collectives "
    "are on plain arrays where a column names no kind of memory.\n\n"
    "Cells have the median time of a call in microseconds and, where there is payload, the bus bandwidth in GB/s "
    "(10⁹ bytes per second) behind a slash. The fastest of those that did the same with the same number of ranks is "
    "bold, unless another one has the same time; plain copies are a limit and take no part in that. A time behind a "
    "~ was not steady: its 90th percentile is over twice its 10th; beside it somebody is bold only when all of its "
    "times were shorter. Plots have a light band from the 10th to the 90th percentile; `all_reduce` has them for "
    "all conditions, other operations for the first ones that they have. torch is called from Python, whose "
    "overhead its eager figures contain.\n"
)


def order(figure):
    """Iridium first, others as the documentation names them, unknown ones at the end."""
    known = [*CONTENDERS, figure.contender].index(figure.contender)
    return known, figure.contender, figure.algorithm, figure.memory


def name_of(contender, algorithm, memory, *more):
    return " ".join(filter(None, (contender, algorithm, "" if memory == "plain" else memory, *more)))


def column_of(figure):
    return figure.ranks, *order(figure)


def row_of(figure):
    size = figure.bytes, figure.m, figure.n, figure.k, figure.layout
    return size, figure.dtype, figure.op, figure.blocks, figure.rows, figure.tile


def size_text(size):
    """Bytes, or the shape of a product and how its B is stored."""
    count, *shape, layout = size
    if any(shape):
        return words(f"{'x'.join(map(str, shape))} {layout}")
    return svg_plot.human_size(count) if count else "none"


def best_of(figures):
    """By row and ranks: the shortest time, where it is certain and another one is shown as longer."""
    groups = {}
    for figure in figures:
        if not figure.reason and figure.contender not in LIMITS:
            groups.setdefault((row_of(figure), figure.ranks), []).append(figure)
    best = {}
    for group, found in groups.items():
        first, *others = sorted(found, key=lambda figure: figure.median_us)
        is_certain = all(figure.is_steady for figure in found) or all(first.p90_us < other.p10_us for other in others)
        if others and is_certain and digits(first.median_us) != digits(others[0].median_us):
            best[group] = first.median_us
    return best


def cell(figure, best, notes):
    if figure is None:
        return ""
    if figure.reason:
        return f"–<sup>{notes.setdefault(words(figure.reason), len(notes) + 1)}</sup>"
    text = ("" if figure.is_steady else "~") + digits(figure.median_us)
    if figure.bytes and figure.bus_gbps:
        text += f" / {digits(figure.bus_gbps)}"
    is_best = figure.contender not in LIMITS and figure.median_us == best.get((row_of(figure), figure.ranks))
    return f"**{text}**" if is_best else text


def table(figures, names_ranks):
    """Lines of a table and of its notes."""
    columns, rows = sorted(set(map(column_of, figures))), sorted(set(map(row_of, figures)))
    several_dtypes = len({figure.dtype for figure in figures}) > 1
    several_ops = len({figure.op for figure in figures}) > 1
    several_blocks = any(figure.blocks for figure in figures)
    several_rows = any(figure.rows for figure in figures)
    several_tiles = any(figure.tile for figure in figures)
    cells = {(row_of(figure), column_of(figure)): figure for figure in figures}
    best, notes = best_of(figures), {}

    def chosen(size, dtype, op, blocks, rows, tile):
        cells = [size] + [dtype] * several_dtypes + [op] * several_ops + [blocks] * several_blocks
        return cells + [rows] * several_rows + [tile] * several_tiles

    heads = chosen("M x N x K" if any(figure.m for figure in figures) else "bytes", "dtype", "op", "blocks", "rows", "tile")
    for ranks, _, *names in columns:
        heads.append(words((f"{ranks_of(ranks)}, " if names_ranks else "") + name_of(*names)))
    yield line(heads)
    yield line(["---"] * len(heads))
    for row in rows:
        size, dtype, op, *counts = row
        values = [cell(cells.get((row, column)), best, notes) for column in columns]
        yield line(chosen(size_text(size), words(dtype), words(op), *(str(count or "auto") for count in counts)) + values)
    if notes:
        yield ""
        yield from (f"{number}. {note}" for note, number in notes.items())


def absent(figures):
    """Who was skipped all the way, and the first reason: a sentence tells that better than columns of dashes."""
    reasons = {}
    for figure in figures:
        reasons.setdefault(figure.contender, []).append(figure.reason)
    return {
        contender: found[0]
        for contender, found in reasons.items()
        if all(reason.startswith("skipped") for reason in found)
    }


def parts_of(figures):
    """What a table shows: everything, or one number of ranks where that would be too wide."""
    ranks = sorted({figure.ranks for figure in figures})
    if len(ranks) == 1 or len(set(map(column_of, figures))) <= MOST_COLUMNS:
        yield "", figures
    else:
        yield from ((ranks_of(count), [figure for figure in figures if figure.ranks == count]) for count in ranks)


def tables(figures):
    """Those of each mode."""
    for mode, meaning in MODES.items():
        chosen = [figure for figure in figures if figure.mode == mode]
        left_out = absent(chosen)
        shown = [figure for figure in chosen if figure.contender not in left_out]
        for contender, reason in sorted(left_out.items()):
            yield f"Without {words(contender)} (`{mode}`): {words(reason)}.\n"
        only = [found.pop() for found in ({f.dtype for f in shown}, {f.op for f in shown}) if len(found) == 1]
        for ranks, part in parts_of(shown) if shown else ():
            head = ", ".join(filter(None, (f"{meaning} (`{mode}`)", *map(words, only), ranks)))
            yield "\n".join([f"{head}:", "", *table(part, not ranks)]) + "\n"


def line_of(figure):
    return *order(figure), figure.dtype, figure.op


def latency(figure, x):
    return svg_plot.Point(x, figure.median_us, figure.p10_us, figure.p90_us)


def bandwidth(figure, x):
    moved = figure.bus_gbps * figure.median_us
    return svg_plot.Point(x, figure.bus_gbps, moved / figure.p90_us, moved / figure.p10_us)


def plotted_mode(figures):
    """In which most contenders have figures: some libraries have no graphs."""
    return max(MODES, key=lambda mode: len({figure.contender for figure in figures if figure.mode == mode}))


class OperationPlots:
    """The plots of one operation on one machine."""

    def __init__(self, operation, figures):
        self.operation = operation
        # One line per algorithm: with the tile that the operation chose.
        self.figures = [
            figure for figure in figures if figure.bytes and not (figure.reason or figure.rows or figure.tile)
        ]
        self.styles = {line: style for style, line in enumerate(sorted(set(map(line_of, self.figures))))}
        self.several_dtypes = len({figure.dtype for figure in self.figures}) > 1
        self.several_ops = len({figure.op for figure in self.figures}) > 1

    def plots(self, conditions):
        """(file's name without the machine's, title, SVG) of each."""
        figures = [figure for figure in self.figures if figure.conditions == conditions]
        for ranks in sorted({figure.ranks for figure in figures}):
            group = [figure for figure in figures if figure.ranks == ranks]
            mode = plotted_mode(group)
            group = [figure for figure in group if figure.mode == mode]
            for what, title, *axes_and_lines in self.of_group(group):
                facts = self.operation, ranks_of(ranks), mode, performance_conditions.name_of(conditions)
                title = ", ".join(filter(None, facts)) + title
                marks = self.operation, str(ranks), performance_conditions.file_name_of(conditions), what
                yield "_".join(filter(None, marks)), title, svg_plot.plot(title, *axes_and_lines, MARK)

    def of_group(self, group):
        paid = [figure for figure in group if figure.bus_gbps]
        sizes, speeds = svg_plot.sizes_axis(), svg_plot.bandwidth_axis()
        if len({figure.bytes for figure in group}) >= PLOTTED_SIZES:
            yield "latency", ": latency", sizes, svg_plot.latency_axis(), self.by_size(group, latency)
        if len({figure.bytes for figure in paid}) >= PLOTTED_SIZES:
            yield "bandwidth", ": bus bandwidth", sizes, speeds, self.by_size(paid, bandwidth)
        if swept := largest_sweep(paid):
            title = f", {svg_plot.human_size(swept[0].bytes)}: bus bandwidth by blocks"
            lines = self.lines(swept, lambda figure: figure.blocks, bandwidth)
            yield "blocks", title, svg_plot.blocks_axis(), speeds, lines

    def by_size(self, group, up):
        """Of each line, the figures with the grid that the operation chose, or else with its largest one."""
        blocks = {}
        for figure in group:
            blocks.setdefault(line_of(figure), set()).add(figure.blocks)
        grids = {line: 0 if 0 in found else max(found) for line, found in blocks.items()}
        figures = [figure for figure in group if figure.blocks == grids[line_of(figure)]]
        return self.lines(figures, lambda figure: figure.bytes, up, grids)

    def lines(self, figures, across, up, grids=None):
        lines = {}
        for figure in sorted(figures, key=across):
            lines.setdefault(line_of(figure), []).append(up(figure, across(figure)))
        return [
            svg_plot.Line(self.label(line, (grids or {}).get(line)), self.styles[line], points)
            for line, points in sorted(lines.items())
        ]

    def label(self, line, blocks):
        _, *names, dtype, op = line
        label = name_of(*names, dtype if self.several_dtypes else "", op if self.several_ops else "")
        return f"{label}, {blocks} blocks" if blocks else label


def largest_sweep(figures):
    """The figures of the largest size that was measured with several grids."""
    blocks = {}
    for figure in figures:
        if figure.blocks:
            blocks.setdefault(figure.bytes, set()).add(figure.blocks)
    size = max((size for size, found in blocks.items() if len(found) > 1), default=None)
    return [figure for figure in figures if figure.bytes == size and figure.blocks]


def facts_of(runs):
    """What the machine is and what ran on it, once where all its files say the same."""
    if len({run.facts for run in runs}) == 1:
        yield f"{words(runs[0].facts)}.\n"
    else:
        yield "".join(f"- `{run.path.name}`: {words(run.facts)}\n" for run in runs)
    for run in runs:
        if not run.complete:
            yield f"The run of `{run.path.name}` was cut short: some of its figures are missing.\n"


def render_operation(operation, figures, save):
    """Its part of the page; `save` takes a plot, and says where it is."""
    yield f"### {words(operation)}\n"
    plots = OperationPlots(operation, figures)
    found = sorted({figure.conditions for figure in figures}, key=lambda conditions: conditions.order)
    for conditions in found:
        if heading := performance_conditions.heading_of(conditions):
            yield f"#### {heading}\n"
        yield from tables([figure for figure in figures if figure.conditions == conditions])
        # Plots are many: elsewhere those of the first conditions are enough.
        if conditions == found[0] or operation in performance_conditions.COMPARED:
            if images := [f"![{words(title)}]({save(name, svg)})\n" for name, title, svg in plots.plots(conditions)]:
                yield "".join(images)


def render(machines, plots_link):
    """The page, and the plots by their file names."""
    if not machines:
        return f"{HEAD}\n{NOTHING}", {}
    parts, plots = [HEAD, performance_conditions.introduction(machines), CELLS], {}
    for machine, runs in machines.items():

        def save(name, svg, machine=machine):
            name = re.sub(r"[^\w.-]", "-", f"{machine}_{name}.svg", flags=re.ASCII)
            if name in plots:
                raise ResultError(f"{machine}: two plots would be called {name}")
            plots[name] = svg
            return f"{plots_link}/{name}"

        figures = [figure for run in runs for figure in run.figures]
        parts += [f"## {words(machine)}\n", *facts_of(runs), *performance_conditions.side_by_side(figures)]
        for operation in sorted({figure.operation for figure in figures}):
            chosen = [figure for figure in figures if figure.operation == operation]
            parts += render_operation(operation, chosen, save)
    return "\n".join(parts), plots


def write(page, text, folder, plots):
    """Plots of an earlier page that this one does not have are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in sorted(folder.glob("*.svg")):
        if old.name not in plots and f"<!-- {MARK} -->" in old.read_text(encoding="utf-8", errors="replace"):
            old.unlink()
    for name, svg in plots.items():
        (folder / name).write_text(svg, encoding="utf-8", newline="\n")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8", newline="\n")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench/results")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs/performance.md")
    parser.add_argument("--plots", type=pathlib.Path, default=ROOT / "docs/performance")
    options = parser.parse_args(arguments)
    try:
        link = pathlib.PurePath(os.path.relpath(options.plots, options.page.parent)).as_posix()
        text, plots = render(read_machines(options.results), link)
    except ResultError as error:
        print(error, file=sys.stderr)
        return 1
    write(options.page, text, options.plots, plots)
    return 0


if __name__ == "__main__":
    sys.exit(main())
