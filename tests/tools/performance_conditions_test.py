"""The page of measured figures tells apart under which conditions they were taken."""

import json
import unittest

import performance_conditions
from bench_results import Conditions
from result_pages import GPU, SVG, PageTest, figure, run, sizes

SHIPS = {"beside_compute": True}
APART = {"link": "apart", "beside_compute": True}
FULL = {}
SEVERAL = GPU | {"name": "h200x8-nvlink"}
SHIPS_HEADING = "#### As it ships on a shared GPU\n"
APART_HEADING = "#### As if on several GPUs (`IRIDIUM_LINK=apart`)\n"
FULL_HEADING = "#### Grids that may fill the GPU (`IRIDIUM_BESIDE_COMPUTE=0`)\n"


def barrier(time, **more):
    return figure(time, operation="device_barrier", bytes=0, dtype="", algorithm_gbps=0, bus_gbps=0, **more)


def ours(time, **more):
    return figure(time, algorithm="automatic", **more)


def torch(time, algorithm, **more):
    return figure(time, contender="torch", algorithm=algorithm, **more)


class ConditionsTest(PageTest):
    def page_of(self, *figures, **more):
        return self.text_of(*figures, **{"machine": GPU} | more)

    def section(self, text, heading):
        """What stands below a heading, to the next one."""
        self.assertEqual(text.count(heading), 1, heading)
        return text.split(heading)[1].split("\n#")[0]


class Names(unittest.TestCase):
    def test_every_condition_has_its_own(self):
        names = {
            (0, "shared", False): "",
            (1, "shared", True): "As it ships on a shared GPU",
            (1, "shared", False): "Grids that may fill the GPU (`IRIDIUM_BESIDE_COMPUTE=0`)",
            (1, "apart", True): "As if on several GPUs (`IRIDIUM_LINK=apart`)",
            (1, "apart", False): "As if on several GPUs, grids that may fill the GPU "
            "(`IRIDIUM_LINK=apart` `IRIDIUM_BESIDE_COMPUTE=0`)",
            (1, "nvlink", True): "As if over NVLink (`IRIDIUM_LINK=nvlink`)",
            (0, "pcie", False): "As if over PCIe without atomics (`IRIDIUM_LINK=pcie`)",
            (8, "nvlink", True): "Over NVLink",
            (8, "pcie_atomics", False): "Over PCIe with atomics, grids that may fill the GPU "
            "(`IRIDIUM_BESIDE_COMPUTE=0`)",
        }
        found = [Conditions(*conditions) for conditions in names]
        self.assertEqual([performance_conditions.heading_of(one) for one in found], list(names.values()))
        on_one_gpu = [performance_conditions.file_name_of(one) for one in found if one.gpus < 2]
        self.assertEqual(len(set(on_one_gpu)), len(on_one_gpu))


class Head(ConditionsTest):
    def head_of(self, **more):
        return self.page_of(figure(), **more).split("\n## ")[0]

    def test_it_begins_with_what_figures_say_about_several_gpus(self):
        head = self.head_of()
        self.assertTrue(head.split("-->\n\n")[1].startswith("**Which figures speak for several GPUs:**\n"))
        for words in (
            "share one GPU, and release their stores at device scope. These figures say **nothing about several GPUs**",
            "what the fences cost on that GPU, but **neither the latency nor the bandwidth of a link**",
            "such as `h200x8-nvlink`, were measured on several GPUs: none yet.\n",
            "([`beside_compute`](gpus.md#room-for-compute))",
        ):
            self.assertIn(words, head)

    def test_it_names_the_machines_with_several_gpus(self):
        self.put(run(figure(link="nvlink"), machine=SEVERAL), "h200x8-nvlink/bench.json")
        self.assertIn("measured on several GPUs: `h200x8-nvlink`.\n", self.head_of())

    def test_one_gpu_and_a_link_that_was_asked_for_are_not_several(self):
        one = GPU | {"name": "h200x1-nvlink"}
        self.put(run(figure(link="nvlink"), machine=one), "h200x1-nvlink/bench.json")
        self.assertIn("measured on several GPUs: none yet.\n", self.head_of())


class Sections(ConditionsTest):
    def test_conditions_share_no_table(self):
        text = self.page_of(figure(1, **SHIPS), figure(2, **APART), figure(3, **FULL))
        for time, heading in (("1.00", SHIPS_HEADING), ("2.00", APART_HEADING), ("3.00", FULL_HEADING)):
            self.assertIn(f"| 2 ranks, iridium |\n| --- | --- |\n| 1 MiB | {time} / ", self.section(text, heading))
        places = [text.index(heading) for heading in (SHIPS_HEADING, APART_HEADING, FULL_HEADING)]
        self.assertEqual(places, sorted(places))

    def test_the_best_is_that_of_the_same_conditions(self):
        apart = [figure(4, **APART), figure(5, contender="torch", **APART), figure(9, contender="memory_copy", **APART)]
        text = self.page_of(figure(3, **SHIPS), figure(2, contender="torch", **SHIPS), *apart, figure(1, **FULL))
        self.assertIn("| 3.00 / 350 | **2.00 / 524** |", self.section(text, SHIPS_HEADING))
        self.assertIn("| **4.00 / 262** | 5.00 / 210 | 9.00 / 117 |", self.section(text, APART_HEADING))
        self.assertNotIn("| **", self.section(text, FULL_HEADING))

    def test_old_files_of_a_gpu_have_grids_that_may_fill_it(self):
        self.assertIn(FULL_HEADING, self.page_of(figure()))

    def test_cpus_have_no_headings_of_conditions(self):
        text = self.text_of(*sizes("iridium", 1))
        self.assertNotIn("####", text)
        self.assertEqual(self.plot_names(), ["box_all_reduce_2_bandwidth.svg", "box_all_reduce_2_latency.svg"])
        self.assertIn("all_reduce, 2 ranks, graph: latency", self.words_of("box_all_reduce_2_latency.svg"))

    def test_several_files_of_a_machine(self):
        apart = GPU | {"name": "boxx1-apart"}
        self.put(run(figure(2, **APART), machine=apart), "box/bench_apart.json")
        self.put(run(figure(3, beside_compute=False), machine=GPU), "box/bench_full.json")
        text = self.page_of(figure(1, **SHIPS))
        self.assertEqual(text.count("\n## "), 1)
        self.assertEqual(text.count("\n#### "), 3)


class Plots(ConditionsTest):
    def test_each_condition_has_its_own_of_an_all_reduce(self):
        factors = {"shared": (1, SHIPS), "apart": (2, APART), "shared_full": (3, FULL)}
        self.page_of(*(one for factor, more in factors.values() for one in sizes("iridium", factor, **more)))
        names = {name: f"box_all_reduce_2_{name}_latency.svg" for name in factors}
        self.assertEqual([name for name in self.plot_names() if "latency" in name], sorted(names.values()))
        for name, words in (
            ("shared", "as it ships on a shared GPU"),
            ("apart", "as if on several GPUs"),
            ("shared_full", "grids that may fill the GPU"),
        ):
            self.assertIn(f"all_reduce, 2 ranks, graph, {words}: latency", self.words_of(names[name]))
            lines = self.svg(names[name]).iter(f"{SVG}polyline")
            self.assertEqual([len(line.get("points").split()) for line in lines], [3])

    def test_other_operations_have_those_of_the_first_conditions(self):
        apart, full = (sizes("iridium", 1, operation="put", **more) for more in (APART, FULL))
        text = self.page_of(*apart, *full)
        self.assertEqual(self.plot_names(), ["box_put_2_apart_bandwidth.svg", "box_put_2_apart_latency.svg"])
        self.assertIn("](performance/box_put_2_apart_latency.svg)", self.section(text, APART_HEADING))
        self.assertNotIn(".svg", self.section(text, FULL_HEADING))

    def test_a_long_title_has_room(self):
        more = {"link": "pcie_atomics", "op": "sum"}
        self.page_of(*sizes("iridium", 1, operation="reduce_scatter_columns", **more))
        svg = self.svg("box_reduce_scatter_columns_2_pcie_atomics_full_latency.svg")
        self.assertGreater(int(svg.get("width")), 800)


class Ratios(ConditionsTest):
    def ratios(self, text, begin):
        """Lines of the table below a sentence."""
        self.assertEqual(text.count(begin), 1)
        return text.split(begin)[1].split("\n\n")[1].split("\n")

    def beside_torch(self, *figures):
        return self.ratios(self.page_of(*figures), "**Iridium beside torch**")

    def test_they_are_of_the_same_conditions_and_ranks(self):
        figures = [barrier(1, **SHIPS), barrier(2, contender="torch", **SHIPS)]
        figures += [barrier(3, **APART), barrier(4, contender="torch", **APART)]
        figures += [barrier(9, **FULL), barrier(10, contender="torch", **FULL)]
        figures += [barrier(6, ranks=4, **SHIPS), barrier(5, ranks=4, contender="torch", **SHIPS)]
        table = [
            "| operation | bytes | 2 ranks, as it ships on a shared GPU | 2 ranks, as if on several GPUs "
            "| 2 ranks, grids that may fill the GPU | 4 ranks, as it ships on a shared GPU |",
            "| --- | --- | --- | --- | --- | --- |",
            "| device_barrier | none | 0.50 | 0.75 | 0.90 | 1.20 |",
        ]
        self.assertEqual(self.beside_torch(*figures), table)

    def test_they_are_of_the_better_form_and_of_what_iridium_chooses(self):
        forms = [torch(4, "one_shot"), torch(8, "two_shot"), torch(1, "two_shot", mode="eager"), torch(2, "x", ranks=4)]
        figures = [ours(3, memory="plain"), ours(2, memory="symmetric"), ours(1, memory="symmetric", blocks=8)]
        figures += [figure(1, algorithm="ring", memory="plain"), ours(1, tile=2), ours(1, mode="eager"), *forms]
        rows = self.beside_torch(*figures)[2:]
        self.assertEqual(rows, ["| all_reduce | 1 MiB | plain | 0.75 |", "| all_reduce | 1 MiB | symmetric | 0.50 |"])

    def test_what_is_missing_is_a_dash(self):
        figures = [ours(1, **SHIPS), torch(2, "a", **SHIPS), ours(1, **APART), torch(2, "a", **APART)]
        figures += [ours(1, bytes=8, **SHIPS), torch(4, "a", bytes=8, **SHIPS)]
        figures += [ours(1, bytes=8, **APART), torch(0, "a", bytes=8, skipped="why", **APART)]
        figures += [ours(1, bytes=16, **SHIPS), torch(0, "a", bytes=32, failed="why", **SHIPS)]
        figures += [ours(0, bytes=64, failed="why", **SHIPS), torch(1, "a", bytes=64, **SHIPS)]
        rows = self.beside_torch(*figures)[2:]
        self.assertEqual(rows, ["| all_reduce | 8 B | 0.25 | – |", "| all_reduce | 1 MiB | 0.50 | 0.50 |"])

    def test_a_form_that_was_left_out_is_marked(self):
        figures = [ours(1), torch(2, "one_shot"), torch(0, "two_shot", skipped="hangs"), ours(1, bytes=8)]
        text = self.page_of(*figures, torch(2, "one_shot", bytes=8), torch(3, "two_shot", bytes=8))
        rows = self.ratios(text, "**Iridium beside torch**")[2:]
        self.assertEqual(rows, ["| all_reduce | 8 B | 0.50 |", "| all_reduce | 1 MiB | 0.50† |"])
        self.assertIn("\n† Another form of torch's was skipped or failed.\n", text)
        self.assertNotIn("†", self.page_of(ours(1), torch(2, "one_shot")))

    def test_times_that_are_not_steady_are_marked(self):
        self.assertIn("| ~0.50 |", self.beside_torch(ours(1, p10_us=0.4), torch(2, "a"))[2])
        self.assertIn("| ~0.50 |", self.beside_torch(ours(1), torch(2, "a", p90_us=9))[2])

    def test_types_and_reductions_have_columns_where_there_are_several(self):
        figures = [one(1, op=op) for op in ("max", "sum") for one in (ours, lambda time, op: torch(time, "a", op=op))]
        self.assertEqual(self.beside_torch(*figures)[0].split(" | ")[:3], ["| operation", "bytes", "op"])
        self.assertEqual(len(self.beside_torch(*figures)), 4)

    def test_what_room_for_compute_costs(self):
        figures = [ours(3, **SHIPS), ours(2, **FULL), ours(9, bytes=8, **SHIPS), ours(9, bytes=16, **FULL)]
        figures += [barrier(3, ranks=4, **APART), barrier(4, ranks=4, link="apart"), torch(1, "a", **SHIPS)]
        figures += [ours(3, bytes=64, **APART), ours(2, bytes=64, **FULL)]
        figures += [torch(2, "a", **FULL), figure(5, operation="put"), figure(5, operation="put", **SHIPS)]
        text = self.page_of(*figures)
        table = [
            "| operation | bytes | 2 ranks | 4 ranks, as if on several GPUs |",
            "| --- | --- | --- | --- |",
            "| device_barrier | none | – | 0.75 |",
            "| all_reduce | 1 MiB | 1.50 | – |",
        ]
        self.assertEqual(self.ratios(text, "**What room for compute costs**"), table)

    def test_there_are_no_tables_without_data(self):
        unlike = [torch(1, "a"), ours(1, **SHIPS)]
        for figures in ([ours(1, **SHIPS), ours(1, **APART)], unlike, [figure(operation="put")]):
            text = self.page_of(*figures)
            self.assertNotIn("beside torch", text)
            self.assertNotIn("room for compute costs", text)

    def test_they_stand_above_the_operations(self):
        text = self.page_of(barrier(1), barrier(2, contender="torch"), figure(operation="all_gather"))
        self.assertLess(text.index("## box\n"), text.index("**Iridium beside torch**"))
        self.assertLess(text.index("**Iridium beside torch**"), text.index("### all_gather"))


class BadInput(ConditionsTest):
    def refused(self, *figures):
        self.put(run(*figures, machine=GPU))
        status, said = self.call()
        self.assertEqual(status, 1)
        self.assertFalse(self.page.exists())
        return said

    def test_figures_of_the_same_conditions_twice(self):
        for more in (SHIPS, APART, FULL):
            with self.subTest(json.dumps(more)):
                said = self.refused(figure(1, **SHIPS), figure(1, **APART), figure(1, **FULL), figure(2, **more))
                self.assertIn("figures[3] is the same as ", said)

    def test_the_defaults_may_be_written_out(self):
        self.assertIn("is the same as", self.refused(figure(link="shared", beside_compute=False), figure()))

    def test_fields_of_another_kind(self):
        self.assertIn("figures[0].link must be text, not 7", self.refused(figure(link=7)))
        words = 'figures[0].link must be shared, apart, nvlink, pcie_atomics or pcie, not "wire"'
        self.assertIn(words, self.refused(figure(link="wire")))
        self.assertIn("figures[0].beside_compute must be true or false, not 1", self.refused(figure(beside_compute=1)))


if __name__ == "__main__":
    unittest.main()
