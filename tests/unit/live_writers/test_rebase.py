"""When live does not win: what was written is another run's, and an older run must not undo it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from errata.canonical import canonical_bytes
from errata.errors import PublishConflict, Rebased
from errata.live_writers.rebase import rebase_on_conflict
from errata.model.partition import Grain
from errata.model.product import Publish
from errata.model.run import RunState
from errata.model.table import Commit, Touch
from errata.publishing.messages import conflict_error
from errata.workspace import RunContext
from support.office import ANA, DAYS, Office, office

LIVE = Commit("5", "append", 0, "daily", {DAYS[0]: Touch(added_rows=1)})
OURS = Commit("6", "overwrite", 0, "errata", {DAYS[1]: Touch(1, 1)}, summary={"errata.publication": "bf-new-p1"})


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Office]:
    made = office(tmp_path, publish=Publish(on_live_write="live_wins"))
    made.judged()
    yield made
    made.ledger.close()


def test_what_another_run_published_is_a_conflict_and_is_not_computed_over(workspace: Office):
    """Beside a live write as well: a superseded run that goes on would bring its own numbers back."""
    written = {DAYS[0]: (LIVE,), DAYS[1]: (OURS,)}
    conflict = conflict_error("publish", workspace.run.run_id, "p", Grain.DAY, DAYS, written, "live_wins")
    assert conflict.fields["publications"] == ["bf-new-p1"]
    with (
        pytest.raises(PublishConflict, match="bf-new-p1 is a publication") as refused,
        rebase_on_conflict(RunContext(workspace.workspace, ANA, workspace.run, workspace.manifest)),
    ):
        raise conflict
    assert not isinstance(refused.value, Rebased)
    assert refused.value.fields["partitions"] == list(DAYS)
    assert workspace.state == "validated"
    assert "run.rebased" not in workspace.actions()


def test_commits_that_have_expired_are_known_by_the_ledger(workspace: Office):
    """History was cut, so the conflict names nobody; what was accepted since the plan still is another run's."""
    other = workspace.ledger.runs.record(
        "bf-other", canonical_bytes({"format": "errata.manifest/1"}), product=workspace.run.product,
        table=workspace.run.table,
        partitions=DAYS[:1], chunks=(), parts={}, actor=ANA,
    )[0]  # fmt: skip
    for state in (RunState.APPROVED, RunState.RUNNING, RunState.STAGED, RunState.VALIDATED):
        workspace.ledger.runs.move(other.run_id, state, actor=ANA)
    made = workspace.ledger.publications.intend(
        other.run_id, "publish", DAYS[:1], table=workspace.run.table, person="bo", reason="", detail={},
        lease_seconds=60,
        actor=ANA, consumers=(),
    )  # fmt: skip
    workspace.ledger.publications.settle(made.pub_id, "committed", actor=ANA, snapshot_id="7", data_files_written=0)
    conflict = conflict_error("publish", workspace.run.run_id, "p", Grain.DAY, DAYS, {DAYS[0]: ()}, "live_wins")
    with (
        pytest.raises(PublishConflict, match=r"bf-other-p1-[0-9a-f]{6} is a publication"),
        rebase_on_conflict(RunContext(workspace.workspace, ANA, workspace.run, workspace.manifest)),
    ):
        raise conflict
    assert workspace.state == "validated"
