#!/usr/bin/env python3
"""Runs clang-tidy over the files of build/compile_commands.json, the unchanged ones from a cache.

A file's key is the hash of all it depends on: the tool, its configuration, the compile command, the
file and the project's headers it includes, however deep. Only clean files are remembered.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

from project_files import CPP_SUFFIXES, ROOT, includes, project_files, resolve_include

TIDY = "clang-tidy-19"
FOLDERS = ("src", "cli", "examples", "tests")
BUILD = ROOT / "build"
CACHE = BUILD / "lint-cache"
HOST_COMMANDS = BUILD / "lint-commands"
FINDING = re.compile(r"^(?=[^\s|]+:\d+:\d+: (?:error|warning): )", re.MULTILINE)


class Hasher:
    def __init__(self):
        version = subprocess.run([TIDY, "--version"], stdout=subprocess.PIPE, check=True).stdout
        configurations = [p for p in project_files() if p.name == ".clang-tidy"]
        self.common = version + b"".join((ROOT / p).read_bytes() for p in configurations)
        self.texts = {p: (ROOT / p).read_text() for p in project_files(suffixes=CPP_SUFFIXES)}

    def closure(self, path):
        """`path` and the project's files it includes, directly or not."""
        seen, pending = set(), [path]
        while pending:
            current = pending.pop()
            if current in seen or current not in self.texts:
                continue
            seen.add(current)
            for _, _, header in includes(self.texts[current]):
                found = resolve_include(ROOT, current, header)
                if found:
                    pending.append(found)
        return sorted(seen)

    def key(self, path, command):
        digest = hashlib.sha256(self.common + command.encode())
        for dependency in self.closure(path):
            digest.update(f"\0{dependency}\0{self.texts[dependency]}".encode())
        return digest.hexdigest()


def commands():
    """The project's C++ files that are compiled, each with its compile command."""
    ours = set(project_files(suffixes=(".cpp",)))
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if file.is_relative_to(ROOT):
            path = file.relative_to(ROOT)
            if path in ours and path.parts[0] in FOLDERS:
                yield path, entry["command"]


def as_host_command(entry):
    """A file that nvcc compiles, as the C++ compiler of a build without CUDA sees it."""
    words = shlex.split(entry["command"])
    if pathlib.Path(words[0]).name != "nvcc":
        return entry
    kept = [word for word in words if re.match(r"-[DI]|-isystem=", word)]
    kept = [word.replace("-isystem=", "-isystem") for word in kept]
    source = entry["file"]
    command = shlex.join(["c++", "-std=c++20", *kept, "-c", source])
    return {"directory": entry["directory"], "file": source, "command": command}


def write_host_commands():
    """A compilation database that clang-tidy understands throughout."""
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    HOST_COMMANDS.mkdir(parents=True, exist_ok=True)
    text = json.dumps([as_host_command(entry) for entry in entries])
    (HOST_COMMANDS / "compile_commands.json").write_text(text)


def check(path):
    # GCC's commands may name warnings that clang does not know.
    command = [TIDY, "-p", str(HOST_COMMANDS), "--quiet", "--extra-arg=-Wno-unknown-warning-option", path]
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    text = run.stdout.decode().strip()
    if run.returncode != 0 and not text:
        text = run.stderr.decode().strip() or f"{path}: {TIDY} ended with {run.returncode}"
    return run.returncode == 0, text


def main():
    CACHE.mkdir(parents=True, exist_ok=True)
    write_host_commands()
    hasher = Hasher()
    keys = {path: hasher.key(path, command) for path, command in commands()}
    if not keys:
        sys.exit("tidy: build/compile_commands.json names none of the project's files")
    unchecked = [path for path, key in keys.items() if not (CACHE / key).exists()]
    failed, seen = 0, set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, (good, text) in zip(unchecked, pool.map(check, unchecked)):
            if good:
                (CACHE / keys[path]).touch()
            else:
                failed += 1
                # A header's findings come up again with every file that includes it.
                for finding in FINDING.split(text):
                    finding = finding.strip()
                    if finding not in seen:
                        print(finding)
                    seen.add(finding)
    print(f"tidy: {len(keys)} files, {len(keys) - len(unchecked)} unchanged, {failed} with findings")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
