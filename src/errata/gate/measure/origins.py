"""Plan what is counted about origins of events: recorded ones, and those of each rule that rebuilds some. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from errata.model.manifest import Manifest
from errata.model.partition_sql import quoted
from errata.model.product.reconstruction import ORIGIN, RECORDED, RULE, RULE_VERSION, RebuildRule
from errata.ports.measure import LISTED

ORIGINS = "origins"
"""Name of the built-in rule."""
RECORDED_ROWS, RECORDED_CONTENT, RECORDED_ERASED, UNDECLARED = (
    f"{ORIGINS}.{RECORDED}", f"{ORIGINS}.{RECORDED} content", f"{ORIGINS}.{RECORDED} erased", f"{ORIGINS}.undeclared",
)  # fmt: skip
_NOT_HASHED = ("map", "float", "double")


def rule_measure(rule: RebuildRule) -> str:
    """Name of the measurement with the events that a version of a rule rebuilt."""
    return f"{ORIGINS}.rule {rule.name} {rule.version}"


def find_listed_columns(manifest: Manifest) -> tuple[str, ...]:
    """Columns of subjects in what was there before, if recorded events of someone erased are left out of it."""
    erasure = manifest.erasure
    if manifest.reconstruct is None or erasure is None or erasure.snapshot_id is None:
        return ()
    return erasure.columns


def build_prior_counts(manifest: Manifest) -> Mapping[str, str]:
    """The same aggregates for what was there before, without recorded events of erased subjects, which are counted."""
    if not find_listed_columns(manifest):
        return build_origin_counts(manifest)
    listed = quoted(LISTED)
    is_recorded = f"{quoted(ORIGIN)} IS NULL"
    kept = f"{is_recorded} AND NOT {listed}"
    return {
        **build_origin_counts(manifest),
        **_build_recorded_counts(manifest, kept),
        RECORDED_ERASED: f"COUNT_IF({is_recorded} AND {listed})",
    }


def build_origin_counts(manifest: Manifest) -> Mapping[str, str]:
    """Aggregates of the candidate by measurement; none without rules."""
    rules = manifest.reconstruct
    if rules is None:
        return {}
    is_recorded = f"{quoted(ORIGIN)} IS NULL"
    declared = {rule_measure(rule): _write_condition(rule) for rule in rules.rules}
    others = " OR ".join(declared.values())
    return {
        **_build_recorded_counts(manifest, is_recorded),
        **{name: f"COUNT_IF({condition})" for name, condition in declared.items()},
        UNDECLARED: f"COUNT_IF(NOT {is_recorded} AND NOT COALESCE({others}, FALSE))",
    }


def _build_recorded_counts(manifest: Manifest, condition: str) -> dict[str, str]:
    return {
        RECORDED_ROWS: f"COUNT_IF({condition})",
        RECORDED_CONTENT: f"SUM(CAST({_write_hash(manifest)} AS DECIMAL(38, 0))) FILTER(WHERE {condition})",
    }


def _write_hash(manifest: Manifest) -> str:
    """Hash of a recorded row: all columns that keep their text in every engine, without lineage."""
    kinds = manifest.target.columns
    names = sorted(set(kinds) - set(manifest.lineage_columns) - {new.name for new in manifest.target.new_columns})
    return f"XXHASH64({', '.join(quoted(name) for name in names if not kinds[name].startswith(_NOT_HASHED))})"


def _write_condition(rule: RebuildRule) -> str:
    wanted = {ORIGIN: rule.source, RULE: rule.name, RULE_VERSION: rule.version}
    return "(" + " AND ".join(f"{quoted(name)} = {_write_text(text)}" for name, text in wanted.items()) + ")"


def _write_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
