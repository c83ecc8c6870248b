"""How declared metrics moved, out of what the gate stored; and what stands for a classified value."""

from __future__ import annotations

from errata.gate.diff.movements import build_column_moves, build_metric_moves, build_movement, find_extremes
from errata.model.diff import MASK, ColumnChange, Movement, PartitionDiff, mask_pair
from errata.model.product import Comparison, Reconciliation
from errata.ports.measure import CANDIDATE, PRIOR, Measurement
from unit.gate.manifests import manifest

DAYS = ("2026-01-01", "2026-01-02")
RULES = {
    "compare": (Comparison("gross", "sum(gross)"), Comparison("people", "count(distinct account_id)")),
    "reconcile": (Reconciliation("in and out", "raw", "sum(amount)", "sum(gross)"),),
}


def _measured(name: str, scope: str, *values: str | None) -> list[Measurement]:
    return [Measurement(scope, day, name, value) for day, value in zip(DAYS, values, strict=True)]


def test_comparisons_move_from_prior_to_candidate_and_balances_from_source_to_output():
    """Totals are there where adding up means something, and NULL of an empty partition counts as nothing."""
    stored = [
        *_measured("compare.gross", PRIOR, "100.00", None),
        *_measured("compare.gross", CANDIDATE, "90.05", "7.10"),
        *_measured("compare.people", PRIOR, "3", "4"),
        *_measured("compare.people", CANDIDATE, "3", "5"),
        *_measured("reconcile.in and out", "input:raw", "90.05", "7.00"),
        *_measured("reconcile.in and out", CANDIDATE, "90.05", "7.10"),
    ]
    gross, people, balance = build_metric_moves(manifest(**RULES), stored, DAYS)
    assert gross.partitions == (
        Movement(DAYS[0], "100.00", "90.05", "-9.95", "-9.95"),
        Movement(DAYS[1], None, "7.10"),
    )
    assert (gross.before, gross.after, gross.largest) == ("100.00", "97.15", (DAYS[0],))
    assert (people.before, people.after, people.smallest) == (None, None, (DAYS[1],))
    assert (balance.kind, balance.before_means, balance.after_means) == (
        "reconcile", "sum(amount) of raw", "sum(gross) of the output",
    )  # fmt: skip
    assert [one.change for one in balance.partitions] == ["0.00", "0.10"]


def test_what_was_not_measured_by_partition_is_left_out():
    """Groups and whole-run numbers have their verdicts; a chart of them would be empty."""
    stored = [
        Measurement(CANDIDATE, "", "compare.gross", "1"),
        Measurement(CANDIDATE, DAYS[0], 'reconcile.x ["EUR"]', "1"),
    ]
    assert build_metric_moves(manifest(**RULES), stored, DAYS) == ()


def test_a_change_from_zero_or_of_what_is_no_number_has_no_percentage():
    """And takes no part in the ranking, as what did not move does not."""
    moves = [
        build_movement("a", "0", "5"),
        build_movement("b", "nan", "1"),
        build_movement("c", "7", "7"),
        build_movement("d", "-4", "-3"),
        build_movement("e", "10", "30"),
    ]
    assert [(one.change, one.percent) for one in moves] == [
        ("5", None), (None, None), ("0", "0.00"), ("1", "25.00"), ("20", "200.00"),
    ]  # fmt: skip
    assert find_extremes(moves) == (("e", "d"), ("d", "e"))
    assert find_extremes(moves, 1) == (("e",), ("d",))


def test_where_nothing_is_declared_sums_of_a_column_say_how_partitions_moved():
    """Partitions compared whole have no sums and are left out."""
    parts = [
        PartitionDiff("a", 1, 1, 0, 0, 1, 0, columns={"x": ColumnChange(1, "2", "3"), "t": ColumnChange(1)}),
        PartitionDiff("b", 1, 1, 1, 1, 0, 0, method="rows"),
    ]
    assert build_column_moves("x", parts).partitions == (Movement("a", "2", "3", "1", "50.00"),)
    assert build_column_moves("t", parts).partitions == ()


def test_a_masked_row_says_that_it_changed_not_what_it_is():
    """NULL stays NULL, an unchanged value is the mask alone, and a row that is missing on a side stays missing."""
    before, after = (
        {"iban": "DE1", "name": None, "city": "Bonn", "n": 1},
        {"iban": "DE2", "name": "x", "city": "Bonn", "n": 2},
    )
    hidden = ("iban", "name", "city", "gone")
    assert mask_pair(before, after, hidden) == (
        {"iban": MASK, "name": None, "city": MASK, "n": 1},
        {"iban": f"{MASK} (changed)", "name": f"{MASK} (changed)", "city": MASK, "n": 2},
    )
    assert mask_pair(None, after, ["iban"])[0] is None
    assert mask_pair(None, after, ["iban"])[1] == {**after, "iban": MASK}
    assert mask_pair({}, None, ["iban"]) == ({}, None)
