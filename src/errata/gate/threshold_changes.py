"""Judge measured rules with changed thresholds: what may change without a scan, and what changed.

A threshold judges a measurement; everything else in a rule defines the measurement. Only thresholds may change after a
run was measured, and no rule may be added or removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, get_type_hints

from errata.canonical import from_plain, to_plain
from errata.errors import UsageError
from errata.ledger import RunRecord
from errata.model.manifest import Manifest
from errata.model.product import Check, Comparison, Control, Distribution, Product, Reconciliation
from errata.model.product.eras import RowLimits
from errata.workspace import RunContext, Workspace

RULES = ("checks", "reconcile", "compare", "control", "row_limits", "distribution")
"""The sections of a product file, and of a manifest, that hold rules with thresholds."""

_THRESHOLDS: Mapping[type, frozenset[str]] = {
    Check: frozenset({"threshold", "unit", "severity"}),
    Reconciliation: frozenset({"tolerance"}),
    Comparison: frozenset({"warn", "block"}),
    Control: frozenset({"least", "warn", "block"}),
    RowLimits: frozenset({"warn", "block"}),
    Distribution: frozenset({"least", "warn", "block"}),
}


def list_rules(manifest: Manifest) -> list[Any]:
    """The rules of every section, for a digest; a section that came later counts only where a product uses it."""
    return [rules for name in RULES if (rules := getattr(manifest, name)) or name != "distribution"]


@dataclass(frozen=True, slots=True)
class ThresholdChange:
    """Changed thresholds of one rule, before and after."""

    name: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]


def apply_thresholds(manifest: Manifest, product: Product) -> Manifest:
    """The manifest with the current thresholds of the product file; refuses when more than thresholds differ."""
    sections: dict[str, Any] = {}
    problems: list[str] = []
    for section in RULES:
        sealed, now = getattr(manifest, section), getattr(product, section)
        problems += _find_problems(sealed, now)
        sections[section] = now
    if problems:
        raise UsageError(
            f"other thresholds for {manifest.product} were refused; expected the rules that were measured, with only "
            f"their thresholds changed; found: {'; '.join(problems)}",
            state="nothing was changed",
            hint="a rule that measures something else needs a new run: errata plan … --supersede",
            problems=problems,
        )
    return replace(manifest, **sections)


def list_threshold_changes(before: Manifest, after: Manifest) -> tuple[ThresholdChange, ...]:
    """Rules whose thresholds differ between two manifests."""
    found = []
    for section in RULES:
        later = {rule.name: rule for rule in getattr(after, section)}
        for rule in getattr(before, section):
            old, new = _read_thresholds(rule), _read_thresholds(later[rule.name])
            if old != new:
                differing = [key for key in old if old[key] != new[key]]
                found.append(
                    ThresholdChange(
                        rule.name, {key: old[key] for key in differing}, {key: new[key] for key in differing}
                    )
                )
    return tuple(found)


def _find_problems(sealed: Sequence[Any], now: Sequence[Any]) -> list[str]:
    known, current = {rule.name: rule for rule in sealed}, {rule.name: rule for rule in now}
    problems = [f"{name} is gone" for name in known if name not in current]
    problems += [f"{name} is new" for name in current if name not in known]
    for name, rule in known.items():
        if name in current and (changed := _list_changed_fields(rule, current[name])):
            problems.append(f"{name} has another {', '.join(changed)}")
    return problems


def _list_changed_fields(old: Any, new: Any) -> list[str]:
    decides = _THRESHOLDS[type(old)]
    return [f.name for f in fields(old) if f.name not in decides and getattr(old, f.name) != getattr(new, f.name)]


def _read_thresholds(rule: Any) -> dict[str, Any]:
    return {name: to_plain(getattr(rule, name)) for name in sorted(_THRESHOLDS[type(rule)])}


_FACT_PREFIX = "thresholds."


def with_current_thresholds(workspace: Workspace, run: RunRecord, manifest: Manifest) -> Manifest:
    """The manifest with the thresholds of the newest recorded change."""
    changes = read_threshold_changes(workspace, run)
    if not changes:
        return manifest
    kinds = get_type_hints(Manifest)
    rules = {name: from_plain(kinds[name], value) for name, value in changes[-1]["rules"].items()}
    return replace(manifest, **rules)


def read_threshold_changes(workspace: Workspace, run: RunRecord) -> tuple[Mapping[str, Any], ...]:
    """Recorded threshold changes, oldest first: person, reason, the changed rules, and all rules after the change."""
    facts = workspace.ledger.facts.list(run.run_id)
    names = sorted(
        (name for name in facts if name.startswith(_FACT_PREFIX)), key=lambda name: int(name.removeprefix(_FACT_PREFIX))
    )
    return tuple(facts[name] for name in names)


def change_thresholds(context: RunContext, why: str) -> Manifest:
    """Adopt and record the current thresholds of the product file. Idempotent."""
    if not why.strip():
        raise UsageError("other thresholds were refused; expected a reason, because it is kept")
    before = with_current_thresholds(context.workspace, context.run, context.manifest)
    after = apply_thresholds(before, context.workspace.product(context.manifest.product))
    changes = list_threshold_changes(before, after)
    if not changes:
        return before
    value = {
        "person": context.actor.person,
        "why": why,
        "changes": [to_plain(change) for change in changes],
        "rules": {name: to_plain(getattr(after, name)) for name in RULES},
    }
    number = len(read_threshold_changes(context.workspace, context.run)) + 1
    _, taken = context.ledger.facts.record(context.run_id, f"{_FACT_PREFIX}{number}", value, context.actor)
    # another process recorded a change at the same moment: start again from that change
    return change_thresholds(context, why) if taken else after
