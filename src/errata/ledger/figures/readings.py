"""Readings: the last value of something that was looked at outside the ledger.

They are overwritten and not audited, so nothing may be decided by them. The audit log has what was decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import select

from errata.ledger.db.database import Tx
from errata.ledger.schema.definition import reading
from errata.ledger.store.base import Store


class ReadingName(StrEnum):
    """What is looked at."""

    STALE = "stale_partitions"  # by product, from a look at all its partitions
    COPY_MISMATCH = "copy_mismatch_partitions"  # by product and copy, from a comparison of all that was delivered
    LIVE_SIGNAL = "live_signal"  # by product and signal; the detail is the level that it leads to


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading; ``value`` is None if it could not be read."""

    name: ReadingName
    product: str
    value: float | None
    subject: str = ""
    detail: str = ""
    at: str = ""  # when the ledger got it


class Readings(Store):
    """The newest reading of each subject."""

    def put(self, *readings: Reading) -> None:
        """Keep these in place of earlier ones."""

        def work(tx: Tx) -> None:
            for one in readings:
                key = {"name": one.name.value, "product": one.product, "subject": tx.redact(one.subject)}
                values = {"value": one.value, "detail": tx.redact(one.detail), "at": tx.at}
                where = [reading.c[name] == value for name, value in key.items()]
                if not tx.conn.execute(reading.update().where(*where).values(values)).rowcount:
                    tx.conn.execute(reading.insert(), key | values)

        self._database.write(work)

    def list(self) -> tuple[Reading, ...]:
        """All of them."""
        query = select(reading).order_by(reading.c.name, reading.c.product, reading.c.subject)
        return self._read(
            lambda conn: tuple(
                Reading(ReadingName(row.name), row.product, row.value, row.subject, row.detail, row.at)
                for row in conn.execute(query)
            )
        )
