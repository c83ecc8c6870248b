from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.exceptions import CommitFailedException, ForbiddenError, ServiceUnavailableError
from pyiceberg.table.update.snapshot import ManageSnapshots
from pyiceberg.transforms import IdentityTransform

from errata.engines.iceberg.metadata.tables import TableLoader
from errata.engines.iceberg.metadata.tags import IcebergTags
from errata.errors import EngineError
from errata.model.partition import Grain
from unit.engines.conftest import Lake, append, on

DAY = 86_400_000


@pytest.fixture
def pins(lake: Lake) -> IcebergTags:
    lake.create("t", ("day", IdentityTransform()), rows=[on("2026-01-01")])
    return IcebergTags(TableLoader({"lake": lake.catalog}), sleep=lambda _: None)


def head(lake: Lake) -> tuple[str, int]:
    facts = lake.reader.read_target("lake.fin.t", "day", Grain.DAY, [])
    return str(facts.base_snapshot_id), int(facts.base_timestamp_ms or 0)


def test_a_pin_is_created_once_and_keeps_the_snapshot_as_long_as_promised(lake: Lake, pins: IcebergTags):
    """The age counts from the snapshot's time, so its age is added; a second call is already so."""
    snapshot, at = head(lake)
    first = pins.create("lake.fin.t", snapshot, "errata_r_base", keep_ms=30 * DAY, now_ms=at + 5 * DAY)
    again = pins.create("lake.fin.t", snapshot, "errata_r_base", keep_ms=30 * DAY, now_ms=at + 9 * DAY)
    assert (first.outcome, again.outcome) == ("created", "already")
    assert pins.refs("lake.fin.t")["errata_r_base"] == snapshot
    ref = TableLoader({"lake": lake.catalog}).load("lake.fin.t").metadata.refs["errata_r_base"]
    assert ref.max_ref_age_ms == 35 * DAY


def test_a_pin_never_moves(lake: Lake, pins: IcebergTags):
    """A tag that is on another snapshot is left there and reported."""
    snapshot, at = head(lake)
    pins.create("lake.fin.t", snapshot, "errata_r_base", keep_ms=DAY, now_ms=at)
    append(TableLoader({"lake": lake.catalog}).load("lake.fin.t"), on("2026-01-02"))
    moved = pins.create("lake.fin.t", head(lake)[0], "errata_r_base", keep_ms=DAY, now_ms=at)
    assert moved.outcome == "not_pinned"
    assert pins.refs("lake.fin.t")["errata_r_base"] == snapshot


def test_a_name_moves_with_one_commit_and_never_onto_a_branch(lake: Lake, pins: IcebergTags):
    """Readers of a name find it before and after; a branch of that name, and a snapshot that is gone, are said."""
    first, at = head(lake)
    assert pins.move("lake.fin.t", first, "preview", keep_ms=DAY, now_ms=at).outcome == "created"
    append(TableLoader({"lake": lake.catalog}).load("lake.fin.t"), on("2026-01-02"))
    second, later = head(lake)
    versions = len(TableLoader({"lake": lake.catalog}).load("lake.fin.t").metadata.metadata_log)
    assert pins.move("lake.fin.t", second, "preview", keep_ms=3 * DAY, now_ms=later + DAY).outcome == "moved"
    table = TableLoader({"lake": lake.catalog}).load("lake.fin.t")
    assert len(table.metadata.metadata_log) == versions + 1
    assert table.metadata.refs["preview"].max_ref_age_ms == 4 * DAY
    assert pins.refs("lake.fin.t")["preview"] == second
    assert pins.move("lake.fin.t", second, "preview", keep_ms=DAY, now_ms=later).outcome == "already"
    assert "is a branch" in str(pins.move("lake.fin.t", first, "main", keep_ms=DAY, now_ms=at).warning)
    assert "is gone" in str(pins.move("lake.fin.t", "12345", "preview", keep_ms=DAY, now_ms=at).warning)


def test_a_snapshot_that_is_gone_is_a_warning(pins: IcebergTags):
    """What expired before it could be pinned is said, not raised."""
    assert not pins.snapshot_exists("lake.fin.t", "12345")
    pin = pins.create("lake.fin.t", "12345", "errata_r_base", keep_ms=DAY, now_ms=0)
    assert (pin.outcome, "gone" in str(pin.warning)) == ("not_pinned", True)


def test_removing_is_idempotent(lake: Lake, pins: IcebergTags):
    """The second removal finds nothing to do."""
    snapshot, at = head(lake)
    pins.create("lake.fin.t", snapshot, "errata_r_base", keep_ms=DAY, now_ms=at)
    assert [pins.remove("lake.fin.t", "errata_r_base").outcome for _ in range(2)] == ["removed", "absent"]
    assert "errata_r_base" not in pins.refs("lake.fin.t")


def test_branches_and_tags_go_in_one_commit_and_none_when_there_is_nothing(lake: Lake, pins: IcebergTags):
    """Each commit writes a metadata file and costs live writers a retry."""
    snapshot, at = head(lake)
    pins.create("lake.fin.t", snapshot, "errata_r_base", keep_ms=DAY, now_ms=at)
    TableLoader({"lake": lake.catalog}).load("lake.fin.t").manage_snapshots().create_branch(
        int(snapshot), "errata_r"
    ).commit()
    versions = len(TableLoader({"lake": lake.catalog}).load("lake.fin.t").metadata.metadata_log)
    assert pins.drop("lake.fin.t", ("errata_r", "errata_r_base", "errata_gone")) == ("errata_r", "errata_r_base")
    assert pins.drop("lake.fin.t", ("errata_r", "errata_r_base")) == ()
    assert len(TableLoader({"lake": lake.catalog}).load("lake.fin.t").metadata.metadata_log) == versions + 1
    assert set(pins.refs("lake.fin.t")) == {"main"}


def failing(monkeypatch: pytest.MonkeyPatch, problem: Exception, times: int) -> None:
    real, left = ManageSnapshots.commit, [times]

    def commit(self: Any) -> None:
        if left[0]:
            left[0] -= 1
            raise problem
        real(self)

    monkeypatch.setattr(ManageSnapshots, "commit", commit)


def test_a_lost_race_is_tried_again_and_not_for_ever(lake: Lake, pins: IcebergTags, monkeypatch: pytest.MonkeyPatch):
    """Live commits cost a retry each; a table that never lets us in is an engine error."""
    snapshot, at = head(lake)
    failing(monkeypatch, CommitFailedException("moved"), 3)
    assert pins.create("lake.fin.t", snapshot, "errata_a_base", keep_ms=DAY, now_ms=at).outcome == "created"
    failing(monkeypatch, CommitFailedException("moved"), 100)
    with pytest.raises(EngineError, match="tries"):
        pins.create("lake.fin.t", snapshot, "errata_b_base", keep_ms=DAY, now_ms=at)


def test_a_tag_that_was_accepted_and_is_not_there_is_told_apart_from_no_permission(
    lake: Lake, pins: IcebergTags, monkeypatch: pytest.MonkeyPatch
):
    """The commit went through and the table reads as before: this catalog keeps no tags."""
    snapshot, at = head(lake)
    monkeypatch.setattr(ManageSnapshots, "commit", lambda _self: None)
    pin = pins.create("lake.fin.t", snapshot, "errata_r_base", keep_ms=DAY, now_ms=at)
    assert (pin.outcome, pin.warning) == (
        "not_kept", "lake.fin.t: the catalog accepted tag errata_r_base and does not keep it",
    )  # fmt: skip


@pytest.mark.parametrize("problem", [ServiceUnavailableError("503"), ConnectionResetError("cut"), TimeoutError("late")])
def test_a_catalog_that_does_not_answer_is_asked_again(
    lake: Lake, pins: IcebergTags, monkeypatch: pytest.MonkeyPatch, problem: Exception
):
    """The next try sees whether the tag is there; when none gets through, the error says what the last one met."""
    snapshot, at = head(lake)
    failing(monkeypatch, problem, 1)
    assert pins.create("lake.fin.t", snapshot, "errata_a_base", keep_ms=DAY, now_ms=at).outcome == "created"
    failing(monkeypatch, problem, 100)
    with pytest.raises(EngineError, match=type(problem).__name__):
        pins.create("lake.fin.t", snapshot, "errata_b_base", keep_ms=DAY, now_ms=at)


def test_no_permission_to_tag_is_a_warning(lake: Lake, pins: IcebergTags, monkeypatch: pytest.MonkeyPatch):
    """The run may go on without a pin, and the record says so."""
    snapshot, at = head(lake)
    failing(monkeypatch, ForbiddenError("no"), 1)
    pin = pins.create("lake.fin.t", snapshot, "errata_r_base", keep_ms=DAY, now_ms=at)
    assert (pin.outcome, "cannot be tagged" in str(pin.warning)) == ("not_pinned", True)
