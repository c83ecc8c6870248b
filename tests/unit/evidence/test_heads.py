"""Signed heads in a directory: created once, never replaced, and refused when they are not what they claim."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from errata.canonical import canonical_bytes
from errata.errors import AuditBroken, SignatureInvalid, StorageRefused, UsageError
from errata.evidence.dsse import sign_envelope
from errata.evidence.heads import (
    HEAD_TYPE,
    find_newest_seq,
    open_head,
    read_heads,
    sign_head,
    store_head,
    write_new_file,
)
from errata.evidence.keys import SigningKey, generate_key_pair, load_signing_key
from errata.model.audit import Head

HEAD = Head("0123456789abcdef", "finsight", 41, "ab" * 32, "2026-02-14T09:12:33.000Z")


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    place = tmp_path_factory.mktemp("keys")
    generate_key_pair(place / "signing")
    return load_signing_key("signing", place)


def test_a_head_comes_back_as_it_was_signed(key: SigningKey):
    """Ledger, project, number, hash and time are all under the signature."""
    envelope = sign_head(HEAD, key)
    assert open_head(envelope, [key.public]) == (HEAD, key.public.keyid)
    assert open_head(envelope, None) == (HEAD, None)
    payload = json.loads(base64.b64decode(json.loads(envelope)["payload"]))
    assert payload == {"format": "errata.audit-head/1", "head": {
        "ledger": HEAD.ledger, "project": "finsight", "seq": 41, "hash": HEAD.hash, "at": HEAD.at,
    }}  # fmt: skip
    assert sign_head(HEAD, key) == envelope


@pytest.mark.parametrize(
    "payload",
    [
        {"format": "errata.audit-head/2", "head": HEAD},
        {"format": "errata.audit-head/1", "head": HEAD, "more": 1},
        {"format": "errata.audit-head/1"},
        {"format": "errata.audit-head/1", "head": {"seq": 1}},
        {"format": "errata.audit-head/1", "head": {"ledger": "l", "project": "p", "seq": "1", "hash": "h", "at": "a"}},
        [],
    ],
    ids=str,
)
def test_a_signed_file_that_is_not_a_head_is_refused(key: SigningKey, payload: object):
    """The signature alone makes no head of it."""
    with pytest.raises(SignatureInvalid, match=r"errata\.audit-head"):
        open_head(sign_envelope(canonical_bytes(payload), HEAD_TYPE, key), [key.public])


def test_a_head_is_kept_once(tmp_path: Path, key: SigningKey):
    """The same head again is found there, byte for byte; no draft is left."""
    envelope = sign_head(HEAD, key)
    path, already = store_head(tmp_path, HEAD, envelope)
    assert not already
    assert store_head(tmp_path, HEAD, envelope) == (path, True)
    assert [file.name for file in tmp_path.iterdir()] == ["errata-head-0123456789abcdef-000000000041.json"]
    assert path.read_bytes() == envelope
    assert find_newest_seq(tmp_path, HEAD.ledger) == 41
    assert find_newest_seq(tmp_path, "other") == 0


def test_another_head_of_the_same_entry_is_an_alarm_and_replaces_nothing(tmp_path: Path, key: SigningKey):
    """The log was rebuilt: the export itself finds out."""
    path, _ = store_head(tmp_path, HEAD, sign_head(HEAD, key))
    before = path.read_bytes()
    forged = replace(HEAD, hash="cd" * 32)
    with pytest.raises(AuditBroken, match="rebuilt or forked"):
        store_head(tmp_path, forged, sign_head(forged, key))
    assert path.read_bytes() == before


def test_a_head_that_an_older_key_signed_is_the_same_head(tmp_path: Path, key: SigningKey):
    """Keys change; what was exported stays."""
    path, _ = store_head(tmp_path, HEAD, sign_head(HEAD, key))
    generate_key_pair(tmp_path / "new")
    new = load_signing_key("new", tmp_path)
    assert store_head(tmp_path, HEAD, sign_head(HEAD, new)) == (path, True)
    (found,) = read_heads(tmp_path, [new.public, key.public])
    assert found.keyid == key.public.keyid


def test_a_link_in_its_place_is_not_followed(tmp_path: Path, key: SigningKey):
    """Nobody redirects the export by a link of that name."""
    target = tmp_path / "elsewhere"
    (tmp_path / "errata-head-0123456789abcdef-000000000041.json").symlink_to(target)
    with pytest.raises((AuditBroken, StorageRefused, SignatureInvalid)):
        store_head(tmp_path, HEAD, sign_head(HEAD, key))
    assert not target.exists()


def test_a_place_that_is_not_there_is_not_made(tmp_path: Path, key: SigningKey):
    """A store that is not mounted must not become a directory beside the ledger."""
    with pytest.raises(StorageRefused, match="No such file"):
        store_head(tmp_path / "worm", HEAD, sign_head(HEAD, key))
    assert list(tmp_path.iterdir()) == []


def test_where_links_are_not_possible_files_are_created_directly(
    tmp_path: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch
):
    """Some write-once stores have no hard links; a file is still never replaced."""

    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    path, already = store_head(tmp_path, HEAD, sign_head(HEAD, key))
    assert not already
    assert not write_new_file(path, b"other")
    assert path.read_bytes() == sign_head(HEAD, key)


def test_every_head_of_a_directory_is_read_and_one_bad_file_is_named(tmp_path: Path, key: SigningKey):
    """A head that someone touched is not skipped."""
    for seq in (3, 1, 2):
        head = replace(HEAD, seq=seq)
        store_head(tmp_path, head, sign_head(head, key))
    (tmp_path / "notes.txt").write_text("not a head")
    assert [one.head.seq for one in read_heads(tmp_path, [key.public])] == [1, 2, 3]
    bad = tmp_path / "errata-head-0123456789abcdef-000000000002.json"
    bad.write_bytes(bad.read_bytes().replace(b'"keyid":"', b'"keyid":"0'))
    with pytest.raises(SignatureInvalid, match=bad.name):
        read_heads(tmp_path, [key.public])
    bad.write_bytes(b"x" * 30_000)
    with pytest.raises(SignatureInvalid, match="at most"):
        read_heads(tmp_path, None)
    with pytest.raises(UsageError):
        read_heads(tmp_path / "nowhere", None)
