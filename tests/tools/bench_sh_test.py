"""Which runs tools/bench.sh makes, and where it keeps them: with a program that only says how it was called."""

import json
import os
import shutil
import subprocess
import unittest

from project_files import ROOT
from trees import TreeTest

# Names the machine as iridium bench does.
IRIDIUM = r"""#!/usr/bin/env bash
[[ "$*" != "info --format json" ]] || { cat "$FAKE_INFO"; exit 0; }
echo "$*|${IRIDIUM_LINK:-}|${IRIDIUM_BESIDE_COMPUTE:-}" >> "$FAKE_LOG"
while [[ $1 != --out ]]; do shift; done
complete=true
[[ ${FAKE_CUT:-} != "${IRIDIUM_LINK:-none}" ]] || complete=false
link=${IRIDIUM_LINK:-$FAKE_LINK}
printf '{"machine": {"name": "%s"}, "complete": %s, "link": "%s"}' "$FAKE_MACHINE-$link" "$complete" "$link" > "$2"
[[ $complete == true ]] || exit 130
"""
PAGE = "import os\nopen(os.environ['FAKE_LOG'], 'a').write('page||\\n')\n"
# Says that torch is there.
PYTHON = '#!/usr/bin/env bash\n[[ "$*" != "-c import torch" ]] || exit 0\nexec python3 "$@"\n'


class BenchScript(TreeTest):
    def setUp(self):
        super().setUp()
        programs = {"build/iridium": IRIDIUM, "bin/python": PYTHON}
        programs |= {f"bin/{name}": "#!/bin/sh\n" for name in ("mpic++", "mpirun")}
        self.plant(programs | {"tools/performance_page.py": PAGE})
        for name in programs:
            (self.root / name).chmod(0o755)
        shutil.copy(ROOT / "tools/bench.sh", self.root / "tools/bench.sh")

    def bench(self, *words, gpus=1, unusable=0, **variables):
        """The status, the calls as (arguments, link, beside_compute), and the files of figures by path."""
        devices = [{"objection": "it is a MIG instance" if i < unusable else ""} for i in range(gpus)]
        backends = [{"name": "cuda", "available": gpus > unusable, "devices": devices}]
        backends += [{"name": "host", "available": True, "devices": [{"objection": ""}]}]
        info, log = self.root / "info.json", self.root / "calls"
        info.write_text(json.dumps({"backends": backends}))
        log.write_text("")
        shutil.rmtree(self.root / "bench", ignore_errors=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("IRIDIUM_")}
        environment |= {"FAKE_INFO": str(info), "FAKE_LOG": str(log), "FAKE_MACHINE": f"h200x{gpus}"}
        environment |= {"FAKE_LINK": "nvlink" if gpus - unusable > 1 else "shared"}
        environment |= {"PYTHON": "python", "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"}
        done = subprocess.run(
            [self.root / "tools/bench.sh", *words],
            env=environment | variables,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        calls = [tuple(line.split("|")) for line in log.read_text().splitlines()]
        results = self.root / "bench/results"
        files = {str(path.relative_to(results)): json.loads(path.read_text()) for path in results.glob("*/*")}
        return done.returncode, calls, files

    def names(self, files):
        self.assertEqual({name.split("/")[0] for name in files}, {next(iter(files)).split("/")[0]})
        return sorted(name.split("/")[1].removesuffix(".json") for name in files)

    def test_one_gpu_is_measured_in_every_mode_with_the_peers(self):
        status, calls, files = self.bench("--samples", "7")
        self.assertEqual(status, 0)
        self.assertEqual([call[1:] for call in calls], [("", ""), ("apart", ""), ("", "0"), ("", "0"), ("", "")])
        ships, apart, full, blocks, page = (call[0].split(" --out ")[0] for call in calls)
        self.assertEqual(ships, apart)
        self.assertTrue(ships.startswith("bench device_barrier signal_all put get put_signal all_reduce "))
        self.assertTrue(full.startswith("bench device_barrier all_reduce -n 2,4,8 "))
        for call in (ships, apart, full):
            self.assertTrue(call.endswith("--bytes 4K:64M --peer bench/peers/torch --samples 7"), call)
        self.assertNotIn("--peer", blocks)
        self.assertEqual(page, "page")

    def test_all_files_of_a_machine_are_in_one_folder(self):
        _, _, files = self.bench()
        names = ("bench", "bench_apart", "bench_blocks", "bench_full")
        links = ("shared", "apart", "shared", "shared")
        expected = {f"h200x1-shared/{name}.json": link for name, link in zip(names, links)}
        self.assertEqual({name: run["link"] for name, run in files.items()}, expected)

    def test_several_gpus_are_not_measured_as_if_apart(self):
        status, calls, files = self.bench(gpus=8)
        self.assertEqual((status, [call[1:] for call in calls]), (0, [("", ""), ("", "0"), ("", "")]))
        self.assertEqual(set(files), {f"h200x8-nvlink/{name}.json" for name in ("bench", "bench_blocks")})

    def test_grids_may_fill_gpus_that_ranks_share(self):
        self.assertEqual(self.names(self.bench(gpus=4)[2]), ["bench", "bench_blocks", "bench_full"])

    def test_gpus_that_cannot_be_used_do_not_count(self):
        self.assertIn("bench_apart", self.names(self.bench(gpus=2, unusable=1)[2]))
        self.assertEqual(self.names(self.bench(gpus=1, unusable=1)[2]), ["bench"])

    def test_cpus_have_one_mode(self):
        _, calls, files = self.bench(gpus=0)
        self.assertEqual(self.names(files), ["bench"])
        self.assertIn("--backend host --bytes 4K:16M --dtype fp32 --peer bench/peers/openmpi", calls[0][0])

    def test_what_can_be_left_out(self):
        for words, names in (
            (["--no-modes"], ["bench", "bench_blocks"]),
            (["--no-blocks"], ["bench", "bench_apart", "bench_full"]),
            (["--no-blocks", "--no-modes"], ["bench"]),
            (["--no-modes", "--no-blocks"], ["bench"]),
            (["--samples", "7", "--no-modes"], ["bench", "bench_blocks"]),
        ):
            with self.subTest(words):
                _, calls, files = self.bench(*words, "--no-baseline")
                self.assertEqual(self.names(files), names)
                self.assertIn(" --no-baseline --out ", calls[0][0])
                self.assertNotIn("--no-modes", calls[0][0])
                self.assertNotIn("--no-blocks", calls[0][0])

    def test_variables_do_not_change_what_it_measures(self):
        _, calls, _ = self.bench("--no-blocks", IRIDIUM_LINK="pcie", IRIDIUM_BESIDE_COMPUTE="0")
        self.assertEqual([call[1:] for call in calls], [("", ""), ("apart", ""), ("", "0"), ("", "")])

    def test_a_run_that_was_cut_short_is_not_kept(self):
        status, calls, files = self.bench(FAKE_CUT="apart")
        self.assertEqual((status, len(calls), self.names(files)), (130, 2, ["bench"]))


if __name__ == "__main__":
    unittest.main()
