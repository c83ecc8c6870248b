"""A project that earlier code left behind: later code opens it, answers the same, and ends or undoes what was begun.

Its ledger, tables, keys and bundles are in ``old-project.tar.gz``, made once (``make.py`` says how) and never again to
make a test pass. Only the client and the command line are used here, so that modules may move.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import rfc8785

import errata
from compat import old
from compat.old import DAYS, RUNS, TABLE, WARNING, right, rows, wrong
from errata.cli.main import main
from errata.evidence import verifier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Answer = Callable[..., str]
MADE = "d817f741713f26c7c23fc599bab1522f46dab8276e0ddd8a7fd2e659c978a59a"
"""The SHA-256 of the archive. It stands for what users have: where another one is needed, it gets a name of its own."""
ACCEPT = {WARNING: "the fix halves it"}
CORRECTED = (*RUNS["published"].days, RUNS["half-published"].days[0])
"""Days that hold what they should, as the project was left."""


@pytest.fixture
def project() -> Iterator[Path]:
    """The project, unpacked for one test."""
    with old.unpacked() as place:
        yield place


@pytest.fixture
def asked(project: Path, capsys: pytest.CaptureFixture[str]) -> Answer:
    """What ``errata …`` prints; it has to end well."""

    def ask(*words: str) -> str:
        capsys.readouterr()
        code = main(["-C", str(project), "--as", "ana", *words])
        said = capsys.readouterr()
        assert code == 0, (words, said.out, said.err)
        return said.out

    return ask


@pytest.fixture
def client(project: Path, base_spark: SparkSession) -> Iterator[Any]:
    """The project, open on the session of the tests; every invariant is checked in the end."""
    from support.invariants import assert_invariants

    with errata.open(str(project), spark=base_spark, narrate=lambda _: None) as opened:
        yield opened
        assert opened.audit_verify().ok
    assert_invariants(project)


def run_ids() -> dict[str, str]:
    """The ids of the runs, by name, as they were when the golden texts were written."""
    return {name: json.loads((old.GOLDENS / f"{name}.status.json").read_text("utf-8"))["run_id"] for name in RUNS}


def finish(client: Any, run: str, person: str = "bo") -> None:
    """Judge what was staged, accept the warning, publish."""
    client.validate(run, accept=ACCEPT, as_="bo")
    client.publish(run, as_=person)


def corrected(*days: str) -> list[old.Row]:
    """The whole table with these days as they should be and all others as they were left."""
    good = {*CORRECTED, *days}
    return [row for day in DAYS for row in (right(day) if day in good else wrong(day))]


# ------------------------------------------------------------------------------------------------ ledger and evidence


def test_the_project_is_the_one_that_was_made_then() -> None:
    """Nobody made it again with later code."""
    assert hashlib.sha256(old.ARCHIVE.read_bytes()).hexdigest() == MADE


def test_the_old_ledger_opens_and_its_audit_verifies(asked: Answer) -> None:
    """Every link of the chain fits, and so do all the heads that were signed while it grew."""
    found = json.loads(asked("audit", "verify", "--json"))
    assert (found["ok"], found["reason"]) == (True, None)
    assert found["entries"] == len(json.loads(asked("audit", "log", "--json")))
    heads = found["heads"]
    assert (heads["checked"], heads["behind"], heads["signatures"]) == (5, 0, "checked")


def test_every_old_run_is_in_the_state_it_was_left_in(asked: Answer) -> None:
    """None is missing, none is new, and each has its days."""
    told = json.loads(asked("runs", "--json"))["runs"]
    assert {one["reason"]: one["run_id"] for one in told} == run_ids()
    assert {one["reason"]: one["state"] for one in told} == {run.name: run.state for run in RUNS.values()}
    assert {one["reason"]: (one["first"], one["last"]) for one in told} == {
        run.name: (run.days[0], run.days[-1]) for run in RUNS.values()
    }


def test_old_rows_are_what_they_were(project: Path) -> None:
    """What pyiceberg reads from the unpacked table is what this file takes it for."""
    assert rows() == corrected()


@pytest.mark.parametrize("name", RUNS)
def test_answers_about_an_old_run_are_the_same_byte_for_byte(asked: Answer, name: str) -> None:
    """No field of ``status``, ``show``, ``why`` and ``history`` depends on the time, so the JSON is that of then."""
    run = run_ids()[name]
    for golden, words in old.commands(name, run).items():
        expected = (old.GOLDENS / golden).read_text("utf-8")
        assert asked(*words, "--json") == expected, golden


@pytest.mark.parametrize(
    "name", [name if name == "half-published" else pytest.param(name, marks=pytest.mark.slow) for name in RUNS]
)
def test_pages_about_an_old_run_are_shown(asked: Answer, name: str) -> None:
    """People get an answer as programs do."""
    run = run_ids()[name]
    assert run in asked("status", run)
    assert run in asked("show", run)
    assert RUNS[name].days[0] in asked("why", TABLE, RUNS[name].days[0])
    assert RUNS[name].days[0] in asked("history", TABLE, RUNS[name].days[0])


def test_rows_that_old_runs_set_aside_are_counted(asked: Answer) -> None:
    """The quarantine of then still says what was wrong with which day."""
    for name, run in run_ids().items():
        days = [day for day in RUNS[name].days if old.bad(day)]
        told = json.loads(asked("quarantine", run, "--json", "--sample", "0"))["reasons"]
        found = [(one["reason"], one["rows"], one["partitions"]) for one in told]
        assert found == [("negative", 1, [day]) for day in days], name


def test_the_digest_of_an_old_plan_is_that_of_its_canonical_bytes(project: Path) -> None:
    """The stored manifest is canonical JSON, its SHA-256 is the digest of the plan and begins the run's name."""
    with errata.open(str(project), narrate=lambda _: None) as client:
        for name, run in run_ids().items():
            content = client.manifest_bytes(run)
            digest = hashlib.sha256(content).hexdigest()
            view = client.show(run)
            assert (view.run_id, view.digest) == (run, digest), name
            assert rfc8785.dumps(json.loads(content)) == content, name
            assert run.endswith(digest[:8]), name
            assert {one.digest for one in view.approvals} <= {digest}, name


@pytest.mark.parametrize("name", old.BUNDLES)
def test_the_verifier_accepts_an_old_bundle(project: Path, asked: Answer, name: str) -> None:
    """As a command, as one file without Errata, and as the one that came with the bundle."""
    bundle, key = old.BUNDLES[name], f"{old.KEY}.pub"
    kept = sorted(f"heads/{place.name}" for place in (project / "heads").iterdir())[:-1]
    told = json.loads(asked("evidence", "verify", bundle, "--key", key, *(f"--head={one}" for one in kept), "--json"))
    assert (told["ok"], told["run_id"], told["state"]) == (True, run_ids()[name], RUNS[name].state)
    (project / "then.py").write_bytes(zipfile.ZipFile(project / bundle).read("verify.py"))
    for program in (verifier.__file__, "then.py"):
        command = [sys.executable, "-I", program, bundle, "--key", key]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, (program, done.stdout, done.stderr)
        assert run_ids()[name] in done.stdout


@pytest.mark.parametrize("name", old.BUNDLES)
def test_the_verifier_refuses_an_old_bundle_with_one_byte_changed(project: Path, name: str) -> None:
    """In the middle of every member, and here and there in the container around them."""
    content, key = (project / old.BUNDLES[name]).read_bytes(), (project / f"{old.KEY}.pub").read_bytes()
    assert verifier.verify(content, [key]).ok
    with zipfile.ZipFile(BytesIO(content)) as opened:
        members = [one.header_offset + 30 + len(one.filename) + one.compress_size // 2 for one in opened.infolist()]
    places = [*members, *range(0, len(content), len(content) // 50), len(content) - 1]
    survived = [
        place
        for place in places
        if verifier.verify(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :], [key]).ok
    ]
    assert survived == []


ENVIRONMENT = "records/environment.json"


def test_evidence_of_an_old_run_is_exported_again_with_the_same_records(project: Path) -> None:
    """The ledger has not moved since the last bundle: its records are the same bytes but for the verifier's own digest,
    and the verifier of then and of now take the new bundle."""
    last = list(old.BUNDLES)[-1]
    with errata.open(str(project), narrate=lambda _: None) as client:
        _, content = client.evidence(run_ids()[last], as_="bo")
    now, then = zipfile.ZipFile(BytesIO(content)), zipfile.ZipFile(project / old.BUNDLES[last])
    assert now.namelist() == then.namelist()
    said = {name for name in then.namelist() if name.endswith((".json", ".jsonl")) and "/" in name}
    assert {name for name in said | {"manifest.json"} if now.read(name) != then.read(name)} == {ENVIRONMENT}
    made_now, made_then = json.loads(now.read(ENVIRONMENT)), json.loads(then.read(ENVIRONMENT))
    assert made_now["verifier_sha256"] != made_then["verifier_sha256"]  # one line of its text changed since
    assert made_now | {"verifier_sha256": ""} == made_then | {"verifier_sha256": ""}
    (project / "again.errata").write_bytes(content)
    (project / "then.py").write_bytes(then.read("verify.py"))
    for program in (verifier.__file__, "then.py"):
        command = [sys.executable, "-I", program, "again.errata", "--key", f"{old.KEY}.pub"]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, (program, done.stdout, done.stderr)


# ------------------------------------------------------------------------------------------------------- going on


@pytest.mark.spark
def test_an_old_approval_is_run_judged_and_published(client: Any) -> None:
    """Code, inputs and decision of then lead to the right rows, and the evidence of it verifies."""
    run = run_ids()["approved"]
    assert client.run(run, as_="ana").state == "staged"
    assert rows() == corrected()
    finish(client, run)
    assert rows() == corrected(*RUNS["approved"].days)
    assert client.status(run).state == "published"
    _, content = client.evidence(run, as_="bo")
    assert verifier.verify(content, [(old.PLACE / f"{old.KEY}.pub").read_bytes()]).problems == []


@pytest.mark.spark
def test_old_staged_chunks_are_judged_and_published(client: Any) -> None:
    """Nothing is computed again, and the row that was set aside then stays away."""
    run = run_ids()["staged"]
    finish(client, run)
    assert rows() == corrected(*RUNS["staged"].days)
    assert client.status(run).cost.attempt_count == 2


@pytest.mark.spark
def test_an_old_release_lets_a_program_publish(client: Any) -> None:
    """What a person released then a service account publishes now."""
    run = run_ids()["validated"]
    assert client.publish(run, as_="airflow").state == "published"
    assert rows() == corrected(*RUNS["validated"].days)


@pytest.mark.spark
def test_an_old_publication_is_rolled_back(client: Any) -> None:
    """Main holds the rows of before it, and no other day is touched."""
    run, days = run_ids()["published"], RUNS["published"].days
    assert rows(*days) == right(*days)
    client.rollback(run, reason="not yet", as_="bo")
    assert rows(*days) == wrong(*days)
    assert rows() == [row for day in DAYS for row in (right(day) if day in set(CORRECTED) - set(days) else wrong(day))]
    assert client.status(run).state == "rolled_back"


@pytest.mark.spark
def test_an_old_rollback_is_followed_by_a_new_correction(client: Any) -> None:
    """What was taken back then is planned, computed and published now, by the same ledger."""
    days = RUNS["taken-back"].days
    plan = client.plan(old.PRODUCT, partitions=RUNS["taken-back"].scope, reason="now", as_="ana")
    assert plan.id not in run_ids().values()
    client.approve(plan.id, digest=plan.digest, as_="bo")
    client.run(plan.id, as_="ana")
    finish(client, plan.id)
    assert rows() == corrected(*days)
    told = [(one.action, one.run_id) for one in client.why(TABLE, days[0]).history]
    before = run_ids()["taken-back"]
    assert told == [("live", None), ("published", before), ("rolled_back", before), ("published", plan.id)]


@pytest.mark.spark
def test_an_old_rejection_is_accepted(client: Any) -> None:
    """The numbers of then suffice; a person accepts the warning and publishes."""
    finish(client, run_ids()["rejected"])
    assert rows() == corrected(*RUNS["rejected"].days)


@pytest.mark.spark
def test_an_old_run_goes_on_where_its_worker_stopped(client: Any) -> None:
    """The chunk that was done then is not computed again."""
    run = run_ids()["half-done"]
    view = client.run(run, as_="ana")
    assert (view.state, view.chunks.done, client.status(run).cost.attempt_count) == ("staged", 2, 2)
    finish(client, run)
    assert rows() == corrected(*RUNS["half-done"].days)


@pytest.mark.spark
def test_the_rest_of_an_old_run_is_published_and_all_of_it_rolled_back(client: Any) -> None:
    """A publication of then and one of now are taken back together."""
    run, days = run_ids()["half-published"], RUNS["half-published"].days
    assert client.publish(run, as_="bo").state == "published"
    assert rows() == corrected(*days)
    client.rollback(run, reason="not yet", as_="bo")
    assert rows(*days) == wrong(*days)


@pytest.mark.spark
def test_an_old_request_made_again_is_the_old_run(client: Any) -> None:
    """The same request on the same world has the same canonical bytes as then, as long as the version is the same."""
    run = run_ids()["planned"]
    if json.loads(client.manifest_bytes(run))["code"]["errata_version"] != errata.__version__:
        pytest.skip("a plan names the version that made it")
    plan = client.plan(old.PRODUCT, partitions=RUNS["planned"].scope, reason="planned", as_="ana")
    assert (plan.id, plan.already) == (run, True)


@pytest.mark.spark
def test_an_old_run_that_failed_is_cancelled_and_one_that_was_cancelled_stays_so(client: Any) -> None:
    """Neither changes main, and the failure is still told."""
    assert [one["code"] for one in client.status(run_ids()["failed"]).failures] == ["transform-failed"]
    assert client.cancel(run_ids()["failed"], reason="no longer needed", as_="ana").state == "cancelled"
    with pytest.raises(errata.ErrataError):
        client.run(run_ids()["cancelled"], as_="ana")
    assert rows() == corrected()
