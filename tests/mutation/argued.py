"""Equivalent mutants, each with its reason: `argued/ROOM.jsonl`.

Each line describes a mutant: `file`, `kind`, the text before (`was`; of a statement that was added,
the line after it), the text in the mutant (`reads`), and its number among equal ones of the file
(`nth`). `why` is the reason why no program can tell it from the core. Entries have no line numbers,
because these change. An entry that matches no mutant is out of date.
"""

import json
import pathlib

HERE = pathlib.Path(__file__).parent / "argued"
KEYS = ("file", "kind", "was", "reads", "nth")


def plain(text):
    return " ".join(text.split())


def named(made):
    """{number: (file, kind, was, reads, nth)}"""
    found, alike = {}, {}
    for file, places in made.places.items():
        source = (made.root / file).read_bytes()
        lines = source.decode().splitlines()
        for place in places:
            was = source[place.start:place.end].decode() if place.end > place.start else ""
            for form in place.forms:
                name = (file, form.kind, plain(was) or plain(lines[place.line - 1]),
                        plain(form.text))
                alike[name] = alike.get(name, 0) + 1
                found[form.number] = (*name, alike[name])
    return found


def arguments(made, folder=HERE):
    """({number: why}, [lines that match no mutant])"""
    numbers = {name: number for number, name in named(made).items()}
    known, lost = {}, []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            number = numbers.get(tuple(entry[key] for key in KEYS))
            if number is None:
                lost.append(f"{path.name}: {line}")
            else:
                known[number] = entry["why"]
    return known, lost
