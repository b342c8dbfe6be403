"""Which tests have the label "quick" and are not."""

import unittest

import slow_tests
from trees import TreeTest

RESULTS = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="x" tests="4">
  <testcase name="slow" time="7.5"><properties><property name="cmake_labels" value="in_process_quick"/></properties></testcase>
  <testcase name="slower" time="60"><properties><property name="cmake_labels" value="quick"/></properties></testcase>
  <testcase name="fast" time="0.5"><properties><property name="cmake_labels" value="quick"/></properties></testcase>
  <testcase name="other" time="60"><properties><property name="cmake_labels" value="quickly"/></properties></testcase>
  <testcase name="bare" time="60"/>
</testsuite>
"""


class SlowTests(TreeTest):
    def test_only_those_with_the_label_the_slowest_first(self):
        self.plant({"results.xml": RESULTS})
        self.assertEqual(slow_tests.too_slow(self.root / "results.xml"), [(60.0, "slower"), (7.5, "slow")])


if __name__ == "__main__":
    unittest.main()
