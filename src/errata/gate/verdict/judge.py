"""Judge a candidate's measurements by its rules. Pure; judging again with other thresholds needs no scan.

Every rule gives ok, warn or block for each partition it applies to. A candidate passes when nothing blocks and every
warning was accepted; a block cannot be accepted. Built-in rules: ``schema``, ``completeness`` (each planned partition
has adopted output), ``adopted`` (the candidate has exactly the adopted rows), ``empty`` (a partition has no rows, but
had some before or has some in its inputs) and ``foreign`` (a scan found rows of partitions outside the run). Two more
compare all rows: ``attest`` with main, ``migrate`` with the source. ``origins`` judges runs that rebuild events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import localcontext
from types import MappingProxyType

from errata.gate.verdict.builtin import judge_output, judge_partition, judge_whole_candidate
from errata.gate.verdict.checks import judge_check
from errata.gate.verdict.compare import judge_comparison
from errata.gate.verdict.control import judge_control
from errata.gate.verdict.distribution import judge_distribution
from errata.gate.verdict.findings import BLOCK, WARN, CandidateSummary, MeasurementIndex
from errata.gate.verdict.origins import judge_origins
from errata.gate.verdict.reconcile import index_groups, judge_reconciliation
from errata.gate.verdict.row_counts import judge_rows
from errata.gate.verdict.same_rows import judge_attestation, judge_migration
from errata.model.kind import ATTEST, RECONCILE
from errata.model.manifest import Manifest
from errata.ports.measure import Measurement
from errata.views.checks import CheckResult

_PRECISION = 100  # Spark's decimals have up to 38 digits, and a product of two must not be rounded


@dataclass(frozen=True, slots=True)
class Verdict:
    """All results."""

    checks: tuple[CheckResult, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing blocks and every warning is accepted."""
        return not self.problems

    @property
    def problems(self) -> tuple[CheckResult, ...]:
        """Results that keep the candidate from passing."""
        return tuple(one for one in self.checks if one.level == BLOCK or (one.level == WARN and not one.accepted_by))


def judge_candidate(
    manifest: Manifest,
    measurements: Iterable[Measurement],
    facts: CandidateSummary,
    accepted: Mapping[str, str] = MappingProxyType({}),
    *,
    whole: Manifest | None = None,
    earlier: Iterable[Measurement] = (),
) -> Verdict:
    """Judge a candidate; for other thresholds, pass the manifest with its rules replaced.

    ``accepted`` are rules whose warnings were accepted → the person who did. For a wave, ``whole`` has the rules of the
    run and the partitions so far, and ``earlier`` what was measured in the waves before.
    """
    own = {(one.scope, one.partition, one.name): one for one in measurements}
    before = {(one.scope, one.partition, one.name): one for one in earlier}
    with localcontext(prec=_PRECISION):
        numbers, so_far = MeasurementIndex(own), MeasurementIndex({**before, **own})
        results = tuple(_iterate_results(manifest, numbers, facts, whole or manifest, so_far))
    return Verdict(tuple(replace(r, accepted_by=accepted.get(r.name)) if r.level == WARN else r for r in results))


def _iterate_results(
    manifest: Manifest,
    numbers: MeasurementIndex,
    facts: CandidateSummary,
    whole: Manifest,
    so_far: MeasurementIndex,
) -> Iterator[CheckResult]:
    yield from judge_whole_candidate(manifest, numbers, facts)
    if manifest.kind == ATTEST:
        yield from _iterate_attestation(manifest, numbers, facts)
    else:
        yield from _iterate_run_rules(whole, so_far)
        yield from _iterate_partition_rules(manifest, numbers, facts)
        if manifest.kind != RECONCILE:  # main says nothing about the rows that a run would read or set aside
            yield from judge_rows(manifest, numbers, facts)


def _iterate_run_rules(whole: Manifest, numbers: MeasurementIndex) -> Iterator[CheckResult]:
    """Results of the rules over all partitions so far."""
    for check in whole.checks:
        if check.per == "run":
            yield judge_check(check, None, whole, numbers)
    totals = tuple(rule for rule in whole.reconcile if rule.per == "run")
    groups = index_groups(totals, numbers)
    for rule in totals:
        yield judge_reconciliation(rule, None, numbers, groups)


def _iterate_partition_rules(
    manifest: Manifest, numbers: MeasurementIndex, facts: CandidateSummary
) -> Iterator[CheckResult]:
    """Results of the rules of each partition of the candidate."""
    balances = tuple(rule for rule in manifest.reconcile if rule.per != "run")
    groups = index_groups(balances, numbers)
    for partition in manifest.partitions:
        yield from judge_partition(partition, manifest, numbers, facts)
        if migrated := judge_migration(partition, manifest, numbers):
            yield migrated
        if manifest.reconstruct is not None:
            yield judge_origins(partition, manifest.reconstruct, manifest, numbers)
        for check in manifest.checks:
            if check.per != "run":
                yield judge_check(check, partition, manifest, numbers)
        for rule in balances:
            yield judge_reconciliation(rule, partition, numbers, groups)
        yield from _iterate_comparisons(partition, manifest, numbers)


def _iterate_comparisons(partition: str, manifest: Manifest, numbers: MeasurementIndex) -> Iterator[CheckResult]:
    """Rules that compare a partition with what was there before, or with comparable partitions."""
    for comparison in manifest.compare:
        yield judge_comparison(comparison, partition, numbers)
    for control in manifest.control:
        yield judge_control(control, partition, manifest, numbers)
    for distribution in manifest.distribution:
        yield judge_distribution(distribution, partition, manifest, numbers)


def _iterate_attestation(
    manifest: Manifest, numbers: MeasurementIndex, facts: CandidateSummary
) -> Iterator[CheckResult]:
    """Only whether the output is complete and the same as main: other rules were judged when main was published."""
    for partition in manifest.partitions:
        yield from judge_output(partition, numbers, facts)
        yield judge_attestation(partition, numbers)
