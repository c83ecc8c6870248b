"""``errata evidence``: what is written, what is said, and the exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from errata.evidence import verifier
from errata.evidence.heads import sign_head
from errata.evidence.keys import generate_key_pair, load_signing_key
from errata.model.audit import Head
from unit.cli import samples
from unit.cli.sample_client import FakeClient, errata
from unit.evidence.forging import packed, unpacked
from unit.evidence.house import House


@pytest.fixture
def workspace(house: House, bundles: dict[str, bytes], tmp_path: Path) -> Path:
    """An auditor's directory: no project, no ledger."""
    (tmp_path / "run.errata").write_bytes(bundles["published"])
    (tmp_path / "errata.pub").write_bytes(house.public)
    return tmp_path


def test_export_writes_the_file_and_says_what_to_hold_it_against(tmp_path: Path):
    """Name, size, digests, signer, head, what it lacks, and the command that verifies it."""
    client = FakeClient()
    done = errata("-C", str(tmp_path), "evidence", "export", samples.RUN, "-o", "out.errata", client=client)
    assert done.code == 0, done.err
    assert (tmp_path / "out.errata").read_bytes() == b"PK\x03\x04 bundle"
    for word in (
        samples.DIGEST,
        samples.HEAD,
        "3 members",
        "183 kB",
        "! no summary of the diff",
        "evidence verify out.errata",
    ):
        assert word in done.out, word
    assert client.called("evidence") == {"with_diff": True, "as_": "ana"}
    again = errata(
        "-C", str(tmp_path), "evidence", "export", samples.RUN, "-o", "out.errata", "--json", "--without-diff"
    )
    assert again.json.keys() >= {"run_id", "members", "sha256", "signed_by", "head", "file", "notes"}


def test_export_replaces_nothing_but_a_bundle(tmp_path: Path):
    """A slip of the hand does not cost a project file."""
    (tmp_path / "errata.yaml").write_text("project: finsight\n")
    done = errata("-C", str(tmp_path), "evidence", "export", samples.RUN, "-o", "errata.yaml")
    assert done.code == 2
    assert "found another kind of file" in done.err
    assert (tmp_path / "errata.yaml").read_text() == "project: finsight\n"
    assert [path.name for path in tmp_path.iterdir()] == ["errata.yaml"]


def test_a_full_disk_leaves_no_half_of_a_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The file is there whole, as it was before, or not at all."""
    (tmp_path / "out.errata").write_bytes(b"PK\x03\x04 bundle of before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    done = errata("-C", str(tmp_path), "evidence", "export", samples.RUN, "-o", "out.errata")
    assert (done.code, "No space left on device" in done.err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["out.errata"]
    assert (tmp_path / "out.errata").read_bytes() == b"PK\x03\x04 bundle of before"


def test_verify_needs_no_project(workspace: Path):
    """Exit code 0 and the facts; as JSON the same for programs."""
    done = errata("-C", str(workspace), "evidence", "verify", "run.errata", "--key", "errata.pub")
    assert done.code == 0, done.out
    assert "✓ 21 members verified" in done.out
    told = errata("-C", str(workspace), "evidence", "verify", "run.errata", "--key", "errata.pub", "--json").json
    assert (told["ok"], told["problems"], len(told["members"])) == (True, [], 21)
    assert told["state"] == "published"


def test_verify_names_the_member_and_exits_with_1(workspace: Path):
    """The same for people and programs."""
    place = workspace / "run.errata"
    place.write_bytes(packed(unpacked(place.read_bytes()) | {"records/gate.json": b"{}"}))
    done = errata("-C", str(workspace), "evidence", "verify", "run.errata", "--key", "errata.pub")
    assert done.code == 1
    assert "records/gate.json: is not what was signed" in done.out
    told = errata("-C", str(workspace), "evidence", "verify", "run.errata", "--key", "errata.pub", "--json")
    assert (told.code, told.json["ok"]) == (1, False)
    assert [one["member"] for one in told.json["problems"]] == ["records/gate.json"]


def test_files_that_are_not_there_are_wrong_usage(workspace: Path):
    """Exit code 2, and which file it was."""
    for arguments in (
        ("nowhere.errata", "--key", "errata.pub"),
        ("run.errata", "--key", "nowhere.pub"),
        ("run.errata",),
    ):
        done = errata("-C", str(workspace), "evidence", "verify", *arguments)
        assert done.code == 2, arguments


@pytest.mark.parametrize(
    "arguments, told",
    [
        (("--key", "run.errata"), "run.errata was refused; expected an Ed25519 public key as PEM"),
        (("--key", "errata.pub", "--head", "errata.pub"), "errata.pub was refused; expected a signed head"),
        (("--key", "errata.pub", "--head", "index.json"), "expected a signed head (application/vnd.errata.audit-head"),
    ],
)
def test_a_wrong_file_beside_the_bundle_is_not_held_against_the_bundle(
    workspace: Path, arguments: tuple[str, ...], told: str
):
    """Exit code 2, by the command and by the stand-alone script: a slip of the hand accuses nobody of forgery."""
    (workspace / "index.json").write_bytes(unpacked((workspace / "run.errata").read_bytes())["evidence.dsse.json"])
    done = errata("-C", str(workspace), "evidence", "verify", "run.errata", *arguments)
    assert done.code == 2
    assert told in done.err
    assert "the bundle was not judged" in done.err
    script = Path(verifier.__file__)
    alone = subprocess.run(
        [sys.executable, str(script), "run.errata", *arguments],
        cwd=workspace,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (alone.returncode, alone.stdout) == (2, "")
    assert told in alone.stderr


def test_a_head_that_was_printed_into_a_file_agrees(workspace: Path, house: House):
    """``errata audit head > FILE`` ends in a newline, which is no reason to distrust a bundle."""
    head = unpacked((workspace / "run.errata").read_bytes())["audit/head.dsse.json"]
    (workspace / "head.json").write_bytes(head + b"\n")
    done = errata(
        "-C", str(workspace), "evidence", "verify", "run.errata", "--key", "errata.pub", "--head", "head.json"
    )
    assert done.code == 0, done.out
    assert "kept head" in done.out


def test_a_head_by_another_key_is_told_as_the_heads_fault(workspace: Path):
    """Whoever reads it knows which file to look at."""
    generate_key_pair(workspace / "another")
    known = Head("0123456789abcdef", "finsight", 1, "ab" * 32, "2026-02-14T09:12:33.000Z")
    (workspace / "head.json").write_bytes(sign_head(known, load_signing_key("another", workspace)))
    done = errata(
        "-C", str(workspace), "evidence", "verify", "run.errata", "--key", "errata.pub", "--head", "head.json"
    )
    assert done.code == 1
    assert "the kept head: expected a signature by" in done.out
