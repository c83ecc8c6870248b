"""How a field of a value is written in ``errata.yaml`` or a product file, as annotations of dataclass fields. Pure.

A key is declared once, at the field that holds it. ``errata.project.yaml.value_reader`` derives from it what a file may
have there, and the JSON schema. A field without a :class:`Key` is the key of its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Key:
    """Help for editors, and where the key differs from the field."""

    help: str = ""
    path: str = ""  # the key, with those around it that have no value of their own: ``price.core_hour_usd``
    default: str = ""  # the default as a file would have it: ``1h`` of 3600
    needed: bool | None = None  # whether a file must give it, where the field's default says otherwise


NOT_A_KEY = Key(path="-")
"""The field is computed, or named by the mapping around it."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """The value is one of these words."""

    words: tuple[str, ...]

    def __init__(self, *words: str) -> None:
        object.__setattr__(self, "words", words)


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A list or mapping has at least this many entries."""

    entries: int


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """How one value is parsed, raising ``ValueError`` with what was expected, and its JSON schema."""

    parse: Callable[[Any], Any]
    schema: Mapping[str, Any]
