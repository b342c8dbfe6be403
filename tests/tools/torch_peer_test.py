"""How bench/peers/torch_peer.py takes its turns and checks: without torch, with ranks that are threads."""

import contextlib
import itertools
import json
import math
import os
import random
import subprocess
import threading
import types
import unittest
import unittest.mock

import torch_operations
import torch_peer
from project_files import ROOT
from torch_operations import Entry
from trees import TreeTest

# Ends a test whose ranks wait for each other in vain.
LIMIT_S = 20


class Ranks:
    """Threads that meet."""

    def __init__(self, ranks):
        self.barrier = threading.Barrier(ranks, timeout=LIMIT_S)
        self.values = [None] * ranks


class FakeGroup:
    def __init__(self, ranks, rank):
        self.together, self.rank, self.ranks = ranks, rank, len(ranks.values)

    def barrier(self):
        self.together.barrier.wait()

    def gather(self, value):
        self.together.values[self.rank] = value
        self.barrier()
        values = list(self.together.values)
        self.barrier()
        return values

    def from_first(self, value):
        return self.gather(value)[0]


class FakeCase:
    """Every sample takes longer than the one before."""

    bus_factor = 1.5

    def __init__(self, group, wrong):
        self.group, self.wrong = group, wrong
        self.timed, self.seeds = [], []

    def calls_per_repeat(self, mode):
        return 50 if mode == "graph" else 1

    def time(self, mode, repeats):
        self.timed.append((mode, repeats))
        # Others than rank 0 see other times, and must not decide by them.
        return repeats * (100 + len(self.timed)) * (1 + self.group.rank)

    def check(self, seed):
        self.seeds.append(seed)
        return self.wrong(self) if self.wrong else ""


class FakeLibrary:
    """One contender of barriers, two of sums, and none of anything else."""

    def __init__(self, group, wrong=None, problem=None):
        self.group, self.wrong, self.problem, self.cases = group, wrong, problem, []

    def versions(self):
        return {"torch": "2.9.0", "cuda": "12.8"}

    def entries(self, heat):
        algorithms = {"device_barrier": [""], "all_reduce": ["one_shot", "two_shot"]}.get(heat["operation"])
        return [Entry(name, "", self.make) for name in algorithms] if algorithms else [Entry(skipped="no such thing")]

    def make(self):
        if self.problem:
            self.problem(self.group.rank)
        self.cases.append(FakeCase(self.group, self.wrong))
        return self.cases[-1]


class TorchPeer(TreeTest):
    def setUp(self):
        super().setUp()
        self.turns, self.rows = self.root / "turns", self.root / "rows"
        self.turns.mkdir()

    def start(self, heats, ranks=1, samples=7, patience_s=LIMIT_S, **more):
        plan = [{"heat": number, "operation": name, "bytes": size} | dict(*rest) for number, name, size, *rest in heats]
        words = f"--ranks {ranks} --samples {samples} --sample-time 1.5 --plan {self.root / 'plan.json'}".split()
        for name, path in (("turns", self.turns), ("rows", self.rows)):
            words += [f"--{name}", str(path)]
        options = torch_peer.parse_arguments(words)
        together = Ranks(ranks)
        self.libraries = [FakeLibrary(FakeGroup(together, rank), **more) for rank in range(ranks)]
        self.errors = []
        self.threads = [
            threading.Thread(target=self.run_rank, args=(library, plan, options, patience_s), daemon=True)
            for library in self.libraries
        ]
        for thread in self.threads:
            thread.start()

    def case(self, rank=0):
        return self.libraries[rank].cases[0]

    def run_rank(self, library, plan, options, patience_s):
        try:
            torch_peer.take_turns(library, plan, options, patience_s)
        except Exception as error:
            self.errors.append(error)
            library.group.together.barrier.abort()

    def wait_for(self, name):
        """As `iridium bench` does."""
        turns = torch_peer.Turns(types.SimpleNamespace(rank=0), self.turns, LIMIT_S)
        self.assertTrue(turns._appears(name), self.errors)

    def turn(self, name):
        self.assertFalse((self.turns / f"{name}.done").exists())
        (self.turns / name).touch()
        self.wait_for(f"{name}.done")

    def heat(self, number):
        for turn in range(5):
            self.turn(f"{number}.{turn}")

    def end(self):
        (self.turns / "end").touch()
        for thread in self.threads:
            thread.join(LIMIT_S)
            self.assertFalse(thread.is_alive())
        self.assertEqual(self.errors, [])

    def figures(self):
        return [json.loads(line) for line in self.rows.read_text().splitlines()]

    def run_all(self, heats, **more):
        self.start(heats, **more)
        self.wait_for("ready")
        for number, *_ in heats:
            self.heat(number)
        self.end()
        return self.figures()

    def test_figures(self):
        graph, eager = self.run_all([(0, "device_barrier", 0)])
        identity = {"operation": "device_barrier", "contender": "torch", "algorithm": "", "dtype": "", "op": ""}
        identity |= {"ranks": 1, "bytes": 0, "blocks": 0, "samples": 7}
        identity |= {"algorithm_gbps": 0, "bus_gbps": 0, "copy_share": 0}
        # Times 1, 2, 4 and 5 are trials, 3, 6, 7, ... samples of the two modes in turn.
        repeats = {"graph": int(1500 / 102), "eager": int(1500 / 105)}
        taken = {"graph": [103, *range(107, 119, 2)], "eager": [106, *range(108, 120, 2)]}
        for figure, mode, calls in ((graph, "graph", 50), (eager, "eager", 1)):
            ordered = [time / calls for time in taken[mode]]
            self.assertEqual(figure.pop("calls"), repeats[mode] * calls)
            self.assertAlmostEqual(figure.pop("p10_us"), ordered[0])
            self.assertAlmostEqual(figure.pop("median_us"), ordered[3])
            self.assertAlmostEqual(figure.pop("p90_us"), ordered[5])
            self.assertEqual(figure, identity | {"mode": mode})

    def test_algorithms_of_a_heat(self):
        figures = self.run_all([(0, "all_reduce", 4096, {"dtype": "bf16", "op": "sum"})], ranks=2)
        seen = [(figure["algorithm"], figure["mode"]) for figure in figures]
        self.assertEqual(seen, [(name, mode) for name in ("one_shot", "two_shot") for mode in ("graph", "eager")])
        for figure in figures:
            self.assertEqual((figure["dtype"], figure["op"]), ("bf16", "sum"))
            self.assertAlmostEqual(figure["algorithm_gbps"], 4.096 / figure["median_us"])
            self.assertAlmostEqual(figure["bus_gbps"], 1.5 * figure["algorithm_gbps"])

    def test_versions_are_there_before_it_is_ready(self):
        self.start([(0, "device_barrier", 0)])
        self.wait_for("ready")
        self.assertEqual(json.loads((self.turns / "versions.json").read_text()), {"torch": "2.9.0", "cuda": "12.8"})
        self.end()

    def test_samples_are_spread_over_the_rounds(self):
        self.start([(3, "device_barrier", 0)])
        taken = []
        for turn in range(5):
            self.turn(f"3.{turn}")
            taken.append(len(self.case().timed))
            self.assertEqual(self.rows.exists(), turn == 4)
        self.end()
        # Samples 0 and 5 and two trials in the first round, 1 and 6 in the second; each in two modes.
        self.assertEqual(taken, [8, 12, 14, 16, 18])

    def test_fewer_samples_than_rounds(self):
        self.assertEqual([f["samples"] for f in self.run_all([(0, "device_barrier", 0)], samples=2)], [2, 2])

    def test_other_operations_are_skipped(self):
        figures = self.run_all([(0, "put", 4096), (1, "device_barrier", 0)])
        for figure, mode in zip(figures[:2], ("graph", "eager")):
            self.assertEqual((figure["operation"], figure["mode"], figure["bytes"]), ("put", mode, 4096))
            self.assertEqual(figure["skipped"], "no such thing")
            self.assertNotIn("median_us", figure)
        self.assertIn("median_us", figures[2])

    def test_what_torch_has_not_is_skipped(self):
        for kind in (NotImplementedError, RuntimeError):
            with self.subTest(kind.__name__):

                def problem(_rank):
                    raise kind("\"one_shot_all_reduce\" not implemented for 'Half'")

                self.setUp()
                for figure in self.run_all([(0, "device_barrier", 0)], ranks=2, problem=problem):
                    self.assertEqual(figure["skipped"], "\"one_shot_all_reduce\" not implemented for 'Half'")

    def test_what_torch_refuses_has_failed(self):
        def problem(rank):
            if rank == 1:
                raise RuntimeError("CUDA error:\nout of ink")

        for figure in self.run_all([(0, "device_barrier", 0)], ranks=2, problem=problem):
            self.assertEqual(figure["failed"], "CUDA error: out of ink")
            self.assertNotIn("median_us", figure)

    def test_ranks_agree(self):
        figures = self.run_all([(0, "device_barrier", 0)], ranks=3)
        self.assertEqual([f["ranks"] for f in figures], [3, 3])
        self.assertEqual(self.case(0).timed, self.case(2).timed)
        self.assertEqual(self.case(0).seeds, self.case(2).seeds)
        self.assertEqual(len(self.case(0).seeds), 2)

    def test_wrong_before(self):
        wrong = lambda case: "bad" if case.group.rank == 1 else ""
        for figure in self.run_all([(0, "device_barrier", 0)], ranks=2, wrong=wrong):
            self.assertEqual(figure["failed"], "wrong result before the measurement: bad")
            self.assertNotIn("median_us", figure)
        self.assertEqual(self.case().timed, [])

    def test_wrong_after(self):
        wrong = lambda case: "bad" if case.timed else ""
        for figure in self.run_all([(0, "device_barrier", 0)], wrong=wrong):
            self.assertEqual(figure["failed"], "wrong result after the measurement: bad")
            self.assertNotIn("median_us", figure)

    def test_end_in_the_middle(self):
        self.start([(0, "device_barrier", 0), (1, "device_barrier", 0)], ranks=2)
        self.heat(0)
        self.turn("1.0")
        self.end()
        self.assertEqual(len(self.figures()), 2)

    def test_patience_ends(self):
        self.start([(0, "device_barrier", 0)], patience_s=0)
        self.threads[0].join(LIMIT_S)
        self.assertIn("0.0 did not appear within 0 s", str(self.errors[0]))

    def test_rows_are_appended(self):
        self.plant({"rows": '{"before": 1}\n'})
        self.assertEqual(self.run_all([(0, "get", 8)])[0], {"before": 1})


class Places(unittest.TestCase):
    def test_a_gpu_for_each_rank_where_there_are_enough(self):
        self.assertEqual([torch_operations.device_of(rank, 8) for rank in range(8)], list(range(8)))
        self.assertEqual([torch_operations.device_of(rank, 2) for rank in range(4)], [0, 1, 0, 1])
        self.assertEqual([torch_operations.device_of(rank, 1) for rank in range(4)], [0] * 4)

    def test_how_many_share_one(self):
        shared = {(8, 1): 8, (8, 8): 1, (2, 8): 1, (8, 3): 3, (1, 1): 1}
        self.assertEqual({case: torch_operations.sharing(*case) for case in shared}, shared)


class Starter(TreeTest):
    """bench/peers/torch, with a Python and a daemon that only say how they were called."""

    def calls(self, shares, **variables):
        say = 'echo "${0##*/} $* in ${CUDA_VISIBLE_DEVICES:-all}" >> "$FAKE_LOG"\n'
        self.plant(
            {
                "bin/nvidia-cuda-mps-control": f"#!/bin/bash\n{say}",
                "bin/python": f'#!/bin/bash\n[[ "$*" != *--ask-mps ]] || exit {0 if shares else 1}\n{say}',
                "calls": "",
            }
        )
        for name in ("nvidia-cuda-mps-control", "python"):
            (self.root / "bin" / name).chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
        environment |= {"PATH": f"{self.root / 'bin'}:{os.environ['PATH']}", "FAKE_LOG": str(self.root / "calls")}
        environment |= {"PYTHON": str(self.root / "bin/python")} | variables
        subprocess.run([ROOT / "bench/peers/torch", "--ranks", "4"], env=environment, check=True)
        return (self.root / "calls").read_text().splitlines()

    def test_ranks_that_share_gpus_have_a_daemon(self):
        peer, daemon = "python bench/peers/torch_peer.py --ranks 4 in", "nvidia-cuda-mps-control"
        self.assertEqual(self.calls(True), [f"{daemon} -d in all", f"{peer} all", f"{daemon}  in all"])
        by_number = self.calls(True, CUDA_VISIBLE_DEVICES="2,3")
        self.assertEqual(by_number[:2], [f"{daemon} -d in all", f"{peer} 2,3"])
        self.assertEqual(self.calls(True, CUDA_VISIBLE_DEVICES="GPU-7")[0], f"{daemon} -d in GPU-7")

    def test_others_have_none(self):
        self.assertEqual(len(self.calls(False)), 1)
        self.assertEqual(len(self.calls(True, CUDA_MPS_PIPE_DIRECTORY="/somewhere")), 1)


class Skipped(unittest.TestCase):
    def reason(self, algorithm="two_shot", on_gpu=8, **more):
        heat = {"operation": "all_reduce", "bytes": 4096, "dtype": "bf16", "op": "sum"} | more
        return torch_operations.reason_to_skip(heat, algorithm, 8, on_gpu, 1 << 30)

    def test_types_and_reductions(self):
        for dtype in ("bf16", "fp16", "fp32"):
            self.assertEqual(self.reason(dtype=dtype), "")
        self.assertIn("reduces no fp64", self.reason(dtype="fp64"))
        self.assertIn("no reduction by avg", self.reason(op="avg"))

    def test_sizes(self):
        self.assertEqual(self.reason("one_shot", bytes=1 << 30), "")
        self.assertIn("are over the limit of 1073741824", self.reason("one_shot", bytes=(1 << 30) + 4))

    def test_what_hangs(self):
        large = (1 << 20) + 4
        self.assertEqual(self.reason(bytes=1 << 20), "")
        self.assertEqual(self.reason(bytes=large, on_gpu=4), "")
        self.assertEqual(self.reason(bytes=large, on_gpu=1), "")
        self.assertEqual(self.reason("one_shot", bytes=large), "")
        self.assertIn("hangs with 8 ranks on one GPU", self.reason(bytes=large))
        with unittest.mock.patch.dict(os.environ, {"IRIDIUM_TORCH_TRY_HANGING": "1"}):
            self.assertEqual(self.reason(bytes=large), "")


class FakeTensor:
    """As many numbers, with what the peer does to them."""

    device = "cuda:0"

    def __init__(self, values):
        self.values = list(values)

    def __getitem__(self, index):
        return FakeTensor([self.values[index]]) if isinstance(index, int) else FakeTensor(self.values[index])

    def with_all(self, other, function):
        others = other.values if isinstance(other, FakeTensor) else [other] * len(self.values)
        return FakeTensor(map(function, self.values, others))

    def copy_(self, other):
        self.values[:] = other.values

    def fill_(self, value):
        self.values[:] = [value] * len(self.values)

    def zero_(self):
        self.fill_(0.0)

    def numel(self):
        return len(self.values)

    def double(self):
        return FakeTensor(self.values)

    def view(self, _dtype):
        return self

    to = view

    def abs(self):
        return FakeTensor(map(abs, self.values))

    def any(self):
        return any(self.values)

    def nonzero(self):
        return [place for place, value in enumerate(self.values) if value]

    def item(self):
        return self.values[0]

    def __add__(self, other):
        return self.with_all(other, lambda a, b: a + b)

    def __sub__(self, other):
        return self.with_all(other, lambda a, b: a - b)

    def __mul__(self, other):
        return self.with_all(other, lambda a, b: a * b)

    def __le__(self, other):
        return self.with_all(other, lambda a, b: a <= b)

    def __invert__(self):
        return FakeTensor(not value for value in self.values)

    __rmul__ = __mul__


class FakeGraph:
    def __init__(self):
        self.calls = []

    def replay(self):
        for call in self.calls:
            call()


class FakeTorch:
    """One rank's torch, whose sums `spoil` may change on their way."""

    bfloat16, float64 = "bfloat16", "float64"

    def __init__(self, group, spoil):
        self.group, self.spoil, self.captured = group, spoil, None
        self.cuda = types.SimpleNamespace(synchronize=lambda: None, Stream=object, CUDAGraph=FakeGraph)
        self.cuda.stream = lambda _stream: contextlib.nullcontext()
        self.cuda.graph = self.capture
        world = types.SimpleNamespace(group_name="0")
        self.distributed = types.SimpleNamespace(group=types.SimpleNamespace(WORLD=world))
        symm_mem = types.SimpleNamespace(two_shot_all_reduce_=self.in_place, one_shot_all_reduce_out=self.into)
        self.ops = types.SimpleNamespace(symm_mem=symm_mem)

    @contextlib.contextmanager
    def capture(self, graph, **_options):
        self.captured = graph
        yield
        self.captured = None

    def in_place(self, tensor, op, group):
        return self.into(tensor, op, group, tensor)

    def into(self, tensor, op, _group, output):
        assert op == "sum"
        if self.captured:
            self.captured.calls.append(lambda: self.sum(tensor, output))
        else:
            self.sum(tensor, output)
        return output

    def sum(self, tensor, output):
        sums = list(map(math.fsum, zip(*self.group.gather(list(tensor.values)))))
        output.values[:] = self.spoil(sums) if self.spoil else sums

    def Generator(self, _device):
        return types.SimpleNamespace(manual_seed=random.Random)

    def rand(self, count, generator, device):
        return FakeTensor(generator.random() for _ in range(count))

    def zeros(self, count, dtype, device):
        return FakeTensor([0.0] * count)

    def zeros_like(self, tensor):
        return self.zeros(tensor.numel(), None, None)

    empty_like = zeros_like

    def finfo(self, _dtype):
        return types.SimpleNamespace(eps=2**-7)


class TorchAllReduce(unittest.TestCase):
    # Of the sums on each rank with one call per graph: six trials and a replay, then the two that are checked.
    CHECKED = {"eager": 7, "replayed": 8}

    def run_ranks(self, algorithm, spoil=None, ranks=3):
        """What each rank finds; `spoil(rank, number of the sum on it, sums)` changes results."""
        together, found, self.cases, errors = Ranks(ranks), [None] * ranks, [None] * ranks, []

        def run(rank):
            group, numbers = FakeGroup(together, rank), itertools.count()
            library = types.SimpleNamespace(group=group, buffer=FakeTensor([7.0] * 16))
            library.torch = FakeTorch(group, spoil and (lambda sums: spoil(rank, next(numbers), sums)))
            try:
                heat = {"bytes": 16, "dtype": "bf16"}
                self.cases[rank] = torch_operations.TorchAllReduce(library, heat, algorithm)
                found[rank] = self.cases[rank].check(5)
            except Exception as error:
                errors.append(error)
                together.barrier.abort()

        threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(ranks)]
        with unittest.mock.patch.object(torch_operations, "GRAPH_US", 0):
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(LIMIT_S)
        self.assertEqual(errors, [])
        return found

    def test_right(self):
        for algorithm in ("one_shot", "two_shot"):
            with self.subTest(algorithm):
                self.assertEqual(self.run_ranks(algorithm), ["", "", ""])
                for case in self.cases:
                    # What is timed from here on does not grow.
                    self.assertEqual(case.input.values, [0.0] * 16)
                    self.assertAlmostEqual(case.bus_factor, 4 / 3)

    def test_rounding_is_tolerated(self):
        rounded = lambda _rank, _number, sums: [value * (1 + 2**-8) for value in sums]
        self.assertEqual(self.run_ranks("one_shot", rounded), ["", "", ""])

    def test_wrong_in_either_way_of_calling(self):
        for algorithm in ("one_shot", "two_shot"):
            for way, number in self.CHECKED.items():

                def spoil(rank, this, sums):
                    return [*sums[:3], sums[3] + 1, *sums[4:]] if (rank, this) == (1, number) else sums

                with self.subTest(f"{algorithm}, {way}"):
                    found = self.run_ranks(algorithm, spoil)
                    self.assertRegex(found.pop(1), r"^rank 1: element 3 is -?[\d.]+, not -?[\d.]+$")
                    self.assertEqual(found, ["", ""])

    def test_a_sum_that_does_nothing_is_wrong(self):
        for algorithm in ("one_shot", "two_shot"):
            with unittest.mock.patch.object(FakeTorch, "sum", lambda *_: None):
                self.assertTrue(all(self.run_ranks(algorithm)))

    def test_what_is_no_number_is_wrong(self):
        for value in (math.nan, math.inf):
            found = self.run_ranks("one_shot", lambda _rank, _number, sums: [value] * len(sums))
            self.assertIn(f"element 0 is {value}, not", found[0])


if __name__ == "__main__":
    unittest.main()
