"""Timeline of a run from its records: who did what on which digest, oldest first. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from errata.evidence.members import Dossier
from errata.model.run import find_judged_state

_THRESHOLDS = "thresholds."


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One decision or action; ``over`` is the digest it refers to."""

    at: str
    who: str
    what: str
    over: str = ""


def build_timeline(dossier: Dossier, folded: Callable[[Sequence[str]], str]) -> list[TimelineEvent]:
    """Everything that people and workers did on this run as a whole."""
    run = dossier.run
    found = [TimelineEvent(run["planned_at"], run["requested_by"], "asked for it", run["manifest_digest"])]
    found += map(_event_from_approval, dossier.decisions["approvals"])
    found += [
        TimelineEvent(row["at"], row["person"], f"accepted {row['check']}: {row['why']}", row["findings"])
        for row in dossier.decisions["warnings"]
    ]
    found += _iterate_verdicts(dossier)
    found += map(_event_from_release, dossier.decisions["releases"])
    found += [_event_from_publication(row, folded) for row in dossier.publications["publications"]]
    found += _iterate_steps(dossier)
    return sorted(found, key=lambda deed: deed.at)


def _event_from_approval(row: Mapping[str, Any]) -> TimelineEvent:
    alone = ", breaking the glass" if row.get("break_glass") else ""
    return TimelineEvent(
        row["at"], row["person"], f"{row['decision']} the plan{alone}{_format_note(row['note'])}", row["digest"]
    )


def _iterate_verdicts(dossier: Dossier) -> Iterator[TimelineEvent]:
    for row in dossier.gate["verdicts"]:
        yield TimelineEvent(row["at"], row["person"], f"ran the gate: {name_verdict(row)}")
    changes = {name: fact for name, fact in dossier.gate["facts"].items() if name.startswith(_THRESHOLDS)}
    for name, one in changes.items():
        yield TimelineEvent(
            _find_recorded_time(dossier, f"fact.{name}"), one["person"], f"changed thresholds: {one['why']}"
        )


def _find_recorded_time(dossier: Dossier, action: str) -> str:
    """When the audit log recorded this action of the run; a run note has no time of its own."""
    own = (json.loads(line).get("content") for line in dossier.entries.splitlines() if action.encode() in line)
    found = [json.loads(content) for content in own if content is not None]
    return next((str(one["at"]) for one in found if one["action"] == action), "")


_STEPS = {
    "run.cancelled": "cancelled the run",
    "run.noted": "wrote a note",
    "waves.paused": "stopped the remaining waves",
    "waves.resumed": "continued the waves",
    "pause.skipped": "did not wait for the pause",
    # of runs that an earlier version published in groups
    "groups.paused": "stopped the remaining groups",
    "groups.resumed": "continued the groups",
    "hold.skipped": "did not wait for the hold",
    "copy.baseline": "accepted what a copy held",
    "dark.published": "made the candidate readable",
    "dark.withdrawn": "withdrew the name of the candidate",
}


def _iterate_steps(dossier: Dossier) -> Iterator[TimelineEvent]:
    """The end of a run, decisions on publication timing, and preview names, which only the hashed audit log holds."""
    told = {**dossier.people["names"], **dossier.people["texts"]}
    for line in dossier.entries.splitlines():
        content = json.loads(line).get("content")
        entry = json.loads(content) if content is not None else {}
        if entry.get("action") in _STEPS:
            body, who = entry["body"], entry["actor"]["person"]
            why = str(body.get("why") or body.get("reason") or body.get("note") or "")
            said = f" as {body['name']}" if body.get("name") else _format_note(told.get(why, why))
            said = f" ({body['copy']}){said}" if body.get("copy") else said
            yield TimelineEvent(entry["at"], told.get(who, who), _STEPS[entry["action"]] + said)


def _event_from_release(row: Mapping[str, Any]) -> TimelineEvent:
    who = "the clean gate" if row["kind"] == "automatic" else row["person"]
    alone = ", breaking the glass" if row["break_glass"] else ""
    return TimelineEvent(row["at"], who, f"released the candidate{alone}{_format_note(row['note'])}", row["digest"])


def _event_from_publication(row: Mapping[str, Any], folded: Callable[[Sequence[str]], str]) -> TimelineEvent:
    word = "published" if row["kind"] == "publish" else "rolled back"
    state = "" if row["state"] == "committed" else f", which is {row['state']}"
    why = _format_note(row["reason"]) if row["kind"] == "rollback" else _format_wave(row["release"].get("wave"))
    return TimelineEvent(
        row["settled_at"] or row["intended_at"], row["person"], f"{word} {folded(row['partitions'])}{state}{why}"
    )


def _format_wave(wave: Mapping[str, Any] | None) -> str:
    if not wave:
        return ""
    which = ", ".join(map(str, wave["n"]))
    return f", wave {which} of {wave['of']}" + (", before its pause was over" if wave.get("early") else "")


def name_verdict(row: Mapping[str, Any]) -> str:
    """The verdict in one or two words."""
    return "passed" if row["passed"] else find_judged_state(row["checks"], passed=False).replace("_", " ")


def _format_note(note: str) -> str:
    return f": {note}" if note else ""
