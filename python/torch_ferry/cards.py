"""Which card somebody meant who named none of those that ship: "4090", "A100-80GB", or what
`torch.cuda.get_device_name()` returns. Standard library only."""

import re


def suggestion(asked, cards):
    """A sentence about the cards that have every number of `asked` in their name or description;
    "" where there are none, or where nothing tells them apart.

    cards   dicts with "name" and "description", as `ferry hardware --json` has them."""
    wanted = {word for word in re.findall(r"[a-z0-9]+", _plain(asked)) if re.search(r"\d", word)}
    if not wanted:
        return ""
    meant = [card for card in cards
             if wanted <= _words(card["name"]) | _words(card["description"])]
    if not 1 <= len(meant) <= 3:
        return ""
    named = " or ".join(f"'{card['name']}' ({card['description']})" for card in meant)
    return f"{asked}: expected a shipped card or the path of a card's file; did you mean {named}?"


def _words(text):
    """The words of a name, and the numbers in them: an "RTX4090" is a "4090" as well."""
    text = _plain(text)
    return {*re.findall(r"[a-z0-9]+", text), *re.findall(r"\d+", text)}


def _plain(text):
    """"80GB" and "80 GB" are 80."""
    return re.sub(r"(\d)\s*gi?b\b", r"\1 ", text.lower())
