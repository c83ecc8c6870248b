"""Sessions with the Snowflake emulator that do something at chosen statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from errata.engines.copies.snowflake_session import Answer, Session, open_session
from errata.model.copy.snowflake_account import SnowflakeAccount

Hook = Callable[[str], None]


def _nothing(_: str) -> None:
    pass


@dataclass
class HookedSession:
    """A session that calls a function before and after each statement."""

    session: Session
    before: Hook
    after: Hook

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> Answer:
        self.before(statement)
        try:
            return self.session.run(statement, parameters)
        finally:
            # also after one that was refused
            self.after(statement)

    def close(self) -> None:
        self.session.close()


def hook_sessions(before: Hook = _nothing, after: Hook = _nothing) -> Callable[..., Any]:
    """A function that opens such sessions."""

    @contextmanager
    def connect(
        name: str, account: SnowflakeAccount, lock_seconds: float, tag: dict[str, Any]
    ) -> Iterator[HookedSession]:
        with open_session(name, account, lock_seconds, tag) as session:
            yield HookedSession(session, before, after)

    return connect
