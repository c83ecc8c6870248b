"""Who did what over which digest, oldest first, out of the records of a run. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from errata.evidence.members import Dossier

_THRESHOLDS = "thresholds."


@dataclass(frozen=True, slots=True)
class Deed:
    """One decision or deed; ``over`` is the digest that was decided on."""

    at: str
    who: str
    what: str
    over: str = ""


def deeds(dossier: Dossier, folded: Callable[[Sequence[str]], str]) -> list[Deed]:
    """Everything that people and workers did about this run as a whole."""
    run = dossier.run
    found = [Deed(run["planned_at"], run["requested_by"], "asked for it", run["manifest_digest"])]
    found += map(_approval, dossier.decisions["approvals"])
    found += [
        Deed(row["at"], row["person"], f"accepted {row['check']}: {row['why']}", row["findings"])
        for row in dossier.decisions["warnings"]
    ]
    found += _verdicts(dossier)
    found += map(_release, dossier.decisions["releases"])
    found += [_publication(row, folded) for row in dossier.publications["publications"]]
    found += _steps(dossier)
    return sorted(found, key=lambda deed: deed.at)


def _approval(row: Mapping[str, Any]) -> Deed:
    alone = ", breaking the glass" if row.get("break_glass") else ""
    return Deed(row["at"], row["person"], f"{row['decision']} the plan{alone}{_after(row['note'])}", row["digest"])


def _verdicts(dossier: Dossier) -> Iterator[Deed]:
    for row in dossier.gate["verdicts"]:
        yield Deed(row["at"], row["person"], f"ran the gate: {'passed' if row['passed'] else 'rejected'}")
    changes = {name: fact for name, fact in dossier.gate["facts"].items() if name.startswith(_THRESHOLDS)}
    for name, one in changes.items():
        yield Deed(_recorded(dossier, f"fact.{name}"), one["person"], f"changed thresholds: {one['why']}")


def _recorded(dossier: Dossier, action: str) -> str:
    """When the audit recorded this of the run; a fact has no time of its own."""
    own = (json.loads(line).get("content") for line in dossier.entries.splitlines() if action.encode() in line)
    found = [json.loads(content) for content in own if content is not None]
    return next((str(one["at"]) for one in found if one["action"] == action), "")


_STEPS = {
    "groups.paused": "stopped the groups that were left",
    "groups.resumed": "let the groups go on",
    "hold.skipped": "did not wait for the hold",
    "dark.published": "made the candidate readable",
    "dark.withdrawn": "withdrew the name of the candidate",
}


def _steps(dossier: Dossier) -> Iterator[Deed]:
    """Decisions about when and under which name; they stand in the audit alone, which is as it was hashed."""
    told = {**dossier.people["names"], **dossier.people["texts"]}
    for line in dossier.entries.splitlines():
        content = json.loads(line).get("content")
        entry = json.loads(content) if content is not None else {}
        if entry.get("action") in _STEPS:
            body, who, why = entry["body"], entry["actor"]["person"], str(entry["body"].get("why") or "")
            said = f" as {body['name']}" if body.get("name") else _after(told.get(why, why))
            yield Deed(entry["at"], told.get(who, who), _STEPS[entry["action"]] + said)


def _release(row: Mapping[str, Any]) -> Deed:
    who = "the clean gate" if row["kind"] == "automatic" else row["person"]
    alone = ", breaking the glass" if row["break_glass"] else ""
    return Deed(row["at"], who, f"released the candidate{alone}{_after(row['note'])}", row["digest"])


def _publication(row: Mapping[str, Any], folded: Callable[[Sequence[str]], str]) -> Deed:
    word = "published" if row["kind"] == "publish" else "rolled back"
    state = "" if row["state"] == "committed" else f", which is {row['state']}"
    why = _after(row["reason"]) if row["kind"] == "rollback" else _group(row["release"].get("group"))
    return Deed(
        row["settled_at"] or row["intended_at"], row["person"], f"{word} {folded(row['partitions'])}{state}{why}"
    )


def _group(group: Mapping[str, Any] | None) -> str:
    if not group:
        return ""
    which = ", ".join(map(str, group["n"]))
    return f", group {which} of {group['of']}" + (", before its hold was over" if group.get("early") else "")


def _after(note: str) -> str:
    return f": {note}" if note else ""
