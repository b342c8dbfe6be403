"""Kernels' machine code, as `cuobjdump -sass` prints it."""

import unittest

import check_sass

GOOD = """
		Function : _ZN8AllStoreIfE
        /*0000*/                   LDG.E.128 R4, desc[UR6][R2.64] ;  /* 0x01 */
        /*0010*/               @P0 LDG.E.U8 R8, desc[UR6][R2.64] ;
        /*0020*/                   STG.E.128 desc[UR6][R8.64], R4 ;
        /*0030*/                   LDG.E.64 R8, desc[UR6][R2.64] ;
		Function : _ZN5OtherE
        /*0000*/                   STG.E desc[UR6][R8.64], R4 ;
"""


class CheckSass(unittest.TestCase):
    def check(self, text):
        return check_sass.check(text.splitlines())

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


if __name__ == "__main__":
    unittest.main()
