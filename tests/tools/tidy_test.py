"""What clang-tidy's cache takes for the same file, and how long it keeps it."""

import os
import pathlib
import time
import unittest

import tidy
from trees import TreeTest

FILES = {
    ".clang-tidy": "Checks: '*'",
    "src/a.cpp": '#include "b.h"\n',
    "src/b.h": '#include "iridium/c.h"\n',
    "include/iridium/c.h": "",
    "include/iridium/other.h": "",
}


class Keys(TreeTest):
    def key(self, folder, changes=None, environment=b"clang-tidy 19", option="-O2"):
        root = self.root / folder
        self.plant({f"{folder}/{name}": text for name, text in {**FILES, **(changes or {})}.items()})
        command = f"c++ -I{root}/include {option} -c {root}/src/a.cpp"
        return tidy.Hasher(root, environment).key(pathlib.Path("src/a.cpp"), command)

    def test_another_checkout_has_the_same(self):
        self.assertEqual(self.key("one"), self.key("two/deeper"))

    def test_what_the_file_does_not_include_changes_nothing(self):
        self.assertEqual(self.key("one"), self.key("one", {"include/iridium/other.h": "int i;"}))

    def test_all_it_depends_on_changes_it(self):
        keys = {
            self.key("one"),
            self.key("one", {"src/a.cpp": '#include "b.h"\nint i;'}),
            self.key("one", {"include/iridium/c.h": "int i;"}),
            self.key("one", {".clang-tidy": "Checks: 'misc-*'"}),
            self.key("one", environment=b"clang-tidy 20"),
            self.key("one", option="-DNDEBUG"),
        }
        self.assertEqual(len(keys), 6)


class OutsideVersions(TreeTest):
    def test_headers_without_a_package_count_by_their_text(self):
        self.plant({"x/own.h": "1", "y/own.h": "2", "y/more.h": "3"})
        folders = [self.root / "x", self.root / "y"]
        self.assertEqual(tidy.outside_versions({"own.h", "more.h", "missing.h"}, folders), b"13")

    @unittest.skipUnless(pathlib.Path("/usr/include/gtest/gtest.h").exists(), "GoogleTest is not in the system's folder")
    def test_headers_of_packages_count_by_the_version(self):
        versions = tidy.outside_versions({"gtest/gtest.h"}, [pathlib.Path("/usr/include")])
        self.assertIn(b"libgtest-dev", versions)
        self.assertNotIn(b"#include", versions)

    def test_headers_that_clang_tidy_never_reads_do_not_count(self):
        texts = ['#include <vector>\n#include "own.h"\n', "#include <hip/hip_runtime.h>\n"]
        self.assertEqual(tidy.outside_headers(texts), {"vector"})

    def test_the_compiler_says_where_headers_are(self):
        folders = tidy.system_folders(["c++ -isystem /somewhere -c a.cpp", "c++ -isystem/else"])
        self.assertTrue(any((folder / "vector").is_file() for folder in folders))
        self.assertEqual(folders[-2:], [pathlib.Path("/else"), pathlib.Path("/somewhere")])


class Commands(unittest.TestCase):
    def test_clang_is_not_given_what_gcc_has_precompiled(self):
        entry = {"command": "c++ -O2 -Winvalid-pch -include /b/cmake_pch.hxx -c a.cpp", "file": "a.cpp"}
        self.assertEqual(tidy.as_host_command(entry)["command"], "c++ -O2 -c a.cpp")

    def test_what_nvcc_compiles_becomes_c_plus_plus(self):
        entry = {"command": "/x/nvcc -DA -I/i -isystem=/s -arch=sm_90 -x cu -c a.cpp", "file": "a.cpp"}
        self.assertEqual(tidy.as_host_command(entry)["command"], "c++ -std=c++20 -DA -I/i -isystem/s -c a.cpp")


class Caches(TreeTest):
    def test_what_was_of_use_stays_and_the_old_goes(self):
        cache = tidy.Cache(self.root / "cache")
        for key in ("old", "used", "new"):
            cache.add(key)
        long_ago = time.time() - 2 * tidy.Cache.MAX_AGE
        for key in ("old", "used"):
            os.utime(self.root / "cache" / key, (long_ago, long_ago))
        self.assertTrue(cache.has("used"))
        self.assertFalse(cache.has("never"))
        cache.prune()
        self.assertEqual(sorted(os.listdir(self.root / "cache")), ["new", "used"])

    def test_of_too_many_the_oldest_go(self):
        cache = tidy.Cache(self.root / "cache")
        cache.MAX_ENTRIES = 2
        for age, key in enumerate(("newest", "middle", "oldest")):
            cache.add(key)
            os.utime(self.root / "cache" / key, (time.time() - age, time.time() - age))
        cache.prune()
        self.assertEqual(sorted(os.listdir(self.root / "cache")), ["middle", "newest"])


if __name__ == "__main__":
    unittest.main()
