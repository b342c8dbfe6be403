"""Kernels' machine code, as `cuobjdump -sass` prints it."""

import unittest

import check_sass

BARRIER = "_ZN7iridium6detail11run_on_cudaINS_13DeviceBarrierELi64EEEvT_"
SIGNAL = "_ZN7iridium6detail11run_on_cudaINS_6SignalELi32EEEvT_"
STORE = "STG.E.STRONG.SYS desc[UR10][R6.64], R5"
ADD = "ATOMG.E.ADD.STRONG.SYS PT, RZ, desc[UR10][R6.64], R5"
FENCE = "MEMBAR.ALL.SYS"


def kernel(name, *instructions):
    """As `cuobjdump -sass` prints it; an instruction is "[@condition ]name operands"."""
    text = f"\t\tFunction : {name}\n"
    for i, instruction in enumerate(instructions):
        condition, rest = instruction.split(" ", 1) if instruction.startswith("@") else ("", instruction)
        text += f"        /*{16 * i:04x}*/ {condition:>18} {rest} ;  /* 0x000000050600798c */\n"
        text += "                                                     /* 0x001fea000c10e90a */\n"
    return text


# Both links, with and without native atomics.
RAISE_BY_LINK = (
    "@!P1 BRA 0x50",
    "MEMBAR.ALL.GPU",
    "ERRBAR",
    "CCTL.IVALL",
    "BRA 0x80",
    "MEMBAR.ALL.SYS",
    "ERRBAR",
    "CCTL.IVALL",
    "@!P3 BRA P2, 0xb0",
    ADD,
    "BRA 0xc0",
    STORE,
    "EXIT",
)
KNOWN = kernel(BARRIER, *RAISE_BY_LINK) + kernel(SIGNAL, FENCE, "ERRBAR", STORE, "EXIT")

GOOD = """
		Function : _ZN8AllStoreIfE
        /*0000*/                   LDG.E.128 R4, desc[UR6][R2.64] ;  /* 0x01 */
        /*0010*/               @P0 LDG.E.U8 R8, desc[UR6][R2.64] ;
        /*0020*/                   STG.E.128 desc[UR6][R8.64], R4 ;
        /*0030*/                   LDG.E.64 R8, desc[UR6][R2.64] ;
		Function : _ZN5OtherE
        /*0000*/                   STG.E desc[UR6][R8.64], R4 ;
"""
ALL = KNOWN + GOOD


class CheckSass(unittest.TestCase):
    def check(self, text):
        return check_sass.check((KNOWN + text).splitlines())

    def test_every_architecture_is_looked_at(self):
        good = "code for sm_90a\n" + kernel("_ZN5OtherE", FENCE, STORE, "EXIT")
        bad = "code for sm_100a\n" + kernel("_ZN5OtherE", STORE, "EXIT")
        self.assertEqual(self.check(GOOD + good + good), [])
        self.assertEqual(len(self.check(GOOD + good + bad)), 1)

    def test_wide_stores_and_no_table(self):
        self.assertEqual(self.check(GOOD), [])

    def test_narrow_stores(self):
        self.assertEqual(self.check(GOOD.replace("STG.E.128", "STG.E")), ["_ZN8AllStoreIfE has no 16-byte store"])

    def test_a_table_that_is_always_read(self):
        for table in ("LDG.E.U8", "LDG.E.64"):
            found = self.check(GOOD.replace("@P0 LDG.E.U8", f"    {table}"))
            self.assertEqual(found, [f"_ZN8AllStoreIfE has an unconditional {table}"])

    def test_a_loaded_rank_in_a_uniform_register(self):
        move = "        /*0010*/               @P0 R2UR UR8, R2 ;\n"
        load = "        /*0000*/               @P0 LDG.E.U8 R2, desc[UR18][R2.64] ;\n"
        other = "        /*0008*/                   IMAD.U32 R2, RZ, RZ, UR14 ;\n"
        self.assertEqual(self.check(GOOD + load + move), ["_ZN5OtherE moves what it loaded by a conditional R2UR"])
        self.assertEqual(self.check(GOOD + load + other + move), [])
        wide = load.replace("U8 R2", "128 R0")
        self.assertEqual(self.check(GOOD + wide + move), self.check(GOOD + load + move))
        self.assertEqual(self.check(GOOD + load + move.replace("@P0", "   ")), [])

    def test_a_called_function_has_registers_of_its_own(self):
        code = (
            "        /*0000*/                   LDG.E R2, desc[UR18][R2.64] ;\n"
            "        /*0010*/                   CALL.REL.NOINC 0x30 ;\n"
            "        /*0020*/                   EXIT ;\n"
            "        /*0030*/               @P0 R2UR UR8, R2 ;\n"
        )
        self.assertEqual(self.check(GOOD + code), [])
        self.assertEqual(
            self.check(GOOD + code.replace("0x30", "0x40")), ["_ZN5OtherE moves what it loaded by a conditional R2UR"]
        )

    def test_no_such_kernel(self):
        self.assertEqual(self.check(GOOD.replace("AllStore", "Nothing")), ["no kernel is called AllStore"])


class Flags(unittest.TestCase):
    """Fences before what raises flags."""

    def check(self, *instructions, name="_ZN7iridium4NameE"):
        """What is wrong with a kernel of these instructions."""
        found = check_sass.check((ALL + kernel(name, *instructions)).splitlines())
        for problem in found:
            self.assertTrue(problem.startswith(name + " raises a flag without a fence"), problem)
        return [problem.removeprefix(name + " raises a flag without a fence") for problem in found]

    def test_a_fence_on_every_path(self):
        self.assertEqual(self.check(*RAISE_BY_LINK), [])

    def test_no_fence(self):
        relaxed = ["NOP" if "MEMBAR" in instruction else instruction for instruction in RAISE_BY_LINK]
        self.assertEqual(self.check(*relaxed), [": ATOMG.E.ADD.STRONG.SYS at 0x0090", ": STG.E.STRONG.SYS at 0x00b0"])

    def test_a_fence_on_some_paths(self):
        for fence in ("MEMBAR.ALL.GPU", "MEMBAR.ALL.SYS"):
            one = ["MEMBAR.ALL.CTA" if instruction == fence else instruction for instruction in RAISE_BY_LINK]
            self.assertEqual(len(self.check(*one)), 2, fence)

    def test_no_fence_for_the_system(self):
        device = [instruction.replace("ALL.SYS", "ALL.GPU") for instruction in RAISE_BY_LINK]
        self.assertEqual(
            self.check(*device),
            [" for the system: ATOMG.E.ADD.STRONG.SYS at 0x0090", " for the system: STG.E.STRONG.SYS at 0x00b0"],
        )

    def test_what_a_fence_does_not_order(self):
        for between in ("STG.E desc[UR6][R8.64], R4", "BAR.SYNC.DEFER_BLOCKING 0x0", "WARPSYNC R3", "CALL.REL.NOINC 0x30", STORE):
            self.assertEqual(self.check(FENCE, between, STORE, "EXIT"), [": STG.E.STRONG.SYS at 0x0020"], between)
        for between in ("LDG.E.U8 R8, desc[UR6][R2.64]", "STS [R2], R3", "DEPBAR.LE SB0, 0x0"):
            self.assertEqual(self.check(FENCE, between, STORE, "EXIT"), [], between)

    def test_every_kind_of_write(self):
        for write in (STORE, "ST.E.STRONG.SYS [R6], R5", "REDG.E.ADD.STRONG.SYS desc[UR4][R6.64], R5", ADD):
            self.assertEqual(self.check(FENCE, write), [], write)
            self.assertEqual(self.check("NOP", write), [f": {write.split()[0]} at 0x0010"], write)

    def test_packets_data_and_own_counters_are_no_flags(self):
        for write in ("STG.E.128.STRONG.SYS", "STG.E", "STG.E.64.STRONG.GPU"):
            self.assertEqual(self.check(f"{write} desc[UR4][R6.64], R4"), [])

    def test_fences_under_a_condition(self):
        fence, store = "@!P1 " + FENCE, "@!P1 " + STORE
        self.assertEqual(self.check(fence, store), [])
        self.assertEqual(self.check("@P1 MEMBAR.ALL.GPU", fence, STORE), [])
        for code in ((fence, STORE), (fence, "@P1 " + STORE), (fence, "ISETP.NE.AND P1, PT, R0, RZ, PT", store)):
            self.assertEqual(len(self.check(*code)), 1, code)

    def test_threads_that_meet_again(self):
        code = ["BSSY B0, 0x60", "@P0 BRA 0x50", "MEMBAR.ALL.GPU", "BSYNC B0", "EXIT", FENCE, STORE]
        self.assertEqual(self.check(*code), [])
        code[2] = "NOP"
        self.assertEqual(len(self.check(*code)), 1)
        # A register is used again.
        code = ["BSSY B0, 0x20", "BSYNC B0", FENCE, "BSSY B0, 0x50", "BSYNC B0", STORE]
        self.assertEqual(self.check(*code), [])

    def test_branches_that_may_not_be_taken(self):
        for branch in ("@P0 BRA 0x20", "BRA P0, 0x20", "BRA.DIV UR4, 0x20"):
            self.assertEqual(self.check(branch, STORE, FENCE, "BRA 0x10"), [": STG.E.STRONG.SYS at 0x0010"], branch)
        self.assertEqual(self.check("BRA 0x20", STORE, FENCE, "BRA 0x10"), [])
        self.assertEqual(self.check(FENCE, "@P0 EXIT", STORE), [])

    def test_loops(self):
        self.assertEqual(self.check("NOP", FENCE, STORE, "@P0 BRA 0x10", "EXIT"), [])
        self.assertEqual(len(self.check("NOP", FENCE, STORE, "@P0 BRA 0x20", "EXIT")), 1)
        self.assertEqual(self.check(STORE, FENCE, "BRA 0x0", "BRA 0x10"), [": STG.E.STRONG.SYS at 0x0000"])

    def test_code_reached_by_a_call_or_a_table(self):
        for jump in ("CALL.REL.NOINC 0x30", "BRX R16 -0x310"):
            self.assertEqual(self.check(FENCE, jump, "EXIT", STORE), [": STG.E.STRONG.SYS at 0x0030"], jump)
            self.assertEqual(self.check(FENCE, jump, STORE, "EXIT"), [": STG.E.STRONG.SYS at 0x0020"], jump)
        self.assertEqual(len(self.check("CALL.REL.NOINC 0x30", "EXIT", FENCE, STORE, "EXIT")), 1)

    def test_updates_of_kernels_that_raise_no_flags(self):
        take_off = "REDG.E.ADD.STRONG.SYS desc[UR4][R6.64], R5"
        for name in ("_ZN4iridINS_4WaitELi32EEvT_", "_ZN4iridINS_15AtomicAllReduceIiEELi512EEvT_"):
            self.assertEqual(self.check(take_off, name=name), [])
            self.assertEqual(len(self.check(STORE, name=name)), 1)
        self.assertEqual(len(self.check(take_off, name="_ZN4iridINS_14WaitELi32EEvT_")), 1)

    def test_kernels_of_tests(self):
        self.assertEqual(self.check(STORE, name="_ZN7iridium6detail11run_on_cudaINS_4test8AccessesELi64EEEvT_"), [])

    def test_copies_of_a_kernel(self):
        copy = kernel("_ZN7iridium4NameE", STORE)
        self.assertEqual(len(check_sass.check((ALL + copy + copy).splitlines())), 1)

    def test_nothing_recognized(self):
        self.assertEqual(
            check_sass.check(GOOD.splitlines()),
            [
                "no kernel is called DeviceBarrier and raises a flag behind GPU or SYS fences",
                "no kernel is called Signal and raises a flag behind SYS fences",
            ],
        )
        plain = ALL.replace(".STRONG.SYS", "")
        self.assertEqual(check_sass.check(plain.splitlines()), check_sass.check(GOOD.splitlines()))


if __name__ == "__main__":
    unittest.main()
