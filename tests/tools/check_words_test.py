"""The check of words finds what it should and leaves the rest alone."""

import unittest

import check_words
from trees import TreeTest


class CheckWords(TreeTest):
    def findings(self, text, name="docs/page.md"):
        self.plant({name: text})
        return list(check_words.check(self.root))

    def test_ordinary_text_passes(self):
        path = "home/" + "user/"
        text = f"see src/{path}x, /usr/lib, https://example.org/{path} and ${{HOME}}/{path}\n"
        self.assertEqual(self.findings(text), [])

    def test_paths_of_one_machine(self):
        for path in ("ro" + "ot/x", "home/" + "user/x"):
            with self.subTest(path):
                self.assertEqual(len(self.findings(f"first\nlook at /{path}\n")), 1)

    def test_notes_to_oneself(self):
        self.assertEqual(len(self.findings("// TO" + "DO: later\n")), 1)

    def test_long_files(self):
        self.assertEqual(self.findings("x\n" * check_words.MAX_LINES), [])
        self.assertEqual(len(self.findings("x\n" * (check_words.MAX_LINES + 1))), 1)

    def test_files_that_may_be_long(self):
        for name in ("CHANGELOG.md", "docs/performance.md"):
            self.assertEqual(self.findings("x\n" * (check_words.MAX_LINES + 1), name), [])
            self.root.joinpath(name).unlink()


if __name__ == "__main__":
    unittest.main()
