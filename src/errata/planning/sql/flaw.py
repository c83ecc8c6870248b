"""A flaw of a query with its line, and what a query may name. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from sqlglot import exp


@dataclass(frozen=True, slots=True)
class SqlFlaw:
    """Why a query is refused, and the line of its file."""

    line: int | None
    message: str
    level: str = "problem"  # or warning: a plan may allow it


@dataclass(frozen=True, slots=True)
class SqlSurroundings:
    """What a query may name and must return. Columns that are not known without a JVM are None."""

    inputs: Mapping[str, Collection[str] | None]
    config: Collection[str] = ()  # parameters of transform.config
    has_interval: bool = True  # partitions by time have a start and an end
    outputs: Collection[str] | None = None  # columns that the result may have
    needed: Collection[str] = ()  # columns that it must have
    nullable: Collection[str] = ()  # columns that it lacks only if the plan writes them as NULL
    target: str = ""
    ignored: Collection[str] = ()  # further columns that a result may have


def find_line(node: exp.Expr) -> int | None:
    """The line of a node, or of the first part of it whose position is known."""
    lines = (part.meta.get("line") for part in node.walk(bfs=False))
    return next((line for line in lines if line), None)


def suggest(name: str, known: Collection[str]) -> str:
    """A known name that may have been meant, as the end of a message."""
    near = get_close_matches(name.lower(), [word.lower() for word in known], 1)
    return f'; did you mean "{near[0]}"?' if near else ""
