"""The query of a source with the ends of a window in it. Pure.

The ends are written as literals, not bound: PostgreSQL streams the rows of a query without parameters, and Errata
itself makes both texts from instants.
"""

from __future__ import annotations

import re

from errata.model.copy.row_text import Dialect
from errata.model.recording.business_range import BusinessRange

_HOLE = re.compile(r"\{([^{}]*)\}")
_ENDS = ("start", "end")


def find_query_flaw(query: str) -> str:
    """Why a query cannot be used for windows; empty if it can."""
    if sorted(set(_HOLE.findall(query))) != sorted(_ENDS):
        return "expected {start} and {end}, the ends of the window, and nothing else in braces"
    if not re.match(r"\s*(SELECT|WITH)\b", query, re.IGNORECASE) or ";" in query.rstrip().rstrip(";"):
        return "expected one SELECT"
    return ""


def fill_window(query: str, window: BusinessRange, dialect: Dialect = Dialect.POSTGRES) -> str:
    """The query for a window, in the words of a database.

    >>> fill_window("SELECT 1 WHERE at < {end}", BusinessRange("2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z"))
    "SELECT 1 WHERE at < TIMESTAMPTZ '2026-01-04T00:00:00Z'"
    """
    ends = {"start": window.start, "end": window.end}
    form = "'{}'::TIMESTAMP_TZ" if dialect is Dialect.SNOWFLAKE else "TIMESTAMPTZ '{}'"
    return _HOLE.sub(lambda hole: form.replace("{}", ends[hole[1]]), query).strip().rstrip(";")
