"""A program that owes some items and pays them, for tests that kill its process."""

from __future__ import annotations

import os
from pathlib import Path

from errata.delivery.payment import pay
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.outbox import Effect, Owed, Paid, Payment
from errata.workspace import Workspace
from support.office import ANA, DAYS, office

CAUSES = ("c1", "c2", "c3")
RECEIVED = "received"


def pay_all(place: Path) -> None:
    """Owe what is not owed yet, and pay."""
    found = office(place)

    def take(_workspace: Workspace, _actor: Actor, item: OutboxItem) -> Payment:
        with (place / RECEIVED).open("a") as file:
            file.write(f"{item.seq} {item.key}\n")
            file.flush()
            os.fsync(file.fileno())
        return Paid({"status": 200})

    for cause in CAUSES:
        owes = [Owed(effect, "published", "bi", DAYS[:1]) for effect in (Effect.TELL, Effect.WATERMARK)]
        found.ledger.outbox.owe(found.run.run_id, cause, owes, ANA)
    pay(found.workspace, ANA, handlers=dict.fromkeys(Effect, take), seconds=60)
    found.ledger.close()
