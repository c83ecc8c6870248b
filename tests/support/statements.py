"""The SQL that this process is about to execute, whoever holds the connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event

__all__ = ["watched_statements"]


@contextmanager
def watched_statements(see: Callable[[str], object]) -> Iterator[None]:
    """Inside this block ``see`` gets each statement first; what it raises is what the database answers."""

    def before(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        see(statement)

    event.listen(Engine, "before_cursor_execute", before)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", before)
