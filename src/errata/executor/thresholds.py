"""The rules in force for a run: those it was planned with, or with thresholds that an approver changed since.

A change is a fact of the run: who, why, which rules, from what to what. It never changes what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_type_hints

from errata.errors import UsageError
from errata.executor.desk import Desk
from errata.ledger import RunRecord
from errata.model.audit import Actor
from errata.model.codec import plain, typed
from errata.model.manifest import Manifest
from errata.validator.rethreshold import RULES, changes_between, with_rules_of

__all__ = ["change_thresholds", "changed_thresholds", "in_force"]

_FACT = "thresholds."


def in_force(desk: Desk, run: RunRecord, manifest: Manifest) -> Manifest:
    """The manifest with the thresholds that count now."""
    changes = changed_thresholds(desk, run)
    if not changes:
        return manifest
    kinds = get_type_hints(Manifest)
    rules = {name: typed(kinds[name], value) for name, value in changes[-1]["rules"].items()}
    return replace(manifest, **rules)


def changed_thresholds(desk: Desk, run: RunRecord) -> tuple[Mapping[str, Any], ...]:
    """Every change of thresholds, oldest first: person, why, the rules that changed, all rules as they were then."""
    facts = desk.ledger.facts(run.run_id)
    names = sorted((name for name in facts if name.startswith(_FACT)), key=lambda name: int(name.removeprefix(_FACT)))
    return tuple(facts[name] for name in names)


def change_thresholds(desk: Desk, actor: Actor, run: RunRecord, manifest: Manifest, why: str) -> Manifest:
    """Take the thresholds of the product file as it is now, on the record; repeated, it changes nothing."""
    if not why.strip():
        raise UsageError("other thresholds were refused; expected a reason, because it is kept")
    before = in_force(desk, run, manifest)
    after = with_rules_of(before, desk.product(manifest.product))
    changes = changes_between(before, after)
    if not changes:
        return before
    value = {
        "person": actor.person,
        "why": why,
        "changes": [plain(change) for change in changes],
        "rules": {name: plain(getattr(after, name)) for name in RULES},
    }
    number = len(changed_thresholds(desk, run)) + 1
    _, taken = desk.ledger.record_fact(run.run_id, f"{_FACT}{number}", value, actor)
    # someone else changed them at the same moment: what is changed now is what they left
    return change_thresholds(desk, actor, run, manifest, why) if taken else after
