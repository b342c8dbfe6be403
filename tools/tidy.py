#!/usr/bin/env python3
"""Runs clang-tidy over the files of build/compile_commands.json, the unchanged ones from a cache.

A file's key is the hash of all it depends on: the tool, its configuration, the compile command, the
file, the project's headers it includes, however deep, and the versions of the packages that all other
headers come from. No path of the checkout is in it, so every checkout finds what another one has
found clean. Only clean files are remembered, in the user's cache folder.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

from project_files import CPP_SUFFIXES, ROOT, includes, project_files, resolve_include

TIDY = "clang-tidy-19"
FOLDERS = ("src", "cli", "examples", "tests")
BUILD = ROOT / "build"
HOST_COMMANDS = BUILD / "lint-commands"
PRECOMPILED = re.compile(r" -Winvalid-pch -include \S+/cmake_pch\.hxx")
FINDING = re.compile(r"^(?=[^\s|]+:\d+:\d+: (?:error|warning): )", re.MULTILINE)
DAY = 24 * 60 * 60


class Cache:
    """Names of files that were clean, each an empty file."""

    MAX_AGE = 30 * DAY  # since it was last of use
    MAX_ENTRIES = 20_000

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    @classmethod
    def of_user(cls):
        home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
        return cls(pathlib.Path(home) / "iridium" / "tidy")

    def has(self, key):
        try:
            os.utime(self.folder / key)
        except FileNotFoundError:
            return False
        return True

    def add(self, key):
        (self.folder / key).touch()

    def prune(self):
        """Removes what was not of use for long, and the oldest of too many."""
        ages = sorted((entry.stat().st_mtime, entry.path) for entry in os.scandir(self.folder))
        too_many = max(0, len(ages) - self.MAX_ENTRIES)
        oldest = time.time() - self.MAX_AGE
        for number, (used, path) in enumerate(ages):
            if number < too_many or used < oldest:
                pathlib.Path(path).unlink(missing_ok=True)


def tool_version():
    return subprocess.run([TIDY, "--version"], stdout=subprocess.PIPE, check=True).stdout


def system_folders(commands):
    """Where the C++ compiler looks for headers, and where the commands say that there are more of other people's."""
    named = {folder for command in commands for folder in re.findall(r"-isystem[= ]?(\S+)", command)}
    run = subprocess.run(
        ["c++", "-E", "-v", "-x", "c++", "/dev/null"], capture_output=True, text=True, check=True
    )
    listed = re.search(r"#include <\.\.\.>.*\n((?: .*\n)+)", run.stderr)
    return [pathlib.Path(folder.strip()) for folder in (*listed[1].splitlines(), *sorted(named))]


def outside_headers(texts):
    """Other people's headers that C++ texts include, but HIP's: clang-tidy never gets to them, and their package comes
    after the first lint, with the check for AMD GPUs."""
    headers = {header for text in texts for _, delimiter, header in includes(text) if delimiter == "<"}
    return {header for header in headers if not header.startswith("hip/")}


def outside_versions(headers, folders):
    """What the project's includes of other people's headers stand for: their packages and the versions of those, or
    their text where no package has them."""
    found = sorted({path for h in headers if (path := _first_file(h, folders)) is not None})
    owners = _packages_of(found)
    packages = sorted(set(owners.values()))
    versions = _run(["dpkg-query", "-W", *packages]) if packages else ""
    texts = [path.read_bytes() for path in found if str(path) not in owners]
    return versions.encode() + b"".join(texts)


def _first_file(header, folders):
    return next((folder / header for folder in folders if (folder / header).is_file()), None)


def _packages_of(paths):
    """Package by path, of those that have one."""
    if not paths or not shutil.which("dpkg"):
        return {}
    lines = [line.split(": ", 1) for line in _run(["dpkg", "-S", *map(str, paths)]).splitlines()]
    return {line[1]: line[0] for line in lines if len(line) == 2 and "," not in line[0]}


def _run(command):
    """What it prints, of what it knows."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout


class Hasher:
    """`environment` is what all files depend on."""

    def __init__(self, root, environment):
        self.root = root
        configurations = [p for p in project_files(root) if p.name == ".clang-tidy"]
        self.common = environment + b"".join((root / p).read_bytes() for p in configurations)
        self.texts = {p: (root / p).read_text() for p in project_files(root, CPP_SUFFIXES)}

    def closure(self, path):
        """`path` and the project's files it includes, directly or not."""
        seen, pending = set(), [path]
        while pending:
            current = pending.pop()
            if current in seen or current not in self.texts:
                continue
            seen.add(current)
            for _, _, header in includes(self.texts[current]):
                found = resolve_include(self.root, current, header)
                if found:
                    pending.append(found)
        return sorted(seen)

    def key(self, path, command):
        digest = hashlib.sha256(self.common + command.replace(str(self.root), ".").encode())
        for dependency in self.closure(path):
            digest.update(f"\0{dependency}\0{self.texts[dependency]}".encode())
        return digest.hexdigest()


def commands(entries):
    """The project's C++ files that are compiled, each with its compile command."""
    ours = set(project_files(suffixes=(".cpp",)))
    for entry in entries:
        file = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if file.is_relative_to(ROOT):
            path = file.relative_to(ROOT)
            if path in ours and path.parts[0] in FOLDERS:
                yield path, entry["command"]


def as_host_command(entry):
    """What clang can read: a file that nvcc compiles, as the C++ compiler of a build without CUDA sees it, and
    everything without headers that GCC has precompiled."""
    words = shlex.split(entry["command"])
    if pathlib.Path(words[0]).name != "nvcc":
        return {**entry, "command": PRECOMPILED.sub("", entry["command"])}
    kept = [word for word in words if re.match(r"-[DI]|-isystem=", word)]
    kept = [word.replace("-isystem=", "-isystem") for word in kept]
    command = shlex.join(["c++", "-std=c++20", *kept, "-c", entry["file"]])
    return {**entry, "command": command}


def host_commands():
    """A compilation database that clang-tidy understands throughout."""
    entries = [as_host_command(e) for e in json.loads((BUILD / "compile_commands.json").read_text())]
    HOST_COMMANDS.mkdir(parents=True, exist_ok=True)
    (HOST_COMMANDS / "compile_commands.json").write_text(json.dumps(entries))
    return entries


def check(path):
    # GCC's commands may name warnings that clang does not know.
    command = [TIDY, "-p", str(HOST_COMMANDS), "--quiet", "--extra-arg=-Wno-unknown-warning-option", path]
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    text = run.stdout.decode().strip()
    if run.returncode != 0 and not text:
        text = run.stderr.decode().strip() or f"{path}: {TIDY} ended with {run.returncode}"
    return run.returncode == 0, text


def main():
    cache = Cache.of_user()
    to_check = dict(commands(host_commands()))
    texts = [(ROOT / p).read_text() for p in project_files(suffixes=CPP_SUFFIXES)]
    headers = outside_headers(texts)
    folders = system_folders(to_check.values())
    hasher = Hasher(ROOT, tool_version() + outside_versions(headers, folders))
    keys = {path: hasher.key(path, command) for path, command in to_check.items()}
    if not keys:
        sys.exit("tidy: build/compile_commands.json names none of the project's files")
    unchecked = [path for path, key in keys.items() if not cache.has(key)]
    failed, seen = 0, set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, (good, text) in zip(unchecked, pool.map(check, unchecked)):
            if good:
                cache.add(keys[path])
            else:
                failed += 1
                # A header's findings come up again with every file that includes it.
                for finding in FINDING.split(text):
                    finding = finding.strip()
                    if finding not in seen:
                        print(finding)
                    seen.add(finding)
    cache.prune()
    print(f"tidy: {len(keys)} files, {len(keys) - len(unchecked)} unchanged, {failed} with findings")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
