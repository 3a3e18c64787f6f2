"""How far a long capture is: one line on stderr where that is a terminal, gone at the end.

Nothing is printed to a pipe, and nothing in the first two seconds. The line counts operators while
a step is recorded: how many there will be is not known before.
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
        """To be called before anything else is printed."""
        if self.drawn:
            self.out.write("\r\033[K")
            self.out.flush()
            self.drawn = False


_line = None


@contextlib.contextmanager
def shown():
    """While this lasts, operators are counted on the terminal."""
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
