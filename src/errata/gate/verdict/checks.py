"""Judge checks: a count, a share or an age against its threshold, for a partition or for the run. Pure.

For the run, counts are added up, so a check ``per: run`` needs no scan of its own; only keys that may repeat in another
partition are counted over the whole run. Freshness is the age of the newest value at the end of its partition (for the
run: of the last partition); where partitions are not intervals of time, at the run's ``as_of``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from errata.gate.measure.names import check_measure, is_across_partitions
from errata.gate.verdict.findings import OK, MeasurementIndex, build_unmeasured, format_decimal, round_percent
from errata.gate.verdict.thresholds import format_threshold, meets_threshold
from errata.model.manifest import Manifest
from errata.model.partition import NULL, end_of
from errata.model.product import Check, Metric
from errata.ports.measure import CANDIDATE
from errata.views.checks import CheckResult

_SECONDS = {"minutes": 60, "hours": 3600, "days": 86_400}


def judge_check(check: Check, partition: str | None, manifest: Manifest, numbers: MeasurementIndex) -> CheckResult:
    """Judge a check for a partition, or for the whole run if ``partition`` is None."""
    partitions = manifest.partitions if partition is None else (partition,)
    if check.metric is Metric.FRESHNESS:
        return _judge_freshness(check, partition, partitions, manifest, numbers)
    rows = _sum_if_known([numbers.rows(CANDIDATE, name) for name in partitions])
    count = _count_rows(check, partitions, manifest, numbers)
    if rows is None or count is None:
        return build_unmeasured(check.name, partition)
    what = f"{count} rows" if check.metric is Metric.ROW_COUNT else f"{count} of {rows} rows"
    value = Decimal(count)
    if check.unit == "percent":
        value = value * 100 / rows if rows else Decimal(0)
        what = f"{round_percent(value)} % ({what})"
    return _build_result(check, partition, value, what)


def _count_rows(check: Check, partitions: tuple[str, ...], manifest: Manifest, numbers: MeasurementIndex) -> int | None:
    places = ("",) if is_across_partitions(check, manifest.target) else partitions
    found = [numbers.get(CANDIDATE, place, check_measure(check)) for place in places]
    return _sum_if_known([None if one is None or one.value is None else int(one.value) for one in found])


def _sum_if_known(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _judge_freshness(
    check: Check, partition: str | None, partitions: tuple[str, ...], manifest: Manifest, numbers: MeasurementIndex
) -> CheckResult:
    found = [numbers.get(CANDIDATE, name, check_measure(check)) for name in partitions]
    measured = [one for one in found if one is not None]
    if len(measured) < len(found):
        return build_unmeasured(check.name, partition)
    moments = [one.value for one in measured if one.value is not None]
    expected = format_threshold(check.threshold, check.unit)
    if not moments:
        message = f"freshness is unknown, because {check.columns[0]} has no value; expected {expected}"
        return CheckResult(check.name, partition, None, check.severity, message)
    try:
        newest = max(datetime.fromisoformat(text).replace(tzinfo=UTC) for text in moments)
    except ValueError:
        message = f"freshness is unknown, because {max(moments)} is not within the years 1 to 9999"
        return CheckResult(check.name, partition, None, check.severity, message)
    end = _find_end(manifest, partitions)
    age = Decimal((end - newest) // _MICROSECOND) / (_SECONDS[check.unit] * 1_000_000)
    what = f"{round_percent(age)} {check.unit} ({_format_instant(newest)} at {_format_instant(end)})"
    return _build_result(check, partition, age, what)


_MICROSECOND = datetime.resolution


def _find_end(manifest: Manifest, partitions: tuple[str, ...]) -> datetime:
    grain = manifest.target.grain
    named = [name for name in partitions if name != NULL] if grain.is_time else []
    return end_of(grain, max(named)) if named else datetime.fromisoformat(manifest.as_of)


def _format_instant(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(sep=" ").removesuffix("+00:00")


def _build_result(check: Check, partition: str | None, value: Decimal, what: str) -> CheckResult:
    passed = meets_threshold(check.threshold, value)
    message = f"{check.metric} is {what}; expected {format_threshold(check.threshold, check.unit)}"
    text = format_decimal(value if check.unit == "rows" else round_percent(value))
    return CheckResult(check.name, partition, text, OK if passed else check.severity, message)
