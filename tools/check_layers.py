#!/usr/bin/env python3
"""Checks that includes point downwards only: check_layers.py [root]

The table LAYERS is the architecture. A source file that belongs to no layer is an error, so a new
folder has to say where it stands.
"""

import argparse
import pathlib
import re
import sys

from project_files import CPP_SUFFIXES, ROOT, includes, project_files, resolve_include

HEADERS = ("device", "public")
RUNTIME = (*HEADERS, "base", "backend", "runtime")

# Layer: (where its files are, the layers they may include besides their own). First match wins.
LAYERS = {
    "device": (r"include/iridium/device/", ()),
    "public": (r"include/iridium/", ("device",)),
    "base": (r"src/base/", HEADERS),
    "backend": (r"src/backend/([^/]+\.h|nvidia_sign\.cpp)$", (*HEADERS, "base")),
    "backend registry": (
        r"src/backend/registry\.cpp$",
        (*HEADERS, "base", "backend", "backend kind"),
    ),
    "backend kind": (r"src/backend/[^/]+/", (*HEADERS, "base", "backend")),
    "runtime": (r"src/runtime/", RUNTIME),
    "trace": (r"src/trace/", RUNTIME),
    "probe": (r"src/probe/", HEADERS),
    "operations": (r"src/operations/", (*HEADERS, "base")),
    "matmul": (r"src/matmul/", (*RUNTIME, "operations")),
    "collectives": (r"src/collectives/", (*RUNTIME, "operations", "matmul")),
    "fused": (r"src/fused/", (*RUNTIME, "operations", "matmul", "collectives")),
    "registry": (r"src/registry/", (*RUNTIME, "operations", "matmul", "collectives", "fused")),
    "cli": (r"cli/", HEADERS),
    "python": (r"python/", HEADERS),
    "bench": (r"bench/", HEADERS),
    "examples": (r"examples/", HEADERS),
}
FREE = re.compile(r"tests/")

VENDOR = re.compile(r"(cuda|cublas|nccl|nvml|nvtx|nvrtc|cooperative_groups|cub/|hip|rccl|hsa/|roc)")
VENDOR_ALLOWED = re.compile(r"src/backend/(cuda|hip)/")
HEAVY = re.compile(r"(fmt|nlohmann|CLI|boost)/")
HEAVY_FORBIDDEN = re.compile(r"include/iridium/")


def layer_of(path):
    for layer, (pattern, _) in LAYERS.items():
        if re.match(pattern, path.as_posix()):
            return layer
    return None


def may_include(path, target):
    layer, target_layer = layer_of(path), layer_of(target)
    if layer == target_layer == "backend kind":
        return path.parts[2] == target.parts[2]
    return layer == target_layer or target_layer in LAYERS[layer][1]


def problem(root, path, delimiter, header):
    """What is wrong with this include, or None."""
    name = path.as_posix()
    target = resolve_include(root, path, header)
    if target is None:
        if delimiter == '"' or header.startswith("iridium/"):
            hint = " (sources in src/ are included from src/)" if path.parts[0] == "src" else ""
            return "there is no such file in the project" + hint
        if VENDOR.match(header) and not VENDOR_ALLOWED.match(name):
            return "vendor headers belong to src/backend/cuda and src/backend/hip"
        if HEAVY.match(header) and HEAVY_FORBIDDEN.match(name):
            return "heavy headers stay out of public headers"
        return None
    if ".." in header.split("/"):
        return "includes do not climb folders"
    if not may_include(path, target):
        return f"{layer_of(path)} may not include {layer_of(target) or 'tests'}"
    return None


def check(root):
    """Messages, one per violation."""
    for path in project_files(root, CPP_SUFFIXES):
        if FREE.match(path.as_posix()):
            continue
        if layer_of(path) is None:
            yield f"{path}: belongs to no layer: give its folder a place in tools/check_layers.py"
            continue
        for line, delimiter, header in includes((root / path).read_text()):
            trouble = problem(root, path, delimiter, header)
            if trouble:
                yield f"{path}:{line}: {header}: {trouble}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=ROOT)
    violations = list(check(parser.parse_args().root.resolve()))
    print("\n".join(violations), end="\n" if violations else "")
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
