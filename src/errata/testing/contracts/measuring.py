"""The contracts of :class:`errata.ports.measure.Measurer` and :class:`errata.ports.publish.ContentPort`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from errata.errors import RunExpired, UsageError
from errata.model.manifest import Code, Estimate, InputPin, Manifest, SnapshotSpan, TargetPin
from errata.model.product import Limits
from errata.ports.measure import (
    CANDIDATE,
    CONTENT_A,
    CONTENT_B,
    MAX_CATEGORIES,
    PRIOR,
    ROW_COUNT,
    GroupedTotal,
    Lookup,
    Measurement,
    MeasurePlan,
    Scan,
    decode_shares,
    group_count_measure,
    group_measure,
    input_scope,
)
from errata.testing.contracts.subject import (
    DAYS,
    FIRST,
    NOT_A_SNAPSHOT,
    SECOND,
    THIRD,
    Sale,
    Subject,
    pin_target,
    stage_candidate,
)

NEW: tuple[Sale, ...] = ((FIRST, "a", "1.00"), (FIRST, "b", "3.50"), (FIRST, "b", "3.50"), (SECOND, "z", "8.00"))


QUARTERS: tuple[Sale, ...] = (
    *((FIRST, str(n), f"{n}.00") for n in range(1, 5)),
    (SECOND, "z", "8.00"),
)


class MeasurerContract:
    """Numbers of pinned snapshots: exact, for every partition, and the same for the same rows."""

    def test_every_number_is_there_for_every_partition(self, subject: Subject) -> None:
        """Also for one without rows, where a sum is NULL and a count is 0."""
        aggregates = {ROW_COUNT: "COUNT(*)", "total": "SUM(amount)", "odd": "COUNT_IF(amount > 2)"}
        found = _measure(subject, Scan(CANDIDATE, aggregates), Scan(PRIOR, aggregates))
        assert found[CANDIDATE] == {
            FIRST: {ROW_COUNT: "3", "total": "8.00", "odd": "2"},
            SECOND: {ROW_COUNT: "1", "total": "8.00", "odd": "1"},
            THIRD: {ROW_COUNT: "0", "total": None, "odd": "0"},
        }
        assert found[PRIOR][FIRST] == {ROW_COUNT: "2", "total": "3.00", "odd": "0"}

    def test_repeated_keys_are_counted_within_and_across_partitions(self, subject: Subject) -> None:
        """Every row beyond the first of its key."""
        scan = Scan(
            CANDIDATE, {ROW_COUNT: "COUNT(*)"}, unique={"within": ("account",)}, unique_in_run={"across": ("amount",)}
        )
        found = _measure(subject, scan)[CANDIDATE]
        assert {name: found[name]["within"] for name in DAYS} == {FIRST: "1", SECOND: "0", THIRD: "0"}
        assert found[""]["across"] == "1"

    def test_keys_are_looked_up_in_an_input(self, subject: Subject) -> None:
        """The input is read at its pinned snapshot, cut to the partitions."""
        scan = Scan(CANDIDATE, {ROW_COUNT: "COUNT(*)"}, lookups={"unknown": Lookup(("account",), "old", ("account",))})
        found = _measure(subject, scan, Scan(input_scope("old"), {"total": "SUM(amount)"}))
        assert {name: found[CANDIDATE][name]["unknown"] for name in DAYS} == {FIRST: "0", SECOND: "1", THIRD: "0"}
        assert {name: found[input_scope("old")][name]["total"] for name in DAYS} == {
            FIRST: "3.00", SECOND: "4.00", THIRD: None
        }  # fmt: skip

    def test_keys_are_looked_up_in_the_snapshot_that_a_partition_read(self, subject: Subject) -> None:
        """A key that the input got later is unknown where its partition was computed from an earlier snapshot."""
        pin = pin_target(subject)
        first = _head(subject)
        subject.append((SECOND, "z", "1.00"))
        whole = replace(
            _pin_input(subject, pin),
            partition=None,
            reference="as_recorded",
            snapshot_id=_head(subject),
            snapshots=(SnapshotSpan(first, (FIRST,)), SnapshotSpan(_head(subject), (SECOND, THIRD))),
        )
        sales = [(day, account, "1.00") for day in DAYS for account in ("a", "z")]
        order = stage_candidate(subject, pin_target(subject), sales, DAYS)
        scan = Scan(CANDIDATE, {ROW_COUNT: "COUNT(*)"}, lookups={"unknown": Lookup(("account",), "old", ("account",))})
        taken = subject.measurer.measure(
            build_manifest(pin, [whole]), MeasurePlan((scan,)), candidate_snapshot=order.add_from[0],
            prior_snapshot=first,
        )  # fmt: skip
        found = {one.partition: one.value for one in taken if one.name == "unknown"}
        assert found == {FIRST: "1", SECOND: "0", THIRD: "0"}

    def test_groups_have_a_total_each_and_are_counted(self, subject: Subject) -> None:
        """By partition, and over the whole run."""
        groups = (
            GroupedTotal("by account", "g", "SUM(amount)", "COUNT(*)", ("account",), per_partition=True),
            GroupedTotal("all", "t", "SUM(amount)", "COUNT(*)", (), per_partition=False),
        )
        found = _measure(subject, Scan(CANDIDATE, {ROW_COUNT: "COUNT(*)"}, groups=groups))[CANDIDATE]
        assert found[FIRST][group_measure("g", ["b"])] == "7.00"
        counts = {name: found[name][group_count_measure("by account")] for name in DAYS}
        assert counts == {FIRST: "2", SECOND: "1", THIRD: "0"}
        assert found[""]["t"] == "16.00"

    def test_quantiles_are_values_of_the_partition_and_marked_as_estimates(self, subject: Subject) -> None:
        """The value at the rank, without NULLs; few rows give it exactly, and a partition without rows has none."""
        every = "APPROX_PERCENTILE(`amount`, ARRAY(0.01, 0.5, 0.95), 10000)"
        aggregates = {"low": f"{every}[0]", "mid": f"{every}[1]", "high": f"{every}[2]", "total": "SUM(amount)"}
        scan = Scan(CANDIDATE, aggregates, estimated=frozenset({"low", "mid", "high"}))
        found = _measure(subject, scan, sales=QUARTERS)[CANDIDATE]
        assert found[FIRST] == {"low": "1.00", "mid": "2.00", "high": "4.00", "total": "10.00"}
        assert found[SECOND] == {"low": "8.00", "mid": "8.00", "high": "8.00", "total": "8.00"}
        assert found[THIRD] == {"low": None, "mid": None, "high": None, "total": None}
        taken = _take(subject, scan, sales=QUARTERS)
        assert {(one.name, one.exact) for one in taken} == {
            ("low", False), ("mid", False), ("high", False), ("total", True)
        }  # fmt: skip

    def test_rows_are_counted_by_the_values_of_a_column(self, subject: Subject) -> None:
        """For any number of columns, with decimals as they are written; a partition without rows has no value."""
        scan = Scan(CANDIDATE, {ROW_COUNT: "COUNT(*)"}, shares={"who": "account", "what": "amount", "again": "account"})
        found = _measure(subject, scan, Scan(PRIOR, {ROW_COUNT: "COUNT(*)"}, shares={"who": "account"}))
        counts = {ROW_COUNT: "3", "who": '[["a",1],["b",2]]', "what": '[["1.00",1],["3.50",2]]'}
        assert found[CANDIDATE][FIRST] == {**counts, "again": counts["who"]}
        assert found[CANDIDATE][THIRD] == {ROW_COUNT: "0", "who": "[]", "what": "[]", "again": "[]"}
        assert found[PRIOR][FIRST] == {ROW_COUNT: "2", "who": '[["a",1],["b",1]]'}

    def test_a_column_with_too_many_values_has_no_shares(self, subject: Subject) -> None:
        """One more value than is allowed; the other partitions have theirs."""
        many = [(FIRST, f"account {n}", "1.00") for n in range(MAX_CATEGORIES + 1)]
        some = [(SECOND, f"account {n}", "1.00") for n in range(MAX_CATEGORIES)]
        scan = Scan(CANDIDATE, {ROW_COUNT: "COUNT(*)"}, shares={"who": "account", "what": "amount"})
        found = _measure(subject, scan, sales=[*many, *some])[CANDIDATE]
        assert (found[FIRST]["who"], found[FIRST]["what"]) == (None, f'[["1.00",{MAX_CATEGORIES + 1}]]')
        assert len(decode_shares(found[SECOND]["who"] or "")) == MAX_CATEGORIES

    def test_a_checksum_is_of_the_rows_and_not_of_their_files(self, subject: Subject) -> None:
        """A compaction leaves it, one more row changes it, and so does one other value."""
        pin = pin_target(subject)
        before = _checksums(subject, pin)
        subject.compact()
        assert _checksums(subject, pin) == before
        subject.append((FIRST, "a", "1.00"))
        once = _checksums(subject, pin)
        assert {name for name in DAYS if once[name] != before[name]} == {FIRST}
        only = subject.content.content(pin, _head(subject), [FIRST], ["account"])
        assert only[FIRST] != once[FIRST]

    def test_content_of_a_scan_and_of_the_port_agree_on_what_is_equal(self, subject: Subject) -> None:
        """Equal partitions have equal checksums; empty ones have zeros."""
        scan = Scan(CANDIDATE, {ROW_COUNT: "COUNT(*)"}, content=("account", "amount", "day"))
        found = _measure(subject, scan)[CANDIDATE]
        assert (found[THIRD][CONTENT_A], found[THIRD][CONTENT_B]) == ("0", "0")
        assert found[FIRST][CONTENT_A] != found[SECOND][CONTENT_A]

    def test_columns_that_differ_from_their_default_are_named(self, subject: Subject) -> None:
        """By partition; partitions in which all values are the default are left out."""
        pin = pin_target(subject)
        found = subject.content.filled(pin, _head(subject), DAYS, {"amount": "4.00", "account": None})
        assert {name: set(held) for name, held in found.items()} == {FIRST: {"amount", "account"}, SECOND: {"account"}}

    def test_a_diff_counts_rows_by_key(self, subject: Subject) -> None:
        """Where the key repeats, rows are compared whole; the sample shows old and new."""
        pin = pin_target(subject)
        sales: Sequence[Sale] = [(FIRST, "a", "1.00"), (FIRST, "b", "3.00"), (FIRST, "c", "7.00"), *NEW[3:]]
        order = stage_candidate(subject, pin, sales, [FIRST, SECOND])
        manifest = build_manifest(pin, [])
        diff = subject.measurer.diff(manifest, order.add_from[0], _head(subject), DAYS, 10)
        found = {
            one.partition: (one.method, one.added, one.removed, one.changed, one.unchanged) for one in diff.partitions
        }
        assert found == {
            FIRST: ("key", 1, 0, 1, 1), SECOND: ("key", 1, 1, 0, 0), THIRD: ("same", 0, 0, 0, 0)
        }  # fmt: skip
        assert diff.columns["amount"].changed == 1
        changed = next(one for one in diff.sample if one.change == "changed")
        assert (dict(changed.key), dict(changed.before), dict(changed.after)) == (
            {"day": FIRST, "account": "b"}, {"amount": "2.00"}, {"amount": "3.00"}
        )  # fmt: skip

    def test_what_cannot_be_measured_is_refused(self, subject: Subject) -> None:
        """A column that is not there is a wrong rule; a snapshot that is gone is an expired run."""
        with pytest.raises(UsageError):
            _measure(subject, Scan(CANDIDATE, {"total": "SUM(price)"}))
        pin = pin_target(subject)
        with pytest.raises(RunExpired):
            subject.measurer.checksums(subject.table, NOT_A_SNAPSHOT, pin, DAYS, ["amount"])


def _head(subject: Subject) -> str:
    return subject.pins.refs(subject.table)["main"]


def _checksums(subject: Subject, pin: TargetPin) -> Mapping[str, str]:
    return subject.content.content(pin, _head(subject), DAYS, ["account", "amount", "day"])


def _take(subject: Subject, *scans: Scan, sales: Sequence[Sale] = NEW) -> tuple[Measurement, ...]:
    """Measurements of a candidate with these rows over the three days."""
    pin = pin_target(subject)
    order = stage_candidate(subject, pin, sales, DAYS)
    manifest = build_manifest(pin, [_pin_input(subject, pin)])
    return subject.measurer.measure(
        manifest, MeasurePlan(scans), candidate_snapshot=order.add_from[0], prior_snapshot=pin.base_snapshot_id
    )


def _measure(
    subject: Subject, *scans: Scan, sales: Sequence[Sale] = NEW
) -> dict[str, dict[str, dict[str, str | None]]]:
    """The measurements as scope → partition → name → value."""
    found: dict[str, dict[str, dict[str, str | None]]] = {}
    for one in _take(subject, *scans, sales=sales):
        found.setdefault(one.scope, {}).setdefault(one.partition, {})[one.name] = one.value
    return found


def _pin_input(subject: Subject, pin: TargetPin) -> InputPin:
    """The table itself as an input, at the snapshot before the run."""
    return InputPin(
        name="old", kind="table", location=subject.table, partition="day", column_type="date", lookback=0, lookahead=0,
        input_partitions=DAYS, fingerprints={}, rows=0, bytes=0, file_count=0, snapshot_id=pin.base_snapshot_id,
        table_uuid=pin.table_uuid,
    )  # fmt: skip


def build_manifest(pin: TargetPin, inputs: Sequence[InputPin]) -> Manifest:
    """A manifest that has what a measurement needs."""
    return Manifest(
        format="errata.manifest/1", ledger_id="l", project="p", product="fin.sales", owner="o", kind="restate",
        reason="r", requested_by="ana", single_user=False, as_of="2026-03-01T00:00:00+00:00", partitions=DAYS,
        order="oldest_first", target=pin, inputs=tuple(inputs),
        code=Code("t:build", "1", {}, "", "", None, {}, None, git_dirty=False, errata_version="0"), chunks=(),
        estimate=Estimate(0, 0, 0, 0, "0", ""), limits=Limits(),
    )  # fmt: skip
