"""The bundle's runner and packer: what a part does to the others, the state and the archive."""

import contextlib
import io
import json
import pathlib
import sys
import tarfile
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import archive  # noqa: E402
import decisions  # noqa: E402
import machine  # noqa: E402
import pack  # noqa: E402
import parts  # noqa: E402
import runner  # noqa: E402
import summary  # noqa: E402


class Here:
    """A machine of no GPU, for scripts that need none."""
    virtual = False
    environment = {"PATH": "/usr/bin:/bin"}
    tools = {"bash": "/bin/bash"}

    def lacks(self, need):
        return None if need == "bash" else f"no {need} on the PATH"

    def headline(self):
        return "a test"


def part(name, script, limit=20, **more):
    return runner.Part(name, "proof", limit, script, **more)


class NothingFits:
    """In place of the program: no plan but keep's."""
    def train(self, *_):
        return ""

    def plan(self, _, *words):
        keep = {"least_bytes": 100, "peak_bytes": {"activations": 50}}
        return keep if "keep" in words else None


class DecisionsTest(unittest.TestCase):
    def test_where_nothing_is_compared_it_fails(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(decisions.main(NothingFits()), 1)
        self.assertEqual(said.getvalue().count("(nothing fits)"), 8)


class RunnerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def run_parts(self, listed, seconds=60, only=None):
        state = runner.State(self.out / "state.json")
        runner.Runner(Here(), state, self.out, seconds).run(listed, only)
        return state

    def statuses(self, listed, **more):
        state = self.run_parts(listed, **more)
        return {each.name: state.status(each.name) for each in listed}

    def text(self, name, stream="stdout"):
        return (self.out / "parts" / name / stream).read_text()

    def test_what_fails_or_hangs_stops_nothing_but_itself(self):
        listed = [part("fails", "echo before; exit 3"), part("hangs", "sleep 60 & sleep 60", 1),
                  part("lacks", "true", needs=("nvcc",)), part("passes", "echo $PART")]
        begin = time.monotonic()
        self.assertEqual(self.statuses(listed), {"fails": "failed", "hangs": "hung",
                                                 "lacks": "skipped", "passes": "passed"})
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(self.text("fails"), "before\n")
        self.assertEqual(self.text("passes").strip(), str((self.out / "parts/passes").resolve()))

    def test_a_script_ends_at_its_first_failing_command(self):
        self.assertEqual(self.statuses([part("p", "false | true; echo on")]), {"p": "failed"})
        self.assertEqual(self.text("p"), "")

    def test_an_exit_code_may_be_an_answer(self):
        listed = [part("p", "exit 3", good=(0, 3))]
        self.assertEqual(self.statuses(listed), {"p": "passed"})

    def test_goes_on_where_it_stopped_and_comes_to_failures_last(self):
        once = "echo again >>../../times; "
        listed = [part("fails", once + "exit 1"), part("passes", once + "true")]
        self.statuses(listed)
        later = [*listed, part("new", "cat ../../times")]
        self.assertEqual(self.statuses(later), {"fails": "failed", "passes": "passed",
                                                "new": "passed"})
        self.assertEqual(self.text("new"), "again\nagain\n")  # before the failed one ran again
        self.assertEqual((self.out / "times").read_text(), "again\n" * 3)

    def test_what_the_time_cuts_off_is_left_and_not_hung(self):
        listed = [part("long", "sleep 60", 100), part("next", "true")]
        seconds = runner.LAST_SECONDS + runner.LEAST_SECONDS + 1
        self.assertEqual(self.statuses(listed, seconds=seconds), {"long": "left", "next": "left"})

    def test_results_of_a_virtual_gpu_are_none_of_a_gpus(self):
        self.run_parts([part("p", "true")])
        with self.assertRaisesRegex(runner.Mixed, "results of a real GPU; expected those of the"):
            runner.State(self.out / "state.json", virtual=True)

    def test_only_runs_a_part_again(self):
        listed = [part("a", "echo x >>../../times"), part("b", "true")]
        self.statuses(listed)
        self.statuses(listed, only=["a"])
        self.assertEqual((self.out / "times").read_text(), "x\nx\n")

    def test_children_end_with_their_part(self):
        self.statuses([part("p", "sleep 1000 & echo $!")])
        child = int(self.text("p"))
        deadline = time.monotonic() + 10
        while pathlib.Path(f"/proc/{child}/cmdline").exists():
            if not pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                break  # a zombie, that its parent is about to collect
            self.assertLess(time.monotonic(), deadline, "still alive")
            time.sleep(0.05)

    def test_the_summary_says_what_failed_and_shows_what_parts_wrote(self):
        listed = [part("figures", "echo '| a | 1 |' >summary.md"),
                  part("fails", "echo the reason >&2; exit 1"), part("left", "true")]
        state = self.run_parts(listed[:2])
        summary.write_summary(self.out, Here(), state, listed)
        text = (self.out / "summary.md").read_text()
        self.assertIn("| a | 1 |", text)
        self.assertIn("the reason", text)
        self.assertIn("| left | left |  |  |", text)
        self.assertEqual(state.sentence(listed), "1 passed, 1 failed, 1 left")


class ArchiveTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name) / "out"
        (self.out / "parts/a").mkdir(parents=True)

    def test_goes_there_and_back(self):
        (self.out / "state.json").write_text("{}")
        (self.out / "parts/a/stdout").write_text("said")
        packed = archive.pack_results(self.out)
        back = self.out.parent / "back"
        archive.unpack_results(packed, back)
        self.assertEqual((back / "parts/a/stdout").read_text(), "said")

    def test_a_long_log_keeps_its_ends_and_the_largest_files_stay_behind(self):
        import random
        noise = random.Random(1).randbytes(archive.MOST_OF_A_LOG * 3)
        (self.out / "parts/a/stdout").write_bytes(b"first" + noise + b"last")
        (self.out / "parts/a/small").write_bytes(b"small")
        packed = archive.pack_results(self.out, most_bytes=1 << 16)
        with tarfile.open(packed) as read:
            self.assertEqual(read.extractfile("left-out.txt").read(), b"parts/a/stdout\n")
            self.assertIn("parts/a/small", read.getnames())
        self.assertLessEqual(packed.stat().st_size, 1 << 16)
        log = (self.out / "parts/a/stdout").read_bytes()
        self.assertTrue(log.startswith(b"first") and log.endswith(b"last"))
        self.assertLess(len(log), archive.MOST_OF_A_LOG + 100)

    def test_what_is_no_log_is_whole(self):
        report = bytes(archive.MOST_OF_A_LOG + 1)
        (self.out / "parts/a/steps.nsys-rep").write_bytes(report)
        with tarfile.open(archive.pack_results(self.out)) as read:
            self.assertEqual(read.extractfile("parts/a/steps.nsys-rep").read(), report)

    def test_refuses_what_is_none_of_ours(self):
        bad = self.out / "bad.tar.gz"
        with tarfile.open(bad, "w:gz") as written:
            written.add(self.out, arcname="../up", recursive=False)
        with self.assertRaises(archive.NotOurs):
            archive.unpack_results(bad, self.out)
        bad.write_text("junk")
        with self.assertRaises(archive.NotOurs):
            archive.unpack_results(bad, self.out)


class MachineTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bundle = pathlib.Path(folder.name)
        (self.bundle / "bundle.json").write_text(
            json.dumps({"torch": "2.11.0", "version": "0.1.0", "commit": "x"}))
        self.torch = self.bundle / "torch"
        self.torch.mkdir()

    def missing(self):
        with self.assertRaises(machine.Missing) as raised:
            machine.Machine(self.bundle, self.torch)
        return str(raised.exception)

    def test_refuses_another_torch(self):
        self.assertIn("version.py", self.missing())
        (self.torch / "version.py").write_text("__version__ = '2.9.1+cu128'\n")
        self.assertIn("was built for torch 2.11, and", self.missing())

    def test_says_what_the_probe_said(self):
        (self.torch / "version.py").write_text("__version__ = '2.11.3+cu130'\n")
        self.assertIn("ferry_gpu_tests cannot run here", self.missing())
        program = self.bundle / "bin/ferry_gpu_tests"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho 'skipped: no GPU: none'\nexit 77\n")
        program.chmod(0o755)
        self.assertEqual(self.missing(), "no GPU: none")


class PackTest(unittest.TestCase):
    def test_finds_the_newest_version_of_each_library(self):
        lines = "0 DF *UND* 0 (GLIBC_2.2.5) a\n0 DF *UND* 0 (GLIBC_2.34) b\n(GLIBCXX_3.4.9) c\n"
        self.assertEqual(pack.check_versions("program", lines), (2, 34))
        with self.assertRaisesRegex(pack.Refused, "GLIBC_2.38; expected at most GLIBC_2.36"):
            pack.check_versions("program", lines + "(GLIBC_2.38) __isoc23_strtol\n")
        with self.assertRaisesRegex(pack.Refused, "GLIBCXX_3.4.32; expected at most"):
            pack.check_versions("program", lines + "(GLIBCXX_3.4.32) d\n")

    def test_refuses_a_library_that_a_gpu_machine_may_not_have(self):
        pack.check_needed("program", "  NEEDED   libtorch_cpu.so\n  NEEDED   libc.so.6\n"
                                     "  NEEDED   libstdc++.so.6\n")
        with self.assertRaisesRegex(pack.Refused, "libfmt.so.9"):
            pack.check_needed("program", "  NEEDED   libfmt.so.9\n")


class PartsTest(unittest.TestCase):
    def test_names_are_folders_of_their_own(self):
        names = [each.name for each in parts.PARTS]
        self.assertEqual(len(set(names)), len(names))
        for name in names:
            self.assertRegex(name, r"^[a-z0-9-]+$")

    def test_every_script_is_bash(self):
        for each in parts.PARTS:
            with self.subTest(each.name):
                self.assertEqual(0, runner.subprocess.run(
                    ["bash", "-n", "-c", each.script], check=False).returncode)


if __name__ == "__main__":
    unittest.main()
