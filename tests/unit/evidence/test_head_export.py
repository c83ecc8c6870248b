"""Heads of the audit outside the ledger: exported with every publication, missed aloud, and held against the log."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from errata.errors import AuditBroken, KeyRefused, NotFound, PermissionRefused, StateRefused, UsageError
from errata.evidence.head_export import measure_lag
from errata.evidence.heads import read_heads
from errata.evidence.keys import generate_key_pair
from errata.ledger import Ledger
from errata.model.audit import Actor
from errata.model.product.project import EvidenceSettings
from errata.publishing.intent import Intent
from errata.publishing.recovery import LedgerLog
from support.office import ANA, DAYS, Office, office

BO = Actor("bo", "u", "h")
DETAIL = Intent("publish", (), "").to_dict()


@pytest.fixture
def here(tmp_path: Path) -> Office:
    """A project whose heads go to a directory of their own."""
    made = office(tmp_path)
    (tmp_path / "worm").mkdir()
    generate_key_pair(tmp_path / "signing")
    made.use(replace(made.workspace.project, evidence=EvidenceSettings("signing", str(tmp_path / "worm"), 3600)))
    return made


def settings(here: Office, **changed: object) -> None:
    here.use(replace(here.workspace.project, evidence=replace(here.workspace.project.evidence, **changed)))


def published(here: Office, kind: str = "publish") -> None:
    if kind == "publish" and here.state == "planned":
        here.judged()
    log = LedgerLog(here.workspace, BO, here.run.run_id, kind, "lake.fin.daily_revenue", DAYS, "because", {})
    log.record_committed(log.open_intent(DETAIL), f"s-{kind}")


def heads(here: Office) -> list[int]:
    return [one.head.seq for one in read_heads(Path(here.workspace.project.root) / "worm", None)]


def entries(here: Office) -> int:
    return here.ledger.audit.head()[0]


def test_every_publication_and_rollback_leaves_a_signed_head(here: Office):
    """The head covers the entry that says so, and the log agrees with it."""
    published(here)
    first = entries(here)
    published(here, "rollback")
    assert heads(here) == [first, entries(here)]
    view = here.client.audit_verify()
    assert view.ok
    assert view.heads is not None
    assert (view.heads.checked, view.heads.newest, view.heads.behind) == (2, entries(here), 0)
    assert (view.heads.signatures, len(view.heads.signed_by), view.heads.late) == ("checked", 1, False)
    assert here.said == []


def test_without_a_place_nothing_is_exported_and_nothing_is_asked(tmp_path: Path):
    """Heads are the project's choice."""
    made = office(tmp_path)
    published(made)
    assert made.client.audit_verify().heads is None
    assert made.client.audit_verify().ok


@pytest.mark.parametrize(
    "broken, says",
    [({"heads": "/nonexistent/worm"}, "No such file"), ({"key": "${ERRATA_SIGNING_KEY}"}, "is not set")],
    ids=["place", "key"],
)
def test_an_export_that_fails_is_told_and_takes_nothing_back(here: Office, broken: dict[str, str], says: str):
    """What was published stays published; the head comes with the next export."""
    good = here.workspace.project.evidence
    settings(here, **broken)
    published(here)
    assert here.state == "published"
    (said,) = here.said
    assert says in said
    assert "errata audit head" in said
    here.use(replace(here.workspace.project, evidence=good))
    lag = measure_lag(here.workspace.project, here.ledger)
    assert (lag.newest, lag.behind, lag.late) == (0, entries(here), False)
    here.client.audit_head()
    assert heads(here) == [entries(here)]
    assert measure_lag(here.workspace.project, here.ledger).behind == 0


def test_the_lag_is_bounded_because_the_next_publication_is_refused(here: Office):
    """Longer than ``max_lag`` without a head nothing more is published; a rollback still is."""
    here.judged()
    log = LedgerLog(here.workspace, BO, here.run.run_id, "publish", "lake.fin.daily_revenue", DAYS[:1], "because", {})
    settings(here, key="nowhere")
    log = replace(log, workspace=here.workspace)
    log.record_committed(log.open_intent(DETAIL), "s1")
    rest = replace(log, partitions=DAYS[1:])
    with here.later(hours=2):
        view = here.client.audit_verify()
        assert view.heads is not None
        assert (view.heads.late, view.heads.newest) == (True, None)
        assert 7000 < view.heads.lag_seconds < 7400
        with pytest.raises(StateRefused, match="covers what was published") as refused:
            rest.open_intent(DETAIL)
        assert refused.value.state == "nothing was published"
        back = replace(log, kind="rollback")
        back.record_abandoned(back.open_intent(DETAIL), "only asked whether it may")
        settings(here, key="signing")
        replace(rest, workspace=here.workspace).open_intent(DETAIL)
        assert heads(here) == [entries(here) - 1]


def test_a_head_can_be_made_by_hand_and_written_elsewhere(here: Office, tmp_path: Path):
    """Also without a directory; a file that is there is never replaced."""
    settings(here, heads=None)
    view = here.client.audit_head()
    assert (view.files, view.seq) == ((), entries(here))
    made = here.client.audit_head(tmp_path / "head.json")
    assert made.files == (str(tmp_path / "head.json"),)
    assert (tmp_path / "head.json").read_text() == view.envelope
    with pytest.raises(UsageError, match="found one"):
        here.client.audit_head(tmp_path / "head.json")
    assert here.client.audit_verify(heads=[tmp_path / "head.json"], keys=[tmp_path / "signing.pub"]).ok


def test_signatures_that_cannot_be_checked_are_said_to_be_unchecked(here: Office, tmp_path: Path):
    """Numbers and hashes are compared all the same."""
    here.client.audit_head()
    (tmp_path / "signing").rename(tmp_path / "away")
    (tmp_path / "signing.pub").rename(tmp_path / "away.pub")
    view = here.client.audit_verify()
    assert view.ok
    assert view.heads is not None
    assert (view.heads.checked, view.heads.signatures, view.heads.signed_by) == (1, "not checked", ())
    generate_key_pair(tmp_path / "other")
    wrong = here.client.audit_verify(keys=[tmp_path / "other.pub"])
    assert not wrong.ok
    assert "expected a signature by" in (wrong.reason or "")
    with pytest.raises(KeyRefused):
        here.client.audit_verify(keys=[tmp_path / "away"])


def test_a_directory_that_is_gone_is_a_failure_not_a_pass(here: Office, tmp_path: Path):
    """Whoever unmounts the store does not get a clean bill."""
    here.client.audit_head()
    (tmp_path / "worm").rename(tmp_path / "elsewhere")
    view = here.client.audit_verify()
    assert not view.ok
    assert "worm" in (view.reason or "")
    assert here.client.audit_verify(heads=[tmp_path / "elsewhere"]).ok
    with pytest.raises(UsageError):
        here.client.audit_verify(heads=[tmp_path / "nowhere"])


def test_a_ledger_that_was_made_anew_is_found_by_its_id(here: Office, tmp_path: Path):
    """An empty ledger in the old one's place has no entries to deny; its heads belong to another ledger."""
    here.client.audit_head()
    here.ledger.close()
    new = Ledger.open(f"sqlite:///{tmp_path}/anew.db")
    here.workspace = replace(here.workspace, ledger=new)
    here.use(here.workspace.project)
    view = here.client.audit_verify()
    assert not view.ok
    assert "a new one in its place" in (view.reason or "")


def test_heads_of_other_projects_may_share_the_directory(here: Office, tmp_path: Path):
    """They are not this ledger's to judge; named as a file, one is refused."""
    here.client.audit_head()
    (tmp_path / "other").mkdir()
    other = office(tmp_path / "other")
    other.workspace = replace(other.workspace, ledger=Ledger.open(f"sqlite:///{tmp_path}/other/own.db"))
    other.use(
        replace(other.workspace.project, name="clv", evidence=here.workspace.project.evidence, root=str(tmp_path))
    )
    (foreign,) = other.client.audit_head().files
    view = here.client.audit_verify()
    assert view.ok
    assert view.heads is not None
    assert view.heads.checked == 1
    assert not here.client.audit_verify(heads=[foreign]).ok


def test_a_log_that_was_rebuilt_is_found_by_the_next_export_too(here: Office, tmp_path: Path):
    """Without anyone asking for a check."""
    here.client.audit_head()
    with sqlite3.connect(tmp_path / "ledger.db") as raw:
        for name in ("audit_no_update", "audit_head_rule", "audit_head_no_update"):
            raw.execute(f"DROP TRIGGER IF EXISTS {name}")
        raw.execute("UPDATE audit SET hash = ? WHERE seq = (SELECT max(seq) FROM audit)", ("0f" * 32,))
        raw.execute("UPDATE audit_head SET hash = ?", ("0f" * 32,))
    with pytest.raises(AuditBroken, match="rebuilt or forked"):
        here.client.audit_head()


def test_a_rebuilt_log_stops_publication_before_anyone_asks(here: Office, tmp_path: Path):
    """The newest head is held against the log at every publication and every export, however much was added since."""
    here.client.audit_head()
    here.judged()
    with sqlite3.connect(tmp_path / "ledger.db") as raw:
        raw.execute("DROP TRIGGER audit_no_update")
        raw.execute("UPDATE audit SET hash = ? WHERE seq = 1", ("0f" * 32,))
    log = LedgerLog(here.workspace, BO, here.run.run_id, "publish", "lake.fin.daily_revenue", DAYS, "because", {})
    with pytest.raises(AuditBroken, match="cut, rebuilt or forked"):
        log.open_intent(DETAIL)
    with pytest.raises(AuditBroken, match="cut, rebuilt or forked"):
        here.client.audit_head()
    assert here.state == "validated"
    assert heads(here) == [1]


class TestErasure:
    """``errata audit erase-person``: an approver's deed, with a reason."""

    def test_it_takes_an_approver_and_a_reason(self, here: Office):
        """Whoever may not is refused, and that is audited."""
        here.client.decline(here.run.run_id, note="no", as_="bo")
        with pytest.raises(PermissionRefused):
            here.client.erase_person("bo", reason="asked", as_="airflow")
        with pytest.raises(UsageError):
            here.client.erase_person("bo", reason="  ", as_="dana")
        view = here.client.erase_person("bo", reason="asked", as_="dana")
        assert (view.already, view.entries) == (False, 1)
        assert view.warnings == ("errata.yaml still lists them under people",)
        assert here.client.audit_verify().ok
        assert here.client.status(here.run.run_id).approvals[0].person == view.pseudonym
        with pytest.raises(NotFound):
            here.client.erase_person("nobody", reason="asked", as_="dana")

    def test_who_asked_for_a_run_under_way_stays_until_it_ends(self, here: Office):
        """Four eyes need to know whose the first two are."""
        with pytest.raises(StateRefused, match="active run"):
            here.client.erase_person(ANA.person, reason="asked", as_="dana")
