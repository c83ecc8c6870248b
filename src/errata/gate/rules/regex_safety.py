"""Refuse Java regular expressions that cannot be read here or that could take too long. Pure.

Java's matcher backtracks. The time is bounded by counting the choices it can go back to: a repeat that can stop in only
one place, because what follows cannot match the repeat's own characters (``[^,]*,``), leaves none; any other repeat
multiplies the time, a long one by the length of the text (``.*a``). Time may grow with the square of the text's length,
not faster. A pattern that does not begin with ``^`` is tried from every place, which is one factor already. Java
recurses once for every round of a repeated group, so groups repeat a bounded number of times.

Sets of characters are exact for ASCII; all characters beyond ASCII count as one (:data:`_BEYOND`), and possessive
repeats count as greedy ones, which can only make the check stricter.
"""

from __future__ import annotations

import re
import string
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf
from typing import NamedTuple

_MOST_ROUNDS = 500  # of nested groups, multiplied: a thread's stack allows a few thousand
_MOST_CHOICES = 5_000
_MOST_COUNT = 10_000
_SHORT = 10  # a repeat whose counts differ by more than this is a long one

_END, _BEYOND = -1, 128
_ALL = frozenset(range(_BEYOND + 1))
_CHARACTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_LETTERS, _DIGITS, _SPACE = string.ascii_letters, string.digits, string.whitespace
_CLASSES = {"d": _DIGITS, "w": f"{_LETTERS}{_DIGITS}_", "s": _SPACE, "h": "\t \xa0", "v": "\n\v\f\r\x85"}
_PROPERTIES = {
    "Alpha": _LETTERS,
    "Digit": _DIGITS,
    "Alnum": _LETTERS + _DIGITS,
    "Upper": string.ascii_uppercase,
    "Lower": string.ascii_lowercase,
    "Punct": string.punctuation,
    "Space": _SPACE,
    "Blank": "\t ",
    "ASCII": bytes(range(128)).decode(),
    "XDigit": string.hexdigits,
    "IsAlphabetic": f"{_LETTERS}é",
    "IsLatin": f"{_LETTERS}é",
    **{
        name: "".join(one for one in map(chr, range(128)) if unicodedata.category(one).startswith(name)) + "é"
        for name in ("L", "Lu", "Ll", "N", "Nd", "P", "S", "Z", "M")
    },
}
"""Characters of ``\\p{…}``; an é means that there are some beyond ASCII."""

_ESCAPE = r"\\(?:x[0-9A-Fa-f]{2}|x\{[0-9A-Fa-f]{1,6}\}|u[0-9A-Fa-f]{4}|[pP](?:\{\w+\}|\w)|[^xupP])"
_TOKEN = re.compile(
    rf"""\\Q(?P<quoted>.*?)(?:\\E|$)
    |\(\?(?P<on>[imsu]*)(?:-(?P<off>[imsu]+))?(?P<scope>[:)])
    |(?P<open>\((?:\?(?:[=!>]|<[=!]|<[A-Za-z][A-Za-z0-9]*>)|(?!\?)))
    |\|
    |(?P<place>[$^]|\\[bBAzZG])
    |(?P<set>\[\^?\]?(?:{_ESCAPE}|[^]\\\[&]|&(?!&))*\]|{_ESCAPE}|[^\\\[(*+?{{])""",
    re.VERBOSE | re.DOTALL,
)
_COUNT = re.compile(r"(?:(?P<sign>[*+?])|\{(?P<least>\d+)(?P<comma>,(?P<most>\d*))?\})[?+]?", re.ASCII)
_ITEM = re.compile(rf"({_ESCAPE}|[^\\])(?:-(?!$)({_ESCAPE}|[^\\]))?", re.DOTALL)
_UNREADABLE = {
    r"\(\?[P#(]": "this is not Java's syntax; a named group is (?<name>…)",
    r"\(\?": "this flag or group is not supported; flags are i, m, s, u",
    r"[*+?]": "it repeats nothing",
    r"\{": "a count such as {2}, {2,} or {2,5} follows what it repeats; write \\{ for the character",
    r"\[": "a class is not closed, or has a class in it; write \\[ or \\& for the character",
    r"\\[xu]": "hexadecimal digits are missing",
}

_SLOW = (
    "a long text can be tried in too many ways: let characters follow a repeat that it cannot match itself ([^,]*, and"
    " not .*,), and alternatives begin differently"
)
_SLOW_ANYWHERE = f"{_SLOW}; a pattern that begins with ^ is not tried from every place"
_DEEP = (
    f"a group repeats without end or more than {_MOST_ROUNDS} times, and a long text would exhaust Java's stack; repeat"
    " one character or class such as [a-z-]*, or give a bound such as {0,50}"
)


class _PatternError(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class _Part:
    """A set of characters or, with options, a group; repeated ``least`` to ``most`` times."""

    chars: frozenset[int] = frozenset()
    options: tuple[tuple[_Part, ...], ...] = ()
    least: int = 1
    most: float = 1
    is_empty: bool = False
    """It consumes nothing: an anchor or a look-around."""
    begins: bool = False
    """It matches only at the beginning of the whole text."""

    @property
    def is_endless(self) -> bool:
        return self.most == inf or any(part.is_endless for option in self.options for part in option)

    @property
    def rounds(self) -> float:
        inner = max((part.rounds for option in self.options for part in option), default=1)
        return inner * max(self.most, 1) if self.options and not self.is_empty else inner


class _Cost(NamedTuple):
    """``choices``: ways through, without long repeats; ``loops``: long repeats that multiply the time of what follows;
    ``power``: of the text's length, that bounds the time."""

    choices: int = 1
    loops: float = 0
    power: float = 0


def find_regex_flaw(text: str) -> str | None:
    """What makes a pattern unreadable or too slow; None if it may run."""
    try:
        whole = _Reader(text).read()
    except _PatternError as error:
        return str(error)
    except RecursionError:
        return "groups are nested too deeply"
    if whole.rounds > _MOST_ROUNDS:
        return _DEEP
    *before, last = whole.options[-1] or (_Part(),)
    if len(whole.options) == 1 and before and last.chars and last.most == inf:
        whole = _Part(options=(tuple(before),))  # nothing is tried again after a repeat at the end
    is_anchored = _is_anchored(whole)
    cost = _measure_part(whole, frozenset({_END}))
    if cost.choices <= _MOST_CHOICES and cost.power <= (2 if is_anchored else 1):
        return None
    return _SLOW if is_anchored else _SLOW_ANYWHERE


def _is_anchored(part: _Part) -> bool:
    """Whether it can match only at the beginning of the text."""
    is_group = part.options and not part.is_empty and part.least > 0
    return part.begins or bool(is_group and all(option and _is_anchored(option[0]) for option in part.options))


def _find_starts(parts: Sequence[_Part], following: frozenset[int]) -> frozenset[int]:
    """Characters that these parts and what follows them can begin with."""
    for part in reversed(parts):
        own = frozenset[int]().union(*(_find_starts(option, following) for option in part.options)) or part.chars
        following = own | following if part.is_empty or part.least == 0 else own
    return following


def _measure_parts(parts: Sequence[_Part], following: frozenset[int]) -> _Cost:
    choices, loops, power = 1, 0.0, 0.0
    for at, part in enumerate(parts):
        cost = _measure_part(part, _find_starts(parts[at + 1 :], following))
        power = max(power, loops + cost.power)
        if not part.is_empty:  # a look-around is not tried again once it has matched
            choices, loops = choices * cost.choices, loops + cost.loops
    return _Cost(choices, loops, power)


def _measure_part(part: _Part, following: frozenset[int]) -> _Cost:
    choices, loops, power = 1, 0.0, 0.0
    own = _find_starts([replace(part, least=1, is_empty=False)], frozenset({_END}))
    if part.options:
        costs = [_measure_parts(option, following | own if part.most > 1 else following) for option in part.options]
        is_exclusive = all(_exclude(one, other) for one, other in combinations(part.options, 2))
        rounds, most_loops = int(part.most) or 1, max(cost.loops for cost in costs)
        choices = (max if is_exclusive else sum)(cost.choices for cost in costs) ** rounds
        loops, power = most_loops * rounds, max(cost.power for cost in costs) + most_loops * (rounds - 1)
    spread = part.most - part.least
    stops_anywhere = spread > 0 and (_END in own or not own.isdisjoint(following - {_END}))
    if spread > _SHORT:
        return _Cost(choices, loops + stops_anywhere, max(power, 1))
    return _Cost(choices * int(spread + 1 if stops_anywhere else 1), loops, power)


def _exclude(one: Sequence[_Part], other: Sequence[_Part]) -> bool:
    """Whether two alternatives cannot both match, because they differ in one of their first characters."""
    for left, right in zip(one, other, strict=False):
        if _Part(left.chars) != left or _Part(right.chars) != right:
            return False
        if left.chars.isdisjoint(right.chars):
            return True
    return False


class _Reader:
    """Reads a pattern into parts; what it does not know is refused."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.flags = text, 0, frozenset[str]()

    def read(self) -> _Part:
        whole = self._read_options()
        if self.at < len(self.text):
            raise _PatternError("a ) closes nothing")
        return whole

    def _read_options(self) -> _Part:
        """Alternatives up to the ) that closes them, or the end."""
        options: list[list[_Part]] = [[]]
        while self.at < len(self.text) and self.text[self.at] != ")":
            token = _TOKEN.match(self.text, self.at)
            if token is None:
                rest = self.text[self.at :]
                reason = next((said for shape, said in _UNREADABLE.items() if re.match(shape, rest)), "not supported")
                raise _PatternError(f"at {rest[:12]!r}: {reason}")
            self.at = token.end()
            if token[0] == "|":
                options.append([])
            else:
                options[-1] += self._read_parts(token)
        return _Part(options=tuple(map(tuple, options)))

    def _read_parts(self, token: re.Match[str]) -> list[_Part]:
        if token["quoted"] is not None:
            return [_Part(self._fold({ord(one)})) for one in token["quoted"]]
        if token["scope"] == ")":
            self.flags = (self.flags | set(token["on"])) - set(token["off"] or "")
            return []
        if token["place"]:
            begins = token["place"] == r"\A" or (token["place"] == "^" and "m" not in self.flags)
            part = _Part(is_empty=True, begins=begins)
        elif token["set"]:
            part = _Part(self._read_set(token["set"]))
        else:
            part = self._read_group(token)
        return [self._read_count(part)]

    def _read_group(self, token: re.Match[str]) -> _Part:
        before = self.flags
        self.flags = (self.flags | set(token["on"] or "")) - set(token["off"] or "")
        group = self._read_options()
        self.flags = before
        if self.at == len(self.text):
            raise _PatternError(f"the group that begins at {token[0]!r} is not closed")
        self.at += 1
        if token["open"] in ("(?<=", "(?<!") and group.is_endless:
            raise _PatternError("looking back has no bound; use {0,n} instead of * or +")
        if token["open"] in ("(?<=", "(?<!", "(?=", "(?!"):
            return replace(group, is_empty=True)
        only = group.options[0][0] if len(group.options) == len(group.options[0]) == 1 else group
        return only if only == _Part(only.chars) else group

    def _read_count(self, part: _Part) -> _Part:
        count = _COUNT.match(self.text, self.at)
        if count is None:
            return part
        self.at = count.end()
        if _COUNT.match(self.text, self.at):
            raise _PatternError(f"a repeat is repeated: {self.text[count.start() : self.at + 1]}")
        least = int(count["least"] or count["sign"] == "+")
        most = 1 if count["sign"] == "?" else least if count["sign"] is None and not count["comma"] else inf
        most = int(count["most"]) if count["most"] else most
        if most < least or least > _MOST_COUNT or _MOST_COUNT < most < inf:
            raise _PatternError(f"the count {count[0]} goes down, or above {_MOST_COUNT:,}")
        return part if part.is_empty else replace(part, least=least, most=most)

    def _fold(self, chars: set[int] | frozenset[int]) -> frozenset[int]:
        """The set as the matcher sees it: all characters beyond ASCII are one, and ``(?i)`` adds the other case."""
        found = {min(one, _BEYOND) for one in chars}
        if "i" in self.flags:
            found |= {ord(chr(one).swapcase()) for one in found if one < _BEYOND}
            found |= {_BEYOND} if "u" in self.flags else set()
        return frozenset(found)

    def _read_set(self, text: str) -> frozenset[int]:
        if text == ".":
            return _ALL if "s" in self.flags else _ALL - {10, 13}
        if len(text) == 1 or text[0] == "\\":
            return self._fold(_read_item(text))
        negated, found = text.startswith("[^"), set[int]()
        for item in _ITEM.finditer(text[1 + negated : -1]):
            low, high = _read_item(item[1]), _read_item(item[2] or item[1])
            if item[2] is None:
                found |= low
            elif len(low) == len(high) == 1 and min(low) <= min(high):
                found |= set(range(min(low), min(*high, _BEYOND) + 1)) | high
            else:
                raise _PatternError(f"the span {item[0]} does not go from the lower to the higher character")
        return _ALL - (self._fold(found) - {_BEYOND}) if negated else self._fold(found)


def _read_item(item: str) -> frozenset[int]:
    """Characters of one character or escape; a class that is inverted has all those beyond ASCII too."""
    if item[0] != "\\":
        return frozenset({ord(item)})
    kind, rest = item[1], item[2:].strip("{}")
    if kind in "xu" and int(rest, 16) <= sys.maxunicode:
        return frozenset({int(rest, 16)})
    known = _PROPERTIES.get(rest) if kind in "pP" else _CLASSES.get(kind.lower())
    if known is not None:
        chars = frozenset(min(ord(one), _BEYOND) for one in known)
        return _ALL - (chars - {_BEYOND}) if kind.isupper() else chars
    if kind in "0123456789k":
        raise _PatternError("back-references are not supported")
    if kind in "pP" or (kind.isascii() and kind.isalnum() and kind not in _CHARACTERS):
        raise _PatternError(f"{item} is not supported")
    return frozenset({ord(_CHARACTERS.get(kind, kind))})
