"""What a publication owes on tables of the lake: paid once, and told when it can never be paid."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from errata.delivery.correction_rows import write_corrections
from errata.delivery.current_view import refresh_view
from errata.errors import RunExpired
from errata.model.audit import Actor
from errata.publishing.intent import Intent

ANA = Actor("ana", "ana-os", "workspace")
DAY = "2026-01-01"


@dataclass
class World:
    """A workspace of stubs: one committed publication and what it owes."""

    payload: dict[str, Any]
    landed: str | None = None
    base_is_there: bool = True
    result_is_there: bool = True
    with_deletes: list[str] = field(default_factory=list)
    accepted: list[dict[str, int]] = field(default_factory=lambda: [{DAY: 1}])
    done: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def workspace(self) -> Any:
        def publication(pub_id: str) -> SimpleNamespace:
            return SimpleNamespace(
                pub_id=pub_id, run_id="bf-1", table="lake.t", partitions=(DAY,), reason="why",
                settled_at="2026-03-01Z", base_snapshot_id="1", result_snapshot_id="2",
            )  # fmt: skip

        target = SimpleNamespace(table="lake.t", key=("k",), columns={"k": "string", "d": "date"}, column="d",
                                 column_type="date", grain=SimpleNamespace(is_time=False))  # fmt: skip
        publish = SimpleNamespace(creates=("CREATE …",), versions="lake.v", mode="version")
        manifest = SimpleNamespace(target=target, publish=publish, lineage_columns=())
        ledger = SimpleNamespace(
            publications=SimpleNamespace(
                get=publication,
                detail=lambda _pub: Intent(
                    "publish", (DAY,), "", with_deletes=tuple(self.with_deletes), versions=self._versions()
                ).to_dict(),
            ),
            runs=SimpleNamespace(manifest=lambda _run, _actor: manifest),
            partitions=SimpleNamespace(
                accepted=lambda _table: {DAY: SimpleNamespace(run_id="bf-1", origin_pub_id="bf-1-p1", pub_id="bf-1-p1")}
            ),
        )
        beside = SimpleNamespace(
            landed=lambda _table, _pub: self.landed,
            open_branch=lambda _table, _pub: "branch",
            land=lambda *_: self.done.append("land") or "900",
        )
        writer = SimpleNamespace(
            create=lambda statements: self.done.append(f"create {len(statements)}"),
            corrections=self._corrections,
            reversals=lambda _place, _key, publications, _stamp: self.done.append(f"reverse {publications}"),
            show=lambda view, query: self.done.append(f"show {view} {query.count('= 2')}"),
        )
        pins = SimpleNamespace(
            snapshot_exists=lambda _table, _snapshot: self.base_is_there,
            refs=lambda _table: {"errata_bf-1-p1_undo": "7"},
        )
        engines = SimpleNamespace(beside=beside, writer=writer, pins=pins)
        return SimpleNamespace(ledger=ledger, engines=engines, narrate=self.said.append)

    def pay(self, handler: Any = write_corrections) -> Any:
        """Pay the item; what goes on the record."""
        item = SimpleNamespace(pub_id="bf-1-p1", run_id="bf-1", table="lake.t", payload=self.payload)
        return handler(self.workspace, ANA, item).result

    def _versions(self) -> dict[str, int]:
        return self.accepted.pop(0) if len(self.accepted) > 1 else self.accepted[0]

    def _corrections(self, _place: Any, _target: Any, before: tuple[str, str], *_: Any) -> None:
        if not self.result_is_there:
            raise RunExpired("lake.t: snapshot 2 is gone")
        self.done.append(f"corrections from {before[1]}")


def test_correction_rows_are_written() -> None:
    """The table is made first, by the statement of the plan."""
    world = World({"table": "lake.c"})
    assert world.pay() == {"table": "lake.c", "snapshot_id": "900"}
    assert world.done == ["create 1", "corrections from 1", "land"]


def test_rows_that_have_landed_are_not_written_again() -> None:
    """A process died between the commit and the record of it."""
    world = World({"table": "lake.c"}, landed="900")
    assert world.pay()["snapshot_id"] == "900"
    assert world.done == ["create 1"]


def test_old_rows_come_from_the_undo_set_when_the_snapshot_before_has_expired() -> None:
    """It is kept for the whole window."""
    world = World({"table": "lake.c"}, base_is_there=False)
    world.pay()
    assert "corrections from 7" in world.done


@pytest.mark.parametrize("gone", [{"base_is_there": False, "with_deletes": [DAY]}, {"result_is_there": False}])
def test_corrections_that_can_never_be_told_are_closed_and_said(gone: dict[str, Any]) -> None:
    """What was before, or what came after, has expired: nothing is tried again, and a person hears of it."""
    lost = World({"table": "lake.c"}, **gone)
    assert lost.pay()["lost"] in lost.said[0]


def test_a_rollback_owes_the_reverse_of_what_was_told() -> None:
    """By the publications that brought in what it took out."""
    world = World({"table": "lake.c", "reverses": {"bf-1-p1": [DAY]}})
    world.pay()
    assert f"reverse {{'bf-1-p1': ['{DAY}']}}" in world.done


def test_a_view_is_replaced_until_it_shows_what_is_accepted_now() -> None:
    """Another publication landed between the look at the ledger and the replacement."""
    world = World({"view": "lake.view"}, accepted=[{DAY: 1}, {DAY: 2}, {DAY: 2}])
    world.pay(refresh_view)
    assert world.done == ["show lake.view 0", "show lake.view 1"]
