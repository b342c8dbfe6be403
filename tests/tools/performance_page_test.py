"""The page of measured figures: what it shows, and which files it refuses."""

import json
import unittest

import performance_page
import svg_plot
from result_pages import GPU, SVG, PageTest, figure, run, sizes

class Tables(PageTest):
    def test_introduction_and_facts(self):
        text = self.text_of(figure(), machine=GPU)
        for words in ("`iridium bench`", "checked in the same run", "(benchmarks.md)", "## box\n", "### all_reduce\n"):
            self.assertIn(words, text)
        self.assertIn("\nSome GPU, driver 580.1, Iridium 1.2.3, commit abc123.\n", text)

    def test_facts_without_a_device_or_a_commit(self):
        text = self.text_of(figure(), commit="")
        self.assertIn("\nSome CPU, 2 cores, Iridium 1.2.3, commit not known.\n", text)

    def test_rows_columns_and_the_best(self):
        figures = [figure(12.345, bytes=1536), figure(10, bytes=1536, contender="torch"), figure(7, ranks=4, bytes=8)]
        lines = self.text_of(*figures).splitlines()
        start = lines.index("Per call of a replayed graph (`graph`), float32:")
        table = [
            "| bytes | 2 ranks, iridium | 2 ranks, torch | 4 ranks, iridium |",
            "| --- | --- | --- | --- |",
            "| 8 B |  |  | 7.00 / 0.001 |",
            "| 1.5 KiB | 12.3 / 0.124 | **10.0 / 0.154** |  |",
        ]
        self.assertEqual(lines[start + 2 : start + 6], table)

    def test_the_best_of_each_row_and_rank_count(self):
        figures = sizes("iridium", 2) + sizes("torch", 3) + sizes("iridium", 5, ranks=4) + sizes("torch", 4, ranks=4)
        rows = [line for line in self.text_of(*figures).splitlines() if line.startswith("| 1 MiB")]
        self.assertEqual(rows, ["| 1 MiB | **2099 / 0.500** | 3149 / 0.333 | 5248 / 0.200 | **4198 / 0.250** |"])

    def test_equals_are_not_best(self):
        for other in (3, 3.001):
            self.assertNotIn("| **", self.text_of(figure(3), figure(other, algorithm="ring")))
        slow = figure(4, algorithm="tree")
        self.assertNotIn("| **", self.text_of(figure(3), figure(3, algorithm="ring"), slow))
        self.assertIn("**3.00 / 350**", self.text_of(figure(3), figure(3.01, algorithm="ring"), slow))

    def test_copies_are_not_best(self):
        copy = figure(1, contender="memory_copy")
        self.assertNotIn("| **", self.text_of(figure(3), copy))
        text = self.text_of(figure(3), figure(4, contender="torch"), copy)
        self.assertIn("| **3.00 / 350** | 4.00 / 262 | 1.00 / 1049 |", text)

    def test_beside_times_that_are_not_steady_only_the_certainly_shorter_are_best(self):
        steady = figure(3, p10_us=2, p90_us=4, algorithm="ring")
        self.assertIn("| 5.00 / 210 | **3.00 / 350** |", self.text_of(steady, figure(5)))
        overlapping = figure(5, p10_us=3.9, p90_us=8)
        self.assertIn("| ~5.00 / 210 | 3.00 / 350 |", self.text_of(steady, overlapping))
        apart = figure(5, p10_us=4.1, p90_us=9)
        self.assertIn("| ~5.00 / 210 | **3.00 / 350** |", self.text_of(steady, apart))

    def test_the_bus_bandwidth_is_shown(self):
        self.assertIn("| 1 MiB | 10.0 / 157 |\n", self.text_of(figure(10, algorithm_gbps=105, bus_gbps=157.29)))

    def test_python_is_mentioned(self):
        self.assertIn("torch is called from Python, whose overhead its eager figures contain", self.text_of(figure()))

    def test_versions_of_peers(self):
        versions = {"torch": {"cuda": "12.8", "torch": "2.9.0"}, "openmpi": {"openmpi": "4.1.4"}}
        text = self.text_of(figure(), versions=versions)
        self.assertIn(", commit abc123, openmpi 4.1.4, torch 2.9.0, cuda 12.8.\n", text)

    def test_reductions_are_rows_and_kinds_of_memory_columns(self):
        text = self.text_of(
            figure(2, op="sum", memory="plain"),
            figure(1, op="sum", memory="symmetric"),
            figure(3, op="max", memory="plain"),
        )
        self.assertIn("| bytes | op | 2 ranks, iridium | 2 ranks, iridium symmetric |\n", text)
        self.assertIn("| 1 MiB | max | 3.00 / 350 |  |\n| 1 MiB | sum | 2.00 / 524 | **1.00 / 1049** |\n", text)
        self.assertIn("(`graph`), float32, sum:\n", self.text_of(figure(2, op="sum")))

    def test_wide_tables_are_one_per_number_of_ranks(self):
        names = [f"way_{i}" for i in range(8)]
        text = self.text_of(*(figure(i + 1, algorithm=names[i], ranks=r) for i in range(8) for r in (2, 4)))
        head = "| bytes | " + " | ".join(f"iridium {name}" for name in names) + " |\n"
        for ranks in (2, 4):
            self.assertIn(f"Per call of a replayed graph (`graph`), float32, {ranks} ranks:\n\n{head}", text)
        self.assertEqual(text.count("**1.00 / 1049**"), 2)

    def test_algorithms_are_columns(self):
        text = self.text_of(figure(algorithm="ring"), figure(algorithm="direct"))
        self.assertIn("| bytes | 2 ranks, iridium direct | 2 ranks, iridium ring |", text)

    def test_dtypes_and_blocks_are_rows(self):
        text = self.text_of(figure(4, blocks=8), figure(3), figure(2, dtype="bfloat16"))
        self.assertIn("| bytes | dtype | blocks | 2 ranks, iridium |\n| --- | --- | --- | --- |\n", text)
        self.assertIn("| 1 MiB | bfloat16 | auto | 2.00 / 524 |\n| 1 MiB | float32 | auto | 3.00 / 350 |\n", text)
        self.assertIn("| 1 MiB | float32 | 8 | 4.00 / 262 |\n", text)
        self.assertNotIn("| **", text)

    def test_matrices_rows_are_rows(self):
        text = self.text_of(figure(4, rows=7), figure(3), figure(5, rows=100))
        self.assertIn("| bytes | rows | 2 ranks, iridium |\n| --- | --- | --- |\n", text)
        for row in ("| auto |", "| 7 |", "| 100 |"):
            self.assertIn(row, text)

    def test_tiles_are_rows(self):
        text = self.text_of(figure(4, tile=2), figure(3), figure(5, tile=4, blocks=8))
        self.assertIn("| bytes | blocks | tile | 2 ranks, iridium |\n| --- | --- | --- | --- |\n", text)
        self.assertIn("| 1 MiB | auto | auto | 3.00 / 350 |\n| 1 MiB | auto | 2 | 4.00 / 262 |\n", text)
        self.assertIn("| 1 MiB | 8 | 4 | 5.00 / 210 |\n", text)

    def test_products(self):
        shape = {"operation": "matmul", "bytes": 0, "bus_gbps": 0, "m": 16, "n": 264, "k": 1000, "layout": "nk"}
        text = self.text_of(figure(4, **shape), figure(3, **shape | {"m": 4096}), figure(5, **shape | {"layout": "kn"}))
        self.assertIn("| M x N x K | 2 ranks, iridium |\n| --- | --- |\n| 16x264x1000 kn | 5.00 |\n", text)
        self.assertIn("| 16x264x1000 nk | 4.00 |\n| 4096x264x1000 nk | 3.00 |\n", text)

    def test_no_payload(self):
        text = self.text_of(figure(2.5, operation="barrier", bytes=0, dtype="", algorithm_gbps=0))
        self.assertIn("(`graph`):\n\n| bytes | 2 ranks, iridium |\n| --- | --- |\n| none | 2.50 |\n", text)

    def test_modes_have_tables_of_their_own(self):
        text = self.text_of(figure(2), figure(30, mode="eager"))
        self.assertLess(text.index("replayed graph (`graph`)"), text.index("host submits (`eager`)"))
        self.assertNotIn("`eager`", self.text_of(figure(2)))
        self.assertNotIn("`graph`", self.text_of(figure(2, mode="eager")))

    def test_footnotes(self):
        text = self.text_of(
            figure(2),
            figure(contender="torch", skipped="no torch"),
            figure(contender="torch", ranks=4, failed="wrong | bad\nvalue"),
            figure(contender="torch", ranks=8, skipped="no torch"),
        )
        self.assertIn("| 1 MiB | 2.00 / 524 | –<sup>1</sup> | –<sup>2</sup> | –<sup>1</sup> |\n", text)
        self.assertIn("|\n\n1. skipped: no torch\n2. failed: wrong \\| bad value\n", text)

    def test_who_is_skipped_all_the_way_has_no_column(self):
        text = self.text_of(figure(2), figure(contender="torch", skipped="no torch"))
        self.assertIn("Without torch (`graph`): skipped: no torch.\n\nPer call", text)
        self.assertIn("| bytes | 2 ranks, iridium |\n", text)

    def test_several_files_and_machines(self):
        self.put(run(figure(2, operation="barrier"), commit="other"), "box/bench_2.json")
        self.put(run(figure(1)), "another/bench.json")
        self.put("not ours", "box/device.jsonl")
        text = self.text_of(figure(3))
        self.assertLess(text.index("## another\n"), text.index("## box\n"))
        facts = "Some CPU, 2 cores, Iridium 1.2.3, commit"
        self.assertIn(f"- `bench.json`: {facts} abc123\n- `bench_2.json`: {facts} other\n", text)
        self.assertLess(text.index("### all_reduce", text.index("## box\n")), text.index("### barrier"))

    def test_a_run_that_was_cut_short_is_said_to_be(self):
        self.assertIn("`bench.json` was cut short", self.text_of(figure(), complete=False))
        self.assertNotIn("cut short", self.text_of(figure()))

    def test_no_files(self):
        self.assertEqual(self.call(), (0, ""))
        head, text = self.page.read_text().split("-->\n\n")
        self.assertEqual(text, "There are no result files yet.\n")
        self.assertTrue(head.startswith("# Performance\n"))
        self.assertEqual(self.plot_names(), [])

    def test_digits_of_numbers(self):
        shown = [performance_page.digits(value) for value in (0.0001, 0.01234, 0.71, 9.999, 12.34, 123.4, 12345.6)]
        self.assertEqual(shown, ["<0.001", "0.012", "0.710", "10.0", "12.3", "123", "12346"])


class Plots(PageTest):
    def test_a_line_and_a_band_per_contender_and_algorithm(self):
        text = self.text_of(*sizes("iridium", 1), *sizes("iridium", 2, algorithm="ring"), *sizes("torch", 3))
        names = ["box_all_reduce_2_bandwidth.svg", "box_all_reduce_2_latency.svg"]
        self.assertEqual(self.plot_names(), names)
        for name in names:
            self.assertIn(f"](performance/{name})\n", text)
            lines = list(self.svg(name).iter(f"{SVG}polyline"))
            self.assertEqual([len(line.get("points").split()) for line in lines], [3, 3, 3])
            self.assertEqual(len({line.get("stroke") for line in lines}), 3)
            bands = self.svg(name).iter(f"{SVG}polygon")
            self.assertEqual([len(band.get("points").split()) for band in bands], [6, 6, 6])
            self.assertLess({"iridium", "iridium ring", "torch", "8 B", "256 KiB"}, set(self.words_of(name)))
            self.assertEqual(self.svg(name).find(f"{SVG}rect").get("fill"), "#FFFFFF")

    def test_every_rank_count_has_its_own_and_the_same_colours(self):
        self.text_of(*sizes("iridium", 1), *sizes("torch", 3), *sizes("torch", 3, ranks=4))
        self.assertEqual(len(self.plot_names()), 4)
        two, four = (list(self.svg(f"box_all_reduce_{n}_latency.svg").iter(f"{SVG}polyline")) for n in (2, 4))
        self.assertEqual([two[1].get("stroke")], [line.get("stroke") for line in four])

    def test_two_sizes_are_not_plotted(self):
        text = self.text_of(*sizes("iridium", 1)[:2], figure(skipped="too large"))
        self.assertEqual(self.plot_names(), [])
        self.assertNotIn("![", text)

    def test_no_bandwidth_without_payload(self):
        self.text_of(*(entry | {"bus_gbps": 0} for entry in sizes("iridium", 1)))
        self.assertEqual(self.plot_names(), ["box_all_reduce_2_latency.svg"])

    def test_the_graph_is_plotted_where_there_is_one(self):
        self.text_of(*sizes("iridium", 1), *sizes("torch", 1, mode="eager"), *sizes("torch", 1, mode="eager", ranks=4))
        self.assertNotIn("torch", self.words_of("box_all_reduce_2_latency.svg"))
        self.assertIn("all_reduce, 4 ranks, eager: latency", self.words_of("box_all_reduce_4_latency.svg"))

    def test_calls_are_plotted_where_graphs_leave_somebody_out(self):
        both = sizes("iridium", 1) + sizes("iridium", 2, mode="eager")
        self.text_of(*both, *sizes("openmpi", 1, mode="eager"))
        self.assertIn("openmpi", self.words_of("box_all_reduce_2_latency.svg"))
        self.assertIn("all_reduce, 2 ranks, eager: latency", self.words_of("box_all_reduce_2_latency.svg"))

    def test_the_bus_bandwidth_is_plotted(self):
        self.text_of(*(entry | {"algorithm_gbps": 1, "bus_gbps": 1.75} for entry in sizes("iridium", 1)))
        words = self.words_of("box_all_reduce_2_bandwidth.svg")
        self.assertLess({"all_reduce, 2 ranks, graph: bus bandwidth", "bus bandwidth, GB/s", "2"}, set(words))

    def test_lines_of_reductions_and_kinds_of_memory(self):
        self.text_of(*sizes("iridium", 1, memory="plain", op="sum"), *sizes("iridium", 2, memory="symmetric", op="sum"))
        words = set(self.words_of("box_all_reduce_2_latency.svg"))
        self.assertLess({"iridium", "iridium symmetric"}, words)
        self.text_of(*sizes("iridium", 1, op="sum"), *sizes("iridium", 2, op="max"))
        self.assertLess({"iridium sum", "iridium max"}, set(self.words_of("box_all_reduce_2_latency.svg")))

    def test_a_file_of_block_counts_beside_the_others(self):
        swept = [figure(100 / blocks, blocks=blocks, algorithm="ring") for blocks in (8, 16)]
        self.put(run(*swept), "box/bench_blocks.json")
        self.text_of(*sizes("iridium", 1, algorithm="ring"))
        self.assertIn("box_all_reduce_2_blocks.svg", self.plot_names())

    def test_blocks(self):
        swept = [figure(100 / blocks, blocks=blocks, operation="put") for blocks in (8, 16, 66)]
        other = figure(9, blocks=8, operation="put", contender="copy_kernel")
        self.text_of(*swept, other, figure(1, operation="put"), figure(bytes=8, blocks=8, operation="put"))
        self.assertEqual(self.plot_names(), ["box_put_2_blocks.svg"])
        lines = self.svg("box_put_2_blocks.svg").iter(f"{SVG}polyline")
        self.assertEqual([len(line.get("points").split()) for line in lines], [3, 1])
        words = self.words_of("box_put_2_blocks.svg")
        self.assertLess({"put, 2 ranks, graph, 1 MiB: bus bandwidth by blocks", "8", "64"}, set(words))

    def test_sizes_are_plotted_with_one_grid(self):
        swept = sizes("copy_kernel", 1, blocks=8) + sizes("copy_kernel", 2, blocks=16)
        self.text_of(*swept, *sizes("iridium", 1), *sizes("iridium", 2, blocks=8))
        lines = list(self.svg("box_all_reduce_2_latency.svg").iter(f"{SVG}polyline"))
        self.assertEqual([len(line.get("points").split()) for line in lines], [3, 3])
        self.assertLess({"iridium", "copy_kernel, 16 blocks"}, set(self.words_of("box_all_reduce_2_latency.svg")))

    def test_names_that_need_care(self):
        text = self.text_of(*sizes("<a> & b", 1, operation="a/b <c>"))
        self.assertIn("<a> & b", self.words_of("box_a-b--c-_2_latency.svg"))
        self.assertIn("### a/b \\<c>\n", text)

    def test_the_same_input_gives_the_same_bytes(self):
        figures = sizes("iridium", 1) + sizes("torch", 3) + [figure(contender="openmpi", skipped="not there")]
        found = []
        for order in (figures, figures[::-1]):
            self.text_of(*order)
            found.append([path.read_bytes() for path in (self.page, *sorted(self.plots.glob("*")))])
        self.assertEqual(len(found[0]), 3)
        self.assertEqual(*found)

    def test_old_plots_go_and_others_stay(self):
        self.text_of(*sizes("iridium", 1))
        self.plant({"docs/performance/drawing.svg": "<svg/>"})
        self.text_of(figure())
        self.assertEqual(self.plot_names(), ["drawing.svg"])

    def test_human_sizes(self):
        shown = {0: "0 B", 8: "8 B", 1000: "1000 B", 1024: "1 KiB", 1536: "1.5 KiB", 64 << 20: "64 MiB"}
        shown |= {1 << 40: "1 TiB", (1 << 20) + 1: "1048577 B", 100 << 20: "100 MiB", (1 << 30) - 1024: "1048575 KiB"}
        self.assertEqual({size: svg_plot.human_size(size) for size in shown}, shown)

    def test_ticks_hold_the_values(self):
        for low, high in ((1, 1), (8, 8), (1000, 1010), (7, 9), (8, 132), (1, 1 << 40)):
            for ticks in (svg_plot.doubling_ticks, svg_plot.decade_ticks, svg_plot.linear_ticks):
                with self.subTest(f"{ticks.__name__} {low} {high}"):
                    start, end, values = ticks(low, high)
                    self.assertTrue(start <= low and high <= end and start < end)
                    self.assertTrue(all(start <= value <= end for value in values))
                    self.assertIn(len(values), range(2, 15))


class BadInput(PageTest):
    def refused(self, content, *words):
        self.put(content)
        self.put(run(figure()), "fine/bench.json")
        status, said = self.call()
        self.assertEqual(status, 1)
        self.assertEqual(said.count("\n"), 1)
        for word in ("box/bench.json: ", *words):
            self.assertIn(word, said)
        self.assertFalse(self.page.exists() or self.plots.exists())

    def test_cut_off(self):
        whole = json.dumps(run(figure()))
        for length in (0, 1, len(whole) // 2, len(whole) - 1):
            with self.subTest(length):
                self.refused(whole[:length], "cut off, or not JSON")

    def test_not_an_object(self):
        self.refused("[]", "the file must be an object")
        self.refused(run(7), "figures[0] must be an object")

    def test_not_text(self):
        self.put("")
        (self.root / "results/box/bench.json").write_bytes(b"\xff\xfe")
        status, said = self.call()
        self.assertEqual((status, "cut off, or not JSON" in said), (1, True))

    def test_another_schema_or_kind(self):
        self.refused(run(schema=2), "schema is 2, and only 1 can be read")
        self.refused(run(schema=True), "schema must be a whole number, not true")
        self.refused(run(kind="other"), 'kind must be "iridium bench", not "other"')

    def test_missing_fields(self):
        good = run(figure())
        for name in good:
            with self.subTest(name):
                self.refused({key: value for key, value in good.items() if key != name}, f"{name} is missing")
        for name in good["machine"]:
            with self.subTest(name):
                machine = {key: value for key, value in good["machine"].items() if key != name}
                self.refused(good | {"machine": machine}, f"machine.{name} is missing")
        for name in figure():
            with self.subTest(name):
                wrong = {key: value for key, value in figure().items() if key != name}
                self.refused(run(figure(bytes=8), wrong), f"figures[1].{name} is missing")

    def test_fields_of_another_kind(self):
        for name, value in figure().items():
            with self.subTest(name):
                wrong = 7 if isinstance(value, str) else "7"
                self.refused(run(figure() | {name: wrong}), f"figures[0].{name} must be")
        for name in run():
            with self.subTest(name):
                self.refused(run(**{name: None}), f"{name} must be")
        self.refused(run(complete=1), "complete must be true or false, not 1")
        self.refused(run(figure() | {"skipped": 7}), "figures[0].skipped must be text")
        for name in ("op", "memory"):
            self.refused(run(figure() | {name: 7}), f"figures[0].{name} must be text")
        self.refused(run(versions=[]), "versions must be an object, not []")
        self.refused(run(versions={"torch": "2.9"}), "versions.torch must be an object")
        self.refused(run(versions={"torch": {"cuda": 12.8}}), "versions.torch.cuda must be text, not 12.8")

    def test_values_out_of_range(self):
        wrong = {"ranks": 0, "bytes": -1, "blocks": -1, "samples": 0, "calls": 0, "p10_us": 0, "median_us": -1}
        wrong |= {"algorithm_gbps": -1, "bus_gbps": 1e300, "copy_share": -0.5, "operation": "", "contender": ""}
        wrong |= {"mode": "fast", "dtype": "a\nb", "algorithm": "\ud800"}
        for name, value in wrong.items():
            with self.subTest(name):
                self.refused(run(figure() | {name: value}), f"figures[0].{name} must be ")
        self.refused(run(figure() | {"p90_us": 1}), "figures[0].median_us must lie between p10_us and p90_us")
        for word in ("NaN", "Infinity"):
            self.refused(json.dumps(run(figure() | {"p90_us": float(word)})), f"{word} is not a number of JSON")

    def test_numbers_beside_a_reason(self):
        self.refused(run(figure() | {"skipped": "why"}), "figures[0].samples cannot be there beside skipped")
        self.refused(run(figure(failed="why", bus_gbps=1)), "figures[0].bus_gbps cannot be there beside failed")
        self.refused(run(figure(failed="why", skipped="why")), "figures[0].failed cannot be there beside skipped")

    def test_the_same_figure_twice(self):
        self.refused(run(figure(), figure(2)), "figures[1] is the same as ", "bench.json: figures[0]\n")
        product = figure(m=16, n=264, k=1000, layout="nk")
        self.refused(run(product, product | {"k": 1001}, product), "figures[2] is the same as ")
        self.put(run(figure()), "box/bench_2.json")
        self.put(run(figure(2)))
        status, said = self.call()
        self.assertEqual(status, 1)
        self.assertIn("box/bench_2.json: figures[0] is the same as ", said)

    def test_no_folder(self):
        (self.root / "results").rmdir()
        status, said = self.call()
        self.assertEqual((status, said.endswith("results: is not a folder\n")), (1, True))

    def test_what_was_there_stays(self):
        before = self.text_of(*sizes("iridium", 1))
        self.put("{")
        self.assertEqual(self.call()[0], 1)
        self.assertEqual((self.page.read_text(), len(self.plot_names())), (before, 2))


if __name__ == "__main__":
    unittest.main()
