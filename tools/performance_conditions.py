"""Under which conditions figures were taken: what they are called, and tables that set them side by side."""

import svg_plot
from page_text import line, ranks_of, words

# The operations whose conditions are set side by side.
COMPARED = ("device_barrier", "all_reduce")
LINKS = {
    "shared": "as it ships on a shared GPU",
    "apart": "as if on several GPUs",
    "nvlink": "over NVLink",
    "pcie_atomics": "over PCIe with atomics",
    "pcie": "over PCIe without atomics",
}
FILLING = "grids that may fill the GPU"

INTRODUCTION = (
    "**Which figures speak for several GPUs:**\n\n"
    "- *As it ships on a shared GPU*, and *grids that may fill the GPU*: ranks share one GPU, and release their stores "
    "at device scope. These figures say **nothing about several GPUs**.\n"
    "- *As if on several GPUs* (`IRIDIUM_LINK=apart`): ranks share one GPU, but release their stores at system scope, "
    "as ranks with a GPU each have to, and as torch's symmetric memory always does. These figures show what the fences "
    "cost on that GPU, but **neither the latency nor the bandwidth of a link**.\n"
    "- Only machines with several GPUs and a link in their name, such as `h200x8-nvlink`, were measured on several "
    "GPUs: {several}.\n\n"
    "By default, grids leave room on a shared GPU for kernels that compute "
    "([`beside_compute`](gpus.md#room-for-compute)); with `IRIDIUM_BESIDE_COMPUTE=0`, and in files older than that "
    "setting, they may fill it. Figures taken under different conditions share no table and no plot, and are never "
    "compared for the shortest time; ratios at the top of a machine's section set them side by side.\n"
)


def introduction(machines):
    several = [
        name
        for name, runs in machines.items()
        if any(figure.conditions.gpus > 1 for run in runs for figure in run.figures)
    ]
    return INTRODUCTION.format(several=", ".join(f"`{name}`" for name in several) or "none yet")


def name_of(conditions):
    """Empty on CPUs as they are."""
    link, beside_compute = conditions.link, conditions.beside_compute
    if link == "shared":
        return LINKS["shared"] if beside_compute else FILLING if conditions.gpus else ""
    seeming = "as if " if link != "apart" and conditions.gpus < 2 else ""
    return seeming + LINKS[link] + ("" if beside_compute or not conditions.gpus else f", {FILLING}")


def settings_of(conditions):
    """The variables that make these conditions."""
    if conditions.link == "apart" or conditions.link != "shared" and conditions.gpus < 2:
        yield f"`IRIDIUM_LINK={conditions.link}`"
    if conditions.gpus and not conditions.beside_compute:
        yield "`IRIDIUM_BESIDE_COMPUTE=0`"


def heading_of(conditions):
    name, settings = name_of(conditions), " ".join(settings_of(conditions))
    return name[:1].upper() + name[1:] + (f" ({settings})" if settings else "")


def file_name_of(conditions):
    if not name_of(conditions):
        return ""
    return conditions.link + ("" if conditions.beside_compute or not conditions.gpus else "_full")


def as_chosen(figures):
    """Replays of the operations compared, as they run when nobody asks for more than the kind of memory."""
    for figure in figures:
        is_chosen = figure.algorithm in ("", "automatic") and not (figure.blocks or figure.rows or figure.tile)
        if figure.operation in COMPARED and figure.mode == "graph":
            if is_chosen or figure.contender != "iridium":
                yield figure


def row_of(figure):
    return COMPARED.index(figure.operation), figure.bytes, figure.dtype, figure.op, figure.memory


def ratio(figure, others, mark=""):
    """Of the figure's time to the shortest of the others; nothing where either is missing."""
    timed = [other for other in others if not other.reason]
    if figure.reason or not timed:
        return None
    best = min(timed, key=lambda other: other.median_us)
    about = "" if figure.is_steady and best.is_steady else "~"
    return f"{about}{figure.median_us / best.median_us:.2f}" + (mark if len(timed) < len(others) else "")


def beside_torch(figures):
    """Ratios by row and column: Iridium's time to that of torch's fastest form under the same conditions."""
    torch = {}
    for figure in figures:
        if figure.contender == "torch":
            torch.setdefault((figure.conditions, figure.ranks, row_of(figure)[:-1]), []).append(figure)
    for figure in figures:
        if figure.contender == "iridium":
            others = torch.get((figure.conditions, figure.ranks, row_of(figure)[:-1]), [])
            column = figure.ranks, figure.conditions.order, f", {name_of(figure.conditions)}"
            if found := ratio(figure, others, "†"):
                yield row_of(figure), column, found


def room_costs(figures):
    """Ratios by row and column: Iridium's time with room for compute to that without."""
    ours = [figure for figure in figures if figure.contender == "iridium" and figure.conditions.gpus]

    def key(figure):
        return figure.conditions.gpus, figure.conditions.link, figure.ranks, row_of(figure)

    filling = {key(figure): figure for figure in ours if not figure.conditions.beside_compute}
    for figure in ours:
        if figure.conditions.beside_compute and key(figure) in filling:
            link = "" if figure.conditions.link == "shared" else f", {name_of(figure.conditions)}"
            if found := ratio(figure, [filling[key(figure)]]):
                yield row_of(figure), (figure.ranks, figure.conditions.order, link), found


def ratio_table(found):
    cells = {(row, column): text for row, column, text in found}
    rows, columns = sorted({row for row, _ in cells}), sorted({column for _, column in cells})
    several_dtypes = len({dtype for _, _, dtype, _, _ in rows if dtype}) > 1
    several_ops = len({op for _, _, _, op, _ in rows if op}) > 1
    has_memory = any(memory for *_, memory in rows)

    def with_choices(operation, size, dtype, op, memory):
        return [operation, size] + [dtype] * several_dtypes + [op] * several_ops + [memory] * has_memory

    heads = with_choices("operation", "bytes", "dtype", "op", "memory")
    heads += [ranks_of(ranks) + more for ranks, _, more in columns]
    yield line(heads)
    yield line(["---"] * len(heads))
    for row in rows:
        operation, size, *choices = row
        size = svg_plot.human_size(size) if size else "none"
        chosen = with_choices(COMPARED[operation], size, *map(words, choices))
        yield line(chosen + [cells.get((row, column), "–") for column in columns])


def side_by_side(figures):
    """What the conditions cost in the operations compared, as far as the files tell."""
    figures = list(as_chosen(figures))
    if found := list(beside_torch(figures)):
        yield (
            "**Iridium beside torch**, graph replays: Iridium's time with its `automatic` algorithm, "
            "divided by that of torch's faster form under the same conditions. Below 1 Iridium takes less time.\n"
        )
        yield "\n".join(ratio_table(found)) + "\n"
        if any(text.endswith("†") for *_, text in found):
            yield "† Another form of torch's was skipped or failed.\n"
    if found := list(room_costs(figures)):
        yield (
            "**What room for compute costs**, graph replays: Iridium's time as it ships, divided by that with "
            "`IRIDIUM_BESIDE_COMPUTE=0`, from another run.\n"
        )
        yield "\n".join(ratio_table(found)) + "\n"
