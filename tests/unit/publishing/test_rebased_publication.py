"""A difference is explained from where the expected files were read: the plan's base, or a partition's own rebase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from errata.errors import PublishConflict
from errata.model.manifest import ExpectedFile
from errata.model.table import Commit, DataFile, History, NewDelete, TableColumn, TableSchema, Touch
from errata.publishing.replacement import Replacement, examine_version
from unit.publishing.test_replacement import PIN

A, B = "2026-01-01", "2026-01-02"


@dataclass
class Version:
    """Main at its head, with the commits that each base is followed by."""

    files: dict[str, str]
    since: dict[str, tuple[Commit, ...]]
    asked: list[tuple[str | None, tuple[str, ...]]] = field(default_factory=list)
    deletes: dict[str, tuple[Commit, ...]] = field(default_factory=dict)
    snapshot_id: str = "9"
    table_uuid: str = "uuid"
    spec_id: int = 0
    column: str = PIN.column
    refs: frozenset[str] = frozenset()
    schema: TableSchema = field(default_factory=lambda: TableSchema(0, 1, {"d": "date"}, {"d": 1}))

    def columns(self, schema_id: int | None = None) -> tuple[TableColumn, ...]:
        return (TableColumn(1, "d"),)

    def live(self, _: Sequence[str]) -> tuple[DataFile, ...]:
        return tuple(DataFile(path, 1, 1, day) for day, path in self.files.items())

    def history(self, base: str | None, partitions: Sequence[str]) -> History:
        self.asked.append((base, tuple(partitions)))
        return History(self.since[base or ""], complete=True)

    def new_deletes(self, base: str | None, partitions: Sequence[str], _marks: Sequence[str]) -> tuple[NewDelete, ...]:
        return tuple(
            NewDelete("eq", "equality_deletes", None, tuple(partitions), one)
            for one in self.deletes.get(base or "", ())
        )

    def commit(self, _: Any) -> str:
        raise AssertionError


LIVE = Commit("5", "append", 0, "daily", {A: Touch(added_rows=1)})
COMPACTED = Commit("7", "replace", 0, "maintenance", {A: Touch(1, 1), B: Touch(1, 1)})


def order(**changes: Any) -> Replacement:
    expected = {day: (ExpectedFile(f"old-{day}", 1, "data"),) for day in (A, B)}
    return Replacement(
        "publish", "bf-1", "fin.sales", "d", PIN, (A, B), expected, "1", {}, (), 1, {}, ("d",), **changes
    )


def test_what_live_wrote_before_the_rebase_is_no_conflict_and_compaction_after_it_is_none():
    """Each partition from its own base; without the rebase the same commits are a conflict."""
    version = Version({A: "new-a", B: "new-b"}, {"1": (COMPACTED, LIVE), "6": (COMPACTED,)})
    found = examine_version(order(rebased={A: "6"}), version, None)  # type: ignore[arg-type]
    assert sorted(found.compacted) == [A, B]
    assert sorted(version.asked) == [("1", (B,)), ("6", (A,))]
    with pytest.raises(PublishConflict) as conflict:
        examine_version(order(), version, None)  # type: ignore[arg-type]
    assert conflict.value.fields["partitions"] == [A]


@pytest.mark.parametrize("bases", [("1", "6"), ("1", None)])
def test_where_only_content_can_tell_it_is_that_of_its_own_base(bases: tuple[str, str | None]):
    """A partition without a base, or whose base holds other content, is a conflict."""

    class Content:
        def content(self, _t: Any, snapshot: str, names: Sequence[str], _c: Any) -> dict[str, str]:
            return {name: {"1": "x", "6": "y", "9": "y"}[snapshot] if name == A else "same" for name in names}

    version = Version({A: "new-a", B: "new-b"}, {"1": (), "6": (), "": ()})
    rebased = {A: bases[1]}
    if bases[1]:
        assert sorted(examine_version(order(rebased=rebased), version, Content()).compacted) == [A, B]  # type: ignore[arg-type]
        return
    with pytest.raises(PublishConflict) as conflict:
        examine_version(order(rebased=rebased), version, Content())  # type: ignore[arg-type]
    assert conflict.value.fields["partitions"] == [A]


@pytest.mark.parametrize("policy, says", [("conflict", "freeze holds them off"), ("freeze", "does not ask")])
def test_a_conflict_says_what_the_plan_says_of_live_writes(policy: str, says: str):
    """And offers the freeze to those who have none."""
    version = Version({A: "new-a", B: "old-" + B}, {"1": (LIVE,)})
    with pytest.raises(PublishConflict) as conflict:
        examine_version(order(on_live_write=policy), version, None)  # type: ignore[arg-type]
    assert says in (conflict.value.hint or "")
    assert conflict.value.fields["on_live_write"] == policy


def test_delete_files_count_from_a_partition_s_own_base():
    """What live deleted before the rebase is in its base; for the other partition the same commit is a write."""
    gone = Commit("5", "overwrite", 0, "flink", {})
    version = Version({A: "old-" + A, B: "old-" + B}, {}, deletes={"1": (gone,), "6": ()})
    with pytest.raises(PublishConflict, match="snapshot 5 \\(flink") as conflict:
        examine_version(order(rebased={A: "6"}), version, None)  # type: ignore[arg-type]
    assert conflict.value.fields["partitions"] == [B]
    assert examine_version(order(rebased={A: "6", B: "6"}), version, None).compacted == ()  # type: ignore[arg-type]
