"""Rules of a plan that differ from those of the run it supersedes. Comparing two manifests is pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from errata.canonical import to_plain
from errata.gate.threshold_changes import RULES
from errata.model.manifest import Manifest
from errata.views import RuleChangeView
from errata.workspace import Workspace

_NOUNS = {"checks": "check", "row_limits": "row limits"}


def read_rule_changes(workspace: Workspace, manifest: Manifest) -> tuple[RuleChangeView, ...]:
    """How the rules of a plan differ from those last approved in its chain of superseded runs.

    Plans that nobody approved are passed over; otherwise a looser rule would show only until it is planned once more.
    """
    if manifest.supersedes is None:
        return ()
    ledger, older = workspace.ledger, manifest.supersedes
    while not any(one.decision == "approved" for one in ledger.approvals.list(older)):
        before = ledger.runs.get(older).supersedes
        if before is None:
            break
        older = before
    return list_rule_changes(ledger.runs.manifest(older), manifest, older)


def list_rule_changes(before: Manifest, after: Manifest, run_id: str) -> tuple[RuleChangeView, ...]:
    """Rules that were added, removed or changed between two manifests, in the order of the product file."""
    found = []
    for section in RULES:
        old, new = ({rule.name: rule for rule in getattr(one, section)} for one in (before, after))
        for name in dict.fromkeys((*old, *new)):
            was, now = old.get(name), new.get(name)
            if was != now:
                found.append(RuleChangeView(f"{_NOUNS.get(section, section)} {name}", *_describe(was, now), run_id))
    return (*found, *_list_rebuild_changes(before, after, run_id))


def _list_rebuild_changes(before: Manifest, after: Manifest, run_id: str) -> Iterator[RuleChangeView]:
    """Changed rules for missing events."""
    old, new = (
        {rule.name: rule for rule in (one.reconstruct.rules if one.reconstruct else ())} for one in (before, after)
    )
    for name in dict.fromkeys((*old, *new)):
        if (was := old.get(name)) != (now := new.get(name)):
            yield RuleChangeView(f"rebuild rule {name}", *_describe(was, now), run_id)


def _describe(was: Any | None, now: Any | None) -> tuple[str | None, str | None]:
    """What differs; all of a rule that only one side has."""
    if was is None or now is None:
        return (was and _describe_rule(was)), (now and _describe_rule(now))
    keys = [field.name for field in fields(was) if getattr(was, field.name) != getattr(now, field.name)]
    return _describe_keys(was, keys), _describe_keys(now, keys)


def _describe_rule(rule: Any) -> str:
    keys = [field.name for field in fields(rule) if getattr(rule, field.name) not in (None, (), {})]
    return _describe_keys(rule, [key for key in keys if key != "name"])


def _describe_keys(rule: Any, keys: Sequence[str]) -> str:
    return ", ".join(f"{key} {_format_value(to_plain(getattr(rule, key)))}" for key in keys)


def _format_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(_format_value(item) for item in value.values() if item is not None)
    if isinstance(value, list):
        return " ".join(map(_format_value, value)) or "none"
    return "none" if value is None else str(value)
