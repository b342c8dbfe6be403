"""Which files are the project's, and what their includes mean."""

import os
import pathlib
import shutil
import subprocess
import unittest

import project_files
from trees import TreeTest


class ProjectFiles(TreeTest):
    def setUp(self):
        super().setUp()
        # Inside a git hook these name the real repository.
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            del os.environ[name]

    def names(self, *suffixes):
        return [str(path) for path in project_files.project_files(self.root, suffixes)]

    def test_without_git_build_folders_are_left_out(self):
        self.plant({"src/a.h": "", "build/b.h": "", "build-asan/c.h": "", "README.md": ""})
        self.assertEqual(self.names(), ["README.md", "src/a.h"])
        self.assertEqual(self.names(".h"), ["src/a.h"])

    @unittest.skipUnless(shutil.which("git"), "there is no git")
    def test_with_git_new_files_count_and_ignored_ones_do_not(self):
        self.plant({"src/a.h": "", "out/b.h": "", ".gitignore": "/out/\n", "gone.h": ""})
        subprocess.run(["git", "init", "-q", self.root], check=True)
        subprocess.run(["git", "-C", self.root, "add", "gone.h"], check=True)
        (self.root / "gone.h").unlink()
        self.assertEqual(self.names(".h"), ["src/a.h"])

    def test_includes_have_lines(self):
        text = '#pragma once\n\n#include <a>\n  # include "b/c.h"  // why\n// #include "d.h"\n'
        self.assertEqual(list(project_files.includes(text)), [(3, "<", "a"), (4, '"', "b/c.h")])

    def test_a_folder_of_its_own_comes_first(self):
        self.plant({"cli/x.h": "", "include/x.h": "", "src/x.h": ""})
        found = project_files.resolve_include(self.root, pathlib.Path("cli/main.cpp"), "x.h")
        self.assertEqual(str(found), "cli/x.h")
        found = project_files.resolve_include(self.root, pathlib.Path("src/a/b.cpp"), "x.h")
        self.assertEqual(str(found), "src/x.h")


if __name__ == "__main__":
    unittest.main()
