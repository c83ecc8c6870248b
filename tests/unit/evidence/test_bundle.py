"""Evidence of a run, whatever became of it: made the same way, complete, without a secret, and verified by one file."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import errata.evidence.verifier as module
from errata.commands.upkeep.evidence import refuse_secrets_in_bundle
from errata.errors import AuditBroken, KeyRefused, Refused
from errata.evidence.members import read_verifier_source
from errata.evidence.verifier import INDEX, MOVES, Report, lines, verify
from errata.model.product import Publish, Waves
from errata.model.product.project import EvidenceSettings
from errata.model.run import RUN_MOVES, RunState
from unit.evidence.forging import packed, unpacked
from unit.evidence.house import BLOCKED, DAYS, OK, SECRET_ROW, House
from unit.ledger.shell import Shell

NewHouse = Callable[..., House]
GOLDENS = Path(__file__).parent / "goldens"


def test_a_run_in_any_state_has_evidence_that_verifies(house: House, cases: dict[str, str], bundles: dict[str, bytes]):
    """From planned to superseded; and each bundle says the state that the run is in."""
    for name, bundle in bundles.items():
        found = verify(bundle, [house.public])
        assert found.problems == [], name
        run = house.ledger.runs.get(cases[name])
        assert (found.run["run_id"], found.run["state"]) == (run.run_id, run.state.value)
        assert found.head == dict(zip(("seq", "hash"), house.ledger.audit.head()[:2], strict=True))
    states = {house.ledger.runs.get(run_id).state for run_id in cases.values()}
    elsewhere = {RunState.ATTESTED, RunState.DIFFERS}  # tests/protocol/test_kinds.py
    assert states >= set(RunState) - {RunState.PAUSED, RunState.EXPIRED, RunState.ROLLED_BACK} - elsewhere


def test_the_same_ledger_gives_the_same_bytes(house: House, cases: dict[str, str], bundles: dict[str, bytes]):
    """A second export of an unchanged ledger is the same file, so two copies can be compared."""
    assert house.export(cases["published"]) == bundles["published"]


def test_a_run_that_is_wholly_rolled_back_verifies(new_house: NewHouse):
    """What was taken back is what was there before, and the run says so."""
    house = new_house()
    run_id = house.published()
    house.roll_back(run_id, DAYS[:1])
    house.roll_back(run_id, DAYS[1:])
    found = verify(house.export(run_id), [house.public])
    assert found.problems == []
    assert found.run["state"] == "rolled_back"
    assert [name for name, _ in found.facts].count("rolled back") == 2


def test_one_person_for_everything_is_said_loudly(new_house: NewHouse):
    """Single-user mode is a warning of the verifier and stands on the cover; without it the same would be refused."""
    house = new_house(single_user=True)
    run_id = house.judged(person="ana")
    house.publish(run_id, person="ana")
    bundle = house.export(run_id)
    found = verify(bundle, [house.public])
    assert found.problems == []
    assert any(one.startswith("SINGLE-USER MODE") for one in found.warnings)
    assert "Single-user mode" in unpacked(bundle)["cover.html"].decode()


def test_broken_glass_is_said_loudly(new_house: NewHouse):
    """Who decided alone, and why, is a warning of the verifier and stands on the cover."""
    house = new_house()
    run_id = house.judged(person="dana", break_glass="regulator waits")
    house.publish(run_id, person="dana", break_glass="regulator still waits")
    bundle = house.export(run_id)
    found = verify(bundle, [house.public])
    assert found.problems == []
    assert "BREAK-GLASS: dana approved alone: regulator waits" in found.warnings
    assert "BREAK-GLASS: dana released alone: regulator still waits" in found.warnings
    assert "regulator still waits" in unpacked(bundle)["cover.html"].decode()


@pytest.mark.parametrize("mode, fits", [("corrections", True), ("version", True), ("replace_partitions", False)])
def test_modes_beside_the_target_have_other_files_than_the_candidate(new_house: NewHouse, mode: str, fits: bool):
    """There rows are written anew; a publication on the target itself has exactly the candidate's files."""
    house = new_house()
    beside = {"corrections": "lake.fin.corrections", "versions": "lake.fin.versions", "view": "lake.fin.current"}
    product = replace(house.product, publish=Publish(mode=mode, **({} if mode == "replace_partitions" else beside)))
    house.workspace = replace(house.workspace, project=replace(house.project, products={product.name: product}))
    run_id = house.judged()
    assert house.plans[run_id].publish.mode == mode
    house.written_anew = True
    house.publish(run_id)
    house.roll_back(run_id, DAYS[:1])
    found = verify(house.export(run_id), [house.public])
    assert found.ok is fits
    assert fits or {one.member for one in found.problems} == {"records/publications.json"}


def test_a_second_candidate_is_the_one_that_counts(new_house: NewHouse):
    """A rejected candidate stays on the record beside the one that was published."""
    house = new_house()
    run_id = house.judged(checks=[OK, BLOCKED])
    house.judge(run_id, [OK])
    house.publish(run_id)
    bundle = house.export(run_id)
    assert verify(bundle, [house.public]).problems == []
    assert {"measurements/c1.json", "measurements/c2.json"} <= set(unpacked(bundle))


def test_whoever_was_erased_is_in_no_later_bundle(new_house: NewHouse):
    """Name and words are gone from every member; pseudonyms still show that it was another person, and all verifies."""
    house = new_house()
    run_id = house.accepted()
    house.publish(run_id)
    before = house.export(run_id)
    assert json.loads(unpacked(before)["records/people.json"])["names"].keys() == {
        entry.actor.person for entry in house.ledger.audit.entries(run_id)
    } | {entry.actor.os_user for entry in house.ledger.audit.entries(run_id)}
    house.ledger.people.erase("bo", "asked for it", house.actor("dana"))
    after = house.export(run_id)
    found = verify(after, [house.public])
    assert found.problems == []
    for word in (b"as discussed", b"rates really fell", b'"bo"', b">bo<"):
        assert word not in after, word
    assert b"rates really fell" in before
    assert "(erased)" in unpacked(after)["cover.html"].decode()


def test_a_candidate_of_an_older_release_is_a_warning(new_house: NewHouse):
    """Its file list was not kept then; the verifier says what it could not compare."""
    house = new_house()
    run_id = house.staged()
    house.judge(run_id, [OK], keep_files=False)
    found = verify(house.export(run_id), [house.public])
    assert found.problems == []
    assert any("made by an older release" in one for one in found.warnings)


def test_the_summary_of_a_diff_is_kept_once(new_house: NewHouse):
    """It is computed for the first bundle, named by the audit, and still there when the snapshots are gone."""
    house = new_house()
    run_id = house.published()
    house.measurer.gone = True
    first = house.exported(run_id)
    assert first[0].notes == ("no summary of the diff: snapshot 7719 has expired",)
    assert any("no summary of changed rows" in one for one in verify(first[1], [house.public]).warnings)
    house.measurer.gone = False
    second = house.export(run_id)
    house.measurer.gone = True
    assert house.measurer.asked == 2
    assert house.export(run_id) == second
    assert house.measurer.asked == 2
    summary = json.loads(unpacked(second)["records/diff.json"])["summary"]
    told = json.loads(unpacked(second)[f"parts/{summary}.json"])
    assert told["columns"]["gross"] == {
        "changed": 21, "within": 0, "median_percent": "-10.00", "sum_before": "300", "sum_after": "270",
    }  # fmt: skip
    assert told["columns"]["account_id"]["sum_after"] is None


def test_sums_of_a_classified_column_are_in_no_summary(new_house: NewHouse):
    """Neither the sums nor how far the values moved: of few rows they tell the values."""
    house = new_house()
    members = unpacked(house.export(house.published()))
    summary = json.loads(members["records/diff.json"])["summary"]
    told = json.loads(members[f"parts/{summary}.json"])["columns"]["account_id"]
    assert told == {"changed": 6, "within": 0, "median_percent": None, "sum_before": None, "sum_after": None}


def test_without_diff_nothing_is_compared(new_house: NewHouse):
    """An auditor's request needs no Spark; metrics of the gate are there all the same."""
    house = new_house()
    bundle = house.export(house.published(), with_diff=False)
    assert house.measurer.asked == 0
    record = json.loads(unpacked(bundle)["records/diff.json"])
    assert record["metrics"][0]["before"] == "300.00"
    assert record["rows"][DAYS[0]] == {"before": "10", "after": "11"}


def test_no_value_of_a_row_and_no_secret_is_in_a_bundle(house: House, bundles: dict[str, bytes]):
    """Neither classified values nor samples, nor what other runs' entries say, nor the key."""
    for name, bundle in bundles.items():
        for word in (SECRET_ROW, "hunter2-hunter2", "PRIVATE KEY-----\nM"):
            assert word.encode() not in bundle, (name, word)
    entries = unpacked(bundles["published"])["audit/entries.jsonl"]
    for reason in ("third try", "wrong days", "not convincing", "planned only"):
        assert reason.encode() not in entries


def test_a_secret_in_a_note_stops_the_export(new_house: NewHouse):
    """The last look before a bundle leaves: a value that goes by the name of a secret is refused, by member."""
    house = new_house()
    run_id = house.planned("password is hunter2-hunter2")
    with pytest.raises(Refused, match=r"found \$\{LAKE_PASSWORD\} in ") as refused:
        house.export(run_id)
    assert "hunter2" not in refused.value.message


def test_names_of_members_hold_nothing_that_a_person_typed(new_house: NewHouse):
    """Run ids, partitions and reasons never become a path."""
    house = new_house()
    bundle = house.export(house.published("../../../etc/passwd\0CON %2e%2e"))
    fixed = {
        "README.txt", "cover.html", "verify.py", "manifest.json", INDEX, "audit/entries.jsonl", "audit/head.dsse.json",
        *(f"records/{name}.json" for name in
          ("run", "plan", "work", "decisions", "gate", "publications", "environment", "diff", "people")),
    }  # fmt: skip
    rest = [name for name in unpacked(bundle) if name not in fixed]
    assert all(re.fullmatch(r"parts/[0-9a-f]{64}\.json|measurements/c\d+\.json", name) for name in rest)
    assert verify(bundle, [house.public]).ok


def test_a_broken_audit_gives_no_evidence(new_house: NewHouse):
    """A bundle is not made of a log that does not verify."""
    house = new_house()
    run_id = house.published()

    with closing(Shell(house.url)) as shell:
        shell.drop_rule("audit", "audit_no_update")
        shell.execute("UPDATE audit SET at = 'never' WHERE seq = 2")
    with pytest.raises(AuditBroken, match="entry 2"):
        house.export(run_id)


def test_without_a_key_there_is_no_evidence(new_house: NewHouse):
    """There is no default key, and no unsigned bundle."""
    house = new_house()
    house.workspace = replace(house.workspace, project=replace(house.project, evidence=EvidenceSettings()))
    with pytest.raises(KeyRefused):
        house.export(house.planned())


def test_the_verifier_knows_the_same_moves_as_the_ledger():
    """It is one file and cannot import them."""
    assert {state: set(to) for state, to in MOVES.items()} == {
        state.value: {one.value for one in to} for state, to in RUN_MOVES.items()
    }


# ------------------------------------------------------------------------------------------------- the one-file script


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A Python that has cryptography and nothing else of ours."""
    import cryptography

    site = Path(cryptography.__file__).parent.parent
    alone = tmp_path_factory.mktemp("site")
    for found in (
        *site.glob("cryptography"),
        *site.glob("cffi"),
        *site.glob("_cffi_backend*"),
        *site.glob("pycparser"),
    ):
        (alone / found.name).symlink_to(found)
    start = f"import sys, runpy; sys.path.append({str(alone)!r}); sys.argv = sys.argv[1:]; "
    return [sys.executable, "-I", "-S", "-c", start + "runpy.run_path(sys.argv[0], run_name='__main__')"]


def test_the_script_in_the_bundle_is_the_verifier_of_errata(bundles: dict[str, bytes]):
    """One implementation: the member is the module, byte for byte."""
    assert unpacked(bundles["published"])["verify.py"] == read_verifier_source() == Path(module.__file__).read_bytes()


def test_the_script_runs_without_errata(
    house: House, bundles: dict[str, bytes], bare_python: list[str], tmp_path: Path
):
    """Python and cryptography suffice: it accepts the bundle, prints its own digest, and names a spoilt member."""
    script, bundle, key = tmp_path / "verify.py", tmp_path / "run.errata", tmp_path / "errata.pub"
    members = unpacked(bundles["published"])
    script.write_bytes(members["verify.py"])
    bundle.write_bytes(bundles["published"])
    key.write_bytes(house.public)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*bare_python, str(script), str(bundle), "--key", str(key), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)

    missing = subprocess.run(
        [*bare_python[:-1], "import errata"], capture_output=True, text=True, check=False, timeout=60
    )
    assert "No module named 'errata'" in missing.stderr
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "\n".join(lines(verify(bundles["published"], [house.public]))) + "\n"
    assert module.own_digest() in done.stdout
    bundle.write_bytes(packed(members | {"records/gate.json": b"{}"}))
    done = run("--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["problems"] == [
        {"member": "records/gate.json", "problem": "is not what was signed: its bytes were altered or swapped"}
    ]
    bundle.unlink()
    assert run().returncode == 2


def test_the_script_is_written_for_older_pythons():
    """It imports the standard library and cryptography only, and parses as Python 3.9."""
    tree = ast.parse(read_verifier_source(), feature_version=(3, 9))
    names = {
        (node.module or "").split(".")[0] if isinstance(node, ast.ImportFrom) else alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    assert names - sys.stdlib_module_names == {"cryptography"}


# --------------------------------------------------------------------------------------------------------- for people


@pytest.mark.parametrize("name", ["published", "rejected", "declined", "rolled_back_in_part"])
def test_what_the_verifier_says(house: House, bundles: dict[str, bytes], name: str):
    """Golden output; digests, times, run ids and numbers of entries are left out of the comparison."""
    told = "\n".join(lines(verify(bundles[name], [house.public]))) + "\n"
    told = re.sub(r"[0-9a-f]{64}", "<sha256>", told)
    told = re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)", "<time>", told)
    told = re.sub(r"bf-\d{8}-daily-revenue-[0-9a-f]+", "<run>", told)
    told = re.sub(r"audit( +)\d+ … \d+: \d+ of this run, \d+ of others", r"audit\1<entries>", told)
    path = GOLDENS / f"verify-{name}.txt"
    if os.environ.get("ERRATA_GOLDENS") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(told, "utf-8")
    assert told == path.read_text("utf-8")


def test_the_cover_tells_the_story(house: House, cases: dict[str, str], bundles: dict[str, bytes]):
    """Reason, people, verdict, numbers and snapshots are on it; there is no script and no address to fetch from."""
    page = unpacked(bundles["rolled_back_in_part"])["cover.html"].decode()
    for word in ("third try", "ana", "bo", "as discussed", "88.80", "rolled back", "7719", "8801", "8802", "10 rows"):
        assert word in page, word
    assert house.ledger.runs.get(cases["rolled_back_in_part"]).manifest_digest in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert "account_id" in page
    assert "classified" in page


def test_a_changed_threshold_and_an_accepted_warning_are_on_the_cover(house: House, bundles: dict[str, bytes]):
    """Who changed what the gate judges by, and who answers for what it found, in the order it happened."""
    page = unpacked(bundles["accepted"])["cover.html"].decode()
    told = ["asked for it", "changed thresholds: one percent was a slip", "accepted moved: rates really fell"]
    places = [page.index(word) for word in told]
    assert places == sorted(places)


def test_waves_pauses_and_names_are_on_the_cover(new_house: NewHouse):
    """In how many waves readers got it, who did not wait and why, and under which name it could be read before."""
    house = new_house()
    product = replace(house.product, publish=Publish(waves=Waves("1", "30min")))
    house.workspace = replace(house.workspace, project=replace(house.project, products={product.name: product}))
    run_id, bo = house.judged(), house.actor("bo")
    house.ledger.audit.note(run_id, bo, "dark.published", {"name": "preview", "snapshot_id": "1", "view": None})
    told = {"n": [1], "of": 2, "pause": "30min", "pause_seconds": 1800, "early": True}
    house.wave = {"wave": told}
    house.publish(run_id, DAYS[-1:])
    house.ledger.audit.note(run_id, house.actor("ana"), "waves.paused")
    house.ledger.audit.note(run_id, bo, "pause.skipped", {"waves": [2], "why": "books close at noon"})
    bundle = house.export(run_id)
    assert verify(bundle, [house.public]).problems == []
    page = unpacked(bundle)["cover.html"].decode()
    said = ["made the candidate readable as preview", "wave 1 of 2, before its pause was over",
            "stopped the remaining waves", "did not wait for the pause: books close at noon"]  # fmt: skip
    places = [page.index(word) for word in said]
    assert places == sorted(places)
    assert "Planned in waves of 1 partition at most, 30min apart at least." in page


@pytest.mark.parametrize("release, within", [("first", {"rows": "5%"}), ("each", {})])
def test_a_first_wave_that_no_person_released_is_found(new_house: NewHouse, release: str, within: dict[str, str]):
    """A rule lets later waves go, on a person's release of the first; never the first itself."""
    house = new_house()
    waves = Waves("1", release=release, within=within)
    product = replace(house.product, publish=Publish(waves=waves))
    house.workspace = replace(house.workspace, project=replace(house.project, products={product.name: product}))
    run_id = house.judged()
    house.release_kind = "automatic"
    house.publish(run_id, DAYS[-1:])
    problems = verify(house.export(run_id), [house.public]).problems
    assert any("was released by rule, which its plan forbids" in one.problem for one in problems)


def test_what_people_typed_is_text_on_the_cover(new_house: NewHouse):
    """A reason that looks like markup stays text."""
    house = new_house()
    page = unpacked(house.export(house.planned("<img src=x onerror=alert(1)>")))["cover.html"].decode()
    assert "<img" not in page
    assert "&lt;img src=x" in page


@pytest.mark.parametrize(
    "name,value,written",
    [
        ("DB_PASSWORD_PROD", "c4nary word", "c4nary word"),
        ("SALT_TOKEN", 'c4"nary<word>', 'c4\\"nary<word>'),
        ("SALT_TOKEN", 'c4"nary<word>', "c4&quot;nary&lt;word&gt;"),
        ("LAKE", "postgresql://lake:c4nary%40word@db/x", "c4nary@word"),
        ("ERRATA_SUBJECT_KEY", f"-----BEGIN PRIVATE KEY-----\\n{'c4nary' * 10}\\n-----END", "c4nary" * 10),
    ],
)
def test_a_secret_is_found_in_whatever_form_it_is_written(name: str, value: str, written: str):
    """By the variable's name in any letter case, as a password in an address, as a line of a key; in JSON and HTML."""
    project = SimpleNamespace(secrets={name: value}, credentials=())
    with pytest.raises(Refused, match=name) as refused:
        refuse_secrets_in_bundle(SimpleNamespace(project=project), {"cover.html": f"x {written} y".encode()})  # type: ignore[arg-type]
    assert "c4nary" not in refused.value.message


def test_values_that_are_no_secrets_may_be_in_evidence():
    """A bucket, a region, a host: they are in paths and settings."""
    project = SimpleNamespace(secrets={"BUCKET": "finance-lake", "LAKE": "https://lake.example"}, credentials=())
    content = b"s3://finance-lake/x https://lake.example"
    refuse_secrets_in_bundle(SimpleNamespace(project=project), {"manifest.json": content})  # type: ignore[arg-type]


def test_nothing_in_a_bundle_is_obeyed_by_the_terminal_of_whoever_verifies_it():
    """What people typed is shown, and what a terminal takes for an order is not."""
    told = lines(Report(facts=[("reason", "x\x1b[2Jy\n✓ verified\x9b")], warnings=["BREAK-GLASS: \u202eabc"]))
    assert all(line.isprintable() for line in told)
    assert any("x?[2Jy?✓ verified?" in line for line in told)
