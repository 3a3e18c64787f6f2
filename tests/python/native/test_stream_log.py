"""The stream log of a training in Python, and what `ferry check` finds in it."""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import unittest

from native.support import MODELS, ferry, mlp, same, step, torch

PROGRAM = os.environ.get("FERRY_PROGRAM", "")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "run.jsonl"

    def lines(self):
        return [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]


@unittest.skipUnless(os.access(PROGRAM, os.X_OK), "the program ferry was not built")
class Judged(Case):
    def check(self):
        done = subprocess.run([PROGRAM, "check", self.path], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def log_of(self, model, x, make):
        """Two logged steps; they are the same bits as without."""
        want = step(model, x, contextlib.nullcontext())
        with ferry.stream_log(self.path):
            guard = make()
            for _ in range(2):
                self.assertTrue(same(want, step(model, x, guard)))

    def test_every_model_is_clean_under_every_option(self):
        options = ({}, {"window": 0, "min_bytes": 0}, {"window": 0, "prefetch": 0, "min_bytes": 0},
                   {"window": "16KiB", "prefetch": "16KiB", "min_bytes": 0},
                   {"window": 0, "disk": str(self.folder)})
        for name, make in MODELS.items():
            model, x = make()
            for option in options:
                with self.subTest(model=name, **option):
                    self.log_of(model, x, lambda: ferry.offload(**option))
                    code, said = self.check()
                    self.assertEqual(0, code, said[:2000])

    def test_of_a_model_that_offloads_nothing(self):
        self.log_of(*mlp(), contextlib.nullcontext)
        self.assertEqual(0, self.check()[0])
        self.assertFalse([line for line in self.lines() if line["op"] == "copy"])

    def test_checkpoints_that_offload_are_clean(self):
        model, x = mlp()
        policy = {"aten::addmm": "offload"}

        def checkpointed(x):
            return ferry.checkpoint(model, x, policy=policy)
        checkpointed.parameters = model.parameters
        self.log_of(checkpointed, x.requires_grad_(),
                    lambda: ferry.offload(window=0, min_bytes=0))
        self.assertEqual(0, self.check()[0])
        self.assertTrue([line for line in self.lines() if line["op"] == "copy"])

    # A log without one of the waits is one of a program that forgot it. (Some waits are made
    # needless by another.)
    def test_a_wait_that_is_missing_is_found(self):
        self.log_of(*mlp(), lambda: ferry.offload(window=0, min_bytes=0))
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        for name in ("offload after producer", "consume"):
            waits = [i for i, line in enumerate(lines)
                     if json.loads(line)["op"] == "wait" and json.loads(line)["name"] == name]
            found = 0
            for gone in waits[:6]:
                self.path.write_text("".join(lines[:gone] + lines[gone + 1:]), encoding="utf-8")
                found += self.check()[0] == 1
            self.assertGreaterEqual(found, 2, name)


class Written(Case):
    def test_an_offload_that_is_older_than_the_log_is_refused(self):
        model, x = mlp()
        older = ferry.offload(min_bytes=0)
        with ferry.stream_log(self.path):
            with self.assertRaisesRegex(RuntimeError, "made before the open stream log"):
                step(model, x, older)
        want = step(model, x, contextlib.nullcontext())
        self.assertTrue(same(want, step(model, x, older)))

    def test_an_offload_outlives_its_log(self):
        model, x = mlp()
        want = step(model, x, contextlib.nullcontext())
        with ferry.stream_log(self.path):
            offload = ferry.offload(min_bytes=0)
            self.assertTrue(same(want, step(model, x, offload)))
        written = self.path.read_bytes()
        self.assertTrue(same(want, step(model, x, offload)))
        self.assertTrue(offload.empty())
        self.assertEqual(written, self.path.read_bytes())

    def test_a_block_that_an_exception_ends_is_written(self):
        with self.assertRaises(KeyboardInterrupt):
            with ferry.stream_log(self.path):
                torch.ones(8).add(1)
                raise KeyboardInterrupt
        self.assertIn("kernel", [line["op"] for line in self.lines()])

    def test_one_log_at_a_time(self):
        with ferry.stream_log(self.path):
            with self.assertRaisesRegex(RuntimeError, "another stream log"):
                ferry.stream_log(self.folder / "other.jsonl").__enter__()
            torch.ones(8).add(1)
        self.assertEqual([self.path], list(self.folder.iterdir()))
        with ferry.stream_log(self.path):  # and the next
            pass

    def test_where_it_cannot_be_written(self):
        with self.assertRaises(OSError):
            with ferry.stream_log(self.folder / "none" / "run.jsonl"):
                self.fail("it began")
        with ferry.stream_log(self.path):
            pass

    def test_it_ends_on_its_own_thread(self):
        log = ferry.stream_log(self.path)
        log.__enter__()
        refused = []

        def close():
            try:
                log._log.close()
            except RuntimeError as error:
                refused.append(str(error))
        other = threading.Thread(target=close)
        other.start()
        other.join()
        self.assertRegex(refused[0], "not open here")
        log.__exit__(None, None, None)
        self.assertTrue(self.path.exists())

    def test_nothing_of_it_stays(self):
        before = torch.ones(1000)
        with ferry.stream_log(self.path):
            inside = before * 2
        written = self.path.read_bytes()
        after = inside + before
        del inside, before
        self.assertEqual(3000, after.sum())
        self.assertEqual(written, self.path.read_bytes())


if __name__ == "__main__":
    unittest.main()
