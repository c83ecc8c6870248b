"""The statement that rewrites the files of partitions: each kind of partition column, as Spark reads it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from errata.model.manifest import TargetPin
from errata.model.partition import NULL, Grain
from errata.publishing.rewrite_call import build_rewrite_call
from unit.gate.manifests import target_pin


def pin(kind: str, grain: Grain, column: str = "at") -> TargetPin:
    return replace(target_pin(), table="lake.fin.sales", column=column, column_type=kind, grain=grain)


@pytest.mark.parametrize(
    "kind,grain,partitions,where",
    [
        ("date", Grain.DAY, ["2026-01-01", "2026-01-02"], "at >= date'2026-01-01' AND at < date'2026-01-03'"),
        ("date", Grain.DAY, ["2026-01-01", NULL], "at IS NULL OR at >= date'2026-01-01' AND at < date'2026-01-02'"),
        ("date", Grain.MONTH, ["2026-12"], "at >= date'2026-12-01' AND at < date'2027-01-01'"),
        ("date", Grain.DAY, ["9999-12-31"], "at >= date'9999-12-31'"),
        (
            "timestamp", Grain.HOUR, ["2026-01-01T23"],
            "at >= timestamp_ntz'2026-01-01 23:00:00' AND at < timestamp_ntz'2026-01-02 00:00:00'",
        ),
        (
            "timestamptz", Grain.DAY, ["2026-01-01"],
            "at >= timestamp'2026-01-01 00:00:00Z' AND at < timestamp'2026-01-02 00:00:00Z'",
        ),
        ("string", Grain.DAY, ["2026-01-01", "2026-01-02"], "at >= '2026-01-01' AND at <= '2026-01-02'"),
        ("long", Grain.VALUE, ["7", "-3"], "at = 7 OR at = -3"),
    ],
)  # fmt: skip
def test_partitions_become_a_condition_of_their_type(kind: str, grain: Grain, partitions: list[str], where: str):
    """Ranges where partitions follow each other; NULL, and the last day that there is, have no end."""
    assert build_rewrite_call(pin(kind, grain), partitions) == (
        f"CALL lake.system.rewrite_data_files(table => 'fin.sales', where => \"{where}\", "
        "options => map('rewrite-all', 'true'))"
    )


def test_quotes_in_values_and_odd_names_cannot_end_the_statement():
    """A value is a literal inside a literal."""
    told = build_rewrite_call(pin("string", Grain.VALUE, column="the day"), ['it\'s \\ "x"'])
    assert told.partition("where => ")[2].partition(", options")[0] == r'''"`the day` = 'it\\'s \\\\ \"x\"'"'''
