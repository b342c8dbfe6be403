#!/usr/bin/env python3
"""Checks text files for paths of one machine, notes to oneself and length: check_words.py [root]"""

import argparse
import pathlib
import re
import sys

from project_files import ROOT, project_files

MACHINE_PATH = re.compile(r"(?<![\w.}-])/(root|work|(home|Users)/\w+)/")
NOTE = re.compile(r"\b(TO[D]O|FIXM[E]|XX[X])\b")
MAX_LINES = 700
LIMITED = (".h", ".cpp", ".cu", ".py", ".sh", ".cmake", ".txt", ".md", "Makefile")
UNLIMITED = ("CHANGELOG.md", "performance.md")  # What grows with every version, and what is made from figures.


def check(root):
    """Messages, one per finding."""
    for path in project_files(root):
        try:
            lines = (root / path).read_text().splitlines()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, 1):
            if found := MACHINE_PATH.search(line):
                yield f"{path}:{number}: {found[0]} is a path of one machine"
            if found := NOTE.search(line):
                yield f"{path}:{number}: {found[0]}: open an issue instead"
        if path.name.endswith(LIMITED) and path.name not in UNLIMITED and len(lines) > MAX_LINES:
            yield f"{path}: {len(lines)} lines, the limit is {MAX_LINES}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=ROOT)
    findings = list(check(parser.parse_args().root.resolve()))
    print("\n".join(findings), end="\n" if findings else "")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
