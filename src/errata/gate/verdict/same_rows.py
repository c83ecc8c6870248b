"""Rules that compare all rows: an attestation with main, a migration with its source. Pure."""

from __future__ import annotations

from errata.gate.measure.names import ADDED, CHANGED, REMOVED, find_migrated_input
from errata.gate.verdict.findings import BLOCK, OK, MeasurementIndex, build_unmeasured
from errata.model.kind import ATTEST
from errata.model.manifest import Manifest
from errata.ports.measure import CANDIDATE, CONTENT_A, CONTENT_B, ROW_COUNT, input_scope
from errata.text.numbers import plural
from errata.views.checks import CheckResult


def judge_attestation(partition: str, numbers: MeasurementIndex) -> CheckResult:
    """Whether main holds exactly the rows that were computed again, lineage columns aside."""
    found = [numbers.get(CANDIDATE, partition, name) for name in (ADDED, REMOVED, CHANGED)]
    counts = [int(one.value) for one in found if one is not None and one.value is not None]
    if len(counts) < len(found):
        return build_unmeasured(ATTEST, partition)
    rows = numbers.rows(CANDIDATE, partition)
    if not any(counts):
        return CheckResult(ATTEST, partition, "0", OK, f"{rows} rows, the same as in main")
    words = ("missing in main", "only in main", "with other values in main")
    told = ", ".join(f"{plural(count, 'row')} {word}" for count, word in zip(counts, words, strict=True) if count)
    return CheckResult(ATTEST, partition, str(sum(counts)), BLOCK, told)


def judge_migration(partition: str, manifest: Manifest, numbers: MeasurementIndex) -> CheckResult | None:
    """Whether the output of a migration or a restore from elsewhere has exactly the rows of its source; else None."""
    source = find_migrated_input(manifest)
    if source is None:
        return None
    sides = [
        [numbers.get(scope, partition, name) for name in (ROW_COUNT, CONTENT_A, CONTENT_B)]
        for scope in (CANDIDATE, input_scope(source))
    ]
    if any(one is None for side in sides for one in side):
        return build_unmeasured(manifest.kind, partition)
    (rows, *ours), (there, *theirs) = ([one.value if one else None for one in side] for side in sides)
    if rows != there:
        return CheckResult(manifest.kind, partition, rows, BLOCK, f"{rows} rows here, {there} rows in {source}")
    if ours != theirs:
        return CheckResult(
            manifest.kind, partition, rows, BLOCK, f"{rows} rows as in {source}, but not with the same values"
        )
    return CheckResult(manifest.kind, partition, rows, OK, f"{rows} rows, the same as in {source}")
