#!/usr/bin/env python3
"""Prints "passed failed skipped" of a JUnit file of ctest or GoogleTest: junit_counts.py file"""

import sys
import xml.etree.ElementTree


def counts(file):
    passed = failed = skipped = 0
    for case in xml.etree.ElementTree.parse(file).getroot().iter("testcase"):
        if case.get("status") == "disabled" or _chose_to_skip(case):
            skipped += 1
        elif case.get("status") == "run" and case.find("failure") is None:
            passed += 1
        else:
            failed += 1
    return passed, failed, skipped


def _chose_to_skip(case):
    """ctest also calls tests skipped that it could not start, such as those that are not built."""
    if case.get("result") == "skipped":  # GoogleTest's word
        return True
    skipped = case.find("skipped")
    return skipped is not None and skipped.get("message", "").startswith("SKIP_")


def main():
    print(*counts(sys.argv[1]))


if __name__ == "__main__":
    main()
