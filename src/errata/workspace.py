"""What every command works with: the project, the ledger, and engines that start only when they are used."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from errata.errors import ApprovalRefused, NotFound, PermissionRefused
from errata.ledger import Ledger
from errata.model.audit import Actor
from errata.model.manifest import Code
from errata.model.product import Product, Project, Role
from errata.model.product.throttle import Throttle
from errata.ports.compute import ChunkEngine, StagingTable
from errata.ports.erasure import ErasedSubjects, Suppressions
from errata.ports.hooks import AlarmHook, Probes, ProgressListener
from errata.ports.measure import Measurer
from errata.ports.publish import ContentPort, PublishTable, SideTable, SideTableWriter
from errata.ports.tables import (
    HistoryReader,
    InputReader,
    OutsideReader,
    QuarantineTable,
    RowReader,
    TableReader,
    TagKeeper,
    TargetReader,
)


class Engines(Protocol):
    """Adapters by port; the first group never starts a JVM, the second does, the third starts Spark."""

    @property
    def targets(self) -> TargetReader: ...

    @property
    def inputs(self) -> InputReader: ...

    @property
    def tables(self) -> TableReader: ...

    @property
    def pins(self) -> TagKeeper: ...

    @property
    def history(self) -> HistoryReader: ...

    @property
    def rows(self) -> RowReader: ...

    @property
    def quarantine(self) -> QuarantineTable: ...

    @property
    def outside(self) -> OutsideReader: ...

    @property
    def suppressions(self) -> Suppressions: ...

    @property
    def erased(self) -> ErasedSubjects: ...

    def code(self, product: Product) -> tuple[Code, bytes]:
        """The project's code as it is now: its description and the zip that will run."""

    @property
    def staging(self) -> StagingTable: ...

    @property
    def publishing(self) -> PublishTable: ...

    @property
    def content(self) -> ContentPort: ...

    @property
    def beside(self) -> SideTable: ...

    @property
    def writer(self) -> SideTableWriter: ...

    def hold_to(self, throttle: Throttle) -> None:
        """Cores and pool of the run at hand; counts for a Spark that is not started yet."""

    @property
    def chunks(self) -> ChunkEngine: ...

    @property
    def measurer(self) -> Measurer: ...

    @property
    def probes(self) -> Probes: ...

    @property
    def alarm(self) -> AlarmHook: ...

    @property
    def log(self) -> Path:
        """Where the engines' own chatter goes."""

    def close(self) -> None:
        """Give back connections; safe to repeat."""


@dataclass(frozen=True, slots=True)
class Desk:
    """One project, open for work."""

    project: Project
    ledger: Ledger
    engines: Engines
    now: Callable[[], datetime]
    narrate: Callable[[str], None]
    progress: Callable[[str, int, str], ProgressListener]

    def product(self, name: str) -> Product:
        """A product by name."""
        found = self.project.products.get(name)
        if found is None:
            near = difflib.get_close_matches(name, self.project.products, 1)
            known = ", ".join(sorted(self.project.products)) or "none"
            raise NotFound(
                f"product {name!r} is not in this project; expected one of {known}",
                hint=f"did you mean {near[0]}?" if near else "errata check",
            )
        return found

    def require_role(
        self, actor: Actor, roles: Iterable[Role], action: str, run_id: str | None = None, *, persons: bool = False
    ) -> None:
        """Let a person act in one of these roles; a refusal is audited. ``persons``: no program is asked instead."""
        wanted = set(roles)
        if self.project.single_user:
            return
        person = self.project.people.get(actor.person)
        if person is not None and wanted & set(person.roles):
            return
        able = [name for name in self.project.list_with_role(*wanted) if not (persons and self.is_service(name))]
        has = "is not listed under people" if person is None else f"has {', '.join(person.roles)}"
        hint = f"ask {' or '.join(able)}" if able else "give someone the role in errata.yaml"
        spelt = self.project.find_case_variant(actor.person) if person is None else None
        if spelt is not None:
            has, hint = f"is not how {spelt} is spelt", f"--as {spelt}"
        error = PermissionRefused(
            f"{action} was refused; expected the role {' or '.join(sorted(wanted))}, {actor.person or 'nobody'} {has}",
            state="nothing was changed",
            hint=hint,
            person=actor.person,
        )
        self.ledger.record_refusal(run_id, actor, action, error.message)
        raise error

    def is_service(self, name: str) -> bool:
        """Whether a name is a program's."""
        found = self.project.people.get(name)
        return found is not None and found.service

    def require_person(self, actor: Actor, roles: Iterable[Role], action: str, run_id: str) -> None:
        """A decision is a person's; a program that has the role for the deed does not take it."""
        if not self.is_service(actor.person):
            return
        able = [name for name in self.project.list_with_role(*roles) if not self.is_service(name)]
        error = PermissionRefused(
            f"{action} was refused; expected a person, {actor.person} is a service account",
            state="nothing was changed",
            hint=f"ask {' or '.join(able)}" if able else "give a person the role in errata.yaml",
            person=actor.person,
        )
        self.ledger.record_refusal(run_id, actor, action, error.message)
        raise error

    def refuse_requester(self, actor: Actor, requester: str, action: str, run_id: str) -> None:
        """Four eyes: whoever asked for the change does not decide over it."""
        if self.project.single_user or not self.project.is_same_person(actor.person, requester):
            return
        error = ApprovalRefused(
            f"{action} was refused; expected someone other than the requester, found {actor.person}",
            state="nothing was changed",
            hint="ask another " + ("publisher" if action in ("publish", "release") else "approver"),
            person=actor.person,
        )
        self.ledger.record_refusal(run_id, actor, action, error.message)
        raise error
