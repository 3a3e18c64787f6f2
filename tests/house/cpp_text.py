"""C++ as the checks read it: comments, directives and raw strings apart, and the code without them.

`code` is as long as the text and has its lines, with blanks in place of comments, strings,
characters, numbers and preprocessor lines, so that each brace left in it is one of the language.
"""

import bisect
import re

TOKEN = re.compile(
    r"""
      (?P<comment> //(?:\\\n|[^\n])* | /\*.*?\*/ )
    | (?P<raw> (?<!\w)(?:u8|[uUL])?R"(?P<mark>[^()\\\s"]{0,16})\(.*?\)(?P=mark)" )
    | (?P<string> "(?:\\.|[^"\\\n])*" )
    | (?P<number> \b\d(?:'?[\w.])* )
    | (?P<char> '(?:\\.|[^'\\\n])*' )
    | (?P<directive> ^[ \t]*\#(?: \\\n | "(?:\\.|[^"\\\n])*" | (?!//|/\*)[^\n] )* )
    """,
    re.S | re.M | re.X,
)
NOT_A_NEWLINE = re.compile(r"[^\n]")


def blank(text):
    return NOT_A_NEWLINE.sub(" ", text)


class CppText:
    """Comments and directives are (offset, text), in order; raw_strings are (first line, last)."""

    def __init__(self, text):
        self.newlines = [match.start() for match in re.finditer("\n", text)]
        self.comments, self.directives, self.raw_strings = [], [], []
        parts, end = [], 0
        for match in TOKEN.finditer(text):
            parts += [text[end : match.start()], blank(match[0])]
            end = match.end()
            if match.lastgroup == "comment":
                self.comments.append((match.start(), match[0]))
            elif match.lastgroup == "directive":
                self.directives.append((match.start(), match[0]))
            elif match.lastgroup == "mark" or match["raw"]:
                self.raw_strings.append((self.line(match.start()), self.line(end - 1)))
        self.code = "".join(parts) + text[end:]

    def line(self, offset):
        """The number of the line that has the character, from 1."""
        return bisect.bisect_left(self.newlines, offset) + 1

    def column(self, offset):
        """The place of the character in its line, from 0."""
        line = self.line(offset)
        return offset - (self.newlines[line - 2] + 1 if line > 1 else 0)
