"""Line plots as SVG text, for pages that are made from files: the same input gives the same bytes."""

import dataclasses
import math
from collections.abc import Callable
from xml.sax.saxutils import escape

# Okabe and Ito's colours, which colour-blind readers can tell apart; without the yellow, which white swallows.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("", "7 3", "2 3")
UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))

LEFT, TOP, WIDTH, HEIGHT = 64, 40, 520, 300
BOTTOM = TOP + HEIGHT
CHARACTER = 7  # A generous width of a letter, since SVG cannot ask the font.
TITLE_CHARACTER = 8


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Line:
    label: str
    style: int  # Lines of the same style look the same in every plot.
    points: list[Point]


@dataclasses.dataclass(frozen=True)
class Axis:
    title: str
    ticks: Callable  # (lowest, highest) -> (start, end, tick values)
    label: Callable
    logarithmic: bool

    def scale(self, values, begin, length):
        """Where a value lies, and the values of the ticks."""
        start, end, ticks = self.ticks(min(values), max(values))
        turn = math.log if self.logarithmic else float
        first, span = turn(start), turn(end) - turn(start)
        return lambda value: begin + (turn(value) - first) / span * length, ticks


def human_size(size):
    """Exact: another size never has the same words."""
    for unit, name in UNITS:
        if size >= unit and size * 100 % unit == 0:
            return f"{size / unit:.2f}".rstrip("0").rstrip(".") + f" {name}"
    return f"{size} B"


def plain(value):
    return f"{value:.10g}"


def doubling_ticks(low, high):
    """Powers of two, for whole numbers above 0."""
    first, last = (low - 1).bit_length(), high.bit_length() - 1
    if last <= first:
        first, last = low.bit_length() - 1, high.bit_length()
        low, high = 1 << first, 1 << last
    step = math.ceil((last - first + 1) / 8)
    return low, high, [1 << exponent for exponent in range(first, last + 1, step)]


def decade_ticks(low, high):
    """1, 2, 5, 10 …, or the powers of ten alone where those are enough."""
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    for digits in ((1, 2, 5), (1,)):
        ticks = [float(f"{digit}e{decade}") for decade in decades for digit in digits]
        start = max(tick for tick in ticks if tick <= low)
        end = min(tick for tick in ticks if tick >= high and tick > start)
        ticks = [tick for tick in ticks if start <= tick <= end]
        if len(ticks) <= 10:
            break
    return start, end, ticks


def linear_ticks(_low, high):
    """From 0, in steps of 1, 2 or 5 times a power of ten."""
    decade = math.floor(math.log10(high))
    steps = [float(f"{digit}e{power}") for power in (decade - 1, decade) for digit in (1, 2, 5)]
    step = next(step for step in steps if high / step <= 6)
    count = math.ceil(high / step)
    return 0.0, count * step, [number * step for number in range(count + 1)]


def sizes_axis():
    return Axis("input of a call on one rank", doubling_ticks, human_size, True)


def blocks_axis():
    return Axis("blocks", doubling_ticks, str, True)


def latency_axis():
    return Axis("median time of a call, µs", decade_ticks, plain, True)


def bandwidth_axis():
    return Axis("bus bandwidth, GB/s", linear_ticks, plain, False)


def plot(title, x_axis, y_axis, lines, mark):
    """`lines` with bands from `low` to `high`; `mark` is a comment that says where the file comes from."""
    points = [point for line in lines for point in line.points]
    x, x_ticks = x_axis.scale([point.x for point in points], LEFT, WIDTH)
    y, y_ticks = y_axis.scale([value for point in points for value in (point.low, point.high)], BOTTOM, -HEIGHT)
    legend = LEFT + WIDTH + 16
    width = max(legend + 34 + CHARACTER * max(len(line.label) for line in lines), LEFT + TITLE_CHARACTER * len(title))
    height = max(BOTTOM + 48, TOP + 20 * len(lines) + 8)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' role="img" font-family="sans-serif" font-size="12" fill="#222222">',
        f"<!-- {mark} -->",
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#FFFFFF"/>',
        _text(LEFT, 24, title, "start", ' font-size="14" font-weight="bold"'),
        *_grid(x_axis, [(x(tick), tick) for tick in x_ticks], y_axis, [(y(tick), tick) for tick in y_ticks]),
        *(_band(line, x, y) for line in lines),
        *(part for line in lines for part in _curve(line, x, y)),
        *(part for number, line in enumerate(lines) for part in _entry(line, legend, TOP + 10 + 20 * number)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _text(x, y, words, anchor, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def _grid(x_axis, x_ticks, y_axis, y_ticks):
    for place, tick in x_ticks:
        yield f'<path d="M{place:.1f} {TOP}V{BOTTOM}" stroke="#DDDDDD"/>'
        yield _text(place, BOTTOM + 18, x_axis.label(tick), "middle")
    for place, tick in y_ticks:
        yield f'<path d="M{LEFT} {place:.1f}H{LEFT + WIDTH}" stroke="#DDDDDD"/>'
        yield _text(LEFT - 8, place + 4, y_axis.label(tick), "end")
    yield f'<path d="M{LEFT} {TOP}V{BOTTOM}H{LEFT + WIDTH}" stroke="#222222" fill="none"/>'
    yield _text(LEFT + WIDTH / 2, BOTTOM + 38, x_axis.title, "middle")
    middle = TOP + HEIGHT / 2
    yield _text(14, middle, y_axis.title, "middle", f' transform="rotate(-90 14 {middle:.1f})"')


def _look(line):
    colour = COLOURS[line.style % len(COLOURS)]
    dash = DASHES[line.style // len(COLOURS) % len(DASHES)]
    return colour, f' stroke-dasharray="{dash}"' if dash else ""


def _band(line, x, y):
    upper = [(point.x, point.high) for point in line.points]
    lower = [(point.x, point.low) for point in reversed(line.points)]
    corners = " ".join(f"{x(across):.1f},{y(up):.1f}" for across, up in upper + lower)
    return f'<polygon points="{corners}" fill="{_look(line)[0]}" fill-opacity="0.15"/>'


def _curve(line, x, y):
    colour, dash = _look(line)
    places = [(x(point.x), y(point.y)) for point in line.points]
    corners = " ".join(f"{across:.1f},{up:.1f}" for across, up in places)
    yield f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
    for across, up in places:
        yield f'<circle cx="{across:.1f}" cy="{up:.1f}" r="3" fill="{colour}"/>'


def _entry(line, x, y):
    colour, dash = _look(line)
    yield f'<path d="M{x} {y}h22" stroke="{colour}" stroke-width="2"{dash}/>'
    yield f'<circle cx="{x + 11}" cy="{y}" r="3" fill="{colour}"/>'
    yield _text(x + 28, y + 4, line.label, "start")
