"""A candidate counts for the watermark at which it held no suppressed subject; files that return are asked about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from errata.canonical import canonical_bytes
from errata.errors import StateRefused
from errata.ledger import CandidateRecord
from errata.model.product import Publish
from errata.model.run import RunState
from errata.model.table import group_by_partition
from errata.publishing.erasure import (
    ErasedBefore,
    check_candidate_erasure,
    find_erased_before,
    require_clean_versions,
    require_erasure_check,
    watermark_fields,
)
from errata.publishing.replacement import Replacement
from errata.testing import FakeSuppressions
from errata.workspace import RunContext
from support.office import ANA, DAYS, FILES, Office, office


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Office]:
    made = office(tmp_path)
    made.workspace.engines.suppressions = FakeSuppressions()  # type: ignore[misc]
    made.judged()
    yield made
    made.ledger.close()


def fake(workspace: Office) -> FakeSuppressions:
    found = workspace.workspace.engines.suppressions
    assert isinstance(found, FakeSuppressions)
    return found


def newest(workspace: Office) -> CandidateRecord:
    found = workspace.ledger.candidates.latest(workspace.run.run_id)
    assert found is not None
    return found


def judge(workspace: Office) -> None:
    check_candidate_erasure(RunContext(workspace.workspace, ANA, workspace.run, workspace.manifest), newest(workspace))


def require(workspace: Office) -> str:
    return require_erasure_check(workspace.workspace, ANA, workspace.run, newest(workspace))


def undo(workspace: Office, *, rewrite: bool = False) -> Replacement:
    return Replacement(
        kind="rollback", run_id=workspace.run.run_id, product="p", manifest_digest="", target=workspace.manifest.target,
        partitions=DAYS,
        expected={}, base_snapshot_id=None, add=group_by_partition(FILES, DAYS), add_from=() if rewrite else ("77",),
        undo_days=30, keep_refs={}, content_columns=(), rewrite={"88": DAYS[:1]} if rewrite else {},
    )  # fmt: skip


def test_without_a_list_nothing_is_asked_and_nothing_is_kept(workspace: Office):
    """No fact, no question about rows, no word in the publication."""
    judge(workspace)
    assert watermark_fields(require(workspace)) == {}
    context = RunContext(workspace.workspace, ANA, workspace.run, workspace.manifest)
    assert find_erased_before(context, undo(workspace)) == ErasedBefore()
    assert fake(workspace).asked == []
    assert not [name for name in workspace.ledger.facts.list(workspace.run.run_id) if name.startswith("unsuppressed")]


def test_a_candidate_counts_for_the_watermark_at_which_it_was_judged(workspace: Office):
    """A list that grew voids it until it is judged again; another candidate needs its own judgement."""
    fake(workspace).suppress("ann")
    judge(workspace)
    assert watermark_fields(require(workspace)) == {"watermark": "1"}
    fake(workspace).suppress("ben")
    with pytest.raises(StateRefused, match="assemble and validate again") as refused:
        require(workspace)
    assert refused.value.hint == f"errata validate {workspace.run.run_id}"
    assert workspace.actions()[-1] == "refused"
    judge(workspace)
    assert require(workspace) == "2"
    workspace.candidate()
    with pytest.raises(StateRefused):
        require(workspace)


def test_a_candidate_with_someone_on_the_list_is_never_judged_free(workspace: Office):
    """The refusal names the partitions; asking again refuses again."""
    fake(workspace).suppress("ann", DAYS[1])
    for _ in range(2):
        with pytest.raises(StateRefused, match=f"suppressed subjects in {DAYS[1]}"):
            judge(workspace)
    with pytest.raises(StateRefused):
        require(workspace)


@pytest.mark.parametrize("rewrite", [False, True])
def test_what_would_return_is_asked_about_by_snapshot(workspace: Office, rewrite: bool):
    """Files that are put back, and rows that would be written anew, alike; the list is the one that was looked at."""
    fake(workspace).suppress("ann", DAYS[0])
    workspace.workspace.engines.erased = fake(workspace).erased  # type: ignore[misc]
    context = RunContext(workspace.workspace, ANA, workspace.run, workspace.manifest)
    found = find_erased_before(context, undo(workspace, rewrite=rewrite))
    assert (found.watermark, found.partitions) == ("1", (DAYS[0],))
    assert found.without is not None
    assert found.without.snapshot_id == "1"
    assert fake(workspace).asked == [{"88": DAYS[:1]}] if rewrite else [{"77": DAYS}]
    fake(workspace).where["ann"] = ()
    assert find_erased_before(context, undo(workspace, rewrite=rewrite)) == ErasedBefore("1")


def test_an_earlier_version_that_holds_someone_on_the_list_is_not_shown_again(tmp_path: Path):
    """A rollback of versions moves no file and still brings rows back; below the first version there is none."""
    place = office(tmp_path, publish=Publish("version", versions="lake.fin.v"))
    listed = FakeSuppressions()
    place.workspace.engines.suppressions = listed  # type: ignore[misc]
    place.workspace.engines.beside = SimpleNamespace(head=lambda table: f"head of {table}")  # type: ignore[misc]
    place.judged()
    earlier = place.ledger.runs.record(
        "bf-earlier", canonical_bytes({"format": "errata.manifest/1"}), product=place.run.product,
        table=place.run.table, partitions=DAYS[:1], chunks=(), parts={}, actor=ANA,
    )[0]  # fmt: skip
    for state in (RunState.APPROVED, RunState.RUNNING, RunState.STAGED, RunState.VALIDATED):
        place.ledger.runs.move(earlier.run_id, state, actor=ANA)
    for run_id, days in ((earlier.run_id, DAYS[:1]), (place.run.run_id, DAYS)):
        made = place.ledger.publications.intend(
            run_id, "publish", days, table=place.run.table, person="bo", reason="", detail={}, lease_seconds=60,
            actor=ANA, consumers=(),
        )  # fmt: skip
        place.ledger.publications.settle(made.pub_id, "committed", actor=ANA, snapshot_id="7", data_files_written=0)
    listed.suppress("ann", *DAYS)
    with pytest.raises(StateRefused, match=f"suppressed subjects in {DAYS[0]}, which lake.fin.v still holds"):
        place.client.rollback(place.run.run_id, reason="undo", as_="bo")
    assert listed.asked == [{"head of lake.fin.v": [DAYS[0]]}]
    assert place.state == "published"
    listed.where["ann"] = ()
    assert require_clean_versions(RunContext(place.workspace, ANA, place.run, place.manifest), DAYS) == "1"
    assert require_clean_versions(RunContext(place.workspace, ANA, place.run, place.manifest), DAYS[1:]) == "1"
    assert len(listed.asked) == 2
    place.ledger.close()
