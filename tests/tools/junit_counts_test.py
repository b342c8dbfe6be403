"""Counts of a results file as ctest writes it."""

import unittest

import junit_counts
from trees import TreeTest

RESULTS = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="x" tests="5" failures="1" disabled="1" skipped="2">
  <testcase name="a" status="run"><system-out>fine</system-out></testcase>
  <testcase name="b" status="fail"><failure message="no"/></testcase>
  <testcase name="c" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>
  <testcase name="d" status="disabled"><skipped message="Disabled"/></testcase>
  <testcase name="e" status="notrun"><skipped message="Unable to find executable"/></testcase>
</testsuite>
"""


class JunitCounts(TreeTest):
    def test_counts(self):
        self.plant({"results.xml": RESULTS})
        self.assertEqual(junit_counts.counts(self.root / "results.xml"), (1, 2, 2))

    def test_missing_file_is_an_error(self):
        with self.assertRaises(OSError):
            junit_counts.counts(self.root / "nothing.xml")


if __name__ == "__main__":
    unittest.main()
