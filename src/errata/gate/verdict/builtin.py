"""Rules that every product has: schema, completeness, adopted rows, emptiness, foreign partitions. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from errata.gate.verdict.findings import BLOCK, OK, WARN, CandidateSummary, MeasurementIndex, build_unmeasured
from errata.model.kind import RECONCILE
from errata.model.manifest import Manifest
from errata.ports.measure import CANDIDATE, CONTROL, PRIOR, ROW_COUNT, input_scope
from errata.views.checks import CheckResult


def judge_whole_candidate(
    manifest: Manifest, numbers: MeasurementIndex, facts: CandidateSummary
) -> Iterator[CheckResult]:
    """Judge the candidate as a whole."""
    yield _judge_schema(manifest, facts)
    yield from _judge_foreign(manifest, numbers)


def judge_partition(
    partition: str, manifest: Manifest, numbers: MeasurementIndex, facts: CandidateSummary
) -> Iterator[CheckResult]:
    """Judge one partition; main as it is has no adopted output."""
    if manifest.kind != RECONCILE:
        yield from judge_output(partition, numbers, facts)
    yield _judge_empty(partition, manifest, numbers)


def judge_output(partition: str, numbers: MeasurementIndex, facts: CandidateSummary) -> Iterator[CheckResult]:
    """Judge whether the candidate has exactly the output that the run adopted for a partition."""
    yield _judge_completeness(partition, facts)
    yield _judge_adopted(partition, numbers, facts)


def _judge_schema(manifest: Manifest, facts: CandidateSummary) -> CheckResult:
    planned, found = manifest.target.columns, facts.columns
    differences = [f"{name} is missing" for name in planned if name not in found]
    differences += [f"{name} is new" for name in found if name not in planned]
    differences += [
        f"{name} is {found[name]}, planned {kind}" for name, kind in planned.items() if found.get(name, kind) != kind
    ]
    if differences:
        return CheckResult("schema", None, None, BLOCK, f"columns differ from the plan: {'; '.join(differences)}")
    return CheckResult("schema", None, None, OK, f"{len(planned)} columns as planned")


def _judge_foreign(manifest: Manifest, numbers: MeasurementIndex) -> Iterator[CheckResult]:
    planned = set(manifest.partitions)
    for scope, partition, name in numbers.by_place:
        if name == ROW_COUNT and scope != CONTROL and partition not in planned:
            rows = numbers.rows(scope, partition)
            message = f"{scope} has {rows} rows of {partition}, which was not asked for"
            yield CheckResult("foreign", partition, str(rows), BLOCK, message)


def _judge_completeness(partition: str, facts: CandidateSummary) -> CheckResult:
    if partition not in facts.adopted_rows:
        return CheckResult("completeness", partition, None, BLOCK, "no adopted output for this partition")
    return CheckResult("completeness", partition, None, OK, "output adopted")


def _judge_adopted(partition: str, numbers: MeasurementIndex, facts: CandidateSummary) -> CheckResult:
    rows, adopted = numbers.rows(CANDIDATE, partition), facts.adopted_rows.get(partition, 0)
    if rows is None:
        return build_unmeasured("adopted", partition)
    if rows != adopted:
        message = f"the candidate has {rows} rows, {adopted} were adopted"
        return CheckResult("adopted", partition, str(rows), BLOCK, message)
    return CheckResult("adopted", partition, str(rows), OK, f"{rows} rows, as adopted")


def _judge_empty(partition: str, manifest: Manifest, numbers: MeasurementIndex) -> CheckResult:
    rows = numbers.rows(CANDIDATE, partition)
    if rows is None:
        return build_unmeasured("empty", partition)
    if rows:
        return CheckResult("empty", partition, str(rows), OK, f"{rows} rows")
    before = numbers.rows(PRIOR, partition) or 0
    sources = {pin.name: numbers.rows(input_scope(pin.name), partition) or 0 for pin in manifest.inputs}
    reasons = [f"it had {before} rows before"] if before else []
    reasons += [f"input {name} has {count} rows" for name, count in sources.items() if count]
    if reasons:
        message = f"the partition has no rows now; {' and '.join(reasons)}"
        return CheckResult("empty", partition, "0", WARN, message)
    return CheckResult("empty", partition, "0", OK, "no rows now, none before and none known in the inputs")
