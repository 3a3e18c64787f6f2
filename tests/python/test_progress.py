"""The line that tells how far a capture is."""

import io
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from torch_ferry import progress  # noqa: E402


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Progress(unittest.TestCase):
    def line(self, out, times):
        times = iter(times)
        return progress.Line(out, lambda: next(times))

    def test_a_short_capture_says_nothing(self):
        out = Terminal()
        line = self.line(out, [0, 0.5, 1.9])
        line.operator()
        line.operator()
        line.clear()
        self.assertEqual(out.getvalue(), "")

    def test_a_long_one_counts_ten_times_a_second_at_most_and_leaves_nothing(self):
        out = Terminal()
        line = self.line(out, [0, 2.0, 2.05, 2.11])
        for _ in range(3):
            line.operator()
        self.assertEqual(out.getvalue(),
                         "\roperators recorded: 1\033[K\roperators recorded: 3\033[K")
        line.clear()
        line.clear()
        self.assertTrue(out.getvalue().endswith(": 3\033[K\r\033[K"))

    def test_a_pipe_gets_nothing(self):
        out = io.StringIO()
        line = self.line(out, [0, 5, 6])
        line.operator()
        line.operator()
        line.clear()
        self.assertEqual(out.getvalue(), "")


if __name__ == "__main__":
    unittest.main()
