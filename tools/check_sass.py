#!/usr/bin/env python3
"""Checks the machine code of kernels that store to peers: check_sass.py FILE, as `cuobjdump -sass` prints it.

For every kernel whose name has "AllStore": full tiles are stored 16 bytes at a time, and the translation of
addresses reads no table from memory (an unevenly spaced team's reads one byte, under a condition). For every
kernel: nothing loaded from memory is moved to a uniform register under a condition (see `Peers::rank_at`).
"""

import re
import sys

FUNCTION = re.compile(r"Function : (\S+)")
LOAD_OR_STORE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(@!?U?P\w+ )?\s*((?:LDG|STG)[\w.]*)")
LOAD_TO = re.compile(r"LDG(\S*) R(\d+),")
CONDITIONAL_MOVE = re.compile(r"@!?P\w+ R2UR UR\d+, R(\d+)")
CALL = re.compile(r"CALL\S* 0x([0-9a-f]+)")
ADDRESS = re.compile(r"/\*([0-9a-f]{4,})\*/\s+[@A-Z]")
WRITTEN = re.compile(r"/\*[0-9a-f]{4,}\*/\s+[A-Z][\w.]* R(\d+),")
# What a table of base addresses, or of ranks, would be read by.
TABLE_LOADS = ("LDG.E.64", "LDG.E.U8")


def accesses(lines):
    """By function: (instruction, whether it has a condition) of every access to global memory."""
    functions = {}
    current = None
    for line in lines:
        if function := FUNCTION.search(line):
            current = functions.setdefault(function[1], [])
        elif current is not None and (access := LOAD_OR_STORE.search(line)):
            current.append((access[2], access[1] is not None))
    return functions


def risky_moves(lines):
    """Functions that move a loaded register to a uniform one under a condition."""
    current, loaded, called = None, set(), set()
    for line in lines:
        # What is called has registers of its own: what was loaded before it is not there.
        if (address := ADDRESS.search(line)) and int(address[1], 16) in called:
            loaded = set()
        if call := CALL.search(line):
            called.add(int(call[1], 16))
        if function := FUNCTION.search(line):
            current, loaded, called = function[1], set(), set()
        elif load := LOAD_TO.search(line):
            registers = 4 if ".128" in load[1] else 2 if ".64" in load[1] else 1
            loaded.update(range(int(load[2]), int(load[2]) + registers))
        elif (move := CONDITIONAL_MOVE.search(line)) and int(move[1]) in loaded:
            yield current
        elif write := WRITTEN.search(line):
            loaded.discard(int(write[1]))


def problems(name, found):
    if not any(instruction.startswith("STG.E.128") for instruction, _ in found):
        yield f"{name} has no 16-byte store"
    # Accesses after the last store of data belong to the report of a failed check.
    last = max((i for i, (instruction, _) in enumerate(found) if instruction.startswith("STG.E.128")), default=-1)
    for instruction, conditional in found[: last + 1]:
        if instruction in TABLE_LOADS and not conditional:
            yield f"{name} has an unconditional {instruction}"


def check(lines):
    lines = list(lines)
    kernels = {name: found for name, found in accesses(lines).items() if "AllStore" in name}
    if not kernels:
        return ["no kernel is called AllStore"]
    found = [problem for name, found in kernels.items() for problem in problems(name, found)]
    return found + [f"{name} moves what it loaded by a conditional R2UR" for name in risky_moves(lines)]


def main():
    with open(sys.argv[1]) as file:
        found = check(file)
    print("\n".join(found) if found else "16-byte stores, no table, no risky moves")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
