#!/usr/bin/env python3
"""Checks the machine code of kernels: check_sass.py FILE, as `cuobjdump -sass` prints it.

Every kernel: a fence comes before each store that raises a flag, for the system where peers may be on other GPUs (see
docs/memory_model.md); nothing loaded from memory is moved to a uniform register under a condition (see
`Peers::rank_at`). Those whose name has "AllStore": full tiles are stored 16 bytes at a time, and the translation of
addresses reads no table from memory (an unevenly spaced team's reads one byte, under a condition).
"""

import re
import sys
from collections import defaultdict
from typing import NamedTuple

FUNCTION = re.compile(r"Function : (\S+)")
ARCHITECTURE = re.compile(r"^code for (\S+)")
INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+) )?\s*([A-Z][\w.]*)([^;]*);")
TARGET = re.compile(r"0x([0-9a-f]+)$")
PREDICATE = re.compile(r"\bU?P\d")
REGISTER = re.compile(r"\bB\d+")
# What a table of base addresses, or of ranks, would be read by.
TABLE_LOADS = ("LDG.E.64", "LDG.E.U8")

# What raises a flag: a write of 4 bytes at system scope. Data is stored plainly, packets are 16 bytes.
FLAG = re.compile(r"(?:STG?|REDG?|ATOMG?)\.E(?:\.[A-Z]+)?\.STRONG\.SYS")
FENCE = re.compile(r"MEMBAR\.\w+\.(GPU|SYS)")
UPDATE = re.compile(r"RED|ATOM")
# Stores that a fence before them does not order; behind a barrier of the block, those of its other threads.
NOT_FENCED = re.compile(r"(?:STG?|REDG?|ATOMG?|BAR|WARPSYNC|CALL|UBLK\w+|UTMA\w+)(?:\.|$)")
# What the next instruction does not follow. What `BRX` jumps to is not printed; no fence counts there.
END = re.compile(r"(?:EXIT|RET|BRX|BRXU|JMX|BPT|KILL)(?:\.|$)")
# Kernels whose relaxed updates raise no flag: they add up data, or take a value off this rank's own flag.
WITHOUT_FLAGS = ("AtomicAllReduce", "Atomics", "Wait", "WaitAll")
# A namespace: its kernels try all orders that an access can have.
TESTS = "test"
# Kernels in which flags must be found, behind these fences: without them, nothing would have been checked.
KNOWN = {"DeviceBarrier": {"GPU", "SYS"}, "Signal": {"SYS"}}


class Instruction(NamedTuple):
    address: int
    condition: str | None  # P0, !P0
    name: str
    operands: str


def functions(lines):
    """(name, instructions) of every function, once for each architecture: programs repeat the library's."""
    seen, name, code, architecture = set(), None, [], None
    for line in lines:
        if found := ARCHITECTURE.search(line.strip()):
            architecture = found[1]
        if function := FUNCTION.search(line):
            if name is not None:
                yield name, code
            key = architecture, function[1]
            name, code = (None if key in seen else function[1]), []
            seen.add(key)
        elif name is not None and (found := INSTRUCTION.search(line)):
            code.append(Instruction(int(found[1], 16), found[2], found[3], found[4].strip()))
    if name is not None:
        yield name, code


def is_of(name, part):
    """Whether the kernel, or a namespace around it, is called so."""
    return re.search(rf"(?<!\d){len(part)}{part}", name) is not None


def opposite(condition):
    return condition[1:] if condition.startswith("!") else "!" + condition


def successors(code):
    """By index: the indices of what may be executed next."""
    index = {instruction.address: i for i, instruction in enumerate(code)}
    joins = defaultdict(set)  # by barrier register: where threads that part can meet again
    for instruction in code:
        if instruction.name.startswith("BSSY"):
            joins[REGISTER.search(instruction.operands)[0]].add(int(TARGET.search(instruction.operands)[1], 16))
    for i, (_, condition, name, operands) in enumerate(code):
        following = {i + 1} if i + 1 < len(code) else set()
        if name.startswith("BRA"):
            # Further conditions stand before the address.
            always = condition is None and name == "BRA" and operands.startswith("0x")
            yield {index[int(TARGET.search(operands)[1], 16)]} | (set() if always else following)
        elif name.startswith("BSYNC"):
            meet = {index[address] for address in joins[REGISTER.search(operands)[0]]}
            yield following if following & meet else following | meet
        elif END.match(name) and condition is None:
            yield set()
        else:
            yield following


def fences_after(instruction, fences):
    """What `fences` is behind the instruction: {(scope, condition)} of the last fence on every path to it.

    The scope is None on paths without one. A condition: only threads for which it holds arrive on that path.
    """
    _, condition, name, operands = instruction
    if found := FENCE.match(name):
        if condition is None:
            return {(found[1], None)}
        others = {(scope, other or opposite(condition)) for scope, other in fences if other != condition}
        return {(found[1], condition)} | others
    if NOT_FENCED.match(name):
        return {(None, None)}
    changed = set(PREDICATE.findall(operands))
    return {(scope, None if other and other.strip("!") in changed else other) for scope, other in fences}


def flags(code):
    """(instruction, scopes of the fences that can be the last before it) of all that raise flags."""
    follows = list(successors(code))
    called = {int(to[1], 16) for i in code if i.name.startswith("CALL") and (to := TARGET.search(i.operands))}
    reached = set().union(*follows)
    fences = [set() for _ in code]
    for i, instruction in enumerate(code):
        if i == 0 or i not in reached or instruction.address in called:
            fences[i].add((None, None))
    waiting = [i for i, found in enumerate(fences) if found]
    while waiting:
        i = waiting.pop()
        after = fences_after(code[i], fences[i])
        for j in follows[i]:
            if not after <= fences[j]:
                fences[j] |= after
                waiting.append(j)
    for instruction, found in zip(code, fences):
        if FLAG.fullmatch(instruction.name):
            never = opposite(instruction.condition) if instruction.condition else "never"
            yield instruction, {scope for scope, condition in found if condition != never}


def flag_problems(name, raised):
    for instruction, scopes in raised:
        if UPDATE.match(instruction.name) and any(is_of(name, kernel) for kernel in WITHOUT_FLAGS):
            continue
        if None in scopes or "SYS" not in scopes:
            lacks = "a fence" if None in scopes else "a fence for the system"
            yield f"{name} raises a flag without {lacks}: {instruction.name} at 0x{instruction.address:04x}"


def has_risky_move(code):
    """Whether a loaded register is moved to a uniform one under a condition."""
    loaded, called = set(), set()
    for address, condition, name, operands in code:
        # What is called has registers of its own: what was loaded before it is not there.
        if address in called:
            loaded = set()
        if name.startswith("CALL") and (target := TARGET.search(operands)):
            called.add(int(target[1], 16))
        register = re.match(r"R(\d+),", operands)
        if name.startswith("LDG") and register:
            registers = 4 if ".128" in name else 2 if ".64" in name else 1
            loaded.update(range(int(register[1]), int(register[1]) + registers))
        elif name == "R2UR" and condition and (moved := re.search(r", R(\d+)", operands)) and int(moved[1]) in loaded:
            return True
        elif register and condition is None:
            loaded.discard(int(register[1]))
    return False


def store_problems(name, code):
    found = [i for i in code if i.name.startswith(("LDG", "STG"))]
    stores = [i.address for i in found if i.name.startswith("STG.E.128")]
    if not stores:
        yield f"{name} has no 16-byte store"
    # Accesses after the last store of data belong to the report of a failed check.
    for address, condition, access, _ in found:
        if access in TABLE_LOADS and condition is None and stores and address < stores[-1]:
            yield f"{name} has an unconditional {access}"


def check(lines):
    found, missing = [], {"AllStore": None, **KNOWN}
    for name, code in functions(lines):
        if "AllStore" in name:
            missing.pop("AllStore", None)
            found.extend(store_problems(name, code))
        if has_risky_move(code):
            found.append(f"{name} moves what it loaded by a conditional R2UR")
        if is_of(name, TESTS):
            continue
        raised = list(flags(code))
        found.extend(flag_problems(name, raised))
        for kernel, scopes in KNOWN.items():
            if is_of(name, kernel) and any(fences == scopes for _, fences in raised):
                missing.pop(kernel, None)
    for kernel, scopes in missing.items():
        raises = f" and raises a flag behind {' or '.join(sorted(scopes))} fences" if scopes else ""
        found.append(f"no kernel is called {kernel}{raises}")
    return found


def main():
    with open(sys.argv[1]) as file:
        found = check(file)
    print("\n".join(found) if found else "flags behind fences, 16-byte stores, no table, no risky moves")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
