"""Parse YAML into a tree in which every node knows its line. Pure.

Built from the parser's events in one pass, so that aliases and excessive depth are refused before anything is expanded.
Scalars follow YAML 1.2 and keep their text: ``on``, ``NO`` and ``12:30:45`` are text, ``2.10`` stays ``2.10``, and no
number becomes a binary float here. Text must not contain invisible characters, raw or escaped, and keys that differ
only in Unicode composition are the same key.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from errata.text.escape import escape_text, is_plain
from errata.text.secrets import hide_passwords

MAX_BYTES = 1_000_000
MAX_DEPTH = 50
_CORE_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq"))
_KINDS = (
    ("null", re.compile(r"~|null|Null|NULL|")),
    ("bool", re.compile(r"true|True|TRUE|false|False|FALSE")),
    ("int", re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")),
    ("float", re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")),
)


@dataclass(frozen=True, slots=True)
class Mark:
    """A position in a file, counted from 1."""

    line: int
    column: int


@dataclass(slots=True)
class ScalarNode:
    """One value as written; ``kind`` is str, int, float, bool, null, or env after substitution of a variable."""

    mark: Mark
    text: str
    kind: str
    value: str = field(default="", repr=False)
    unresolved: bool = False

    def shown(self) -> str:
        """The value as written in the file, for messages: never the value from the environment."""
        if self.kind == "null":
            return "nothing"
        whole = hide_passwords(self.text)
        text = whole if len(whole) <= 80 else whole[:77] + "…"
        return text if self.kind in ("int", "float", "bool") else '"' + text.replace("\n", "⏎") + '"'


@dataclass(slots=True)
class SequenceNode:
    """A list."""

    mark: Mark
    items: list[Node] = field(default_factory=list)

    def shown(self) -> str:
        """Description for messages."""
        return "a list"


@dataclass(slots=True)
class MappingEntry:
    """One key and its value."""

    key_mark: Mark
    value: Node


@dataclass(slots=True)
class MappingNode:
    """Keys and values, in the order written."""

    mark: Mark
    entries: dict[str, MappingEntry] = field(default_factory=dict)

    def shown(self) -> str:
        """Description for messages."""
        return "a mapping"


Node = ScalarNode | SequenceNode | MappingNode


class TreeError(Exception):
    """The text cannot be parsed at all; carries the position."""

    def __init__(self, message: str, mark: Mark | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.mark = mark


def parse_tree(content: bytes) -> tuple[MappingNode, list[tuple[Mark, str, str]]]:
    """Parse the mapping of a file; also returns its duplicate keys as (position, message, key)."""
    if len(content) > MAX_BYTES:
        raise TreeError(f"the file is too large; expected at most {MAX_BYTES} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TreeError("expected UTF-8 text", Mark(line, 1)) from None
    builder = _Builder(_parse_events(text))
    root = builder.build_document()
    if isinstance(root, ScalarNode) and root.kind == "null":
        raise TreeError("the file is empty; expected a mapping", Mark(1, 1))
    if not isinstance(root, MappingNode):
        raise TreeError(f"expected a mapping of keys to values; found {root.shown()}", root.mark)
    return root, builder.duplicates


def _parse_events(text: str) -> Iterator[Event]:
    try:
        yield from YAML(typ="safe", pure=True).parse(text)
    except MarkedYAMLError as error:
        place = error.problem_mark or error.context_mark
        mark = Mark(place.line + 1, place.column + 1) if place else None
        said = _explain(str(error.problem or error.context))
        raise TreeError(f"not YAML: {said}{_hint_quotes(text, mark)}", mark) from None
    except YAMLError as error:
        position = getattr(error, "position", None)
        mark = Mark(text.count("\n", 0, position) + 1, 1) if isinstance(position, int) else None
        raise TreeError(f"not YAML: {getattr(error, 'reason', 'it cannot be read')}", mark) from None


_PLAIN_WORDS = {
    r"'\\t' that cannot start any token": "a tab; expected spaces for the indentation",
    "mapping values are not allowed": (
        "a key where none can be: its indentation is wrong, or a value that holds a colon needs quotes"
    ),
    "<block end>|<block mapping start>": (
        "the indentation is wrong here or on the line before; expected keys of one level in one column"
    ),
    "could not find expected ':'": "a key without a colon, here or on the line before; expected KEY: VALUE",
}
"""What the parser says about the most common mistakes, by pattern, in the words of someone who writes the file."""


def _explain(problem: str) -> str:
    return next((words for pattern, words in _PLAIN_WORDS.items() if re.search(pattern, problem)), problem)


def _hint_quotes(text: str, mark: Mark | None) -> str:
    """Hint for the most common mistake: an unquoted ``${NAME}`` inside braces or brackets, which it ends."""
    line = text.splitlines()[mark.line - 1] if mark and mark.line <= len(text.splitlines()) else ""
    is_variable = mark is not None and line[max(mark.column - 2, 0) :].startswith("${")
    return '; inside { } and [ ] a variable needs quotes: "${NAME}"' if is_variable else ""


class _Builder:
    """Turns one document's events into nodes; recursion is bounded by ``MAX_DEPTH``."""

    def __init__(self, events: Iterator[Event]) -> None:
        self._events = events
        self.duplicates: list[tuple[Mark, str, str]] = []

    def build_document(self) -> Node:
        root: Node | None = None
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                if root is not None:
                    raise TreeError("expected one document; found a second", _mark_of(event))
                root = self._build_node(next(self._events), 1, "")
        return root if root is not None else ScalarNode(Mark(1, 1), "", "null")

    def _build_node(self, event: Event, depth: int, path: str) -> Node:
        mark = _mark_of(event)
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None):
            raise TreeError("anchors and aliases are refused; write the value out where it is used", mark)
        if depth > MAX_DEPTH:
            raise TreeError(f"nested too deeply; expected at most {MAX_DEPTH} levels", mark)
        tag = getattr(event, "tag", None)
        if tag is not None and str(tag) not in _CORE_TAGS:
            raise TreeError(f"the tag {tag} is refused; expected plain YAML values", mark)
        if isinstance(event, ScalarEvent):
            return _build_scalar(event, mark, None if tag is None else str(tag))
        if isinstance(event, SequenceStartEvent):
            return self._build_sequence(mark, depth, path)
        if isinstance(event, MappingStartEvent):
            return self._build_mapping(mark, depth, path)
        raise TreeError("not YAML: a value was expected", mark)

    def _build_sequence(self, mark: Mark, depth: int, path: str) -> SequenceNode:
        node = SequenceNode(mark)
        while not isinstance(event := next(self._events), SequenceEndEvent):
            node.items.append(self._build_node(event, depth + 1, f"{path}[{len(node.items)}]"))
        return node

    def _build_mapping(self, mark: Mark, depth: int, path: str) -> MappingNode:
        node = MappingNode(mark)
        alike: dict[str, MappingEntry] = {}
        while not isinstance(event := next(self._events), MappingEndEvent):
            key = self._build_node(event, depth + 1, path)
            if not isinstance(key, ScalarNode):
                raise TreeError(f"expected a name as key; found {key.shown()}", key.mark)
            place = f"{path}.{key.text}".removeprefix(".")
            value = self._build_node(next(self._events), depth + 1, place)
            if isinstance(value, ScalarNode) and not value.text:
                value.mark = key.mark  # the parser places an absent value on the next line
            earlier = node.entries.get(key.text) or alike.get(unicodedata.normalize("NFC", key.text))
            if earlier is not None:
                said = f'duplicate key "{key.text}"; it was given before, on line {earlier.key_mark.line}'
                self.duplicates.append((key.mark, said, place))
            else:
                node.entries[key.text] = MappingEntry(key.mark, value)
                alike[unicodedata.normalize("NFC", key.text)] = node.entries[key.text]
        return node


def _build_scalar(event: ScalarEvent, mark: Mark, tag: str | None) -> ScalarNode:
    text: str = event.value
    seen = text.replace("\n", "").replace("\t", "")  # allowed for layout
    if not is_plain(seen):
        hidden, shown = next(sign for sign in seen if not is_plain(sign)), escape_text(text[:40])
        raise TreeError(f'expected text that can be seen; found the character U+{ord(hidden):04X} in "{shown}"', mark)
    if tag is not None:
        kind = tag.rpartition(":")[2]
        return ScalarNode(mark, text, kind if kind != "map" and kind != "seq" else "str", text)
    is_bare = not event.style
    kind = next((kind for kind, grammar in _KINDS if grammar.fullmatch(text)), "str") if is_bare else "str"
    return ScalarNode(mark, text, kind, text)


def _mark_of(event: Any) -> Mark:
    return Mark(event.start_mark.line + 1, event.start_mark.column + 1)
