"""Checks: a count, a share or an age against its threshold, of a partition or of the run. Pure.

Over the run counts are added up, so a check ``per: run`` needs no scan of its own; only keys that may repeat in another
partition are counted over the run as a whole. An age is that of the newest value when its partition ends (over the
run: its last partition); partitions that are no intervals of time are measured by the run's clock.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from errata.gate.measure.names import check_measure, is_across_partitions
from errata.gate.verdict.findings import OK, Numbers, shown, two_places, unmeasured
from errata.gate.verdict.thresholds import holds, threshold_text
from errata.model.manifest import Manifest
from errata.model.partition import NULL, end_of
from errata.model.product import Check, Metric
from errata.ports.measure import CANDIDATE
from errata.views.checks import CheckResult

_SECONDS = {"minutes": 60, "hours": 3600, "days": 86_400}


def judge_check(check: Check, partition: str | None, manifest: Manifest, numbers: Numbers) -> CheckResult:
    """What a check says about a partition, or about the run."""
    partitions = manifest.partitions if partition is None else (partition,)
    if check.metric is Metric.FRESHNESS:
        return _freshness(check, partition, partitions, manifest, numbers)
    rows = _total([numbers.rows(CANDIDATE, name) for name in partitions])
    count = _count(check, partitions, manifest, numbers)
    if rows is None or count is None:
        return unmeasured(check.name, partition)
    what = f"{count} rows" if check.metric is Metric.ROW_COUNT else f"{count} of {rows} rows"
    value = Decimal(count)
    if check.unit == "percent":
        value = value * 100 / rows if rows else Decimal(0)
        what = f"{two_places(value)} % ({what})"
    return _result(check, partition, value, what)


def _count(check: Check, partitions: tuple[str, ...], manifest: Manifest, numbers: Numbers) -> int | None:
    places = ("",) if is_across_partitions(check, manifest.target) else partitions
    found = [numbers.get(CANDIDATE, place, check_measure(check)) for place in places]
    return _total([None if one is None or one.value is None else int(one.value) for one in found])


def _total(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _freshness(
    check: Check, partition: str | None, partitions: tuple[str, ...], manifest: Manifest, numbers: Numbers
) -> CheckResult:
    found = [numbers.get(CANDIDATE, name, check_measure(check)) for name in partitions]
    measured = [one for one in found if one is not None]
    if len(measured) < len(found):
        return unmeasured(check.name, partition)
    moments = [one.value for one in measured if one.value is not None]
    expected = threshold_text(check.threshold, check.unit)
    if not moments:
        message = f"freshness is unknown, because {check.columns[0]} has no value; expected {expected}"
        return CheckResult(check.name, partition, None, check.severity, message)
    try:
        newest = max(datetime.fromisoformat(text).replace(tzinfo=UTC) for text in moments)
    except ValueError:
        message = f"freshness is unknown, because {max(moments)} is not within the years 1 to 9999"
        return CheckResult(check.name, partition, None, check.severity, message)
    end = _end(manifest, partitions)
    age = Decimal((end - newest) // _MICROSECOND) / (_SECONDS[check.unit] * 1_000_000)
    what = f"{two_places(age)} {check.unit} ({_instant(newest)} at {_instant(end)})"
    return _result(check, partition, age, what)


_MICROSECOND = datetime.resolution


def _end(manifest: Manifest, partitions: tuple[str, ...]) -> datetime:
    grain = manifest.target.grain
    named = [name for name in partitions if name != NULL] if grain.is_time else []
    return end_of(grain, max(named)) if named else datetime.fromisoformat(manifest.as_of)


def _instant(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(sep=" ").removesuffix("+00:00")


def _result(check: Check, partition: str | None, value: Decimal, what: str) -> CheckResult:
    passed = holds(check.threshold, value)
    message = f"{check.metric} is {what}; expected {threshold_text(check.threshold, check.unit)}"
    text = shown(value if check.unit == "rows" else two_places(value))
    return CheckResult(check.name, partition, text, OK if passed else check.severity, message)
