#!/usr/bin/env python3
"""Measures torch's symmetric memory in the heats of `iridium bench` (docs/benchmarks.md, Peers).

Ranks are processes, each on a GPU of its own where there are enough, as Iridium's are. Where they share GPUs, an MPS
daemon has to run.
"""

import argparse
import json
import math
import os
import pathlib
import random
import socket
import sys
import time

import torch_operations

ROUNDS = 5
MODES = ("graph", "eager")
MOST_REPEATS = 10_000
# Longer than the others of a heat may take.
PATIENCE_S = 600
PAUSE_S = 0.005


class Turns:
    """The folder of turns, which rank 0 looks at for all."""

    def __init__(self, group, folder, patience_s=PATIENCE_S):
        self.group, self.folder, self.patience_s = group, folder, patience_s

    def wait(self, name):
        """Collective: waits for a file; false when the run ends instead."""
        return self.group.from_first(self.group.rank == 0 and self._appears(name))

    def create(self, name, text=""):
        if self.group.rank == 0:
            (self.folder / name).write_text(text)

    def _appears(self, name):
        deadline = time.monotonic() + self.patience_s
        # Both files come from `iridium bench`.
        while not (self.folder / name).exists():
            if (self.folder / "end").exists():
                return False
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.folder / name} did not appear within {self.patience_s} s")
            time.sleep(PAUSE_S)
        return True


class Times:
    """Samples of one mode, of as many repeats each."""

    def __init__(self, group, case, mode):
        self.group, self.case, self.mode, self.repeats, self.samples = group, case, mode, 0, []

    @property
    def calls(self):
        return self.repeats * self.case.calls_per_repeat(self.mode)

    def measure(self, sample_us):
        """Collective: takes one more."""
        if self.repeats == 0:
            self.repeats = self._choose_repeats(sample_us)
        self.samples.append(self.case.time(self.mode, self.repeats) / self.calls)

    def _choose_repeats(self, sample_us):
        """How many take as long as a sample is to take; warms up meanwhile. The same on every rank."""
        repeats, once = 1, self._time_once(1)
        while repeats * once < sample_us / 2 and repeats < MOST_REPEATS:
            repeats = min(MOST_REPEATS, 10 * repeats, math.ceil(sample_us / once))
            once = self._time_once(repeats)
        return min(max(int(sample_us / once), 1), MOST_REPEATS)

    def _time_once(self, repeats):
        return self.group.from_first(max(self.case.time(self.mode, repeats) / repeats, 1e-3))

    def numbers(self, size):
        ordered = sorted(self.samples)
        at = lambda share: ordered[int(share * (len(ordered) - 1))]
        numbers = {"samples": len(ordered), "calls": self.calls}
        numbers |= {"median_us": at(0.5), "p10_us": at(0.1), "p90_us": at(0.9)}
        speed = size / at(0.5) / 1000
        return numbers | {"algorithm_gbps": speed, "bus_gbps": speed * self.case.bus_factor, "copy_share": 0}


class Contestant:
    """One contender of a heat; its functions are collective."""

    def __init__(self, group, heat, entry, options):
        self.group, self.heat, self.options, self.algorithm = group, heat, options, entry.algorithm
        self.skipped, self.failed, self.case = entry.skipped, "", None
        if not self.skipped:
            self._make(entry)
        self.times = {mode: Times(group, self.case, mode) for mode in MODES}
        self._check("before")

    def measure(self, turn):
        if self.skipped or self.failed:
            return
        for _ in range(turn, self.options.samples, ROUNDS):
            for times in self.times.values():
                times.measure(self.options.sample_time * 1000)

    def figures(self):
        """To be called once, after the last round; the figures are rank 0's."""
        self._check("after")
        return [self._figure(mode) for mode in MODES]

    def _make(self, entry):
        skipped = failed = ""
        try:
            self.case = entry.make()
        except Exception as error:
            # Older ones say so in a RuntimeError.
            if isinstance(error, NotImplementedError) or "not implemented for" in str(error):
                skipped = words_of(error)
            else:
                failed = words_of(error)
        found = self.group.gather((skipped, failed))
        self.failed = next((text for _, text in found if text), "")
        self.skipped = "" if self.failed else next((text for text, _ in found if text), "")

    def _check(self, when):
        if self.skipped or self.failed:
            return
        wrong = self.case.check(self.group.from_first(random.getrandbits(16)))
        found = [text for text in self.group.gather(wrong) if text]
        if found:
            self.failed = f"wrong result {when} the measurement: {found[0]}"

    def _figure(self, mode):
        heat = self.heat
        figure = {"operation": heat["operation"], "contender": "torch", "algorithm": self.algorithm}
        figure |= {"dtype": heat.get("dtype", ""), "op": heat.get("op", ""), "mode": mode}
        figure |= {"ranks": self.options.ranks, "bytes": heat["bytes"], "blocks": 0}
        figure |= {name: heat[name] for name in ("m", "n", "k", "layout") if name in heat}
        if self.skipped:
            return figure | {"skipped": self.skipped}
        if self.failed:
            return figure | {"failed": self.failed}
        return figure | self.times[mode].numbers(heat["bytes"])


def words_of(error):
    """On one line."""
    return " ".join(str(error).split()) or type(error).__name__


def append(path, figures):
    """What reads the file at the same time sees complete lines only."""
    with open(path, "ab", buffering=0) as rows:
        for figure in figures:
            rows.write(json.dumps(figure).encode() + b"\n")


def run_heat(library, turns, heat, options):
    """Takes the five turns of a heat; false when the run ended before the last one."""
    group, contestants = library.group, []
    for turn in range(ROUNDS):
        name = f"{heat['heat']}.{turn}"
        if not turns.wait(name):
            return False
        if turn == 0:
            contestants = [Contestant(group, heat, entry, options) for entry in library.entries(heat)]
        for contestant in contestants:
            contestant.measure(turn)
        if turn == ROUNDS - 1:
            figures = [figure for contestant in contestants for figure in contestant.figures()]
            if group.rank == 0:
                append(options.rows, figures)
        # Nobody works any more once the turn is another one's.
        group.barrier()
        turns.create(f"{name}.done")
    return True


def take_turns(library, heats, options, patience_s=PATIENCE_S):
    """What every rank does.

    `library` has `group`, the ranks, `versions()`, and `entries(heat)`, the contenders of a heat. What they make has
    `bus_factor`, `calls_per_repeat(mode)`, `time(mode, repeats)`, microseconds on this rank, and `check(seed)`, what
    is wrong on this rank or nothing; the last two are collective.
    """
    turns = Turns(library.group, options.turns, patience_s)
    turns.create("versions.json", json.dumps(library.versions()))
    library.group.barrier()
    turns.create("ready")
    if all(run_heat(library, turns, heat, options) for heat in heats):
        turns.wait("end")


def run_rank(rank, port, options):
    import torch

    torch.cuda.set_device(torch_operations.device_of(rank, torch.cuda.device_count()))
    heats = json.loads(options.plan.read_text())
    group = torch_operations.TorchGroup(rank, options.ranks, port, PATIENCE_S + 20)
    library = torch_operations.TorchLibrary(group, heats)
    take_turns(library, heats, options)
    # Nobody frees memory that a peer's kernel still polls.
    torch.cuda.synchronize()
    group.barrier()
    torch.distributed.destroy_process_group()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def above_zero(kind):
    def parse(text):
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"must be above 0, not {text}")
        return value

    parse.__name__ = kind.__name__
    return parse


def parse_arguments(words):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=above_zero(int), required=True)
    parser.add_argument("--plan", type=pathlib.Path, required=True)
    parser.add_argument("--samples", type=above_zero(int), required=True)
    parser.add_argument("--sample-time", type=above_zero(float), required=True, metavar="MS")
    parser.add_argument("--turns", type=pathlib.Path, required=True)
    parser.add_argument("--rows", type=pathlib.Path, required=True)
    parser.add_argument("--ask-mps", action="store_true", help="only tell, by status 0, that ranks share GPUs")
    return parser.parse_args(words)


def main():
    options = parse_arguments(sys.argv[1:])
    # The ranks' processes inherit them; read when torch first allocates.
    os.environ["TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES"] = "1"
    os.environ.setdefault("TORCH_SYMMMEM", "CUDA")
    # The host's name need not resolve.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    try:
        import torch.multiprocessing
    except ImportError as error:
        sys.exit(f"torch_peer: {error}")
    if options.ask_mps:
        sys.exit(0 if torch_operations.sharing(options.ranks, torch.cuda.device_count()) > 1 else 1)
    torch.multiprocessing.spawn(run_rank, args=(free_port(), options), nprocs=options.ranks)


if __name__ == "__main__":
    main()
