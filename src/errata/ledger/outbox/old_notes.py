"""Turn notes of runs, in which earlier versions kept what a publication owes, into items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import select

from errata.ledger.db.database import Tx
from errata.ledger.outbox.items import write_owed
from errata.ledger.schema.definition import fact, meta, publication
from errata.ledger.store.base import find_run, parse_texts
from errata.ledger.store.facts import load_facts
from errata.model.audit import Actor
from errata.model.consumer.outbox import Effect, Owed

_FOUND, _CONVERTED = "owed_notes", "owed_notes_converted"
_EVENTS = {"publish": "published", "rollback": "rolled_back"}

IS_TO_CONVERT = select(meta.c.key).where(
    meta.c.key == _FOUND, ~select(meta.c.key).where(meta.c.key == _CONVERTED).correlate(None).exists()
)
"""Has a row if the migration found open notes and nobody has converted them."""


def convert_notes(tx: Tx, actor: Actor) -> None:
    """Owe what open notes of publications say, once."""
    if tx.conn.execute(IS_TO_CONVERT).first() is None:
        return
    noted = select(fact.c.run_id).where(fact.c.name.like("owed.%")).distinct()
    for run_id in tx.conn.execute(noted).scalars().all():
        facts, run = load_facts(tx.conn, run_id), find_run(tx.conn, run_id)
        states = select(publication.c.pub_id, publication.c.state, publication.c.kind, publication.c.partitions)
        for row in tx.conn.execute(states.where(publication.c.run_id == run_id).order_by(publication.c.n)).all():
            note = facts.get(f"owed.{row.pub_id}")
            if note is None or f"done.{row.pub_id}" in facts or row.state == "abandoned":
                continue
            owes = tuple(_read_note(note, _EVENTS[row.kind], row.partitions))
            is_open = row.state == "intended"
            write_owed(tx, run, row.pub_id, owes, actor, pub_id=row.pub_id, conditional=is_open)
    tx.conn.execute(meta.insert(), {"key": _CONVERTED, "value": tx.at})


def _read_note(note: Mapping[str, Any], event: str, partitions: str) -> Iterator[Owed]:
    if corrections := note.get("corrections"):
        payload = {"table": corrections} | ({"reverses": note["reverses"]} if "reverses" in note else {})
        yield Owed(Effect.CORRECTIONS, event, partitions=parse_texts(partitions), payload=payload)
    if view := note.get("view"):
        yield Owed(Effect.VIEW, event, payload={"view": view})
