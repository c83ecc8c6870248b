"""Other thresholds for rules that were measured already: what may change without a scan, and what changed. Pure.

A threshold decides about a number; everything else about a rule decides which number. Only the former may change after
a run was measured, and a rule can neither come nor go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from errata.errors import UsageError
from errata.model.codec import plain
from errata.model.eras import RowLimits
from errata.model.manifest import Manifest
from errata.model.product import Check, Comparison, Control, Product, Reconciliation

__all__ = ["RULES", "ThresholdChange", "changes_between", "with_rules_of"]

RULES = ("checks", "reconcile", "compare", "control", "row_limits")
"""The sections of a product file, and of a manifest, that hold rules with thresholds."""

_THRESHOLDS: Mapping[type, frozenset[str]] = {
    Check: frozenset({"threshold", "unit", "severity"}),
    Reconciliation: frozenset({"tolerance"}),
    Comparison: frozenset({"warn", "block"}),
    Control: frozenset({"least", "warn", "block"}),
    RowLimits: frozenset({"warn", "block"}),
}


@dataclass(frozen=True, slots=True)
class ThresholdChange:
    """What decides about one rule's numbers, before and after."""

    name: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]


def with_rules_of(manifest: Manifest, product: Product) -> Manifest:
    """The manifest with the thresholds of the product file as it is now; refused when more than those differ."""
    sections: dict[str, Any] = {}
    problems: list[str] = []
    for section in RULES:
        sealed, now = getattr(manifest, section), getattr(product, section)
        problems += _problems(sealed, now)
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


def changes_between(before: Manifest, after: Manifest) -> tuple[ThresholdChange, ...]:
    """The rules that are judged differently now."""
    found = []
    for section in RULES:
        later = {rule.name: rule for rule in getattr(after, section)}
        for rule in getattr(before, section):
            old, new = _decides(rule), _decides(later[rule.name])
            if old != new:
                differing = [key for key in old if old[key] != new[key]]
                found.append(
                    ThresholdChange(
                        rule.name, {key: old[key] for key in differing}, {key: new[key] for key in differing}
                    )
                )
    return tuple(found)


def _problems(sealed: Sequence[Any], now: Sequence[Any]) -> list[str]:
    known, current = {rule.name: rule for rule in sealed}, {rule.name: rule for rule in now}
    problems = [f"{name} is gone" for name in known if name not in current]
    problems += [f"{name} is new" for name in current if name not in known]
    for name, rule in known.items():
        if name in current and (changed := _measures_otherwise(rule, current[name])):
            problems.append(f"{name} has another {', '.join(changed)}")
    return problems


def _measures_otherwise(old: Any, new: Any) -> list[str]:
    decides = _THRESHOLDS[type(old)]
    return [f.name for f in fields(old) if f.name not in decides and getattr(old, f.name) != getattr(new, f.name)]


def _decides(rule: Any) -> dict[str, Any]:
    return {name: plain(getattr(rule, name)) for name in sorted(_THRESHOLDS[type(rule)])}
