"""Thresholds that an approver changes: each change is kept, also when two people change them at the same moment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from errata.gate.threshold_changes import change_thresholds, read_threshold_changes
from errata.ledger import Ledger
from errata.model.audit import Actor
from errata.model.product import Comparison
from errata.workspace import RunContext
from support.office import office

BO, DANA = Actor("bo", "u", "h"), Actor("dana", "u", "h")


class Overtaken:
    """The ledger of someone who was a moment too late."""

    def __init__(self, ledger: Ledger, theirs: dict[str, Any]) -> None:
        self._ledger, self._theirs = ledger, [theirs]
        self.facts = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def list(self, run: str) -> Any:
        return self._ledger.facts.list(run)

    def record(self, run: str, name: str, value: Any, actor: Actor) -> Any:
        if self._theirs:
            self._ledger.facts.record(run, name, {**value, **self._theirs.pop()}, DANA)
        return self._ledger.facts.record(run, name, value, actor)


def test_a_change_that_was_overtaken_is_made_on_what_the_other_left(tmp_path: Path):
    """The second change is a fact of its own and counts, instead of vanishing behind the first."""
    made = office(tmp_path)
    sealed = replace(made.manifest, compare=(Comparison("gross", "sum(gross)", warn="5%"),))
    product = replace(
        made.workspace.product("fin.daily_revenue"), compare=(Comparison("gross", "sum(gross)", warn="9%"),)
    )
    theirs = {"person": "dana", "rules": {"compare": [{"name": "gross", "metric": "sum(gross)", "warn": "7%"}]}}
    workspace = replace(
        made.workspace,
        project=replace(made.workspace.project, products={product.name: product}),
        ledger=Overtaken(made.ledger, theirs),  # type: ignore[arg-type]
    )
    after = change_thresholds(RunContext(workspace, BO, made.run, sealed), "known campaign")
    assert after.compare[0].warn == "9%"
    kept = read_threshold_changes(made.workspace, made.run)
    assert [(one["person"], one["rules"]["compare"][0]["warn"]) for one in kept] == [("dana", "7%"), ("bo", "9%")]
    assert kept[1]["changes"] == [{"name": "gross", "before": {"warn": "7%"}, "after": {"warn": "9%"}}]
    made.ledger.close()
