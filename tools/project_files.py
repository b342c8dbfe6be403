#!/usr/bin/env python3
"""The project's own files: tracked ones and new ones that git does not ignore.

As a program: project_files.py [suffix...] prints those with one of the suffixes.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CPP_SUFFIXES = (".h", ".cpp", ".cu")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def project_files(root=ROOT, suffixes=()):
    """Sorted paths relative to `root`; all kinds when `suffixes` is empty."""
    root = pathlib.Path(root)
    paths = (p for p in _list_files(root) if not suffixes or p.name.endswith(tuple(suffixes)))
    return sorted(p for p in paths if (root / p).is_file() and not (root / p).is_symlink())


def _list_files(root):
    if (root / ".git").exists() and shutil.which("git"):
        command = ["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"]
        run = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        if run.returncode == 0:
            return [pathlib.Path(name) for name in run.stdout.decode().split("\0") if name]
    return _walk(root)


def _walk(root):
    """The same where git cannot say: in an unpacked archive, or in somebody else's checkout."""
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in (".git", ".venv", "__pycache__")]
        if pathlib.Path(folder) == root:
            folders[:] = [f for f in folders if f != "build" and not f.startswith("build-")]
        for name in names:
            yield (pathlib.Path(folder) / name).relative_to(root)


def includes(text):
    """(line, delimiter, header) of every #include in `text`."""
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(2)) + 1, match[1], match[2]


def resolve_include(root, path, header):
    """The project's file that `path` means by `header`, or None when it is not one of ours.

    Sources in src/ name headers from src/ and include/ only; other folders also from themselves
    and from the top.
    """
    top = path.parts[0]
    bases = [pathlib.Path("include")]
    if top in ("src", "tests"):
        bases.insert(0, pathlib.Path("src"))
    if top not in ("src", "include"):
        bases = [path.parent, pathlib.Path(top), *bases, pathlib.Path(".")]
    for base in bases:
        if (pathlib.Path(root) / base / header).is_file():
            return pathlib.Path(os.path.normpath(base / header))
    return None


def main():
    for path in project_files(suffixes=sys.argv[1:]):
        print(path)


if __name__ == "__main__":
    main()
