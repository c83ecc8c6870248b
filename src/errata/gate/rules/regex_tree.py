"""Parse Java regular expressions into trees: the part of the syntax that Errata accepts. Pure.

Patterns run in the JVM but are checked before a JVM is started, so they are parsed here. Syntax that differs between
Java and Python, that has no use in a check (back-references, conditions) or that Java would refuse is refused by name.
Character sets are spans of code points; for Unicode classes they may be wider than Java's, never narrower, which can
only make the check stricter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Spans = tuple[tuple[int, int], ...]
"""Sorted, disjoint spans of code points, both ends included."""

LAST_CODE_POINT = 0x10FFFF
_WORD: Spans = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Spans = ((9, 13), (32, 32))
_DIGIT: Spans = ((48, 57),)
_HORIZONTAL: Spans = ((9, 9), (32, 32), (160, LAST_CODE_POINT))
_VERTICAL: Spans = ((10, 13), (133, 133), (8232, 8233))
_NEWLINES: Spans = ((10, 10), (13, 13), (133, 133), (8232, 8233))
_BEYOND: Spans = ((128, LAST_CODE_POINT),)
_UPPER: Spans = ((65, 90),)
_LOWER: Spans = ((97, 122),)
_PUNCTUATION: Spans = ((33, 47), (58, 64), (91, 96), (123, 126))
_ZERO_WIDTH = "bBAzZG"
_CHARACTERS = {"t": 9, "n": 10, "r": 13, "f": 12, "a": 7, "e": 27}
_FLAGS = "imsu"
_FOLDED = tuple(
    (ord(one), other) for one, other in zip("iIiIkKsS", (304, 304, 305, 305, 8490, 8490, 383, 383), strict=True)
)
"""ASCII letters → characters beyond ASCII that they also match with the flags i and u together."""


class PatternError(ValueError):
    """A pattern that cannot be parsed; the message says what was found."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """Any one character of a set."""

    spans: Spans


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts in sequence; an empty sequence matches the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Any one of these."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The body repeated ``least`` to ``most`` times; without bound if ``most`` is None."""

    body: Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Assertion:
    """A look-ahead or look-behind, which consumes nothing; without a body, an anchor such as ``$``.

    ``begins``: it matches only at the beginning of the whole text.
    """

    body: Node | None = None
    begins: bool = False


Node = Symbol | Sequence | Alternatives | Repeat | Assertion


def merge_spans(spans: Iterable[tuple[int, int]]) -> Spans:
    """Sort spans, and merge those that overlap or touch."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def _invert_spans(spans: Spans) -> Spans:
    """Spans of all other characters."""
    found, at = [], 0
    for low, high in spans:
        if low > at:
            found.append((at, low - 1))
        at = high + 1
    return (*found, (at, LAST_CODE_POINT)) if at <= LAST_CODE_POINT else tuple(found)


_CLASSES: dict[str, Spans] = {
    "d": _DIGIT,
    "D": _invert_spans(_DIGIT),
    "w": _WORD,
    "W": _invert_spans(_WORD),
    "s": _SPACE,
    "S": _invert_spans(_SPACE),
    "h": _HORIZONTAL,
    "H": _invert_spans(((9, 9), (32, 32), (160, 160))),
    "v": _VERTICAL,
    "V": _invert_spans(_VERTICAL),
}
_LETTERS = merge_spans((*_UPPER, *_LOWER, *_BEYOND))
_PROPERTIES: dict[str, Spans] = {
    "Alpha": merge_spans((*_UPPER, *_LOWER)),
    "Digit": _DIGIT,
    "Alnum": merge_spans((*_UPPER, *_LOWER, *_DIGIT)),
    "Upper": _UPPER,
    "Lower": _LOWER,
    "Punct": _PUNCTUATION,
    "Space": _SPACE,
    "Blank": ((9, 9), (32, 32)),
    "ASCII": ((0, 127),),
    "XDigit": ((48, 57), (65, 70), (97, 102)),
    "L": _LETTERS,
    "Lu": merge_spans((*_UPPER, *_BEYOND)),
    "Ll": merge_spans((*_LOWER, *_BEYOND)),
    "IsAlphabetic": _LETTERS,
    "IsLatin": _LETTERS,
    "N": merge_spans((*_DIGIT, *_BEYOND)),
    "Nd": merge_spans((*_DIGIT, *_BEYOND)),
    "P": merge_spans((*_PUNCTUATION, *_BEYOND)),
    "S": merge_spans((*_PUNCTUATION, *_BEYOND)),
    "Z": merge_spans((*_SPACE, *_BEYOND)),
    "M": _BEYOND,
}
_ASCII_CLASSES = frozenset({"Alpha", "Digit", "Alnum", "Upper", "Lower", "Punct", "Space", "Blank", "ASCII", "XDigit"})


def parse_pattern(text: str) -> Node:
    """Parse a pattern into a tree; raises :class:`PatternError`."""
    reader = _PatternReader(text)
    try:
        tree = reader.alternatives()
    except RecursionError:
        raise PatternError("groups are nested too deeply") from None
    if reader.at < len(text):
        raise PatternError("a ) closes nothing")
    if reader.folds_unicode and reader.is_beyond_ascii:
        raise PatternError("the flag u does not go with characters beyond ASCII; write both cases, such as [äÄ]")
    return tree


class _PatternReader:
    """Recursive-descent parser of a pattern."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.flags: frozenset[str] = frozenset()
        self.folds_unicode = False
        self.is_beyond_ascii = not text.isascii()

    def peek(self, ahead: int = 0) -> str:
        return self.text[self.at + ahead : self.at + ahead + 1]

    def take(self) -> str:
        if self.at >= len(self.text):
            raise PatternError("it ends too early")
        self.at += 1
        return self.text[self.at - 1]

    def skip(self, expected: str) -> bool:
        if not self.text.startswith(expected, self.at):
            return False
        self.at += len(expected)
        return True

    def alternatives(self) -> Node:
        options = [self.sequence()]
        while self.skip("|"):
            options.append(self.sequence())
        return options[0] if len(options) == 1 else Alternatives(tuple(options))

    def sequence(self) -> Node:
        parts: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            if self.skip(r"\Q"):
                parts += self._quoted()
                continue
            part = self.atom()
            parts.append(self.repeated(part) if part is not None else Sequence(()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _quoted(self) -> list[Node]:
        end = self.text.find(r"\E", self.at)
        quoted = self.text[self.at : end if end >= 0 else None]
        self.at = len(self.text) if end < 0 else end + 2
        return [self.symbol(((ord(one), ord(one)),)) for one in quoted]

    def symbol(self, spans: Spans) -> Symbol:
        if "i" not in self.flags:
            return Symbol(spans)
        folded = list(spans)
        for low, high in spans:
            for first, last, shift in ((65, 90, 32), (97, 122, -32)):
                if max(low, first) <= min(high, last):
                    folded.append((max(low, first) + shift, min(high, last) + shift))
            if "u" in self.flags:
                folded += [(other, other) for one, other in _FOLDED if low <= one <= high]
        return Symbol(merge_spans(folded))

    def atom(self) -> Node | None:
        one = self.take()
        match one:
            case "(":
                return self.group()
            case "[":
                return self.symbol(self.char_class())
            case "\\":
                return self.escape()
            case "^":
                return Assertion(begins="m" not in self.flags)
            case "$":
                return Assertion()
            case ".":
                return Symbol(((0, LAST_CODE_POINT),) if "s" in self.flags else _invert_spans(_NEWLINES))
            case "*" | "+" | "?":
                raise PatternError(f"{one} repeats nothing")
            case "{":
                raise PatternError("a { repeats nothing; write \\{ for the character")
            case _:
                return self.symbol(((ord(one), ord(one)),))

    def group(self) -> Node | None:
        flags, before = self.flags, self.at
        body: Node | None
        if not self.skip("?") or self.skip(":") or self.skip(">"):
            body = self.alternatives()
        elif self.skip("=") or self.skip("!"):
            body = Assertion(self.alternatives())
        elif self.skip("<=") or self.skip("<!"):
            inside = self.alternatives()
            if _is_endless(inside):
                raise PatternError("looking back has no bound; use {0,n} instead of * or +")
            body = Assertion(inside)
        elif self.peek() == "<":
            self._name()
            body = self.alternatives()
        elif self.peek() in ("P", "#", "("):
            raise PatternError(f"(?{self.peek()} is not Java's syntax; a named group is (?<name>…)")
        else:
            return self._flags(flags)
        if not self.skip(")"):
            raise PatternError(f"the ( at {before} is not closed")
        self.flags = flags
        return body

    def _name(self) -> None:
        self.take()
        name = ""
        while self.peek().isascii() and self.peek().isalnum():
            name += self.take()
        if not name or name[0].isdigit() or not self.skip(">"):
            raise PatternError("the name of a group is letters and digits, such as (?<year>…)")

    def _flags(self, before: frozenset[str]) -> Node | None:
        """Parse flags: ``(?i)`` applies to the rest of the group, ``(?i:…)`` to its own body."""
        on, off, target = set(before), set[str](), "on"
        while self.peek() not in (":", ")"):
            one = self.take()
            if one == "-":
                target = "off"
            elif one in _FLAGS:
                (on.add if target == "on" else off.add)(one)
                self.folds_unicode |= one == "u" and target == "on"
            else:
                raise PatternError(f"the flag or group (?{one} is not supported; flags are {', '.join(_FLAGS)}")
        self.flags = frozenset(on - off)
        if self.take() == ")":
            return None
        body = self.alternatives()
        if not self.skip(")"):
            raise PatternError("a ( is not closed")
        self.flags = before
        return body

    def repeated(self, body: Node) -> Node:
        bounds: tuple[int, int | None] | None = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self.peek())
        if bounds is not None:
            self.take()
        elif self.peek() == "{":
            bounds = self._counted()
        else:
            return body
        if not self.skip("?"):  # reluctant and possessive repeats are treated as greedy ones
            self.skip("+")
        if self.peek() in ("*", "+", "?", "{"):
            raise PatternError(f"a repeat is repeated: {self.peek()}")
        return body if isinstance(body, Assertion) else Repeat(body, *bounds)

    def _counted(self) -> tuple[int, int | None]:
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at + 1 : end if end >= 0 else None].partition(",")
        if end < 0 or not _is_number(low) or not (high == "" or _is_number(high)):
            raise PatternError("a count is {2}, {2,} or {2,5}; write \\{ for the character")
        self.at = end + 1
        least = int(low)
        most = least if not comma else int(high) if high else None
        if most is not None and most < least:
            raise PatternError(f"the count {{{low},{high}}} goes down")
        if max(least, most or 0) > 10_000:
            raise PatternError("a count is above 10,000")
        return least, most

    def escape(self) -> Node:
        one = self.take()
        if one in _ZERO_WIDTH:
            return Assertion(begins=one == "A")
        if one.isdigit() or one == "k":
            raise PatternError("back-references are not supported")
        return self.symbol(self.escaped(one))

    def escaped(self, one: str) -> Spans:
        if one in _CLASSES:
            return _CLASSES[one]
        if one in ("p", "P"):
            return self._property(negated=one == "P")
        if one in ("x", "u"):
            code = self._code(one)
            return ((code, code),)
        if one in _CHARACTERS:
            return ((_CHARACTERS[one], _CHARACTERS[one]),)
        if one.isascii() and one.isalnum():
            raise PatternError(f"\\{one} is not supported")
        return ((ord(one), ord(one)),)

    def _code(self, kind: str) -> int:
        if kind == "x" and self.skip("{"):
            digits, _, _ = self.text[self.at :].partition("}")
            self.at += len(digits) + 1
        else:
            size = 2 if kind == "x" else 4
            digits = self.text[self.at : self.at + size]
            self.at += size
            if len(digits) < size:
                digits = ""
        try:
            code = int(digits, 16)
        except ValueError:
            raise PatternError(f"\\{kind} needs hexadecimal digits") from None
        if code > LAST_CODE_POINT:
            raise PatternError(f"\\{kind}{{{digits}}} is no character")
        self.is_beyond_ascii |= code > 127
        return code

    def _property(self, *, negated: bool) -> Spans:
        if self.skip("{"):
            name, _, _ = self.text[self.at :].partition("}")
            self.at += len(name) + 1
        else:
            name = self.take()
        if name not in _PROPERTIES:
            raise PatternError(f"\\p{{{name}}} is not supported; known are {', '.join(_PROPERTIES)}")
        spans = _PROPERTIES[name]
        if not negated:
            return spans
        # a set that is wider than Java's would be narrower when inverted, so add everything beyond ASCII back
        return _invert_spans(spans) if name in _ASCII_CLASSES else merge_spans((*_invert_spans(spans), *_BEYOND))

    def char_class(self) -> Spans:
        negated, spans, start = self.skip("^"), list[tuple[int, int]](), self.at
        while self.peek() != "]" or self.at == start:
            spans += self._class_item()
        self.take()
        found = merge_spans(spans)
        return _invert_spans(found) if negated else found

    def _class_item(self) -> Spans:
        one = self.take()
        if one == "[" or self.text.startswith("&&", self.at - 1):
            raise PatternError("classes within classes are not supported; write \\[ or \\& for the character")
        low = self.escaped(self.take()) if one == "\\" else ((ord(one), ord(one)),)
        is_one = len(low) == 1 and low[0][0] == low[0][1]
        if self.peek() != "-" or self.peek(1) in ("]", "") or not is_one:
            return low
        self.take()
        other = self.take()
        high = self.escaped(self.take()) if other == "\\" else ((ord(other), ord(other)),)
        if len(high) != 1 or high[0][0] != high[0][1] or high[0][0] < low[0][0]:
            raise PatternError("a span of characters goes from the lower to the higher one, such as a-z")
        return ((low[0][0], high[0][1]),)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 6


def _is_endless(node: Node) -> bool:
    match node:
        case Repeat(body, _, most):
            return most is None or _is_endless(body)
        case Sequence(parts) | Alternatives(parts):
            return any(_is_endless(part) for part in parts)
        case _:
            return False
