"""What tools/gpu_check.sh runs in which mode: with programs that only say how they were called."""

import json
import os
import subprocess
import unittest

from project_files import ROOT
from trees import TreeTest

SAY = 'printf "%s|%s|%s|%s|%s|%s|%s\\n" "$NAME $*" "${CUDA_VISIBLE_DEVICES:-all}" "${CUDA_MPS_PIPE_DIRECTORY:-none}" '
SAY += '"${IRIDIUM_LINK:-none}" "${IRIDIUM_TEST_MOST_RANKS:-none}" "${IRIDIUM_TIMEOUT:-none}" "${IRIDIUM_BACKEND:-none}" >> "$FAKE_LOG"\n'
# A rank that somebody started by hand.
RANK = 'echo "$NAME|${IRIDIUM_RANK:-none} of ${IRIDIUM_SIZE:-none}|$IRIDIUM_JOB|${IRIDIUM_CONSTRUCTION_TIMEOUT:-none}" >> "$FAKE_LOG"\n'
RANK += '[[ ${IRIDIUM_RANK:-} != "${FAKE_BAD_RANK:-}" ]] || exit 3\n'
RANK += 'echo "iridium[0] warn: ${FAKE_NOTICE:-has waited 10 s for rank 1} at step rendezvous" >&2\n'
UNSHARE = 'echo "$NAME $*" >> "$FAKE_LOG"\n[[ -z ${FAKE_FORBIDS:-} ]] || exit 1\n'
UNSHARE += 'while [[ $1 == -* ]]; do shift; done\nexec "$@"\n'
HEAD = "#!/usr/bin/env bash\nNAME=${0##*/}\n"
IRIDIUM = (
    HEAD
    + 'case "$*" in info | "info --settings") exit 0 ;; "info --format json") cat "$FAKE_INFO"; exit 0 ;; esac\n'
    + SAY
)
SUITE = (
    HEAD
    + SAY
    + '[[ $NAME != "${FAKE_HANG:-}" ]] || exec tail -f /dev/null\n'
    + 'for word in "$@"; do [[ $word != --gtest_output=xml:* ]] || file=${word#*xml:}; done\n'
    + 'case=\'<testcase status="run" result="completed"/>\'\n'
    + '[[ $NAME != "${FAKE_FAILURE:-}" ]] || case=\'<testcase status="run"><failure message="no"/></testcase>\'\n'
    + 'echo "<testsuites><testsuite>$case</testsuite></testsuites>" > "$file"\n'
)
SUITES = (
    "backend/cuda/cuda_test device/tile_test device/device_test runtime/ranks_test collectives/collectives_test "
    "matmul/matmul_test fused/fused_test probe/probe_test cli/cli_test"
).split()
PARTS = "cuda tiles kernels ranks collectives matmul probe room mps examples commands code sanitizer".split()

ALL_BUT_CODE = ",".join(part for part in PARTS if part != "code")


class GpuCheck(TreeTest):
    def setUp(self):
        super().setUp()
        programs = {f"build/tests/{name}": SUITE for name in SUITES} | {"build/iridium": IRIDIUM}
        programs |= {f"build/examples/{name}": HEAD for name in ("01_ranks_and_arrays", "07_graph", "10_all_reduce")}
        programs["build/examples/10_all_reduce"] = HEAD + RANK
        programs |= {"bin/nvidia-cuda-mps-control": HEAD + SAY, "bin/ps": "#!/bin/sh\n"}
        programs |= {"bin/unshare": HEAD + UNSHARE, "bin/sleep": HEAD + 'echo "$NAME $*" >> "$FAKE_LOG"\n'}
        for tool in ("cuobjdump", "compute-sanitizer"):
            programs[f"bin/{tool}"] = HEAD + SAY
        self.plant(programs)
        for name in programs:
            (self.root / name).chmod(0o755)

    def check(self, *words, gpus=1, unusable=(), **variables):
        """The status, what was printed, and the calls as dictionaries."""
        devices = [{"objection": "it is a MIG instance" if i in unusable else ""} for i in range(gpus)]
        backend = {"name": "cuda", "available": gpus > len(unusable), "devices": devices}
        log, info = self.root / "calls", self.root / "info.json"
        info.write_text(json.dumps({"backends": [backend]}))
        log.write_text("")
        names = ("IRIDIUM_LINK", "IRIDIUM_TIMEOUT", "CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY", "GPU_CHECK_LOGS")
        names += ("GPU_CHECK_LIMIT", "IRIDIUM_CONSTRUCTION_TIMEOUT")
        environment = {name: value for name, value in os.environ.items() if name not in names}
        environment |= {"IRIDIUM_BUILD": str(self.root / "build"), "FAKE_LOG": str(log), "FAKE_INFO": str(info)}
        environment |= {"PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"} | variables
        done = subprocess.run(
            [ROOT / "tools/gpu_check.sh", *words], env=environment, capture_output=True, text=True, check=False
        )
        fields = ("call", "gpus", "mps", "link", "most_ranks", "timeout", "backend")
        calls = [dict(zip(fields, line.split("|"))) for line in log.read_text().splitlines()]
        return done.returncode, done.stdout + done.stderr, calls

    def of(self, calls, name):
        return [call for call in calls if call["call"].startswith(name)]

    def test_one_gpu_is_shared(self):
        status, said, calls = self.check("--part", ALL_BUT_CODE)
        self.assertEqual(status, 0, said)
        for name in SUITES:
            with self.subTest(name):
                for call in self.of(calls, name.split("/")[1]):
                    under_mps = call["mps"].startswith("/tmp") or str(self.root) in call["mps"]
                    self.assertEqual(under_mps, name != "cli/cli_test")
                    self.assertEqual((call["gpus"], call["link"], call["most_ranks"]), ("all", "none", "none"))
                    self.assertEqual(call["timeout"], "30")
                    asks = name not in ("backend/cuda/cuda_test", "cli/cli_test")
                    self.assertEqual(call["backend"], "cuda" if asks else "none")
        rooms = [call for call in self.of(calls, "iridium run") if "/room --teams" in call["call"]]
        self.assertEqual(len(rooms), 6)
        examples = [call for call in self.of(calls, "iridium run") if call not in rooms]
        self.assertEqual(len(self.of(examples, "iridium run -n 8 ")), 1)
        self.assertEqual(len(self.of(examples, "iridium run -n 4 ")), 3)
        started = [call for call in self.of(calls, "nvidia-cuda-mps-control") if call["call"].endswith("-d")]
        self.assertEqual(len(started), 7)
        for part in ALL_BUT_CODE.split(","):
            self.assertRegex(said, rf"(?m)^shared +{part} +\d+ s$")

    def test_several_gpus_are_apart_and_then_shared(self):
        status, said, calls = self.check("--part", ALL_BUT_CODE, gpus=2)
        self.assertEqual(status, 0, said)
        apart, shared = self.of(calls, "device_test")
        self.assertEqual((apart["gpus"], apart["mps"], apart["most_ranks"]), ("all", "/nonexistent", "2"))
        self.assertEqual((shared["gpus"], shared["most_ranks"]), ("0", "none"))
        self.assertNotIn(shared["mps"], ("none", "/nonexistent"))
        self.assertEqual([call["gpus"] for call in self.of(calls, "iridium run -n 8 ")], ["0"] * 3)
        for command in ("probe", "info --peers"):
            self.assertEqual([call["gpus"] for call in self.of(calls, f"iridium {command} -n 4 ")], ["0"])
        self.assertIn("skipped example_4_ranks: 4 ranks, and 2 GPUs\n", said)
        self.assertEqual(len(self.of(calls, "compute-sanitizer")), 1)
        self.assertLess(said.index("== apart: cuda"), said.index("== shared: cuda"))

    def test_the_shared_one_is_the_first_that_is_visible(self):
        _, _, calls = self.check("--mode", "shared", "--part", "tiles", gpus=2, CUDA_VISIBLE_DEVICES="3,5")
        self.assertEqual([call["gpus"] for call in self.of(calls, "tile_test")], ["3"])
        # The daemon sees all of them, so that numbers mean the same to it.
        self.assertEqual(self.of(calls, "nvidia-cuda-mps-control -d")[0]["gpus"], "all")

    def test_links(self):
        status, said, calls = self.check("--mode", "as_apart,as_nvlink,no_atomics", "--part", "kernels", IRIDIUM_TIMEOUT="7")
        self.assertEqual(status, 0, said)
        found = [(call["call"].split()[0], call["link"], call["timeout"]) for call in self.of(calls, "device_test")]
        self.assertEqual(found, [("device_test", link, "7") for link in ("apart", "nvlink", "pcie")])

    def test_parts(self):
        status, said, calls = self.check("--part", "tiles,collectives")
        self.assertEqual(status, 0, said)
        names = {call["call"].split()[0] for call in calls}
        self.assertEqual(names, {"tile_test", "collectives_test", "nvidia-cuda-mps-control"})
        self.assertIn("\n2 passed, 0 failed\n", said)

    def test_without_parts_all_run(self):
        # The fake instructions are none, which is what the part `code` objects to.
        status, said, calls = self.check(gpus=2)
        self.assertEqual((status, len(self.of(calls, "cuobjdump"))), (1, 3))
        for part in PARTS:
            self.assertRegex(said, rf"(?m)^apart +{part} +\d+ s$")

    def test_full(self):
        sample, full = (self.of(self.check(*words, "--part", "ranks")[2], "ranks_test") for words in ((), ("--full",)))
        self.assertEqual(sample[0], sample[0] | {"call": full[0]["call"].replace("/full/", "/sample/")})
        self.assertNotEqual(sample[1]["call"], full[1]["call"])

    def test_failures(self):
        status, said, _ = self.check("--part", "tiles,kernels", FAKE_FAILURE="tile_test")
        self.assertEqual((status, said.endswith("\n1 passed, 1 failed\n")), (1, True))

    def test_a_part_that_breaks_has_failed(self):
        (self.root / "bin/nvidia-cuda-mps-control").write_text("#!/bin/sh\nexit 1\n")
        status, said, calls = self.check("--part", "tiles")
        self.assertEqual((status, said.endswith("\n0 passed, 1 failed\n"), calls), (1, True, []))

    def test_gpus_that_cannot_be_used_are_left_out(self):
        _, said, calls = self.check("--part", "tiles", gpus=3, unusable=(0,))
        self.assertEqual([call["gpus"] for call in self.of(calls, "tile_test")], ["1,2", "1"])
        self.assertIn("CUDA_VISIBLE_DEVICES is 1,2: 1 of 3 GPUs cannot be used\n", said)
        _, said, calls = self.check("--part", "tiles", gpus=2, unusable=(0,), CUDA_VISIBLE_DEVICES="5,GPU-7")
        self.assertEqual([call["gpus"] for call in self.of(calls, "tile_test")], ["GPU-7"])
        self.assertNotIn("== apart", said)
        status, said, _ = self.check("--mode", "apart", "--part", "tiles", gpus=2, unusable=(1,))
        self.assertEqual(status, 2)
        self.assertIn("apart needs several GPUs", said)

    def test_what_takes_too_long_is_ended_and_the_limit_named(self):
        status, said, _ = self.check("--part", "tiles,kernels", FAKE_HANG="tile_test", GPU_CHECK_LIMIT="1")
        self.assertEqual((status, said.endswith("\n1 passed, 1 failed\n")), (1, True), said)
        self.assertIn("gpu-check: ended after 1 s; GPU_CHECK_LIMIT=SECONDS gives each program more\n", said)
        for limit in ("0", "soon", "1.5"):
            status, said, calls = self.check(GPU_CHECK_LIMIT=limit)
            self.assertEqual((status, calls), (2, []))
            self.assertIn(f"GPU_CHECK_LIMIT is '{limit}': expected a whole number of seconds", said)

    def commands(self, **variables):
        """The status, what was printed, and the calls of the part `commands`, as they were written."""
        status, said, _ = self.check("--part", "commands", **variables)
        return status, said, (self.root / "calls").read_text().splitlines()

    def test_ranks_started_by_hand(self):
        status, said, calls = self.commands()
        self.assertEqual(status, 0, said)
        ranks = [call.split("|")[1:] for call in calls if call.startswith("10_all_reduce|")]
        self.assertEqual(sorted(rank for rank, _, _ in ranks), ["0 of 2"] * 2 + ["1 of 2"] * 2)
        jobs = {job: timeout for _, job, timeout in ranks}
        self.assertEqual(sorted(jobs.values()), ["120", "30"], "two jobs, one of which waits for long")
        for delay in ("0", "40"):
            self.assertEqual(calls.count(f"sleep {delay}"), 1)
        apart = [call for call in calls if call.startswith("unshare ") and call.endswith("/10_all_reduce")]
        self.assertEqual(len(apart), 2)
        for name in ("ranks_with_own_process_numbers", "rank_40_s_late"):
            self.assertRegex(said, rf"(?m)^ok      {name}, ")

    def test_ranks_started_by_hand_that_fail(self):
        status, said, _ = self.commands(FAKE_BAD_RANK="1")
        self.assertEqual(status, 1)
        for name in ("ranks_with_own_process_numbers", "rank_40_s_late"):
            self.assertRegex(said, rf"(?m)^FAILED  {name}: ")
        self.assertEqual(said.count("gpu-check: rank 1 ended with status 3\n"), 2)
        status, said, _ = self.commands(FAKE_NOTICE="is silent")
        self.assertEqual(status, 1)
        self.assertRegex(said, r"(?m)^FAILED  rank_40_s_late: ")
        self.assertIn("gpu-check: rank 0 did not say within 10 s that it waits for rank 1\n", said)

    def test_without_unshare_the_rest_goes_on(self):
        status, said, calls = self.commands(FAKE_FORBIDS="1")
        self.assertEqual(status, 0, said)
        self.assertIn("skipped ranks_with_own_process_numbers: unshare is not permitted here\n", said)
        self.assertEqual(len([call for call in calls if call.startswith("10_all_reduce|")]), 2)

    def test_what_it_refuses(self):
        for words, said_too in (
            (("--mode", "alone"), "no mode 'alone'; there are shared apart as_apart as_nvlink no_atomics"),
            (("--part", "tiles,nothing"), "no part 'nothing'; there are cuda tiles"),
            (("--mode", "apart"), "apart needs several GPUs, and one is visible"),
            (("--mode",), "--mode needs a value"),
            (("sample",), "what is 'sample'?"),
        ):
            with self.subTest(words):
                status, said, calls = self.check(*words)
                self.assertEqual((status, calls), (2, []))
                self.assertIn(said_too, said)

    def test_a_build_folder_without_programs_is_refused(self):
        status, said, _ = self.check(IRIDIUM_BUILD=str(self.root / "nothing"))
        self.assertEqual(status, 2)
        self.assertIn("nothing', which has no iridium", said)
        self.assertNotIn("Traceback", said)

    def test_without_a_gpu(self):
        status, said, calls = self.check(gpus=0)
        self.assertEqual((status, calls), (1, []))
        self.assertIn("no usable GPU here", said)

    def test_help_has_every_mode_and_part(self):
        status, said, _ = self.check("--help")
        self.assertEqual(status, 0)
        for word in PARTS + ["shared", "apart", "as_apart", "as_nvlink", "no_atomics"]:
            self.assertRegex(said, rf"(?m)^  {word} ")


if __name__ == "__main__":
    unittest.main()
