"""Whatever is done to a bundle by someone without the key, it no longer verifies, and the member is named."""

from __future__ import annotations

import io
import json
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from errata.evidence.keys import generate_key_pair
from errata.evidence.verifier import INDEX, Problem, lines, verify
from unit.evidence.forging import flipped, packed, unpacked
from unit.evidence.house import House

Spoil = Callable[[dict[str, bytes], dict[str, bytes], str], dict[str, bytes]]
SPOILT: dict[str, Spoil] = {
    "removed": lambda mine, _, name: {key: value for key, value in mine.items() if key != name},
    "first byte altered": lambda mine, _, name: mine | {name: flipped(mine[name], 0)},
    "last byte altered": lambda mine, _, name: mine | {name: flipped(mine[name])},
    "byte added": lambda mine, _, name: mine | {name: mine[name] + b" "},
    "emptied": lambda mine, _, name: mine | {name: b""},
    "another run's": lambda mine, other, name: mine | {name: other[name]},
}


def problems(house: House, bundle: bytes) -> list[Problem]:
    found = verify(bundle, [house.public])
    assert not found.ok
    assert any("does not verify" in line for line in lines(found))
    return found.problems


def test_every_member_spoilt_in_every_way_is_named(house: House, bundles: dict[str, bytes]):
    """Remove, alter, extend, empty or swap each member: the member is named, in words that fit."""
    mine, other = unpacked(bundles["published"]), unpacked(bundles["rolled_back_in_part"])
    assert len(mine) > 20
    tried = 0
    for name in mine:
        for word, spoil in SPOILT.items():
            if word == "another run's" and other.get(name) in (None, mine[name]):
                continue  # its own parts, or the verifier itself, which is the same in all bundles
            found = problems(house, packed(spoil(mine, other, name)))
            # another run's index is signed: then everything else is what does not belong
            assert name in {one.member for one in found} or (word == "another run's" and name == INDEX), (name, word)
            tried += 1
    assert tried > 5 * len(mine)


def test_two_members_that_change_places_are_both_named(house: House, bundles: dict[str, bytes]):
    """The same bytes under another name are other evidence."""
    mine = unpacked(bundles["published"])
    one, two = "records/run.json", "records/gate.json"
    found = problems(house, packed(mine | {one: mine[two], two: mine[one]}))
    assert {problem.member for problem in found} == {one, two}


def test_a_renamed_member_is_missing_and_added(house: House, bundles: dict[str, bytes]):
    """Both names are told."""
    mine = unpacked(bundles["published"])
    mine["records/renamed.json"] = mine.pop("records/run.json")
    assert {one.member for one in problems(house, packed(mine))} == {"records/run.json", "records/renamed.json"}


@pytest.mark.parametrize("name", ["extra.txt", "records/more.json", "parts/" + "0" * 64 + ".json"])
def test_an_added_member_is_named(house: House, bundles: dict[str, bytes], name: str):
    """What the index does not list does not belong."""
    found = problems(house, packed(unpacked(bundles["published"]) | {name: b"{}"}))
    assert found == [Problem(name, "is not in the signed index: it was added")]


def test_every_duplicated_member_is_named(house: House, bundles: dict[str, bytes]):
    """Of two members of one name a reader sees one and a checker the other; neither is taken."""
    mine = unpacked(bundles["declined"])
    for name in mine:
        found = problems(house, by_hand([*mine.items(), (name, mine[name])]))
        assert found[0] == Problem(name, "is there twice")


@pytest.mark.parametrize("stride", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_no_byte_of_the_container_is_free(house: House, bundles: dict[str, bytes], stride: int):
    """Bytes of every header, of the directory and of the members: one bit anywhere is one too many."""
    bundle = bundles["declined"]
    headers, at = set(), 0
    for name, content in sorted(unpacked(bundle).items()):
        size = 30 + len(name)
        headers |= set(range(at, at + size))
        at += size + len(content)
    places = sorted(headers | set(range(at, len(bundle))) | set(range(0, len(bundle), 101)))
    survived = [place for place in places[::stride] if verify(flipped(bundle, place), [house.public]).ok]
    assert survived == []


@pytest.mark.parametrize("spoilt", ["before", "after", "comment", "between"])
def test_bytes_beside_the_members_are_found(house: House, bundles: dict[str, bytes], spoilt: str):
    """Nothing can be hidden around the members."""
    bundle = bundles["declined"]
    comment = bundle[:-2] + struct.pack("<H", 4) + b"note"
    made = {"before": b"#!/bin/sh\n" + bundle, "after": bundle + b"more", "comment": comment}
    made["between"] = by_hand(unpacked(bundle).items(), extra=b"\x99\x99\x00\x00")
    assert problems(house, made[spoilt])


def test_another_key_did_not_sign_this(house: House, bundles: dict[str, bytes], tmp_path: Path):
    """A key that was given and did not sign is told apart from one that did; without the signature nothing is read."""
    stranger = generate_key_pair(tmp_path / "other.key")
    found = verify(bundles["published"], [stranger.pem])
    assert [one.member for one in found.problems] == [INDEX]
    assert stranger.keyid in found.problems[0].problem
    assert house.key.public.keyid in found.problems[0].problem
    assert found.run == {}
    assert verify(bundles["published"], [stranger.pem, house.public]).ok


def test_an_envelope_of_another_type_is_no_index(house: House, bundles: dict[str, bytes]):
    """A signed head is signed by the same key and proves nothing about members."""
    mine = unpacked(bundles["published"])
    (found,) = problems(house, packed(mine | {INDEX: mine["audit/head.dsse.json"]}))
    assert found.member == INDEX
    assert "expected the type application/vnd.in-toto+json" in found.problem


def test_the_envelope_has_no_byte_to_spare(house: House, bundles: dict[str, bytes]):
    """The bytes of the signed index count, also those that JSON would forgive."""
    mine = unpacked(bundles["declined"])
    for at in range(0, len(mine[INDEX]), 7):
        assert not verify(packed(mine | {INDEX: flipped(mine[INDEX], at)}), [house.public]).ok, at
    data = json.loads(mine[INDEX])
    pretty = json.dumps(data, indent=1).encode()
    assert not verify(packed(mine | {INDEX: pretty}), [house.public]).ok
    twice = mine[INDEX].replace(b'{"payload":', b'{"payload":"e30=","payload":', 1)
    assert not verify(packed(mine | {INDEX: twice}), [house.public]).ok


# --------------------------------------------------------------------------------------------------- hostile archives


def by_hand(
    members: object, *, name: str | None = None, mode: int = 0o100644, method: int = 0, extra: bytes = b""
) -> bytes:
    """An archive as another program could make it; ``name`` and ``mode`` are of one more member."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for key, content in dict(members).items() if isinstance(members, dict) else members:  # type: ignore[attr-defined]
            info = zipfile.ZipInfo(key, (1980, 1, 1, 0, 0, 0))
            info.external_attr, info.extra = 0o100644 << 16, extra
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("warnings.warn", lambda *_, **__: None)  # about the name that is there twice
                made.writestr(info, content)
        if name is not None:
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.filename = info.orig_filename = name
            info.external_attr, info.compress_type = mode << 16, method
            made.writestr(info, b"\0" * 50_000_000 if method else b"target")
    return buffer.getvalue()


ESCAPES = (
    "../../etc/passwd", "/etc/passwd", "records/../../x", "..", "C:\\windows\\x", "records\\run.json", "a//b", "./a",
    "records/run.json/", "\\\\server\\share", "%2e%2e/x", "CON", "a b", "x" * 300, "ümlaut", "-rf", ".hidden",
)  # fmt: skip


@pytest.mark.parametrize("name", ESCAPES)
def test_names_that_lead_elsewhere_are_refused(
    house: House, bundles: dict[str, bytes], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Zip-slip and its kin: the member is named, nothing is written anywhere."""
    monkeypatch.chdir(tmp_path)
    found = problems(house, by_hand(unpacked(bundles["declined"]), name=name))
    assert any(one.member == name[:200] for one in found)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [stat.S_IFLNK | 0o777, stat.S_IFDIR | 0o755, stat.S_IFCHR | 0o666, stat.S_IFIFO])
def test_links_and_devices_are_refused(house: House, bundles: dict[str, bytes], mode: int):
    """A bundle holds plain files."""
    found = problems(house, by_hand(unpacked(bundles["declined"]), name="link.json", mode=mode))
    assert Problem("link.json", "is no plain file but a link, a directory or a device") in found


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_nothing_is_ever_decompressed(house: House, bundles: dict[str, bytes], method: int):
    """A bomb of fifty megabytes of zeros is refused unread, because members of a bundle are stored."""
    bomb = by_hand(unpacked(bundles["declined"]), name="bomb.json", method=method)
    assert len(bomb) < len(bundles["declined"]) + 1_000_000
    assert any(one.member == "bomb.json" and "compressed" in one.problem for one in problems(house, bomb))


def test_members_that_share_bytes_are_refused(house: House, bundles: dict[str, bytes]):
    """A directory of a thousand entries over one region multiplies what a reader unpacks; here it is no bundle."""
    bundle = packed({"a.json": b"x" * 1000})
    at = bundle.index(b"PK\1\2")
    entry = bundle[at : bundle.index(b"PK\5\6")]
    many = entry * 1000
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 1000, 1000, len(many), at, 0)
    assert problems(house, bundle[:at] + many + end)


def test_too_many_members_are_refused(house: House, monkeypatch: pytest.MonkeyPatch):
    """The count is capped before anything is read."""
    monkeypatch.setattr("errata.evidence.verifier.MAX_MEMBERS", 10)
    (found,) = problems(house, packed({f"m{n}": b"" for n in range(11)}))
    assert found == Problem("", "expected at most 10 members, found 11")


def test_a_file_that_is_too_large_is_refused(house: House, bundles: dict[str, bytes], monkeypatch: pytest.MonkeyPatch):
    """The size is capped before anything is read."""
    monkeypatch.setattr("errata.evidence.verifier.MAX_BYTES", 1000)
    (found,) = problems(house, bundles["declined"])
    assert "expected at most 1000 bytes" in found.problem


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip", b"PK\3\4" + b"\0" * 100, b"PK\5\6" + b"\xff" * 18])
def test_what_is_no_archive_is_said_to_be_none(house: House, content: bytes):
    """Any file at all gets a sentence."""
    (found,) = problems(house, content)
    assert "no zip archive" in found.problem or found.member == INDEX


def test_a_bundle_cut_off_anywhere_is_refused(house: House, bundles: dict[str, bytes]):
    """An interrupted copy never passes."""
    bundle = bundles["declined"]
    for at in range(0, len(bundle), 499):
        assert not verify(bundle[:at], [house.public]).ok
