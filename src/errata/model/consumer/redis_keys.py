"""Which keys a Redis pattern means for some partitions, so that one pass over all keys serves them all. Pure.

Redis is asked for a wider pattern with ``*`` in place of the partition; which keys are deleted is decided here, by a
regular expression of the whole pattern in which partitions match only themselves.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from errata.model.consumer.partition_text import HOLE

_ANY = "(?s:.)"


def widen_pattern(template: str) -> str:
    """The pattern to scan with.

    >>> widen_pattern("rev:{partition}:*")
    'rev:*:*'
    """
    return template.replace(HOLE, "*")


def compile_pattern(template: str, partitions: Collection[str]) -> re.Pattern[str]:
    r"""The keys of these partitions.

    >>> keys = compile_pattern("rev:{partition}:[ab]?", ["2026-01-03", "*"])
    >>> [bool(keys.fullmatch(key)) for key in ("rev:2026-01-03:a1", "rev:2026-01-04:a1", "rev:*:b1", "rev:x:b1")]
    [True, False, True, False]
    """
    try:
        return re.compile(_translate_pattern(template, _match_one_of(partitions)))
    except RecursionError:  # values of which each begins with the one before, hundreds of them
        plain = "|".join(map(re.escape, partitions))
        return re.compile(_translate_pattern(template, plain))


def _translate_pattern(template: str, partition: str) -> str:
    pieces: list[str] = []
    is_named = False
    rest = template
    while rest:
        if rest.startswith(HOLE):
            # a second hole is the same partition
            pieces.append("(?P=partition)" if is_named else f"(?P<partition>{partition})")
            is_named, rest = True, rest[len(HOLE) :]
            continue
        piece, rest = _translate_piece(rest)
        pieces.append(piece)
    return "".join(pieces)


def _translate_piece(text: str) -> tuple[str, str]:
    """The regular expression of the first piece of a pattern, and the rest, as Redis reads them."""
    head = text[0]
    if head == "*":
        return f"{_ANY}*", text[1:]
    if head == "?":
        return _ANY, text[1:]
    if head == "[":
        return _translate_class(text[1:])
    if head == "\\" and len(text) > 1:
        return re.escape(text[1]), text[2:]
    return re.escape(head), text[1:]


def _translate_class(text: str) -> tuple[str, str]:
    """A class of characters; Redis takes the end of the pattern for a missing bracket."""
    negated = text.startswith("^")
    rest = text[1:] if negated else text
    items: list[str] = []
    while rest and rest[0] != "]":
        if rest[0] == "\\" and len(rest) > 1:
            items.append(re.escape(rest[1]))
            rest = rest[2:]
        elif len(rest) > 2 and rest[1] == "-":
            first, last = sorted((rest[0], rest[2]))
            items.append(f"{re.escape(first)}-{re.escape(last)}")
            rest = rest[3:]
        else:
            items.append(re.escape(rest[0]))
            rest = rest[1:]
    if not items:
        return (_ANY if negated else r"(?!)"), rest[1:]
    return f"[{'^' if negated else ''}{''.join(items)}]", rest[1:]


def _match_one_of(values: Collection[str]) -> str:
    """One of some texts, by their common beginnings: thousands of them cost no more per key than a few."""
    tree: dict[str, Any] = {}
    for value in values:
        node = tree
        for character in value:
            node = node.setdefault(character, {})
        node[""] = {}
    return _write_branches(tree) if tree else r"(?!)"


def _write_branches(tree: dict[str, Any]) -> str:
    branches = []
    for character, below in tree.items():
        written = re.escape(character)
        while len(below) == 1 and "" not in below:
            (character, below), *_ = below.items()
            written += re.escape(character)
        branches.append(written + (_write_branches(below) if character and below != {"": {}} else ""))
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
