"""Rules that every product has: schema, completeness, adopted rows, emptiness, foreign partitions. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from errata.gate.verdict.findings import BLOCK, OK, WARN, CandidateFacts, Numbers, unmeasured
from errata.model.manifest import Manifest
from errata.ports.measure import CANDIDATE, CONTROL, PRIOR, ROW_COUNT, input_scope
from errata.views.checks import CheckResult


def judge_whole(manifest: Manifest, numbers: Numbers, facts: CandidateFacts) -> Iterator[CheckResult]:
    """What is said of the candidate as a whole."""
    yield _schema(manifest, facts)
    yield from _foreign(manifest, numbers)


def judge_partition(
    partition: str, manifest: Manifest, numbers: Numbers, facts: CandidateFacts
) -> Iterator[CheckResult]:
    """What is said of one partition."""
    yield _completeness(partition, facts)
    yield _adopted(partition, numbers, facts)
    yield _empty(partition, manifest, numbers)


def _schema(manifest: Manifest, facts: CandidateFacts) -> CheckResult:
    planned, found = manifest.target.columns, facts.columns
    differences = [f"{name} is missing" for name in planned if name not in found]
    differences += [f"{name} is new" for name in found if name not in planned]
    differences += [
        f"{name} is {found[name]}, planned {kind}" for name, kind in planned.items() if found.get(name, kind) != kind
    ]
    if differences:
        return CheckResult("schema", None, None, BLOCK, f"columns differ from the plan: {'; '.join(differences)}")
    return CheckResult("schema", None, None, OK, f"{len(planned)} columns as planned")


def _foreign(manifest: Manifest, numbers: Numbers) -> Iterator[CheckResult]:
    planned = set(manifest.partitions)
    for scope, partition, name in numbers.by_place:
        if name == ROW_COUNT and scope != CONTROL and partition not in planned:
            rows = numbers.rows(scope, partition)
            message = f"{scope} has {rows} rows of {partition}, which was not asked for"
            yield CheckResult("foreign", partition, str(rows), BLOCK, message)


def _completeness(partition: str, facts: CandidateFacts) -> CheckResult:
    if partition not in facts.adopted_rows:
        return CheckResult("completeness", partition, None, BLOCK, "no adopted output for this partition")
    return CheckResult("completeness", partition, None, OK, "output adopted")


def _adopted(partition: str, numbers: Numbers, facts: CandidateFacts) -> CheckResult:
    rows, adopted = numbers.rows(CANDIDATE, partition), facts.adopted_rows.get(partition, 0)
    if rows is None:
        return unmeasured("adopted", partition)
    if rows != adopted:
        message = f"the candidate has {rows} rows, {adopted} were adopted"
        return CheckResult("adopted", partition, str(rows), BLOCK, message)
    return CheckResult("adopted", partition, str(rows), OK, f"{rows} rows, as adopted")


def _empty(partition: str, manifest: Manifest, numbers: Numbers) -> CheckResult:
    rows = numbers.rows(CANDIDATE, partition)
    if rows is None:
        return unmeasured("empty", partition)
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
