"""The files of `iridium bench` (docs/benchmarks.md), checked field by field: one folder per machine."""

import dataclasses
import json
import pathlib
import re

SCHEMA, KIND = 1, "iridium bench"
MODES = {"graph": "Per call of a replayed graph", "eager": "Per call that the host submits"}
LINKS = ("shared", "apart", "nvlink", "pcie_atomics", "pcie")
NUMBERS = ("samples", "calls", "median_us", "p10_us", "p90_us", "algorithm_gbps", "bus_gbps", "copy_share")


class ResultError(Exception):
    """A file that cannot be used, and why."""


@dataclasses.dataclass(frozen=True)
class Conditions:
    """What a figure's times depend on besides what was measured: across conditions nothing is compared."""

    gpus: int  # That the run used; 0 on CPUs.
    link: str
    beside_compute: bool

    @property
    def order(self):
        """The defaults come first."""
        return not self.beside_compute, LINKS.index(self.link), self.gpus


@dataclasses.dataclass(frozen=True)
class Figure:
    conditions: Conditions
    operation: str
    contender: str
    algorithm: str
    dtype: str
    op: str
    memory: str
    mode: str
    ranks: int
    bytes: int
    blocks: int
    rows: int
    tile: int
    layout: str
    m: int
    n: int
    k: int
    reason: str = ""  # Why there are no numbers below.
    median_us: float = 0
    p10_us: float = 0
    p90_us: float = 0
    bus_gbps: float = 0

    @property
    def identity(self):
        return dataclasses.astuple(self)[:17]

    @property
    def is_steady(self):
        return self.p90_us <= 2 * self.p10_us


@dataclasses.dataclass(frozen=True)
class Run:
    path: pathlib.Path
    facts: str
    complete: bool
    figures: list[Figure]


class Fields:
    """One JSON object, checked field by field."""

    def __init__(self, path, prefix, values):
        self.path, self.prefix, self.values = path, prefix, values
        if not isinstance(values, dict):
            raise ResultError(f"{path}: {prefix.rstrip('.') or 'the file'} must be an object")

    def fail(self, name, why):
        raise ResultError(f"{self.path}: {self.prefix}{name} {why}")

    def take(self, name, kinds, words):
        if name not in self.values:
            self.fail(name, "is missing")
        value = self.values[name]
        if type(value) not in kinds:
            self.fail(name, f"must be {words}, not {json.dumps(value)[:60]}")
        return value

    def text(self, name, empty=True):
        value = self.take(name, (str,), "text")
        if not value.isprintable() or not (value or empty):
            self.fail(name, f"must be {'' if empty else 'some '}printable text, not {json.dumps(value)[:60]}")
        return value

    def optional_text(self, name):
        return self.text(name) if name in self.values else ""

    def optional_flag(self, name):
        return name in self.values and self.take(name, (bool,), "true or false")

    def number(self, name, kinds=(int, float), least=0.0):
        value = self.take(name, kinds, "a number" if float in kinds else "a whole number")
        if not least <= value < 2**63:
            self.fail(name, f"must be from {least:g} to 2^63, not {value}")
        return value

    def whole(self, name, least=0):
        return self.number(name, (int,), least)

    def reason(self):
        """Of a figure without numbers."""
        given = [name for name in ("skipped", "failed") if name in self.values and self.take(name, (str,), "text")]
        if len(given) == 2:
            self.fail("failed", "cannot be there beside skipped")
        for name in NUMBERS if given else ():
            if name in self.values:
                self.fail(name, f"cannot be there beside {given[0]}")
        return f"{given[0]}: {self.values[given[0]]}" if given else ""


def conditions_from(fields, gpus):
    link = fields.text("link") if "link" in fields.values else "shared"
    if link not in LINKS:
        fields.fail("link", f"must be {', '.join(LINKS[:-1])} or {LINKS[-1]}, not {json.dumps(link)}")
    return Conditions(gpus, link, fields.optional_flag("beside_compute"))


def figure_from(fields, gpus):
    mode = fields.text("mode")
    if mode not in MODES:
        fields.fail("mode", f"must be {' or '.join(MODES)}, not {json.dumps(mode)}")
    names = [fields.text("operation", False), fields.text("contender", False), fields.text("algorithm")]
    counts = [fields.whole("ranks", 1), fields.whole("bytes"), fields.whole("blocks")]
    counts += [fields.whole(name) if name in fields.values else 0 for name in ("rows", "tile")]
    choices = [fields.text("dtype"), fields.optional_text("op"), fields.optional_text("memory")]
    counts += [fields.optional_text("layout")]
    counts += [fields.whole(name) if name in fields.values else 0 for name in ("m", "n", "k")]
    identity = (conditions_from(fields, gpus), *names, *choices, mode, *counts)
    if reason := fields.reason():
        return Figure(*identity, reason)
    fields.whole("samples", 1)
    fields.whole("calls", 1)
    low, median, high = (fields.number(name, least=1e-6) for name in ("p10_us", "median_us", "p90_us"))
    if not low <= median <= high:
        fields.fail("median_us", f"must lie between p10_us and p90_us, not {low}, {median}, {high}")
    fields.number("algorithm_gbps")
    fields.number("copy_share")
    return Figure(*identity, "", median, low, high, fields.number("bus_gbps"))


def refuse_constant(name):
    raise ValueError(f"{name} is not a number of JSON")


def read_run(path):
    try:
        values = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse_constant)
    except OSError as error:
        raise ResultError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{path}: cut off, or not JSON: {error}") from error
    fields = Fields(path, "", values)
    if (schema := fields.take("schema", (int,), "a whole number")) != SCHEMA:
        fields.fail("schema", f"is {schema}, and only {SCHEMA} can be read")
    if (kind := fields.text("kind")) != KIND:
        fields.fail("kind", f"must be {json.dumps(KIND)}, not {json.dumps(kind)}")
    fields.take("command", (str,), "text")
    machine = Fields(path, "machine.", fields.take("machine", (dict,), "an object"))
    facts, gpus = machine_facts(fields, machine), gpus_of(machine)
    complete = fields.take("complete", (bool,), "true or false")
    figures = fields.take("figures", (list,), "a list")
    figures = [figure_from(Fields(path, f"figures[{i}].", figure), gpus) for i, figure in enumerate(figures)]
    return Run(path, facts, complete, figures)


def gpus_of(machine):
    """How many the run used. Names without the number are of one GPU that all ranks shared."""
    if not machine.text("device"):
        return 0
    count = re.search(r"x(\d+)-[a-z_]+$", machine.text("name"))
    return int(count[1]) if count else 1


def machine_facts(fields, machine):
    machine.text("name", False)
    cpu, device, driver = (machine.text(name) for name in ("cpu", "device", "driver"))
    cores = f"{machine.whole('cores')} cores"
    facts = [device, f"driver {driver}" if driver else ""] if device else [cpu, cores]
    version, commit = fields.text("version"), fields.text("commit")
    facts += [f"Iridium {version}", f"commit {commit}" if commit else "commit not known"]
    return ", ".join(fact for fact in [*facts, *peer_facts(fields)] if fact)


def peer_facts(fields):
    """What others were measured, and what they ran on."""
    if "versions" not in fields.values:
        return
    for contender, versions in sorted(fields.take("versions", (dict,), "an object").items()):
        versions = Fields(fields.path, f"versions.{contender}.", versions)
        names = sorted(versions.values, key=lambda name: (name != contender, name))
        yield from (f"{name} {versions.text(name)}" for name in names)


def read_machines(folder):
    """Runs by machine, in order of their names."""
    if not folder.is_dir():
        raise ResultError(f"{folder}: is not a folder")
    machines, seen = {}, {}
    for path in sorted(folder.glob("*/bench*.json")):
        run = read_run(path)
        for i, figure in enumerate(run.figures):
            key, place = (path.parent, figure.identity), f"{path}: figures[{i}]"
            if key in seen:
                raise ResultError(f"{place} is the same as {seen[key]}")
            seen[key] = place
        machines.setdefault(path.parent.name, []).append(run)
    return machines
