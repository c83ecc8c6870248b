"""Whether a wave goes without a person, on the authority of the release of the first wave.

It does only if nothing happened since that would make the person look again: the same rules judged it, none was skipped
and none found anything, what it changes stays within the sealed limits, and nobody stopped, rolled back, accepted or
changed anything in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from errata.approval.release import JudgedCandidate, check_releaser, list_releasers
from errata.gate.measure.names import compare_measure
from errata.gate.verdict.findings import MeasurementIndex, parse_decimal
from errata.gate.verdict.thresholds import Limit
from errata.ledger import ReleaseRecord, WaveRecord
from errata.model.manifest import Manifest
from errata.model.run import is_clean
from errata.ports.measure import CANDIDATE, PRIOR, Measurement
from errata.workspace import RunContext

ROWS = "rows"
_LOOK_AGAIN = {
    "run.rebased": "partitions were computed again after a live write",
    "warning.accepted": "a warning was accepted",
    "rollback.committed": "something was rolled back",
    "waves.paused": "the waves were stopped",
    "run.paused": "the run was paused",
    "break_glass.publish": "someone broke the glass",
}
"""Actions after which a person looks again before a wave goes."""
_THRESHOLDS = "fact.thresholds."


def explain_person_needed(context: RunContext, found: JudgedCandidate) -> str:
    """Why this wave waits for a person; empty if the release of the first wave is enough."""
    waves = context.ledger.waves.list(context.run_id)
    first, released = _find_first_release(context, waves)
    if released is None:
        return "the first wave was not released by a person"
    holders = list_releasers(context.workspace, context.run, context.manifest)
    if lost := check_releaser(released.person, holders, broke_glass=False):
        return f"the first wave was released by {released.person}, and {lost}"
    for entry in context.ledger.audit.entries(context.run_id):
        if entry.seq > released.audit_seq and (why := _explain_action(entry.action)):
            return f"since the first wave was released, {why}"
    if _has_list_moved(context, first):
        return "since the first wave was published, the list of suppressed subjects has moved"
    before = context.ledger.candidates.latest_verdict(context.run_id, first.partitions)
    if unlike := compare_rules(before.checks if before else (), found.verdict.checks):
        return unlike
    measured = context.ledger.candidates.measurements(context.run_id, found.candidate.n)
    return find_excess(context.manifest, measured)


def _find_first_release(context: RunContext, waves: Sequence[WaveRecord]) -> tuple[WaveRecord, ReleaseRecord | None]:
    """The first wave, and the newest release of it by a person who did not break the glass."""
    made = {one.n for one in context.ledger.candidates.list(context.run_id) if waves[0].candidate_n == one.n}
    rows = [
        row
        for row in context.ledger.releases.list(context.run_id)
        if row.candidate_n in made and row.kind != "automatic" and not row.break_glass
    ]
    return waves[0], rows[-1] if rows else None


def _has_list_moved(context: RunContext, first: WaveRecord) -> bool:
    """Whether subjects were added to or taken off the list since the first wave went out."""
    out = [
        one
        for one in context.ledger.publications.list(context.run_id)
        if one.kind == "publish" and one.result_snapshot_id and not set(one.partitions).isdisjoint(first.partitions)
    ]
    now = context.engines.suppressions.watermark(context.run.table)
    return any(one.release.get("watermark", "") != now for one in out)


def _explain_action(action: str) -> str:
    return "thresholds were changed" if action.startswith(_THRESHOLDS) else _LOOK_AGAIN.get(action, "")


def compare_rules(first: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]) -> str:
    """Why the verdicts on two waves are not alike enough; empty if every rule of the first judged this one too. Pure.

    >>> compare_rules([{"name": "a", "level": "ok", "value": "1"}], [{"name": "a", "level": "ok", "value": None}])
    'the rule a was skipped'
    """
    checks = tuple(now)
    if not is_clean(checks):
        return "its gate found something"
    judged = {check["name"] for check in first if check.get("value") is not None}
    skipped = {check["name"] for check in checks if check.get("value") is None}
    if missing := sorted(judged - {check["name"] for check in checks}):
        return f"the rule {missing[0]} did not judge it"
    if passed_over := sorted(judged & skipped):
        return f"the rule {passed_over[0]} was skipped"
    return ""


def find_excess(manifest: Manifest, measured: Iterable[Measurement]) -> str:
    """The partition that changes more than ``within`` allows, in words; empty if none does. Pure."""
    waves = manifest.publish.waves
    numbers = MeasurementIndex({(one.scope, one.partition, one.name): one for one in measured})
    measures = {one.metric: compare_measure(one) for one in manifest.compare}
    for metric, text in (waves.within if waves else {}).items():
        limit = Limit.parse(text)
        for partition in manifest.partitions:
            old, new = (_read_number(numbers, scope, partition, metric, measures) for scope in (PRIOR, CANDIDATE))
            if old is None or new is None:
                return f"{metric} of {partition} cannot be compared with what was there before"
            if (not old and new) or limit.is_exceeded(abs(new - old), old):
                return f"{metric} of {partition} changes from {old} to {new}, more than {text}"
    return ""


def _read_number(
    numbers: MeasurementIndex, scope: str, partition: str, metric: str, measures: Mapping[str, str]
) -> Decimal | None:
    if metric == ROWS:
        rows = numbers.rows(scope, partition)
        return None if rows is None else Decimal(rows)
    found = numbers.get(scope, partition, measures.get(metric, ""))
    return parse_decimal(found.value) if found else None
