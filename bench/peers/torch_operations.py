"""What bench/peers/torch_peer.py measures: the barrier and the all-reduces of torch's symmetric memory."""

import dataclasses
import datetime
import math
import os
import time
from collections.abc import Callable

# A graph is not larger than what takes about so long: large sums need few calls in it.
GRAPH_US = 2000
CALLS_PER_GRAPH = 50
TRIAL_CALLS = 3
CHECKS = 10
COUNT = 1024
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
ALGORITHMS = ("one_shot", "two_shot")
# Its blocks wait for those of all ranks, for which there is no room at once when so many share a GPU.
HANGING_RANKS, HANGING_BYTES = 8, 1 << 20
TRY_HANGING = "IRIDIUM_TORCH_TRY_HANGING"


@dataclasses.dataclass(frozen=True)
class Entry:
    """A contender of a heat: `make()` is collective, and returns what is measured unless it is skipped."""

    algorithm: str = ""
    skipped: str = ""
    make: Callable | None = None


class TorchGroup:
    """The ranks, which meet over sockets of the host: those that wait for rank 0 sleep."""

    def __init__(self, rank, ranks, port, patience_s):
        import torch.distributed

        self.rank, self.ranks, self.distributed = rank, ranks, torch.distributed
        self.distributed.init_process_group(
            "gloo",
            init_method=f"tcp://127.0.0.1:{port}",
            rank=rank,
            world_size=ranks,
            # While others have their turn, ranks wait for rank 0.
            timeout=datetime.timedelta(seconds=patience_s),
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


def device_of(rank, gpus):
    """Where Iridium puts the rank, too."""
    return rank % gpus


def sharing(ranks, gpus):
    """How many ranks there are on the fullest GPU."""
    return math.ceil(ranks / max(gpus, 1))


def reason_to_skip(heat, algorithm, ranks, on_gpu, most_bytes):
    """Why an all-reduce is not measured with so many ranks, `on_gpu` of them on one GPU, or nothing."""
    dtype, op = heat.get("dtype", ""), heat.get("op", "")
    if dtype not in DTYPES:
        return f"torch's symmetric memory reduces no {dtype}"
    if op != "sum":
        return f"torch's symmetric memory has no reduction by {op}"
    if heat["bytes"] > most_bytes:
        return f"{heat['bytes']} bytes on each of {ranks} ranks are over the limit of {most_bytes} for this GPU"
    hangs = algorithm == "two_shot" and on_gpu >= HANGING_RANKS and heat["bytes"] > HANGING_BYTES
    if hangs and os.environ.get(TRY_HANGING) != "1":
        return f"hangs with {on_gpu} ranks on one GPU above {HANGING_BYTES} bytes; {TRY_HANGING}=1 tries it"
    return ""


class TorchLibrary:
    """What torch offers in each heat."""

    def __init__(self, group, heats):
        import torch
        import torch.distributed._symmetric_memory as symmetric_memory

        self.group, self.torch, self.symmetric_memory = group, torch, symmetric_memory
        gpus = torch.cuda.device_count()
        self.device, self.on_gpu = device_of(group.rank, gpus), sharing(group.ranks, gpus)
        # An all-reduce needs its input and a result, and its check some thirty times as much.
        memory = torch.cuda.get_device_properties(self.device).total_memory
        self.most_bytes = group.from_first(memory // (64 * self.on_gpu))
        sizes = [heat["bytes"] for heat in heats if heat["operation"] == "all_reduce"]
        room = max((size for size in sizes if size <= self.most_bytes), default=0)
        self.buffer, self.handle = self.symmetric(room, torch.uint8) if room else (None, None)

    def versions(self):
        return {"torch": self.torch.__version__, "cuda": self.torch.version.cuda or "none"}

    def symmetric(self, count, dtype):
        """Collective: an array that every rank has, and what leads to the others'."""
        tensor = self.symmetric_memory.empty(count, dtype=dtype, device=self.torch.device("cuda", self.device))
        return tensor, self.symmetric_memory.rendezvous(tensor, self.torch.distributed.group.WORLD)

    def entries(self, heat):
        if heat["operation"] == "device_barrier":
            return [Entry(make=lambda: TorchBarrier(self))]
        if heat["operation"] != "all_reduce":
            return [Entry(skipped="torch's symmetric memory has no such operation here")]
        return [self.all_reduce(heat, algorithm) for algorithm in ALGORITHMS]

    def all_reduce(self, heat, algorithm):
        reason = reason_to_skip(heat, algorithm, self.group.ranks, self.on_gpu, self.most_bytes)
        return Entry(algorithm, reason, lambda: TorchAllReduce(self, heat, algorithm))


class TorchCase:
    """Calls on a stream, and graphs of them. Derived: `call()` submits one and returns its result."""

    bus_factor = 1

    def __init__(self, library):
        self.group, self.torch = library.group, library.torch
        self.stream = self.torch.cuda.Stream()

    def prepare(self):
        """To be called once `call` can be."""
        self.wait_for_all()
        # What the first calls load must not be loaded during the capture.
        self.time("eager", TRIAL_CALLS)
        once = self.group.from_first(self.time("eager", TRIAL_CALLS) / TRIAL_CALLS)
        self.calls = int(min(max(GRAPH_US / once, 1), CALLS_PER_GRAPH))
        self.graph, _ = self.capture(self.calls)
        self.single, self.single_result = self.capture(1)
        self.time("graph", 1)

    def capture(self, calls):
        """A graph, and the result of its last call."""
        self.wait_for_all()
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
            for _ in range(calls):
                result = self.call()
        return graph, result

    def wait_for_all(self):
        self.torch.cuda.synchronize()
        self.group.barrier()

    def calls_per_repeat(self, mode):
        return self.calls if mode == "graph" else 1

    def time(self, mode, repeats):
        """From the first submission to the end of the work."""
        submit = self.graph.replay if mode == "graph" else self.call
        self.group.barrier()
        with self.torch.cuda.stream(self.stream):
            start = time.perf_counter()
            for _ in range(repeats):
                submit()
            self.torch.cuda.synchronize()
            return (time.perf_counter() - start) * 1e6


class TorchBarrier(TorchCase):
    def __init__(self, library):
        super().__init__(library)
        self.tensor, self.handle = library.symmetric(COUNT, self.torch.int32)
        self.prepare()

    def call(self):
        self.handle.barrier(channel=0)

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
                self.call()
                seen.copy_(theirs)
                self.call()
                self.stream.synchronize()
                if not bool((seen == step * self.group.ranks + following).all()):
                    wrong = f"rank {self.group.rank} did not see what rank {following} wrote before the barrier"
        self.wait_for_all()
        return wrong


class TorchAllReduce(TorchCase):
    """The sum of all ranks: `one_shot` into another array, `two_shot` in place."""

    def __init__(self, library, heat, algorithm):
        super().__init__(library)
        self.bus_factor = 2 * (self.group.ranks - 1) / self.group.ranks
        self.dtype = getattr(self.torch, DTYPES[heat["dtype"]])
        self.input = library.buffer[: heat["bytes"]].view(self.dtype)
        self.call = self.function(algorithm)
        self.clear()
        self.prepare()

    def function(self, algorithm):
        operations, group = self.torch.ops.symm_mem, self.torch.distributed.group.WORLD.group_name
        if algorithm == "two_shot":
            return lambda: operations.two_shot_all_reduce_(self.input, "sum", group)
        if not hasattr(operations, "one_shot_all_reduce_out"):
            return lambda: operations.one_shot_all_reduce(self.input, "sum", group)
        output = self.torch.empty_like(self.input)
        return lambda: operations.one_shot_all_reduce_out(self.input, "sum", group, output)

    def clear(self):
        """What is timed are sums of zeros: other numbers, summed in place again and again, overflow."""
        self.wait_for_all()
        self.input.zero_()
        self.wait_for_all()

    def values(self, seed, rank):
        generator = self.torch.Generator(self.input.device).manual_seed(seed * self.group.ranks + rank)
        numbers = self.torch.rand(self.input.numel(), generator=generator, device=self.input.device)
        return (2 * numbers - 1).to(self.dtype)

    def check(self, seed):
        # Both on every rank, whatever one of them finds.
        found = [self.check_call(seed, self.call), self.check_call(seed + 1, self.replay)]
        self.clear()
        return found[0] or found[1]

    def replay(self):
        self.single.replay()
        return self.single_result

    def check_call(self, seed, submit):
        self.wait_for_all()
        # An old result must not look right; in place, the input takes its place.
        self.single_result.fill_(math.nan)
        self.input.copy_(self.values(seed, self.group.rank))
        self.wait_for_all()
        with self.torch.cuda.stream(self.stream):
            result = submit()
        self.wait_for_all()
        return self.difference(result, seed)

    def difference(self, result, seed):
        """Every sum on the way is rounded, by half an epsilon of what it adds up at the most."""
        expected = self.torch.zeros(result.numel(), dtype=self.torch.float64, device=result.device)
        bound = self.torch.zeros_like(expected)
        for rank in range(self.group.ranks):
            values = self.values(seed, rank).double()
            expected += values
            bound += values.abs()
        bound *= self.group.ranks * self.torch.finfo(self.dtype).eps / 2
        # Written so that what is no number is wrong.
        wrong = ~((result.double() - expected).abs() <= bound)
        if not bool(wrong.any()):
            return ""
        first = int(wrong.nonzero()[0])
        return f"rank {self.group.rank}: element {first} is {result[first].item()}, not {expected[first].item()}"
