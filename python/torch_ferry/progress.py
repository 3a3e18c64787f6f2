"""Shows the progress of a long capture in one line on stderr, which is erased at the end.

Nothing is printed if stderr is not a terminal, and nothing in the first two seconds. The line
counts the operators of the step that were recorded; their total is not known before the end.
"""

import contextlib
import sys
import time

SILENT_S, PAUSE_S = 2.0, 0.1


class Line:
    def __init__(self, out, clock=time.monotonic):
        self.out, self.clock = out, clock
        self.next, self.operators, self.drawn = clock() + SILENT_S, 0, False

    def operator(self):
        self.operators += 1
        now = self.clock()
        if now < self.next or not self.out.isatty():
            return
        self.out.write(f"\roperators recorded: {self.operators}\033[K")
        self.out.flush()
        self.next, self.drawn = now + PAUSE_S, True

    def clear(self):
        """Erases the line. Call it before anything else is printed."""
        if self.drawn:
            self.out.write("\r\033[K")
            self.out.flush()
            self.drawn = False


_line = None


@contextlib.contextmanager
def shown():
    """A context in which recorded operators are counted on the terminal."""
    global _line
    _line = Line(sys.stderr)
    try:
        yield
    finally:
        _line.clear()
        _line = None


def operator():
    if _line is not None:
        _line.operator()


def clear():
    if _line is not None:
        _line.clear()
