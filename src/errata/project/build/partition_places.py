"""Refuse ``{partition}`` in templates of ``errata.yaml`` where its value could become more than a value. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from errata.model.consumer.partition_text import (
    HOLE,
    NEAR_HOLE,
    bind_sql,
    is_in_glob_class,
    is_url_template,
    list_broken_words,
)
from errata.project.problems import Path, ProblemReport

if TYPE_CHECKING:
    from sqlglot import exp

_GLUED = re.compile(rf"[\w$'\"]{re.escape(HOLE)}|{re.escape(HOLE)}[\w$'\"]")
_PLACES = {"delete", "sql", "url", "command", "get", "rerun"}
"""Keys of consumers whose values are templates."""


def refuse_stray_partitions(report: ProblemReport) -> None:
    """Report each ``{partition}`` below ``consumers`` in a key that is no template, and spellings that stay as text."""
    for path, text in report.iterate_texts():
        found = NEAR_HOLE.search(text) if path[:1] == ("consumers",) else None
        if found is None:
            continue
        if found[0] != HOLE:
            report.at(path, f"expected {HOLE}; {found[0]} would be left as it is")
        elif not _PLACES & set(path[2:]) or "headers" in path:
            report.at(
                path,
                f"{HOLE} is refused here: its value comes from data; expected it in sql, url, delete, get or command",
            )


def check_sql(text: str, path: Path, report: ProblemReport, *, dialect: str = "postgres") -> None:
    """Report a statement that is not one, or in which a hole is not in the position of a value."""
    if HOLE not in text:
        return
    # imported here because the parser takes a quarter of a second to load
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    said = f"expected {HOLE} as a value, such as WHERE day = '{HOLE}'; it becomes a bound parameter"
    bound = bind_sql(text, "", "$1")
    # sqlglot takes CALL for a command that it need not understand
    statement = re.sub(r"^\s*CALL\b", "SELECT", bound.text, flags=re.IGNORECASE)
    try:
        trees = [tree for tree in sqlglot.parse(statement, read=dialect) if tree is not None]
    except (SqlglotError, RecursionError):
        report.at(path, f"{said}; this cannot be parsed")
        return
    if len(trees) != 1 or isinstance(trees[0], exp.Command):
        report.at(path, f"expected one statement that Errata can parse, because {HOLE} is in it")
        return
    values = [node for node in trees[0].find_all(exp.Parameter) if _is_value(node)]
    if len(values) != len(bound.parameters) or _GLUED.search(text.replace(f"'{HOLE}'", HOLE)):
        report.at(path, said)


def _is_value(node: exp.Expr) -> bool:
    """Whether a parameter is where an expression computes with it: no name, no pattern, no part of a literal."""
    from sqlglot import exp

    patterns = (exp.Like, exp.ILike, exp.SimilarTo, exp.RegexpLike, exp.RegexpILike)
    inner: exp.Expr = node
    while inner.parent is not None and not isinstance(inner.parent, exp.Query):
        if isinstance(inner.parent, patterns) and inner.arg_key != "this":
            return False
        inner = inner.parent
    parent = node.parent
    match parent:
        case exp.Dot() | exp.Collate() | exp.Interval():
            return False
        case exp.Select():
            return node.arg_key == "expressions"
        case exp.Alias():
            return node.arg_key == "this"
        case exp.Binary() | exp.Predicate() | exp.Func() | exp.Paren() | exp.Tuple() | exp.AtTimeZone():
            return True
        case _:
            return False


def check_redis_pattern(text: str, path: Path, report: ProblemReport) -> None:
    """Report a hole inside brackets of a Redis pattern."""
    if is_in_glob_class(text):
        report.at(
            path, f"expected {HOLE} outside brackets and not after a backslash, where each character of it counts"
        )


def check_url(text: str, path: Path, report: ProblemReport) -> None:
    """Report an address that is none, or in which a hole is neither a segment of the path nor a value of the query."""
    if "${" in text:
        return  # the variable is not set; the command that needs the address refuses it
    try:
        is_there = is_url_template(text)
    except ValueError:
        is_there = False
    if not is_there:
        also = f", with {HOLE} only in its path or as a value of its query" if HOLE in text else ""
        report.at(path, f"expected an address that begins with http:// or https://{also}")


def check_command(words: Sequence[str], path: Path, report: ProblemReport) -> None:
    """Report words of a command of which a hole is only a part."""
    for n in list_broken_words(words):
        report.at((*path, n), f"expected {HOLE} as a whole argument after the program")
