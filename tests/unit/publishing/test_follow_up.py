"""What follows a publication: paid once, left owed when it cannot be paid, told when it can never be."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from errata.errors import RunExpired
from errata.model.audit import Actor
from errata.publishing.follow_up import process_outbox
from errata.publishing.intent import Intent

ANA = Actor("ana", "ana-os", "workspace")
DAY = "2026-01-01"


@dataclass
class World:
    """A workspace of stubs: one committed publication and its debt."""

    owed: dict[str, Any]
    later: dict[str, Any] | None = None  # what its rollback owes
    landed: str | None = None
    base_is_there: bool = True
    result_is_there: bool = True
    with_deletes: list[str] = field(default_factory=list)
    broken: bool = False
    accepted: list[dict[str, int]] = field(default_factory=lambda: [{DAY: 1}])
    done: list[str] = field(default_factory=list)
    paid: dict[str, Any] = field(default_factory=dict)

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
            facts=SimpleNamespace(
                list_outbox=lambda _table=None: self._debts(),
                record=lambda _run, name, value, _actor: self.paid.update({name: value}),
            ),
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
        return SimpleNamespace(ledger=ledger, engines=engines)

    def _debts(self) -> list[tuple[str, str, dict[str, Any]]]:
        owed = {"bf-1-p1": self.owed, "bf-1-r2": self.later}
        return [("bf-1", name, debt) for name, debt in owed.items() if debt and f"done.{name}" not in self.paid]

    def _versions(self) -> dict[str, int]:
        return self.accepted.pop(0) if len(self.accepted) > 1 else self.accepted[0]

    def _corrections(self, _place: Any, _target: Any, before: tuple[str, str], *_: Any) -> None:
        if self.broken:
            raise RuntimeError("no space left\nat Java")
        if not self.result_is_there:
            raise RunExpired("lake.t: snapshot 2 is gone")
        self.done.append(f"corrections from {before[1]}")


def test_correction_rows_are_written_and_the_debt_is_struck_out() -> None:
    """The table is made first, by the statement of the plan."""
    world = World({"corrections": "lake.c"})
    assert process_outbox(world.workspace, ANA) == ()
    assert world.done == ["create 1", "corrections from 1", "land"]
    assert world.paid == {"done.bf-1-p1": {"corrections": {"table": "lake.c", "snapshot_id": "900"}}}
    assert process_outbox(world.workspace, ANA) == ()


def test_rows_that_have_landed_are_not_written_again() -> None:
    """A process died between the commit and the record of it."""
    world = World({"corrections": "lake.c"}, landed="900")
    process_outbox(world.workspace, ANA)
    assert world.done == ["create 1"]
    assert world.paid["done.bf-1-p1"]["corrections"]["snapshot_id"] == "900"


def test_what_fails_stays_owed_and_is_told_in_one_line() -> None:
    """The publication stands, so nothing is raised."""
    world = World({"corrections": "lake.c"}, broken=True)
    (warning,) = process_outbox(world.workspace, ANA)
    assert "no space left; the next command on the table does it" in warning
    assert "Java" not in warning
    assert world.paid == {}


def test_old_rows_come_from_the_undo_set_when_the_snapshot_before_has_expired() -> None:
    """It is kept for the whole window; files with deletes cannot be read by it, and then the debt is closed as lost."""
    world = World({"corrections": "lake.c"}, base_is_there=False)
    process_outbox(world.workspace, ANA)
    assert "corrections from 7" in world.done


@pytest.mark.parametrize("gone", [{"base_is_there": False, "with_deletes": [DAY]}, {"result_is_there": False}])
def test_corrections_that_can_never_be_told_are_closed_and_said(gone: dict[str, Any]) -> None:
    """What was before, or what came after, has expired: the debt ends, and whoever runs the command hears of it."""
    lost = World({"corrections": "lake.c"}, **gone)
    (warning,) = process_outbox(lost.workspace, ANA)
    assert warning.startswith("bf-1-p1 landed without its corrections: ")
    assert lost.paid["done.bf-1-p1"]["corrections"]["lost"] in warning
    assert process_outbox(lost.workspace, ANA) == ()


def test_a_rollback_owes_the_reverse_of_what_was_told() -> None:
    """By the publications that brought in what it took out."""
    world = World({"corrections": "lake.c", "reverses": {"bf-1-p1": [DAY]}})
    process_outbox(world.workspace, ANA)
    assert f"reverse {{'bf-1-p1': ['{DAY}']}}" in world.done


def test_a_reversal_waits_for_the_rows_that_it_takes_back() -> None:
    """Made before them it would find nothing, and the corrections would stand for ever once they land."""
    back = {"corrections": "lake.c", "reverses": {"bf-1-p1": [DAY]}}
    world = World({"corrections": "lake.c"}, later=back, broken=True)
    warnings = process_outbox(world.workspace, ANA)
    assert "the corrections of bf-1-p1 come first" in warnings[1]
    assert (world.paid, [one for one in world.done if "reverse" in one]) == ({}, [])
    world.broken = False
    assert process_outbox(world.workspace, ANA) == ()
    assert [one for one in world.done if "create" not in one] == [
        "corrections from 1", "land", f"reverse {{'bf-1-p1': ['{DAY}']}}", "land",
    ]  # fmt: skip


def test_a_view_is_replaced_until_it_shows_what_is_accepted_now() -> None:
    """Another publication landed between the look at the ledger and the replacement."""
    world = World({"view": "lake.view"}, accepted=[{DAY: 1}, {DAY: 2}, {DAY: 2}])
    process_outbox(world.workspace, ANA)
    assert world.done == ["show lake.view 0", "show lake.view 1"]
