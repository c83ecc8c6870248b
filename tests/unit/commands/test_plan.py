"""The order of planning: the target's base is read before any input is pinned."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from errata.commands.plan.plan import make_plan, refusal_hint
from errata.ledger import Ledger
from errata.model.audit import Actor
from errata.model.partition import Grain
from errata.model.product import Input, Person, Product, Project, Role, Target, Transform
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.request import Request
from errata.workspace import Workspace


class Stop(Exception):
    """Enough was seen."""


def test_the_target_is_read_before_any_input(tmp_path: Path) -> None:
    """In the other order a live write to source and target in between would vanish without a trace."""
    seen: list[str] = []

    def read_target(*_: Any) -> SimpleNamespace:
        seen.append("target")
        return SimpleNamespace(base_snapshot_id=None)

    def read_input(source: Input, *_: Any) -> None:
        seen.append(source.name)
        raise Stop

    engines = SimpleNamespace(
        targets=SimpleNamespace(read_target=read_target),
        inputs=SimpleNamespace(read_input=read_input),
        check_transform=lambda _product, **_options: None,
    )
    product = Product(
        "p", "o", Target("lake.n.t", "d", Grain.DAY), Transform("m:f", "1"), (Input("raw", table="lake.n.raw"),)
    )
    people = {"ana": Person("ana", (Role.REQUESTER,))}
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        project = Project("x", str(tmp_path), "", {}, {"p": product}, people=people)
        workspace = Workspace(
            project, ledger, engines, lambda: datetime(2026, 1, 1, tzinfo=UTC), print, lambda *_: None
        )  # type: ignore[arg-type,return-value]
        request = Request("p", "reason", "ana", partitions="2026-01-01")
        with pytest.raises(Stop):
            make_plan(workspace, Actor("ana", "u", "h"), request, dry_run=True)
    assert seen == ["target", "raw"]


def test_own_output_is_known_from_the_target_and_never_read_again(tmp_path: Path) -> None:
    """A second look at the table could see a later commit than the base that the run is pinned to."""
    seen: list[str] = []

    def read_input(source: Input, *_: Any) -> None:
        seen.append(source.name)
        raise Stop

    facts = SimpleNamespace(
        table="lake.n.t",
        partitions={},
        partition_field=None,
        columns=(),
        base_snapshot_id="7",
        base_timestamp_ms=1,
        table_uuid="u",
    )
    engines = SimpleNamespace(
        targets=SimpleNamespace(read_target=lambda *_: facts),
        inputs=SimpleNamespace(read_input=read_input),
        check_transform=lambda _product, **_options: None,
    )
    inputs = (
        Input("before", table="lake.n.t", partition="d", lookback="1d", own=True),
        Input("raw", table="lake.n.raw"),
    )
    product = Product("p", "o", Target("lake.n.t", "d", Grain.DAY), Transform("m:f", "1"), inputs)
    people = {"ana": Person("ana", (Role.REQUESTER,))}
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        project = Project("x", str(tmp_path), "", {}, {"p": product}, people=people)
        workspace = Workspace(
            project, ledger, engines, lambda: datetime(2026, 1, 1, tzinfo=UTC), print, lambda *_: None
        )  # type: ignore[arg-type,return-value]
        with pytest.raises(Stop):
            make_plan(
                workspace, Actor("ana", "u", "h"), Request("p", "reason", "ana", partitions="2026-01-01"), dry_run=True
            )
    assert seen == ["raw"]


def test_a_refusal_says_what_to_look_at_first_and_the_override_last():
    """Each refusing rule adds its lines once; a rule that nothing sets aside leaves no override to offer."""
    overlap = GuardrailResult("overlap", "refuse", "no", look=("errata status bf-1",))
    cost = GuardrailResult("cost", "refuse", "no", look=("plan fewer partitions",))
    append = GuardrailResult("append", "refuse", "no", final=True)
    assert refusal_hint([overlap, overlap, cost], "errata plan A", "errata plan B").splitlines() == [
        "errata status bf-1",
        "plan fewer partitions",
        "then plan what is possible: errata plan A",
        "or override, on the record: errata plan B",
    ]
    assert refusal_hint([overlap, append], None, "errata plan B").splitlines() == [
        "errata status bf-1",
        "no override sets aside append",
    ]
