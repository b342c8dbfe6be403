"""Plants one violation at a time in a clean tree and expects the layer check to name it."""

import pathlib
import subprocess
import sys
import unittest

import check_layers
from trees import TreeTest

CLEAN = {
    "include/iridium/device/block.h": "#pragma once\n",
    "include/iridium/errors.h": '#include <string>\n#include "iridium/device/block.h"\n',
    "src/base/log.h": '#include "iridium/errors.h"\n',
    "src/backend/backend.h": '#include "base/log.h"\n',
    "src/backend/registry.cpp": '#include "backend/host/window.h"\n',
    "src/backend/host/window.h": '#include "backend/backend.h"\n',
    "src/backend/cuda/window.h": '#include <cuda_runtime.h>\n',
    "src/runtime/heap.h": '#include <fmt/format.h>\n#include "backend/backend.h"\n',
    "src/trace/trace.cpp": '#include "runtime/heap.h"\n',
    "src/collectives/gather/launch.h": '#include "runtime/heap.h"\n',
    "src/fused/matmul/launch.cpp": '#include "collectives/gather/launch.h"\n',
    "cli/options.h": '#include <CLI/CLI.hpp>\n#include "iridium/errors.h"\n',
    "cli/main.cpp": '#include "cli/options.h"\n#include <iridium/errors.h>\n',
    "tests/runtime/heap_test.cpp": '#include "runtime/heap.h"\n#include <cuda.h>\n',
}

VIOLATIONS = {
    "device includes public": ("include/iridium/device/block.h", '"iridium/errors.h"'),
    "public includes source": ("include/iridium/errors.h", '"base/log.h"'),
    "public includes heavy": ("include/iridium/errors.h", "<fmt/core.h>"),
    "base includes runtime": ("src/base/log.h", '"runtime/heap.h"'),
    "interface includes a backend": ("src/backend/backend.h", '"backend/host/window.h"'),
    "backend includes a sibling": ("src/backend/host/window.h", '"backend/cuda/window.h"'),
    "backend includes runtime": ("src/backend/host/window.h", '"runtime/heap.h"'),
    "runtime includes a backend": ("src/runtime/heap.h", '"backend/host/window.h"'),
    "runtime includes collectives": ("src/runtime/heap.h", '"collectives/gather/launch.h"'),
    "runtime includes a vendor header": ("src/runtime/heap.h", "<cuda_runtime_api.h>"),
    "host backend includes a vendor header": ("src/backend/host/window.h", "<hip/hip_runtime.h>"),
    "command line includes source": ("cli/main.cpp", '"runtime/heap.h"'),
    "command line includes source from the top": ("cli/main.cpp", '"src/runtime/heap.h"'),
    "command line includes source by climbing": ("cli/main.cpp", '"../src/runtime/heap.h"'),
    "source includes tests": ("src/runtime/heap.h", '"../tests/runtime/heap_test.cpp"'),
    "not from src/": ("src/runtime/heap.h", '"heap.h"'),
    "no such file": ("src/runtime/heap.h", '"runtime/nothing.h"'),
    "no such public header": ("cli/main.cpp", "<iridium/nothing.h>"),
}


class CheckLayers(TreeTest):
    def setUp(self):
        super().setUp()
        self.plant(CLEAN)

    def test_clean_tree_passes(self):
        self.assertEqual(list(check_layers.check(self.root)), [])

    def test_each_violation_is_named(self):
        for title, (path, header) in VIOLATIONS.items():
            with self.subTest(title):
                self.plant({path: CLEAN[path] + f"#include {header}\n"})
                found = list(check_layers.check(self.root))
                self.plant({path: CLEAN[path]})
                line = CLEAN[path].count("\n") + 1
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith(f"{path}:{line}: {header[1:-1]}: "), found)

    def test_folder_without_a_layer_is_named(self):
        self.plant({"src/extras/thing.cpp": "int x;\n"})
        self.assertIn("belongs to no layer", "".join(check_layers.check(self.root)))

    def test_program_fails_on_a_violation(self):
        script = pathlib.Path(check_layers.__file__)
        command = [sys.executable, "-B", script, self.root]
        self.assertEqual(subprocess.run(command, check=False).returncode, 0)
        self.plant({"src/base/log.h": '#include "runtime/heap.h"\n'})
        run = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn(b"base may not include runtime", run.stdout)


if __name__ == "__main__":
    unittest.main()
