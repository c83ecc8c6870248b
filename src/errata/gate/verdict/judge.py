"""Judge a candidate's measurements by its rules. Pure; judging again with other thresholds needs no scan.

Every rule gives ok, warn or block for each partition it applies to. A candidate passes when nothing blocks and every
warning was accepted; a block cannot be accepted. Built-in rules: ``schema``, ``completeness`` (each planned partition
has adopted output), ``adopted`` (the candidate has exactly the adopted rows), ``empty`` (a partition has no rows, but
had some before or has some in its inputs) and ``foreign`` (a scan found rows of partitions outside the run).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import localcontext

from errata.gate.verdict.builtin import judge_partition, judge_whole_candidate
from errata.gate.verdict.checks import judge_check
from errata.gate.verdict.compare import judge_comparison
from errata.gate.verdict.control import judge_control
from errata.gate.verdict.findings import BLOCK, WARN, CandidateSummary, MeasurementIndex
from errata.gate.verdict.reconcile import index_groups, judge_reconciliation
from errata.gate.verdict.row_counts import judge_rows
from errata.model.manifest import Manifest
from errata.ports.measure import Measurement
from errata.views.checks import CheckResult

_PRECISION = 100  # Spark's decimals have up to 38 digits, and a product of two must not be rounded


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A warning accepted by a person, by the rule's name."""

    name: str
    why: str
    person: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """All results; ``passed`` when nothing blocks and every warning is accepted."""

    passed: bool
    checks: tuple[CheckResult, ...]
    unused_acceptances: tuple[str, ...] = field(default=())

    @property
    def problems(self) -> tuple[CheckResult, ...]:
        """Results that keep the candidate from passing."""
        return tuple(c for c in self.checks if c.level == BLOCK or (c.level == WARN and c.accepted_by is None))


def judge_candidate(
    manifest: Manifest,
    measurements: Iterable[Measurement],
    facts: CandidateSummary,
    acceptances: Iterable[Acceptance] = (),
) -> Verdict:
    """Judge a candidate; for other thresholds, pass the manifest with its rules replaced."""
    numbers = MeasurementIndex({(m.scope, m.partition, m.name): m for m in measurements})
    accepted = {a.name: a for a in acceptances}
    with localcontext(prec=_PRECISION):
        results = tuple(_apply_acceptance(result, accepted) for result in _iterate_results(manifest, numbers, facts))
    warned = {result.name for result in results if result.level == WARN}
    open_problems = any(r.level == BLOCK or (r.level == WARN and r.accepted_by is None) for r in results)
    return Verdict(not open_problems, results, tuple(sorted(set(accepted) - warned)))


def _apply_acceptance(result: CheckResult, accepted: Mapping[str, Acceptance]) -> CheckResult:
    acceptance = accepted.get(result.name)
    if result.level != WARN or acceptance is None:
        return result
    return CheckResult(
        result.name, result.partition, result.value, result.level, result.message, accepted_by=acceptance.person
    )


def _iterate_results(manifest: Manifest, numbers: MeasurementIndex, facts: CandidateSummary) -> Iterator[CheckResult]:
    yield from judge_whole_candidate(manifest, numbers, facts)
    for check in manifest.checks:
        if check.per == "run":
            yield judge_check(check, None, manifest, numbers)
    groups = index_groups(manifest.reconcile, numbers)
    balances = [rule for rule in manifest.reconcile if rule.per != "run"]
    for rule in manifest.reconcile:
        if rule.per == "run":
            yield judge_reconciliation(rule, None, numbers, groups)
    for partition in manifest.partitions:
        yield from judge_partition(partition, manifest, numbers, facts)
        for check in manifest.checks:
            if check.per != "run":
                yield judge_check(check, partition, manifest, numbers)
        for rule in balances:
            yield judge_reconciliation(rule, partition, numbers, groups)
        for comparison in manifest.compare:
            yield judge_comparison(comparison, partition, numbers)
        for control in manifest.control:
            yield judge_control(control, partition, manifest, numbers)
    yield from judge_rows(manifest, numbers, facts)
