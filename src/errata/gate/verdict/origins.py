"""Judge where the events of a candidate come from: recorded ones are all there, others follow a declared rule. Pure."""

from __future__ import annotations

from decimal import Decimal

from errata.gate.measure.origins import (
    ORIGINS,
    RECORDED_CONTENT,
    RECORDED_ERASED,
    RECORDED_ROWS,
    UNDECLARED,
    rule_measure,
)
from errata.gate.verdict.findings import BLOCK, OK, MeasurementIndex, build_unmeasured
from errata.model.manifest import Manifest
from errata.model.product.erasure import format_erased_count
from errata.model.product.reconstruction import RECORDED, Reconstruction
from errata.ports.measure import CANDIDATE, PRIOR, ROW_COUNT
from errata.text.numbers import format_exact, plural
from errata.views.checks import CheckResult


def judge_origins(partition: str, rules: Reconstruction, manifest: Manifest, numbers: MeasurementIndex) -> CheckResult:
    """Judge the origins of the events of one partition."""
    names = [RECORDED_ROWS, UNDECLARED, *(rule_measure(rule) for rule in rules.rules)]
    counts = {name: _read_count(numbers, CANDIDATE, partition, name) for name in names}
    # a table without a snapshot had nothing before
    has_prior = manifest.target.base_snapshot_id is not None or numbers.get(PRIOR, partition, ROW_COUNT) is not None
    before = _read_count(numbers, PRIOR, partition, RECORDED_ROWS) if has_prior else 0
    contents = [numbers.get(scope, partition, RECORDED_CONTENT) for scope in (CANDIDATE, PRIOR)]
    if before is None or None in counts.values() or contents[0] is None or (has_prior and contents[1] is None):
        return build_unmeasured(ORIGINS, partition)
    told = [f"{format_exact(counts[RECORDED_ROWS] or 0)} {RECORDED}"]
    if erased := _read_count(numbers, PRIOR, partition, RECORDED_ERASED):
        told[0] += f" (without {format_erased_count(erased)} of erased subjects)"
    told += [
        f"{format_exact(counts[rule_measure(rule)] or 0)} {rule.source} ({rule.name} {rule.version})"
        for rule in rules.rules
    ]
    problems = []
    if counts[RECORDED_ROWS] != before:
        problems.append(
            f"{plural(before, 'recorded event')} before, {format_exact(counts[RECORDED_ROWS] or 0)} now; none may be "
            "lost or added"
        )
    elif before and _to_number(contents[0].value) != _to_number(contents[1].value if contents[1] else None):
        problems.append("recorded events have other values than before")
    if undeclared := counts[UNDECLARED]:
        problems.append(f"{plural(undeclared, 'event')} of no declared origin, rule and version")
    message = "; ".join([*problems, ", ".join(told)])
    return CheckResult(ORIGINS, partition, str(counts[RECORDED_ROWS]), BLOCK if problems else OK, message)


def _read_count(numbers: MeasurementIndex, scope: str, partition: str, name: str) -> int | None:
    found = numbers.get(scope, partition, name)
    return None if found is None else int(found.value or 0)


def _to_number(text: str | None) -> Decimal:
    return Decimal(text or 0)
