"""Writes docs/reference/commands.md from the help texts of the program `ferry`.

    python3 docs/site/commands.py FERRY            writes the page
    python3 docs/site/commands.py FERRY --check    exit 1 where the page is another

Where LibTorch is missing some commands are not built: their sections stay as the page has them.
"""

import argparse
import difflib
import pathlib
import re
import sys
import textwrap

import command_help

PAGE = pathlib.Path(__file__).resolve().parents[1] / "reference/commands.md"
HEAD = """# Commands

`ferry COMMAND --help` prints the same in a terminal. This page is generated from these texts. Do
not edit it: `python3 docs/site/commands.py build/dev/ferry` writes it anew.
"""
# Commands that have most of their options in common, and the heading for these.
SHARED = {
    (("plan",), ("report",), ("simulate",)): "## Options of plan, report and simulate",
    (("train", "gpt"), ("train", "llama"), ("train", "resnet")): "### ferry train MODEL",
}
MANY = 1_000_000  # a limit above is none that a user meets
LEFT_OUT = {"--help", "--help-all", "--version"}


def cell(text):
    return text.replace("|", "\\|")


def code(*names):
    return ", ".join(f"`{name}`" for name in names)


def value_of(row):
    """(what stands behind the option's name, its range, its default): "N", "From 1 to 8", "2"."""
    value, _, default = row.value.partition("=")
    name, _, kind = value.partition(":") if re.search(r":[A-Z]+ in \[", value) else (value, "", "")
    limits = re.search(r"in \[(.*) - (.*)\]", kind)
    if not limits:
        return name, "", default
    least, most = limits.groups()
    if float(most) > MANY:
        return name, "" if least == "0" else f"At least {least}", default
    return name, f"From {least} to {most}", default


def option_row(row):
    name, limits, default = value_of(row)
    left = code(*row.names[:-1], f"{row.names[-1]} {name}".strip() + " ..." * row.many)
    said = [row.text.rstrip(".")]
    if limits:
        said.append(limits)
    if default:
        said.append(f"Default: `{default}`")
    if row.required:
        said.append("Required")
    if row.needs:
        said.append(f"Needs {code(*row.needs)}")
    if row.excludes:
        said.append(f"Not with {code(*row.excludes)}")
    return f"| {left} | {cell('. '.join(filter(None, said)))} |"


def argument_row(row):
    return f"| `{row.names[0]}{' ...' * row.many}` | {cell(row.text)} |"


def rest_of(text):
    """The text after the options: prose, and lists of examples as they are."""
    for part in re.split(r"\n\n+", text):
        first, _, more = part.partition("\n")
        if re.fullmatch(r"\w+:", first) and more.startswith("  "):
            yield f"{first}\n\n```text\n{re.sub(r'^  ', '', more, flags=re.M)}\n```"
        elif part:
            yield textwrap.fill(part, 100, break_long_words=False, break_on_hyphens=False)


def options_table(rows, arguments=()):
    """One table, arguments first."""
    lines = [*map(argument_row, arguments),
             *(option_row(row) for row in rows if row.names[-1] not in LEFT_OUT)]
    left = "argument, option" if arguments else "option"
    return "\n".join([f"| {left} | meaning |", "|---|---|", *lines]) if lines else ""


def section(helped, shared=(), shared_title="", rest=True):
    """The Markdown of one command. Its options that are `shared` have a section of their own."""
    title = " ".join(("ferry", *helped.words))
    usage = helped.usage.replace(f"ferry {' '.join(helped.words)}".strip(), title, 1)
    parts = [f"{'##' if len(helped.words) < 2 else '###'} {title}",
             f"{helped.about.rstrip('.')}.\nUsage: `{usage}`"]
    if helped.commands:
        parts.append("\n".join(["| command | what it does |", "|---|---|",
                                *(command_row(row, helped.words) for row in helped.commands)]))
    arguments = helped.sections.get("Positionals", ())
    for name, rows in helped.sections.items():
        rows = [row for row in rows if row not in shared]
        if rows and rows[0].is_option:
            table = options_table(rows, arguments)
            arguments = ()
            parts += [f"{name}:"] * (name != "Options" and bool(table)) + [table]
    if shared:
        anchor = shared_title.strip("# ").lower().replace(",", "").replace(" ", "-")
        parts.append(f"More options: [{shared_title.strip('# ')}](#{anchor}).")
    parts += rest_of(helped.rest) if rest else ()
    return "\n\n".join(filter(None, parts)) + "\n"


def command_row(row, words):
    title = " ".join(("ferry", *words, row.names[0]))
    return f"| [`{title}`](#{title.replace(' ', '-')}) | {cell(row.text)} |"


def sections_of(page):
    """{title: text} of a page's sections."""
    parts = re.split(r"^(?=###? ferry\b)", page, flags=re.M)[1:]
    return {part.partition("\n")[0].strip("# "): part.strip("\n") + "\n" for part in parts}


def page(ferry, before):
    """The page. What was not built is taken from the page before."""
    parts, known = [HEAD], sections_of(before)
    found = dict(command_help.all_commands(ferry))
    for words, helped in found.items():
        title = " ".join(("ferry", *words))
        if helped is None:
            print(f"commands.py: {title} is not built here: its section stays", file=sys.stderr)
            parts += [text for name, text in known.items()
                      if name == title or name.startswith(f"{title} ")]
            continue
        group = next((group for group in SHARED if words in group and set(group) <= set(found)), ())
        shared = in_common([found[each] for each in group])
        above = found.get(words[:-1]) if len(words) > 1 else None
        parts.append(section(helped, shared, SHARED.get(group, ""),
                             rest=above is None or above.rest != helped.rest))
        if group and words == group[-1]:
            parts.append(f"{SHARED[group]}\n\n{options_table(shared)}\n")
    return "\n".join(parts)


def in_common(helps):
    """The options that are the same in all."""
    if not helps:
        return []
    others = [each.option_rows for each in helps[1:]]
    return [row for row in helps[0].option_rows if row.names[-1] not in LEFT_OUT
            and all(row in other for other in others)]


def main(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("ferry")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--page", type=pathlib.Path, default=PAGE)
    options = parser.parse_args(arguments)
    before = options.page.read_text(encoding="utf-8") if options.page.exists() else ""
    now = page(options.ferry, before)
    if not options.check:
        options.page.write_text(now, encoding="utf-8")
        return 0
    if now != before:
        sys.stdout.writelines(line + "\n" for line in difflib.unified_diff(
            before.splitlines(), now.splitlines(), "the page", "the program", n=1, lineterm=""))
        print(f"{options.page} is out of date. To write it anew:\n"
              f"    python3 docs/site/commands.py {options.ferry}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
