#!/usr/bin/env python3
"""Measures torch's symmetric memory in the heats of `iridium bench` (docs/benchmarks.md, Peers): its barrier.

All ranks are processes on GPU 0, for which an MPS daemon has to run.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import random
import socket
import sys
import time

ROUNDS = 5
MODES = ("graph", "eager")
OPERATION = "device_barrier"
SKIPPED = "torch's symmetric memory has no such operation here"
CALLS_PER_GRAPH = 50
MOST_REPEATS = 10_000
CHECKS = 10
COUNT = 1024
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

    def create(self, name):
        if self.group.rank == 0:
            (self.folder / name).touch()

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

    def __init__(self, bench, mode):
        self.bench, self.mode, self.repeats, self.samples = bench, mode, 0, []

    @property
    def calls(self):
        return self.repeats * self.bench.calls_per_repeat(self.mode)

    def measure(self, sample_us):
        """Collective: takes one more."""
        if self.repeats == 0:
            self.repeats = self._choose_repeats(sample_us)
        self.samples.append(self.bench.time(self.mode, self.repeats) / self.calls)

    def _choose_repeats(self, sample_us):
        """How many take as long as a sample is to take; warms up meanwhile. The same on every rank."""
        repeats, once = 1, self._time_once(1)
        while repeats * once < sample_us / 2 and repeats < MOST_REPEATS:
            repeats = min(MOST_REPEATS, 10 * repeats, math.ceil(sample_us / once))
            once = self._time_once(repeats)
        return min(max(int(sample_us / once), 1), MOST_REPEATS)

    def _time_once(self, repeats):
        return self.bench.group.from_first(max(self.bench.time(self.mode, repeats) / repeats, 1e-3))

    def numbers(self):
        ordered = sorted(self.samples)
        at = lambda share: ordered[int(share * (len(ordered) - 1))]
        numbers = {"samples": len(ordered), "calls": self.calls}
        numbers |= {"median_us": at(0.5), "p10_us": at(0.1), "p90_us": at(0.9)}
        # There is no payload.
        return numbers | {"algorithm_gbps": 0, "bus_gbps": 0, "copy_share": 0}


class Contestant:
    """One heat; its functions are collective."""

    def __init__(self, bench, heat, options):
        self.bench, self.heat, self.options = bench, heat, options
        self.is_skipped = heat["operation"] != OPERATION
        self.failed = ""
        self.times = {mode: Times(bench, mode) for mode in MODES}
        self._check("before")

    def measure(self, turn):
        if self.is_skipped or self.failed:
            return
        for _ in range(turn, self.options.samples, ROUNDS):
            for times in self.times.values():
                times.measure(self.options.sample_time * 1000)

    def figures(self):
        """To be called once, after the last round; the figures are rank 0's."""
        self._check("after")
        return [self._figure(mode) for mode in MODES]

    def _check(self, when):
        if self.is_skipped or self.failed:
            return
        wrong = self.bench.check(self.bench.group.from_first(random.getrandbits(16)))
        found = [text for text in self.bench.group.gather(wrong) if text]
        if found:
            self.failed = f"wrong result {when} the measurement: {found[0]}"

    def _figure(self, mode):
        figure = {"operation": self.heat["operation"], "contender": "torch", "algorithm": "", "dtype": ""}
        figure |= {"mode": mode, "ranks": self.options.ranks, "bytes": self.heat["bytes"], "blocks": 0}
        if self.is_skipped:
            return figure | {"skipped": SKIPPED}
        if self.failed:
            return figure | {"failed": self.failed}
        return figure | self.times[mode].numbers()


def append(path, figures):
    """What reads the file at the same time sees complete lines only."""
    with open(path, "ab", buffering=0) as rows:
        for figure in figures:
            rows.write(json.dumps(figure).encode() + b"\n")


def run_heat(bench, turns, heat, options):
    """Takes the five turns of a heat; false when the run ended before the last one."""
    contestant = None
    for turn in range(ROUNDS):
        name = f"{heat['heat']}.{turn}"
        if not turns.wait(name):
            return False
        contestant = contestant or Contestant(bench, heat, options)
        contestant.measure(turn)
        if turn == ROUNDS - 1:
            figures = contestant.figures()
            if bench.group.rank == 0:
                append(options.rows, figures)
        # Nobody works any more once the turn is another one's.
        bench.group.barrier()
        turns.create(f"{name}.done")
    return True


def take_turns(bench, options, patience_s=PATIENCE_S):
    """What every rank does.

    `bench` measures: it has `group`, the ranks, `calls_per_repeat(mode)`, `time(mode, repeats)`, microseconds on this
    rank, and `check(seed)`, what is wrong on this rank or nothing; the last two are collective.
    """
    turns = Turns(bench.group, options.turns, patience_s)
    heats = json.loads(options.plan.read_text())
    bench.group.barrier()
    turns.create("ready")
    if all(run_heat(bench, turns, heat, options) for heat in heats):
        turns.wait("end")


class TorchGroup:
    """The ranks, which meet over sockets of the host: those that wait for rank 0 sleep."""

    def __init__(self, rank, ranks, port):
        import torch.distributed

        self.rank, self.ranks, self.distributed = rank, ranks, torch.distributed
        self.distributed.init_process_group(
            "gloo",
            init_method=f"tcp://127.0.0.1:{port}",
            rank=rank,
            world_size=ranks,
            # While others have their turn, ranks wait for rank 0.
            timeout=datetime.timedelta(seconds=PATIENCE_S + 20),
        )

    def barrier(self):
        self.distributed.barrier()

    def from_first(self, value):
        """What rank 0 gives."""
        values = [value]
        self.distributed.broadcast_object_list(values, 0)
        return values[0]

    def gather(self, value):
        """What every rank gives."""
        values = [None] * self.ranks
        self.distributed.all_gather_object(values, value)
        return values


class TorchBarrier:
    """A symmetric array, and a graph of its barriers."""

    def __init__(self, group):
        import torch
        import torch.distributed._symmetric_memory as symmetric_memory

        self.group, self.torch = group, torch
        device = torch.device("cuda", 0)
        self.tensor = symmetric_memory.empty(COUNT, dtype=torch.int32, device=device)
        self.handle = symmetric_memory.rendezvous(self.tensor, torch.distributed.group.WORLD)
        self.stream = torch.cuda.Stream()
        self.wait_for_all()
        # What the first calls load must not be loaded during the capture.
        self.time("eager", 3)
        self.wait_for_all()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=self.stream, capture_error_mode="thread_local"):
            for _ in range(CALLS_PER_GRAPH):
                self.handle.barrier(channel=0)
        self.time("graph", 3)

    def wait_for_all(self):
        self.torch.cuda.synchronize()
        self.group.barrier()

    def calls_per_repeat(self, mode):
        return CALLS_PER_GRAPH if mode == "graph" else 1

    def time(self, mode, repeats):
        """From the first submission to the end of the work."""
        submit = self.graph.replay if mode == "graph" else lambda: self.handle.barrier(channel=0)
        self.group.barrier()
        with self.torch.cuda.stream(self.stream):
            start = time.perf_counter()
            for _ in range(repeats):
                submit()
            self.torch.cuda.synchronize()
            return (time.perf_counter() - start) * 1e6

    def check(self, seed):
        """Every rank fills its array, and after a barrier each finds it at the next rank."""
        following = (self.group.rank + 1) % self.group.ranks
        theirs = self.handle.get_buffer(following, (COUNT,), self.torch.int32)
        seen = self.torch.zeros_like(self.tensor)
        wrong = ""
        self.wait_for_all()
        with self.torch.cuda.stream(self.stream):
            for step in range(seed, seed + CHECKS):
                self.tensor.fill_(step * self.group.ranks + self.group.rank)
                self.handle.barrier(channel=0)
                seen.copy_(theirs)
                self.handle.barrier(channel=0)
                self.stream.synchronize()
                if not bool((seen == step * self.group.ranks + following).all()):
                    wrong = f"rank {self.group.rank} did not see what rank {following} wrote before the barrier"
        self.wait_for_all()
        return wrong


def run_rank(rank, port, options):
    import torch

    torch.cuda.set_device(0)
    group = TorchGroup(rank, options.ranks, port)
    bench = TorchBarrier(group)
    take_turns(bench, options)
    # Nobody frees memory that a peer's kernel still polls.
    bench.wait_for_all()
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
    torch.multiprocessing.spawn(run_rank, args=(free_port(), options), nprocs=options.ranks)


if __name__ == "__main__":
    main()
