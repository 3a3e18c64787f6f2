"""What torch_ferry.program and torch_ferry.check refuse. Needs no torch."""

import pathlib
import resource
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from torch_ferry.check import check  # noqa: E402
from torch_ferry.program import ProgramError, WriteError, load  # noqa: E402
from torch_ferry.summary import summarize  # noqa: E402

HEAD = """{"ferry":"program","schema":1,"name":"small"}
{"global":0,"kind":"parameter","name":"w","dtype":"f32","shape":[4],"grad":true}
{"code":0,"kind":"main"}
{"call":1,"in":[],"out":[1]}
{"backward":[1]}
{"code":1,"kind":"segment","name":"forward","arguments":[],"results":[1]}
"""
NODE = '{"node":"ExpBackward0","id":0,"in":[0],"out":[1],"body":2}\n'
OP = ('{"op":"aten.exp","in":[0],"out":[{"slot":2,"dtype":"f32","shape":[4]}],'
      '"read":16,"written":16}\n')
SAVE = '{"save":0,"slots":[2]}\n'
BODY = """{"code":2,"kind":"body","name":"ExpBackward0","arguments":[1],"saved":[2],"results":[3]}
{"op":"aten.mul","in":[1,2],"out":[{"slot":3,"dtype":"f32","shape":[4]}]}
"""
GOOD = HEAD + NODE + OP + SAVE + BODY


class ProgramFile(unittest.TestCase):
    def load(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "program.jsonl"
            path.write_text(text)
            return load(path)

    def refused(self, why, text):
        with self.assertRaisesRegex(ProgramError, why):
            check(self.load(text))

    def test_a_good_one_comes_back_as_it_was(self):
        program = check(self.load(GOOD))
        self.assertEqual(program.text(), GOOD)
        self.assertEqual(summarize(program).saved_bytes, 16)

    def test_the_sample_with_every_statement_comes_back_as_it_was(self):
        sample = (ROOT / "tests" / "formats" / "sample.h").read_text()
        sample = sample.partition('R"(')[2].partition(')";')[0]
        self.assertEqual(check(self.load(sample)).text(), sample)

    def test_lines(self):
        self.refused(":1: expected a JSON object", "nonsense\n")
        self.refused(":1: expected the header", '{"ferry":"plan"}\n')
        self.refused(":2: expected a global or a code",
                     '{"ferry":"program","schema":1,"name":"a"}\n{"free":[1]}\n')

    def test_slots(self):
        self.refused("before it is assigned", GOOD.replace('"in":[1,2]', '"in":[1,7]'))
        self.refused("assigned twice", GOOD.replace(SAVE, OP + SAVE))
        self.refused("after its free", GOOD.replace(SAVE, '{"free":[2]}\n' + SAVE))
        self.refused("a global", GOOD.replace(SAVE, SAVE + '{"free":[0]}\n'))

    def test_counts(self):
        self.refused("saved tensors", GOOD.replace(SAVE, ""))
        self.refused("inputs", GOOD.replace('"in":[0],"out":[1],"body"',
                                            '"in":[0,0],"out":[1],"body"'))
        self.refused("no body", GOOD.replace('"body":2}', '"body":5}'))

    def test_keys_and_windows(self):
        self.refused("unknown dtype", GOOD.replace('"f32"', '"f33"'))
        self.refused("a view up to byte 20", GOOD.replace(
            SAVE, SAVE + '{"view":9,"of":2,"dtype":"f32","shape":[4],"offset":1}\n'))

    def test_the_shipped_programs(self):
        shipped = sorted((ROOT / "scenarios" / "programs").glob("*.jsonl"))
        self.assertGreaterEqual(len(shipped), 3)
        for path in shipped:
            with self.subTest(path.name):
                check(load(path))

    def test_a_full_disk_is_told_and_the_file_stays(self):
        program = self.load(GOOD)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "out.jsonl"
            path.write_text("earlier")
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
            try:
                with self.assertRaises(WriteError) as told:
                    program.write(path)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            self.assertEqual(str(told.exception), f"cannot write {path}: File too large")
            self.assertEqual([each.name for each in pathlib.Path(folder).iterdir()], ["out.jsonl"])
            self.assertEqual(path.read_text(), "earlier")

    def test_a_failed_write_leaves_no_file(self):
        program = self.load(GOOD)
        program.about = {"model": object()}
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(TypeError):
                program.write(pathlib.Path(folder) / "out.jsonl")
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])


if __name__ == "__main__":
    unittest.main()
