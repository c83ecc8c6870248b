"""Find column names in a piece of SQL without parsing it. Pure.

It may find a name that is none, such as that of a function; it does not miss a column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_TEXTS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_NAMES = re.compile(r"[^\W\d]\w*|(?<=`)[^`]+(?=`)")
_COUNT = re.compile(r"\bcount\s*\(\s*\*\s*\)", re.IGNORECASE)
_EVERYTHING = re.compile(r"[(,]\s*\*")


def find_column(sql: str, columns: Iterable[str]) -> str | None:
    """The first of these columns that a piece of SQL refers to; ``*`` refers to all of them, unless it is counted.

    >>> find_column("sum(salary)", ["Salary"]), find_column("sum(x) filter (where y = 'salary')", ["salary"])
    ('Salary', None)
    >>> find_column("max(struct(*))", ["salary"]), find_column("count(*)", ["salary"])
    ('salary', None)
    """
    known = {name.casefold(): name for name in columns}
    plain = _COUNT.sub("", _TEXTS.sub("''", sql))
    if _EVERYTHING.search(plain):
        return next(iter(known.values()), None)
    return next((known[name.casefold()] for name in _NAMES.findall(plain) if name.casefold() in known), None)
