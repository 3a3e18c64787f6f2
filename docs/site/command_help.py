"""Reads the commands and options of the program `ferry` from its help texts.

CLI11 prints a help text: sections of rows, "  --budget 24GiB Excludes: --pareto    Device memory".
A row whose left part is long goes on in the next line. Text of Ferry's own follows, with examples.
"""

import re
import subprocess
import typing

NO_PROGRAM = 7  # the exit code of a command whose program was not built

ROW = re.compile(
    r"(?P<names>-\S+|[\w.-]+)"
    r"(?: (?P<value>(?!REQUIRED|Excludes:|Needs:|\.\.\.)\S+?(?: in \[[^\]]*\](?:=\S+)?)?))?"
    r"(?P<many> \.\.\.)?"
    r"(?P<required> REQUIRED)?"
    r"(?: Needs:(?P<needs>(?: -\S+)+))?"
    r"(?: Excludes:(?P<excludes>(?: -\S+)+))?"
    r"(?: Needs:(?P<needs_too>(?: -\S+)+))?")


class Row(typing.NamedTuple):
    """A command, an option or an argument."""

    names: list
    value: str  # as the help has it: "NAME", "N:INT in [1 - 8]=2"; "" of a flag
    many: bool
    required: bool
    needs: list
    excludes: list
    text: str

    @property
    def is_option(self):
        return self.names[0].startswith("-")


class Help(typing.NamedTuple):
    words: tuple  # the command: ("train", "gpt")
    about: str
    usage: str
    sections: dict  # of a title: its rows
    rest: str  # Ferry's own text

    @property
    def option_rows(self):
        return [row for rows in self.sections.values() for row in rows if row.is_option]

    @property
    def options(self):
        """{name: its row}."""
        return {name: row for row in self.option_rows for name in row.names}

    @property
    def commands(self):
        """The rows that are names of commands."""
        return [row for title, rows in self.sections.items() for row in rows
                if not row.is_option and title != "Positionals"]


class NotBuilt(Exception):
    """The program of this command was not built: it needs LibTorch."""


def ask(ferry, words=()):
    """The Help of a command, with all options where it has more than --help lists."""
    for flag in ("--help-all", "--help"):
        done = subprocess.run([ferry, *words, flag], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return read(done.stdout, tuple(words))
    if done.returncode == NO_PROGRAM:
        raise NotBuilt(done.stderr.strip())
    raise ValueError(f"ferry {' '.join(words)} --help: exit {done.returncode}: {done.stderr}")


def read(text, words=()):
    lines = text.rstrip("\n").split("\n")
    usage = next(number for number, line in enumerate(lines) if line.startswith("Usage: "))
    sections, at = {}, usage + 1
    while at < len(lines):
        if not lines[at]:
            at += 1
            continue
        end = next((n for n in range(at, len(lines)) if not lines[n]), len(lines))
        title = re.fullmatch(r"(\S.*):", lines[at])
        ours = at > 1 and not lines[at - 1] and not lines[at - 2]  # behind two empty lines
        if not title or (ours and not lines[at + 1].startswith("  -")):
            break
        sections[title[1]] = [row(*parts) for parts in row_texts(lines[at + 1:end])]
        at = end
    return Help(words, " ".join(lines[:usage]), lines[usage].removeprefix("Usage: "), sections,
                "\n".join(lines[at:]).strip("\n"))


def row_texts(lines):
    """(left part, text) of each row."""
    column = min((len(line) - len(line.lstrip()) for line in lines if line.startswith(" " * 12)),
                 default=30)
    rows = []
    for line, after in zip(lines, [*lines[1:], ""]):
        if line.startswith(" " * column):
            rows[-1][1].append(line.strip())
        elif after.startswith(" " * column):
            rows.append((line.strip(), []))
        else:
            rows.append((line[:column].strip(), [line[column:].strip()]))
    return [(left, " ".join(filter(None, text))) for left, text in rows]


def row(left, text):
    found = ROW.fullmatch(left)
    if not found:
        raise ValueError(f"expected an option or a command, got {left!r}")
    needs = (found["needs"] or "") + (found["needs_too"] or "")
    return Row(found["names"].split(","), found["value"] or "", bool(found["many"]),
               bool(found["required"]), needs.split(), (found["excludes"] or "").split(), text)


def all_commands(ferry):
    """(words, its Help, or None where its program was not built) of each command, in order."""
    top = ask(ferry)
    yield (), top
    for command in top.commands:
        words = (command.names[0],)
        try:
            found = ask(ferry, words)
        except NotBuilt:
            yield words, None
            continue
        yield words, found
        for inner in found.commands:
            yield (*words, inner.names[0]), ask(ferry, (*words, inner.names[0]))
