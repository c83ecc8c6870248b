"""A Snowflake that answers by a script, and remembers every statement; no server and no driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from errata.engines.copies.snowflake_copies import SnowflakeCopies
from errata.engines.copies.snowflake_session import Answer, Session, close_session
from errata.model.copy.checksum import Checksum
from errata.model.copy.delivery import Swap
from errata.model.copy.marker import Content, Marker, expect_contents
from errata.model.copy.snowflake_account import SnowflakeAccount
from errata.model.copy.table import CopyColumn, CopyTable, name_staging
from errata.model.partition import Grain

DAY, AMOUNT = CopyColumn("business_date", "BUSINESS_DATE", "date"), CopyColumn("amount", "AMOUNT", "decimal(12, 2)")
COPY = CopyTable("snow", "FIN.PUBLIC.DAILY", (DAY, AMOUNT), DAY, Grain.DAY)
MARKER = Marker("bf-1-p1", 7)
DAY1, DAY2 = "2026-01-01", "2026-01-02"
OLD, NEW = Checksum(3, 30, 31), Checksum(5, 50, 51)
ACCOUNT = SnowflakeAccount(
    "acme", "svc", "-----BEGIN PRIVATE KEY-----\nTk9U\n-----END PRIVATE KEY-----", "R", "W", "D", "S"
)
COLUMNS = ("part", "row_count", "upper_sum", "lower_sum")


@dataclass
class ScriptedSnowflake:
    """Answers to the statements of a delivery that replaces one day of three rows by five rows."""

    marker_rows: int = 2
    deleted: int = 3
    inserted: int = 5
    recorded: list[tuple[Any, ...]] = field(default_factory=lambda: [_record(DAY1, OLD)])
    found: dict[str, Checksum] = field(default_factory=lambda: {DAY1: OLD})
    written: dict[str, Checksum] = field(default_factory=lambda: {DAY1: NEW})
    before_delete: dict[str, Checksum] = field(default_factory=lambda: {DAY1: OLD})
    identities: list[tuple[str, str | None]] = field(default_factory=list)
    markers: list[tuple[int, str]] = field(default_factory=list)
    metadata: str = ""
    fail_at: int = -1
    failure: Exception = field(default_factory=Exception)
    statements: list[str] = field(default_factory=list)
    parameters: list[tuple[Any, ...]] = field(default_factory=list)
    tags: list[dict[str, Any]] = field(default_factory=list)
    is_closed: bool = False

    @property
    def copies(self) -> SnowflakeCopies:
        """The engine in front of it."""
        return SnowflakeCopies({"snow": ACCOUNT}, self.connect)

    @contextmanager
    def connect(self, name: str, _: SnowflakeAccount, lock_seconds: float, tag: dict[str, Any]) -> Iterator[Session]:
        self.tags.append(tag)
        with close_session(name, self):
            yield self

    def close(self) -> None:
        self.is_closed = True

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> Answer:
        at = len(self.statements)
        self.statements.append(statement)
        self.parameters.append(tuple(parameters))
        if at == self.fail_at:
            raise self.failure
        answer = self._answer(statement)
        return Answer(answer.rows, answer.count, f"01b-{at}", answer.columns)

    def _answer(self, statement: str) -> Answer:
        match statement.split(maxsplit=1)[0].upper(), statement:
            case "SELECT", text if "CURRENT_SESSION()" in text:
                return Answer([self.identities.pop(0) if self.identities else ("s1", "t1")])
            case "SELECT", text if "SYSTEM$GET_ICEBERG" in text:
                return Answer([(self.metadata,)])
            case "SELECT", text if text.startswith("SELECT PART, SEQ"):
                return Answer(self.recorded)
            case "SELECT", text if text.startswith("SELECT ATTEMPT"):
                return Answer(list(self.markers))
            case "SELECT", _:
                return self._sum(statement)
            case "UPDATE", _:
                return Answer([], self.marker_rows)
            case "DELETE", text if '"DAILY"' in text:
                return Answer([], self.deleted)
            case "INSERT", text if '"DAILY"' in text:
                return Answer([], self.inserted)
            case "PUT", _:
                return Answer([("UPLOADED",)], 1, columns=("status",))
            case "COPY", _:
                return Answer([("LOADED", self.inserted, 0)], 1, columns=("status", "rows_loaded", "errors_seen"))
            case _:
                return Answer([("done",)], 1, columns=("status",))

    def _sum(self, statement: str) -> Answer:
        sums = self.found
        if "BEFORE(STATEMENT" in statement:
            sums = self.before_delete
        elif any(one.startswith("INSERT") for one in self.statements):
            sums = self.written
        rows: list[tuple[Any, ...]] = [(day, one.rows, one.upper, one.lower) for day, one in sums.items()]
        return Answer(rows, len(rows), columns=COLUMNS)


def build_swap(snowflake: ScriptedSnowflake) -> Swap:
    """Replace one day by what the script answers."""
    recorded = snowflake.copies.read_delivered(COPY, [DAY1])
    snowflake.statements.clear()
    snowflake.parameters.clear()
    staging = name_staging(COPY, MARKER.publication, MARKER.attempt)
    return Swap(MARKER, staging, {DAY1: Content(9, NEW)}, expect_contents((DAY1,), recorded), recorded)


def _record(day: str, checksum: Checksum) -> tuple[Any, ...]:
    return (day, 4, checksum.rows, str(checksum.upper), str(checksum.lower), "[]", COPY.shape, "bf-0-p1", 1)
