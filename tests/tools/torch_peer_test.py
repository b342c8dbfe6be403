"""How bench/peers/torch_peer.py takes its turns: without torch, with ranks that are threads."""

import json
import threading
import types
import unittest

import torch_peer
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


class FakeBench:
    """Every sample takes longer than the one before."""

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


class TorchPeer(TreeTest):
    def setUp(self):
        super().setUp()
        self.turns, self.rows = self.root / "turns", self.root / "rows"
        self.turns.mkdir()

    def start(self, heats, ranks=1, samples=7, wrong=None, patience_s=LIMIT_S):
        plan = [{"heat": heat, "operation": operation, "bytes": size} for heat, operation, size in heats]
        self.plant({"plan.json": json.dumps(plan)})
        words = f"--ranks {ranks} --samples {samples} --sample-time 1.5".split()
        for name, path in (("plan", self.root / "plan.json"), ("turns", self.turns), ("rows", self.rows)):
            words += [f"--{name}", str(path)]
        options = torch_peer.parse_arguments(words)
        together = Ranks(ranks)
        self.benches = [FakeBench(FakeGroup(together, rank), wrong) for rank in range(ranks)]
        self.errors = []
        self.threads = [
            threading.Thread(target=self.run_rank, args=(bench, options, patience_s), daemon=True)
            for bench in self.benches
        ]
        for thread in self.threads:
            thread.start()

    def run_rank(self, bench, options, patience_s):
        try:
            torch_peer.take_turns(bench, options, patience_s)
        except Exception as error:
            self.errors.append(error)
            bench.group.together.barrier.abort()

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
        for number, _, _ in heats:
            self.heat(number)
        self.end()
        return self.figures()

    def test_figures(self):
        graph, eager = self.run_all([(0, "device_barrier", 0)])
        identity = {"operation": "device_barrier", "contender": "torch", "algorithm": "", "dtype": ""}
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

    def test_samples_are_spread_over_the_rounds(self):
        self.start([(3, "device_barrier", 0)])
        taken = []
        for turn in range(5):
            self.turn(f"3.{turn}")
            taken.append(len(self.benches[0].timed))
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
            self.assertIn("no such operation", figure["skipped"])
            self.assertNotIn("median_us", figure)
        self.assertIn("median_us", figures[2])

    def test_ranks_agree(self):
        figures = self.run_all([(0, "device_barrier", 0)], ranks=3)
        self.assertEqual([f["ranks"] for f in figures], [3, 3])
        self.assertEqual(self.benches[0].timed, self.benches[2].timed)
        self.assertEqual(self.benches[0].seeds, self.benches[2].seeds)
        self.assertEqual(len(self.benches[0].seeds), 2)

    def test_wrong_before(self):
        wrong = lambda bench: "bad" if bench.group.rank == 1 else ""
        for figure in self.run_all([(0, "device_barrier", 0)], ranks=2, wrong=wrong):
            self.assertEqual(figure["failed"], "wrong result before the measurement: bad")
            self.assertNotIn("median_us", figure)
        self.assertEqual(self.benches[0].timed, [])

    def test_wrong_after(self):
        wrong = lambda bench: "bad" if bench.timed else ""
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


if __name__ == "__main__":
    unittest.main()
