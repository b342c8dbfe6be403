#!/usr/bin/env python3
"""Says which tests whose label ends with "quick" are not: slow_tests.py file, a JUnit file of ctest."""

import sys
import xml.etree.ElementTree

LABEL = "quick"
MOST_SECONDS = 5.0


def too_slow(file):
    """(seconds, name) of the tests that are too slow for their label, the slowest first."""
    cases = xml.etree.ElementTree.parse(file).getroot().iter("testcase")
    slow = [(float(case.get("time", "0")), case.get("name")) for case in cases if _label(case).endswith(LABEL)]
    return sorted((case for case in slow if case[0] > MOST_SECONDS), reverse=True)


def _label(case):
    found = (item.get("value", "") for item in case.iter("property") if item.get("name") == "cmake_labels")
    return next(found, "")


def main():
    for seconds, name in too_slow(sys.argv[1]):
        print(f"no longer quick: {name}, {seconds:.1f} s (the label '{LABEL}' is for at most {MOST_SECONDS:.0f} s)")


if __name__ == "__main__":
    main()
