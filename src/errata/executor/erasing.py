"""Forget a person: the ledger deletes the name behind their pseudonym and the key to what they wrote."""

from __future__ import annotations

import shlex

from errata.errors import UsageError
from errata.executor.desk import Desk
from errata.model.audit import Actor
from errata.model.product import Role
from errata.model.views import ErasedView

__all__ = ["erase_person"]


def erase_person(desk: Desk, actor: Actor, name: str, reason: str) -> ErasedView:
    """Erase who a pseudonym is; audited under the pseudonym, and the chain stays valid."""
    desk.allow(actor, (Role.APPROVER,), "erase-person")
    if not reason.strip():
        raise UsageError("an erasure without a reason was refused; expected --reason, because it is kept")
    done = desk.ledger.erase_person(name, reason, actor)
    warnings = [done.remains] if done.remains else []
    if done.older_entries:
        warnings.append(
            f"{done.older_entries} entries from before there were pseudonyms go on naming them, because they are hashed"
        )
    if done.accounts:
        warnings.append(
            f"they alone acted through the account {', '.join(done.accounts)}, which is a name of its own and still "
            f"known: errata audit erase-person {shlex.quote(done.accounts[0])}"
        )
    if name in desk.project.people:
        warnings.append("errata.yaml still lists them under people")
    return ErasedView(done.pseudonym, done.entries, done.already, tuple(warnings))
