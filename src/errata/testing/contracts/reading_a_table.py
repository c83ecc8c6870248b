"""The contracts of the ports that read a table: target, history, single rows, and what lies outside a scope."""

from __future__ import annotations

import pytest

from errata.errors import NotFound, UsageError
from errata.model.partition import Grain, start_of
from errata.model.product import Completeness, Input
from errata.model.refs import GUARD
from errata.ports.tables import Arrival
from errata.testing.contracts.subject import (
    DAYS,
    FIRST,
    NOT_A_SNAPSHOT,
    SECOND,
    THIRD,
    Subject,
    pin_target,
    stage_candidate,
)


class ReaderContract:
    """What a plan, ``why`` and ``history`` read about a table."""

    def test_a_target_lists_the_files_of_each_partition_asked_for(self, subject: Subject) -> None:
        """Rows and columns are counted, and a partition without files has an empty list."""
        state = subject.targets.read_target(subject.table, "day", Grain.DAY, DAYS)
        assert {name: size.rows for name, size in state.partitions.items()} == {FIRST: 2, SECOND: 1}
        assert {name: sum(file.rows for file in files) for name, files in state.expected.items()} == {
            FIRST: 2, SECOND: 1, THIRD: 0
        }  # fmt: skip
        assert [(one.name, one.type) for one in state.columns] == [
            ("day", "date"), ("account", "string"), ("amount", "decimal(12, 2)")
        ]  # fmt: skip
        assert state.partition_field is not None
        assert (state.partition_field.column, state.partition_field.transform) == ("day", "identity")
        assert state.refs == subject.pins.refs(subject.table)

    def test_a_fingerprint_changes_with_the_files_of_its_partition_only(self, subject: Subject) -> None:
        """A live write into another day leaves it."""
        before = subject.targets.read_target(subject.table, "day", Grain.DAY, DAYS).fingerprints
        subject.append((SECOND, "live", "1.00"))
        after = subject.targets.read_target(subject.table, "day", Grain.DAY, DAYS).fingerprints
        assert {name for name in DAYS if before[name] != after[name]} == {SECOND}

    def test_a_target_tells_who_added_the_files_of_every_partition(self, subject: Subject) -> None:
        """Without a list it has the partitions of the table; a writer that expired is no longer described."""
        first = subject.pins.refs(subject.table)["main"]
        subject.append((SECOND, "live", "1.00"))
        second = subject.pins.refs(subject.table)["main"]
        state = subject.targets.read_target(subject.table, "day", Grain.DAY, None)
        assert {name: sum(file.rows for file in files) for name, files in state.expected.items()} == {
            FIRST: 2, SECOND: 2
        }  # fmt: skip
        assert {name: set(found) for name, found in state.writers.items()} == {FIRST: {first}, SECOND: {first, second}}
        asked = subject.targets.read_target(subject.table, "day", Grain.DAY, DAYS)
        assert {name: asked.fingerprints[name] for name in (FIRST, SECOND)} == state.fingerprints
        assert asked.writers == {**state.writers, THIRD: ()}
        known = subject.history.find_commits(subject.table, [first, second, NOT_A_SNAPSHOT])
        assert {number: (one.snapshot_id, one.operation) for number, one in known.items()} == {
            first: (first, "append"), second: (second, "append")
        }  # fmt: skip
        assert known[first].at_ms <= known[second].at_ms
        subject.expire()
        assert set(subject.history.find_commits(subject.table, [first, second])) == {second}

    def test_a_table_that_is_not_there_is_not_found(self, subject: Subject) -> None:
        """By name."""
        with pytest.raises(NotFound, match="nowhere"):
            subject.targets.read_target("lake.fin.nowhere", "day", Grain.DAY, DAYS)

    def test_the_log_of_main_tells_what_it_held_from_when_on(self, subject: Subject) -> None:
        """Oldest first, with the head last; a run's branch is no part of it, and what expired is marked or gone."""
        subject.append((SECOND, "live", "1.00"))
        pin = pin_target(subject)
        subject.staging.prepare(pin, "bf-20260101-sales-00000001", 1)
        subject.stage("bf-20260101-sales-00000001", "a1", [(THIRD, "staged", "1.00")])
        log = subject.history.main_log(subject.table)
        assert [len(subject.read(entry.snapshot_id)) for entry in log] == [3, 4]
        assert all(entry.exists for entry in log)
        assert [entry.at_ms for entry in log] == sorted(entry.at_ms for entry in log)
        assert log[-1].snapshot_id == subject.pins.refs(subject.table)["main"]
        subject.expire()
        left = [entry for entry in subject.history.main_log(subject.table) if entry.exists]
        assert [entry.snapshot_id for entry in left] == [log[-1].snapshot_id]

    def test_the_line_of_main_tells_what_each_snapshot_does_to_a_stream(self, subject: Subject) -> None:
        """Oldest first, with the operation and the files that a stream would read; branches are no part of it."""
        first = subject.pins.refs(subject.table)["main"]
        subject.append((SECOND, "live", "1.00"))
        pin = pin_target(subject)
        subject.staging.prepare(pin, "bf-20260101-sales-00000001", 1)
        subject.stage("bf-20260101-sales-00000001", "a1", [(THIRD, "staged", "1.00")])
        subject.compact()
        line = subject.history.main_line(subject.table)
        assert [one.operation for one in line] == ["append", "append", "replace"]
        assert (line[0].snapshot_id, line[-1].snapshot_id) == (first, subject.pins.refs(subject.table)["main"])
        assert [one.added_files for one in line[:2]] == [2, 1]
        assert {one.publication for one in line} == {""}

    def test_an_input_is_read_at_the_snapshot_that_is_asked_for(self, subject: Subject) -> None:
        """Whole and by partition; a snapshot that is gone is a problem, and no other takes its place."""
        first = subject.pins.refs(subject.table)["main"]
        subject.append((SECOND, "live", "1.00"))
        for partition, rows in (("day", {FIRST: 2, SECOND: 1}), (None, {})):
            source = Input("old", table=subject.table, partition=partition, snapshot_id=first)
            state = subject.inputs.read_input(source, Grain.DAY, DAYS if partition else ())
            assert (state.snapshot_id, state.problem) == (first, None)
            assert {name: size.rows for name, size in state.partitions.items()} == rows
            assert partition or (state.whole and state.whole.rows == 3)
        gone = Input("old", table=subject.table, snapshot_id=NOT_A_SNAPSHOT)
        assert "is gone" in str(subject.inputs.read_input(gone, Grain.DAY, ()).problem)

    def test_a_watermark_is_the_newest_value_that_can_be_true(self, subject: Subject) -> None:
        """Of all partitions, whichever are asked for; a later one is ignored and named."""
        midnight = {day: int(start_of(Grain.DAY, day).timestamp() * 1000) for day in DAYS}

        def read(latest: str) -> Arrival:
            rule = Completeness(watermark="day", latest_ms=midnight[latest])
            source = Input("raw", table=subject.table, partition="day", complete=rule)
            found = subject.inputs.read_input(source, Grain.DAY, [FIRST]).arrival
            assert found is not None
            return found

        assert read(THIRD) == Arrival(watermark_ms=midnight[SECOND])
        subject.append((THIRD, "late", "1.00"))
        assert read(THIRD).watermark_ms == midnight[THIRD]
        early = read(SECOND)
        assert (early.watermark_ms, len(early.ignored)) == (midnight[SECOND], 1)

    def test_history_lists_the_commits_of_a_partition_newest_first(self, subject: Subject) -> None:
        """Commits elsewhere are left out; ``most`` and an expiry make it incomplete."""
        subject.append((SECOND, "live", "1.00"))
        subject.append((FIRST, "live", "1.00"))
        found = subject.history.commits(subject.table, "day", Grain.DAY, [FIRST])
        assert found.complete
        assert [one.touched[FIRST].added_rows for one in found.commits] == [1, 2]
        cut = subject.history.commits(subject.table, "day", Grain.DAY, [FIRST], most=1)
        assert (len(cut.commits), cut.complete) == (1, False)
        since = subject.history.commits(subject.table, "day", Grain.DAY, [FIRST], since=found.commits[1].snapshot_id)
        assert ([one.snapshot_id for one in since.commits], since.complete) == ([found.commits[0].snapshot_id], True)
        subject.expire()
        assert not subject.history.commits(subject.table, "day", Grain.DAY, [FIRST]).complete

    def test_history_of_any_partition_has_every_commit_and_main_from_its_head_back(self, subject: Subject) -> None:
        """Each commit says which partitions it touched; the line has the snapshot that the search ended at."""
        base = subject.pins.refs(subject.table)["main"]
        subject.append((SECOND, "live", "1.00"))
        middle = subject.pins.refs(subject.table)["main"]
        subject.append((FIRST, "live", "1.00"))
        found = subject.history.commits(subject.table, "day", Grain.DAY, None, since=base)
        assert [sorted(one.touched) for one in found.commits] == [[FIRST], [SECOND]]
        assert (found.line, found.complete) == ((subject.pins.refs(subject.table)["main"], middle, base), True)

    def test_a_compaction_is_a_replacement_that_keeps_the_rows(self, subject: Subject) -> None:
        """As many rows came as went."""
        subject.append((FIRST, "live", "1.00"))
        subject.compact()
        newest = subject.history.commits(subject.table, "day", Grain.DAY, [FIRST]).commits[0]
        assert newest.operation == "replace"
        assert newest.touched[FIRST].added_rows == newest.touched[FIRST].removed_rows == 3

    def test_what_main_held_is_found_by_snapshot_tag_and_not_by_branch(self, subject: Subject) -> None:
        """With the commits since; what main never held is refused."""
        pin = pin_target(subject)
        then = subject.pins.refs(subject.table)["main"]
        subject.pins.create(subject.table, then, "month-end", keep_ms=3_600_000, now_ms=0)
        subject.append((FIRST, "live", "1.00"))
        subject.publishing.ensure_guard(pin)
        for asked in (then, "month-end"):
            past = subject.history.held(subject.table, "day", Grain.DAY, DAYS, asked)
            assert (past.snapshot_id, {name: one.rows for name, one in past.partitions.items()}) == (
                then, {FIRST: 2, SECOND: 1}
            )  # fmt: skip
            assert (len(past.since.commits), past.problems) == (1, ())
        for asked in (GUARD, "yesterday", "12345"):
            with pytest.raises(NotFound, match=f"--restore {asked} was refused"):
                subject.history.held(subject.table, "day", Grain.DAY, DAYS, asked)

    def test_single_rows_are_found_by_key_with_their_origin(self, subject: Subject) -> None:
        """As they were at a snapshot; values are text; a value that is none of the column's is refused."""
        pin = pin_target(subject)
        then = subject.pins.refs(subject.table)["main"]
        subject.append((FIRST, "c", "5.00"))
        now = subject.pins.refs(subject.table)["main"]
        keys = [{"account": "b"}, {"account": "c"}]
        old, new = (subject.rows.rows(pin, at, FIRST, keys) for at in (then, now))
        assert old is not None
        assert new is not None
        assert [dict(row) for row in old] == [{"day": FIRST, "account": "b", "amount": "2.00"}]
        assert sorted(str(row["amount"]) for row in new) == ["2.00", "5.00"]
        assert subject.rows.rows(pin, "12345", FIRST, keys) is None
        with pytest.raises(UsageError, match="amount"):
            subject.rows.rows(pin, now, FIRST, [{"amount": "much"}])
        origin = subject.rows.origin(pin, now, FIRST)
        assert origin is not None
        assert origin.snapshot_id == now
        assert subject.rows.missing_files(pin, [FIRST]) == (2, ())

    def test_a_candidate_differs_from_main_in_its_scope_only(self, subject: Subject) -> None:
        """Outside it every file is the same; asked about less than its scope, the rest is named."""
        pin = pin_target(subject)
        order = stage_candidate(subject, pin, [(FIRST, "a", "10.00")], [FIRST])
        head, made = subject.pins.refs(subject.table)["main"], order.add_from[0]
        inside = subject.outside.outside(pin, head, made, [FIRST])
        assert inside is not None
        assert (inside.partitions, inside.differing) == (1, ())
        wider = subject.outside.outside(pin, head, made, [SECOND])
        assert wider is not None
        assert wider.differing == (FIRST,)
        assert subject.outside.outside(pin, "12345", made, [FIRST]) is None

    def test_a_snapshot_that_main_left_is_told(self, subject: Subject) -> None:
        """Ancestors of main's head have not left it; a candidate that main never held has."""
        pin = pin_target(subject)
        first = subject.pins.refs(subject.table)["main"]
        order = stage_candidate(subject, pin, [(FIRST, "a", "10.00")], [FIRST])
        subject.append((FIRST, "live", "1.00"))
        found = subject.history.left(subject.table, [first, order.add_from[0]])
        assert set(found) == {order.add_from[0]}
