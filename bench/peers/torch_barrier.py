#!/usr/bin/env python3
"""Measures the barrier of torch's symmetric memory, as bench/device does ours.

All ranks are processes on GPU 0, for which an MPS daemon has to run. Rank 0 prints one line, or with
--json one JSON object. With --turns it takes turns with another program (tools/bench_barrier.sh).
"""

import argparse
import datetime
import json
import os
import pathlib
import socket
import time

# Read when the library first allocates.
os.environ["TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES"] = "1"
os.environ.setdefault("TORCH_SYMMMEM", "CUDA")
# The host's name need not resolve.
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric_memory
import torch.multiprocessing

CALLS_PER_GRAPH = 50
SAMPLES = 15
# Long against the moments between which ranks leave the host's barrier.
SAMPLE_US = 20_000
LAST_TURN = 5
TURN_TIMEOUT_S = 280
COUNT = 1024


class Bench:
    """A symmetric array, and a graph of its barriers."""

    def __init__(self, rank, ranks, as_json):
        self.rank = rank
        self.ranks = ranks
        self.as_json = as_json
        self.tensor = symmetric_memory.empty(
            COUNT, dtype=torch.int32, device=torch.device("cuda", 0)
        )
        self.handle = symmetric_memory.rendezvous(self.tensor, dist.group.WORLD)
        self.stream = torch.cuda.Stream()
        torch.cuda.synchronize()
        dist.barrier()
        with torch.cuda.stream(self.stream):
            self.check_visibility()
        torch.cuda.synchronize()
        dist.barrier()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(
            self.graph, stream=self.stream, capture_error_mode="thread_local"
        ):
            for _ in range(CALLS_PER_GRAPH):
                self.handle.barrier(channel=0)
        torch.cuda.synchronize()
        self.replay(3)

    def check_visibility(self):
        """Every rank fills its array, and after a barrier each finds it at the next rank."""
        following = (self.rank + 1) % self.ranks
        theirs = self.handle.get_buffer(following, (COUNT,), torch.int32)
        seen = torch.zeros_like(self.tensor)
        for step in range(10):
            self.tensor.fill_(step * self.ranks + self.rank)
            self.handle.barrier(channel=0)
            seen.copy_(theirs)
            self.handle.barrier(channel=0)
            self.stream.synchronize()
            if not bool((seen == step * self.ranks + following).all()):
                raise RuntimeError("the barrier of torch: values were not there after it")

    def replay(self, times):
        """Microseconds from the first submission to the end of the work."""
        dist.barrier()
        with torch.cuda.stream(self.stream):
            start = time.perf_counter()
            for _ in range(times):
                self.graph.replay()
            torch.cuda.synchronize()
            return (time.perf_counter() - start) * 1e6

    def measure(self, turn):
        trial = 10
        once = torch.tensor([self.replay(trial) / trial], dtype=torch.float64)
        dist.broadcast(once, 0)
        replays = int(min(max(SAMPLE_US / once.item(), 1), 10_000))
        times = sorted(
            self.replay(replays) / (replays * CALLS_PER_GRAPH) for _ in range(SAMPLES)
        )
        if self.rank == 0:
            self.report(turn, times)

    def report(self, turn, times):
        at = lambda share: round(times[int(share * (len(times) - 1))], 4)
        figures = {
            "schema": 1,
            "what": "torch symmetric-memory barrier",
            "ranks": self.ranks,
            "backend": "cuda",
            "placement": "device",
            "heap_bytes": self.tensor.numel() * self.tensor.element_size(),
            "round": turn,
            "runs": len(times),
            "median_us": at(0.5),
            "p10_us": at(0.1),
            "p90_us": at(0.9),
        }
        if self.as_json:
            print(json.dumps(figures), flush=True)
        else:
            print(
                f"{self.ranks} ranks, cuda: {figures['what']:34} median {at(0.5):10.3f} us, "
                f"10 % {at(0.1):10.3f}, 90 % {at(0.9):10.3f}",
                flush=True,
            )


def wait_for_file(path):
    """Ended by the program that drives the turns."""
    deadline = time.monotonic() + TURN_TIMEOUT_S
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{path} did not appear within {TURN_TIMEOUT_S} s")
        time.sleep(0.005)


def take_turns(rank, ranks, folder):
    def end_turn(turn):
        dist.barrier()
        if rank == 0:
            (folder / f"torch.{turn}.done").touch()

    bench = Bench(rank, ranks, as_json=True)
    # Round 0 is the setup.
    end_turn(0)
    for turn in range(1, LAST_TURN + 1):
        if rank == 0:
            wait_for_file(folder / f"torch.{turn}")
        dist.barrier()
        bench.measure(turn)
        end_turn(turn)


def run_rank(rank, ranks, port, options):
    torch.cuda.set_device(0)
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=rank,
        world_size=ranks,
        # While the other program has its turn, ranks wait for rank 0.
        timeout=datetime.timedelta(seconds=TURN_TIMEOUT_S + 20),
    )
    if options.turns:
        take_turns(rank, ranks, options.turns)
    else:
        Bench(rank, ranks, options.json).measure(1)
    # Nobody frees memory that a peer's kernel still polls.
    torch.cuda.synchronize()
    dist.barrier()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--turns", type=pathlib.Path, metavar="DIR")
    options = parser.parse_args()
    torch.multiprocessing.spawn(
        run_rank, args=(options.ranks, free_port(), options), nprocs=options.ranks
    )


if __name__ == "__main__":
    main()
