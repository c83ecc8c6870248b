"""The contract of :class:`errata.ports.copies.WarehouseCopies`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Protocol

import pytest

from errata.errors import AttemptLost, CopyChanged, CopyLocked, CopyOvertaken, EngineError, StateRefused
from errata.model.copy.checksum import Checksum, find_differing
from errata.model.copy.delivery import Receipt, Swap, WarehouseColumn
from errata.model.copy.marker import Content, MarkedAttempt, Marker, MarkerState, expect_contents
from errata.model.copy.measure import measure_rows
from errata.model.copy.row_text import write_row_text
from errata.model.copy.table import CopyColumn, CopyTable, name_staging
from errata.model.partition import NULL, Grain
from errata.ports.copies import WarehouseCopies
from errata.testing.copies import MemoryCopies
from errata.testing.copies.lake_rows import Rows

Row = dict[str, Any]
COLUMNS = tuple(
    CopyColumn(name, name, kind)
    for name, kind in {
        "day": "date",
        "id": "long",
        "n": "int",
        "name": "string",
        "amount": "decimal(12, 2)",
        "wide": "decimal(38, 18)",
        "at": "timestamptz",
        "local": "timestamp",
        "flag": "boolean",
        "ratio": "double",
    }.items()
)
"""Columns of the copy of a subject; every one but ``day`` may be NULL there, and ``day`` too."""
DAY1, DAY2, DAY3 = "2026-01-01", "2026-01-02", "2026-01-03"
FIRST, SECOND = Marker("bf-1-p1", 1), Marker("bf-1-p1", 2)


def build_copy(warehouse: str, table: str) -> CopyTable:
    """The copy of a subject."""
    return CopyTable(warehouse, table, COLUMNS, COLUMNS[0], Grain.DAY, lock_seconds=1, tolerance="0.000001")


class CopySubject(Protocol):
    """An empty copy with the columns :data:`COLUMNS`, and the engine that writes it."""

    @property
    def copy(self) -> CopyTable: ...

    @property
    def copies(self) -> WarehouseCopies: ...

    @property
    def can_keep_writers_out(self) -> bool:
        """Whether a swap waits for other writers of the copy, and they for it."""

    def put(self, rows: Sequence[Row]) -> None:
        """Insert rows, as another job does."""

    def rows(self) -> list[Row]:
        """All rows of the copy, read by another client."""

    def hold_table(self) -> AbstractContextManager[None]:
        """Another session writes the copy and does not commit before the end."""

    def hold_marker(self, marker: Marker) -> AbstractContextManager[None]:
        """Another session has changed the marker and does not commit before the end."""


@dataclass
class MemoryCopySubject:
    """A copy in memory."""

    copy: CopyTable = field(default_factory=lambda: build_copy("memory", "daily"))
    copies: MemoryCopies = field(default_factory=MemoryCopies)
    can_keep_writers_out: bool = True

    def __post_init__(self) -> None:
        self.copies.create("memory", "daily", [WarehouseColumn(one.name, one.type) for one in COLUMNS])

    def put(self, rows: Sequence[Row]) -> None:
        """See the protocol."""
        self._table.rows.extend(map(dict, rows))

    def rows(self) -> list[Row]:
        """See the protocol."""
        return [dict(row) for row in self._table.rows]

    def hold_table(self) -> AbstractContextManager[None]:
        """See the protocol."""
        return self.copies.hold_table(self.copy)

    @contextmanager
    def hold_marker(self, marker: Marker) -> Iterator[None]:
        """See the protocol."""
        self._table.locked_markers.add(marker)
        yield
        self._table.locked_markers.discard(marker)

    @property
    def _table(self) -> Any:
        return self.copies.tables["memory", "daily"]


def build_row(day: str | None, number: int, **values: Any) -> Row:
    """A row of the copy."""
    return {
        "day": None if day is None else date.fromisoformat(day),
        "id": number,
        "n": number % 7,
        "name": f"row {number}",
        "amount": Decimal(number) / 100,
        "wide": Decimal(number).scaleb(-18),
        "at": datetime(2026, 1, 1, 12, 30, 0, number, tzinfo=UTC),
        "local": datetime(2026, 1, 1, 12, 30, 0, number),  # noqa: DTZ001 - a time without zone
        "flag": bool(number % 2),
        "ratio": number / 3,
    } | values


HARD_ROWS = (
    build_row(DAY1, 1, name="", amount=Decimal("0.00"), wide=Decimal(0)),
    build_row(DAY1, 2, name="n\u0303 \u00f1 \U0001f9fe 1:a|b'\"\\\n\t", amount=Decimal("-0.01")),
    build_row(DAY1, 3, name=None, amount=None, wide=None, at=None, local=None, flag=None, ratio=None, n=None, id=None),
    build_row(DAY1, 4, name="x" * 100_000, amount=Decimal("9999999999.99"),
              wide=Decimal("-12345678901234567890.123456789012345678")),
    build_row(DAY1, 5, id=2**63 - 1, n=-(2**31), at=datetime(1899, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    build_row(DAY1, 6, id=-(2**63), n=2**31 - 1, local=datetime(2446, 2, 28, 0, 0, 0, 1)),  # noqa: DTZ001
    build_row(DAY1, 7, ratio=-0.0),
    build_row(None, 8),
)  # fmt: skip
"""Rows with values that engines write differently when nobody takes care."""


class CopyContract:
    """Partitions of a copy are replaced in one moment, once, and only from what was expected."""

    def test_a_table_is_described(self, copy_subject: CopySubject) -> None:
        """All columns are listed in order; a table that does not exist is None."""
        copy, copies = copy_subject.copy, copy_subject.copies
        found = copies.describe(copy.warehouse, copy.table)
        assert found is not None
        assert [column.name for column in found.columns] == [column.name for column in COLUMNS]
        assert not found.obstacles
        assert copies.describe(copy.warehouse, f"{copy.table}_of_nobody") is None

    def test_staging_holds_what_was_loaded(self, copy_subject: CopySubject) -> None:
        """Every value of every type arrives: the checksum of staging is that of the rows, partition by partition."""
        copy, copies = copy_subject.copy, copy_subject.copies
        assert copies.load(copy, "errata_stage_1", Rows(copy, HARD_ROWS)).rows == len(HARD_ROWS)
        found = copies.measure(copy, None, staging="errata_stage_1")
        assert_same(copy, found, measure_rows(copy, HARD_ROWS))
        assert set(found) == {DAY1, NULL}
        assert copies.measure(copy, None) == {}
        assert copy_subject.rows() == []

    def test_rows_of_other_jobs_have_the_same_checksum(self, copy_subject: CopySubject) -> None:
        """A checksum is about values, not about who wrote them; partitions without rows are left out."""
        copy, copies = copy_subject.copy, copy_subject.copies
        rows = [build_row(DAY1, 1), build_row(DAY1, 1), build_row(DAY2, 2), build_row(None, 3)]
        copy_subject.put(rows)
        assert_same(copy, copies.measure(copy, None), measure_rows(copy, rows))
        assert set(copies.measure(copy, [DAY2, NULL, DAY3])) == {DAY2, NULL}
        assert copies.measure(copy, []) == {}

    def test_staging_is_never_loaded_twice(self, copy_subject: CopySubject) -> None:
        """A loader that comes late finds the name taken and adds nothing; without rows it is a table as well."""
        copy, copies = copy_subject.copy, copy_subject.copies
        copies.load(copy, "errata_stage_1", Rows(copy, [build_row(DAY1, 1)]))
        for rows in ([build_row(DAY1, 2)], []):
            with pytest.raises(StateRefused):
                copies.load(copy, "errata_stage_1", Rows(copy, rows))
        assert_same(
            copy, copies.measure(copy, None, staging="errata_stage_1"), measure_rows(copy, [build_row(DAY1, 1)])
        )
        copies.load(copy, "errata_stage_2", Rows(copy, []))
        assert copies.measure(copy, None, staging="errata_stage_2") == {}

    def test_staging_is_found_and_dropped(self, copy_subject: CopySubject) -> None:
        """By its publication; dropping it again changes nothing."""
        copy, copies = copy_subject.copy, copy_subject.copies
        assert copies.list_staging(copy, "bf-1-p1") == ()
        names = [name_staging(copy, "bf-1-p1", 1), name_staging(copy, "bf-1-p1", 12), name_staging(copy, "bf-1-p2", 1)]
        for name in names:
            copies.load(copy, name, Rows(copy, []))
        assert set(copies.list_staging(copy, "bf-1-p1")) == set(names[:2])
        for _ in range(2):
            copies.drop_staging(copy, names[0])
        assert copies.list_staging(copy, "bf-1-p1") == (names[1],)

    def test_a_swap_replaces_its_partitions_and_no_others(self, copy_subject: CopySubject) -> None:
        """Old rows are gone, new rows are there once, rows of other partitions stay; the marker is done."""
        copy, copies = copy_subject.copy, copy_subject.copies
        copy_subject.put([build_row(DAY3, 30), build_row(DAY3, 30)])
        deliver(copy_subject, FIRST, {DAY1: 4, NULL: 5}, HARD_ROWS)
        receipt = deliver(copy_subject, Marker("bf-2-p1", 1), {DAY1: 9, DAY2: 8}, [build_row(DAY2, 21)])
        assert (receipt.rows_removed, receipt.rows_written) == (7, 1)
        left = [build_row(DAY3, 30), build_row(DAY3, 30), build_row(None, 8), build_row(DAY2, 21)]
        assert_same_rows(copy_subject.rows(), left)
        assert copies.list_markers(copy, "bf-2-p1") == (MarkedAttempt(Marker("bf-2-p1", 1), MarkerState.DONE),)
        assert {name: one.content.sequence for name, one in copies.read_delivered(copy, None).items()} == {
            DAY1: 9,
            DAY2: 8,
            NULL: 5,
        }
        assert_same_rows(copies.read_rows(copy, [DAY2]), [build_row(DAY2, 21)])

    def test_what_was_delivered_is_on_record(self, copy_subject: CopySubject) -> None:
        """For each partition: its sequence, its checksum, the marker, and the shape of the copy."""
        copy, copies = copy_subject.copy, copy_subject.copies
        deliver(copy_subject, FIRST, {DAY1: 4, DAY2: 4}, [build_row(DAY1, 1)])
        found = copies.read_delivered(copy, [DAY1, DAY3])
        assert set(found) == {DAY1}
        assert (found[DAY1].content.sequence, found[DAY1].marker, found[DAY1].shape) == (4, FIRST, copy.shape)
        assert found[DAY1].content.checksum.is_like(measure_rows(copy, [build_row(DAY1, 1)])[DAY1], copy.tolerance)
        assert copies.read_delivered(copy, [DAY2])[DAY2].content.checksum.rows == 0

    def test_without_an_open_marker_nothing_is_written(self, copy_subject: CopySubject) -> None:
        """A swap without a marker, with a void one, or repeated after it landed, is refused."""
        copy, copies = copy_subject.copy, copy_subject.copies
        swap = stage(copy_subject, FIRST, {DAY1: 4}, [build_row(DAY1, 1)])
        with pytest.raises(AttemptLost):
            copies.swap(copy, swap)
        copies.open_marker(copy, FIRST)
        assert copies.fence(copy, FIRST) is MarkerState.VOID
        with pytest.raises(AttemptLost):
            copies.swap(copy, swap)
        assert copy_subject.rows() == []
        again = stage(copy_subject, SECOND, {DAY1: 4}, [build_row(DAY1, 1)])
        copies.open_marker(copy, SECOND)
        copies.swap(copy, again)
        with pytest.raises(AttemptLost):
            copies.swap(copy, again)
        assert_same_rows(copy_subject.rows(), [build_row(DAY1, 1)])

    def test_a_fence_tells_what_became_of_an_attempt(self, copy_subject: CopySubject) -> None:
        """Done for one that landed; void for any other, also one whose marker never came; and always the same."""
        copy, copies = copy_subject.copy, copy_subject.copies
        deliver(copy_subject, FIRST, {DAY1: 4}, [build_row(DAY1, 1)])
        copies.open_marker(copy, SECOND)
        third = Marker("bf-1-p1", 3)
        wanted = {FIRST: MarkerState.DONE, SECOND: MarkerState.VOID, third: MarkerState.VOID}
        for _ in range(2):
            assert {marker: copies.fence(copy, marker) for marker in wanted} == wanted
        assert [one.state for one in copies.list_markers(copy, "bf-1-p1")] == list(wanted.values())
        with pytest.raises(AttemptLost):
            copies.open_marker(copy, third)

    def test_an_older_attempt_cannot_open_its_marker(self, copy_subject: CopySubject) -> None:
        """A process that slept finds a later attempt; opening the same marker twice is one."""
        copy, copies = copy_subject.copy, copy_subject.copies
        for _ in range(2):
            copies.open_marker(copy, SECOND)
        with pytest.raises(AttemptLost):
            copies.open_marker(copy, FIRST)
        assert copies.list_markers(copy, "bf-1-p1") == (MarkedAttempt(SECOND, MarkerState.OPEN),)
        copies.open_marker(copy, Marker("bf-2-p1", 1))

    def test_rows_of_someone_else_are_a_conflict(self, copy_subject: CopySubject) -> None:
        """Partitions that hold other rows than were delivered are named; nothing is written; the marker stays open."""
        copy, copies = copy_subject.copy, copy_subject.copies
        deliver(copy_subject, FIRST, {DAY1: 4, DAY2: 4}, [build_row(DAY1, 1), build_row(DAY2, 2)])
        swap = stage(copy_subject, SECOND, {DAY1: 5, DAY2: 5, DAY3: 5}, [build_row(DAY1, 10)])
        copies.open_marker(copy, SECOND)
        copy_subject.put([build_row(DAY2, 22), build_row(DAY3, 33)])
        with pytest.raises(CopyChanged) as refused:
            copies.swap(copy, swap)
        assert refused.value.fields["partitions"] == [DAY2, DAY3]
        assert "row 22" not in f"{refused.value} {refused.value.fields}"
        assert copies.list_markers(copy, "bf-1-p1")[-1].state is MarkerState.OPEN
        held = [build_row(DAY1, 1), build_row(DAY2, 2), build_row(DAY2, 22), build_row(DAY3, 33)]
        assert_same_rows(copy_subject.rows(), held)

    def test_no_partition_goes_back_to_an_older_acceptance(self, copy_subject: CopySubject) -> None:
        """A late delivery of what was rolled back since is refused, whatever it expects."""
        copy, copies = copy_subject.copy, copy_subject.copies
        late = stage(copy_subject, FIRST, {DAY1: 4}, [build_row(DAY1, 1)])
        copies.open_marker(copy, FIRST)
        deliver(copy_subject, Marker("bf-1-p2", 1), {DAY1: 7}, [build_row(DAY1, 10)])
        recorded = copies.read_delivered(copy, [DAY1])
        for swap in (late, replace(late, delivered=recorded, expected=expect_contents((DAY1,), recorded))):
            with pytest.raises(CopyOvertaken):
                copies.swap(copy, swap)
        assert_same_rows(copy_subject.rows(), [build_row(DAY1, 10)])

    def test_a_delivery_in_between_is_no_foreign_change(self, copy_subject: CopySubject) -> None:
        """Two deliveries at once: the second is overtaken, and says so, instead of accusing someone else."""
        copy, copies = copy_subject.copy, copy_subject.copies
        swap = stage(copy_subject, Marker("bf-2-p1", 1), {DAY1: 8}, [build_row(DAY1, 10)])
        copies.open_marker(copy, swap.marker)
        deliver(copy_subject, FIRST, {DAY1: 4}, [build_row(DAY1, 1)])
        with pytest.raises(CopyOvertaken):
            copies.swap(copy, swap)
        assert_same_rows(copy_subject.rows(), [build_row(DAY1, 1)])
        again = replace(swap, **read_expected(copy_subject, (DAY1,)))
        copies.swap(copy, again)
        assert_same_rows(copy_subject.rows(), [build_row(DAY1, 10)])

    @pytest.mark.parametrize("loaded", [[], [1, 1], [2], [1, 2]], ids=["missing", "twice", "other", "more"])
    def test_staging_with_other_rows_than_the_lake_is_refused(
        self, copy_subject: CopySubject, loaded: list[int]
    ) -> None:
        """Rows that are missing, twice, different or too many are found before the commit."""
        copy, copies = copy_subject.copy, copy_subject.copies
        deliver(copy_subject, FIRST, {DAY1: 4}, [build_row(DAY1, 7)])
        swap = stage(copy_subject, SECOND, {DAY1: 5}, [build_row(DAY1, number) for number in loaded])
        wanted = Content(5, measure_rows(copy, [build_row(DAY1, 1)])[DAY1])
        copies.open_marker(copy, SECOND)
        with pytest.raises(EngineError):
            copies.swap(copy, replace(swap, contents={DAY1: wanted}))
        assert_same_rows(copy_subject.rows(), [build_row(DAY1, 7)])
        assert copies.list_markers(copy, "bf-1-p1")[-1].state is MarkerState.OPEN

    def test_rows_of_other_partitions_in_staging_are_refused(self, copy_subject: CopySubject) -> None:
        """Only the partitions of the swap may come from staging."""
        copy, copies = copy_subject.copy, copy_subject.copies
        swap = stage(copy_subject, FIRST, {DAY1: 4}, [build_row(DAY1, 1), build_row(DAY2, 2)])
        copies.open_marker(copy, FIRST)
        with pytest.raises(EngineError):
            copies.swap(copy, replace(swap, contents={DAY1: swap.contents[DAY1]}))
        assert copy_subject.rows() == []

    def test_a_writer_that_does_not_end_is_named(self, copy_subject: CopySubject) -> None:
        """The swap gives up after the time limit, names the sessions, and writes nothing; afterwards it succeeds."""
        if not copy_subject.can_keep_writers_out:
            pytest.skip("this warehouse has no lock against other writers")
        copy, copies = copy_subject.copy, copy_subject.copies
        swap = stage(copy_subject, FIRST, {DAY1: 4}, [build_row(DAY1, 1)])
        copies.open_marker(copy, FIRST)
        with copy_subject.hold_table(), pytest.raises(CopyLocked) as refused:
            copies.swap(copy, swap)
        assert refused.value.fields["blocked_by"]
        copies.swap(copy, swap)
        assert_same_rows(copy_subject.rows(), [build_row(DAY1, 1)])

    def test_a_fence_that_has_to_wait_too_long_concludes_nothing(self, copy_subject: CopySubject) -> None:
        """As long as the swap may still commit, nobody knows the outcome."""
        copy, copies = copy_subject.copy, copy_subject.copies
        copies.open_marker(copy, FIRST)
        with copy_subject.hold_marker(FIRST), pytest.raises(CopyLocked):
            copies.fence(copy, FIRST)
        assert copies.fence(copy, FIRST) in (MarkerState.VOID, MarkerState.DONE)

    def test_present_rows_are_accepted_as_they_are(self, copy_subject: CopySubject) -> None:
        """A baseline writes the record and no row; the next delivery expects what was accepted."""
        copy, copies = copy_subject.copy, copy_subject.copies
        copy_subject.put([build_row(DAY1, 1), build_row(DAY1, 1)])
        marker = Marker("baseline-1", 1)
        contents = {DAY1: Content(0, copies.measure(copy, [DAY1])[DAY1])}
        with pytest.raises(AttemptLost):
            copies.accept(copy, marker, contents)
        copies.open_marker(copy, marker)
        with pytest.raises(CopyChanged):
            copies.accept(copy, marker, {DAY1: Content(0, Checksum(1, 1, 1))})
        copies.accept(copy, marker, contents)
        assert_same_rows(copy_subject.rows(), [build_row(DAY1, 1), build_row(DAY1, 1)])
        deliver(copy_subject, FIRST, {DAY1: 4}, [build_row(DAY1, 1)])
        assert_same_rows(copy_subject.rows(), [build_row(DAY1, 1)])
        copies.open_marker(copy, Marker("baseline-2", 1))
        with pytest.raises(CopyOvertaken):
            copies.accept(copy, Marker("baseline-2", 1), {DAY1: Content(0, copies.measure(copy, [DAY1])[DAY1])})

    def test_rows_of_subjects_are_counted_as_they_are_spelt(self, copy_subject: CopySubject) -> None:
        """By text in any of the columns, each row once; NULL is nobody, and no character has a second meaning."""
        copy, copies = copy_subject.copy, copy_subject.copies
        people = ("A-17", "it's %_?", "17", None)
        copy_subject.put([build_row(DAY1, 20 + n, name=name) for n, name in enumerate(people)])
        copy_subject.put([build_row(DAY2, 17, name="A-17")])
        counted = {
            ids: copies.count_subjects(copy, ["name", "id"], ids)
            for ids in (("A-17",), ("it's %_?",), ("17",), ("None",), ("a-17",), ("A-%",), ("A-17", "17", "21"), ())
        }
        assert list(counted.values()) == [2, 1, 2, 0, 0, 0, 4, 0]
        assert copies.count_subjects(copy, ["amount", "nothing of the copy"], ["A-17"]) == 0
        assert copies.count_subjects(copy, ["name"], [*(f"B-{n}" for n in range(2000)), "A-17"]) == 2

    def test_readers_of_an_unused_copy_find_nothing(self, copy_subject: CopySubject) -> None:
        """Before the first delivery there are no tables of Errata, and reading creates none."""
        copy, copies = copy_subject.copy, copy_subject.copies
        assert copies.read_delivered(copy, None) == {}
        assert copies.list_markers(copy, "bf-1-p1") == ()
        assert copies.read_rows(copy, [DAY1]) == []


def stage(copy_subject: CopySubject, marker: Marker, sequences: Mapping[str, int], rows: Sequence[Row]) -> Swap:
    """Load rows, and build the swap that brings them; a partition without rows becomes empty."""
    copy, copies = copy_subject.copy, copy_subject.copies
    staging = name_staging(copy, marker.publication, marker.attempt)
    copies.load(copy, staging, Rows(copy, rows))
    measured = measure_rows(copy, rows)
    contents = {name: Content(number, measured.get(name, Checksum())) for name, number in sequences.items()}
    return Swap(marker, staging, contents, **read_expected(copy_subject, tuple(sequences)))


def read_expected(copy_subject: CopySubject, partitions: tuple[str, ...]) -> dict[str, Any]:
    """What a delivery of these partitions has to find, by the record."""
    recorded = copy_subject.copies.read_delivered(copy_subject.copy, partitions)
    return {"expected": expect_contents(partitions, recorded), "delivered": recorded}


def deliver(copy_subject: CopySubject, marker: Marker, sequences: Mapping[str, int], rows: Sequence[Row]) -> Receipt:
    """Replace these partitions by these rows."""
    swap = stage(copy_subject, marker, sequences, rows)
    copy_subject.copies.open_marker(copy_subject.copy, marker)
    return copy_subject.copies.swap(copy_subject.copy, swap)


def assert_same(copy: CopyTable, found: Mapping[str, Checksum], wanted: Mapping[str, Checksum]) -> None:
    """Both have the same partitions with the same checksums."""
    assert not find_differing(wanted, found, copy.tolerance), (wanted, found)


def assert_same_rows(found: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]) -> None:
    """Both have the same rows, each as often."""
    kinds = {column.name: column.type for column in COLUMNS}
    assert sorted(_write_row(row, kinds) for row in found) == sorted(_write_row(row, kinds) for row in wanted)


def _write_row(row: Mapping[str, Any], kinds: Mapping[str, str]) -> list[str]:
    return [write_row_text([kind], [row[name]]) for name, kind in kinds.items()]


_conforms: type[CopySubject] = MemoryCopySubject
