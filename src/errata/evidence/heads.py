"""Signed heads of the audit chain, stored where writers of the ledger cannot write.

A hash chain alone cannot show that its tail was cut or that all of it was rewritten. Each head is a small file that is
created once and never replaced. If :func:`store_head` finds a different head for the same entry, the log was rebuilt.
Touches: the directory or file it is given.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from errata.canonical import canonical_bytes
from errata.errors import AuditBroken, SignatureInvalid, StorageRefused, UsageError
from errata.evidence.dsse import OpenedEnvelope, open_envelope, open_unverified, sign_envelope
from errata.evidence.keys import PublicKey, SigningKey
from errata.model.audit import Head

HEAD_TYPE = "application/vnd.errata.audit-head+json"
_FORMAT = "errata.audit-head/1"
_PREFIX, _ENDING = "errata-head-", ".json"
_MAX_BYTES = 20_000
_LINK_UNSUPPORTED = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}


@dataclass(frozen=True, slots=True)
class HeadFile:
    """A head read from a file; ``keyid`` is the key whose signature is valid, None if none was checked."""

    head: Head
    file: str
    keyid: str | None


def sign_head(head: Head, key: SigningKey) -> bytes:
    """Content of a head file; the same head and key always give the same bytes."""
    payload = canonical_bytes({"format": _FORMAT, "head": head})
    return sign_envelope(payload, HEAD_TYPE, key)


def open_head(envelope: bytes, keys: Sequence[PublicKey] | None) -> tuple[Head, str | None]:
    """The head in an envelope, and the id of the signing key; with ``keys`` None the signature is not checked."""
    found: OpenedEnvelope = (
        open_unverified(envelope, HEAD_TYPE) if keys is None else open_envelope(envelope, HEAD_TYPE, keys)
    )
    try:
        data = json.loads(found.payload)
        head = Head(**data["head"])
        is_head = data["format"] == _FORMAT and canonical_bytes({"format": _FORMAT, "head": head}) == found.payload
    except (ValueError, TypeError, KeyError):
        is_head = False
    if (
        not is_head
        or type(head.seq) is not int
        or not all(isinstance(text, str) for text in (head.ledger, head.project, head.hash, head.at))
    ):
        raise SignatureInvalid(f"a head was refused; expected {_FORMAT}, found something else")
    return head, found.keyid


def head_file_name(head: Head) -> str:
    """One name per ledger and entry, so that a second head of the same entry collides with the first."""
    return f"{_PREFIX}{head.ledger}-{head.seq:012d}{_ENDING}"


def store_head(directory: Path, head: Head, envelope: bytes) -> tuple[Path, bool]:
    """Store a head in a directory; True if it exists already. A different head of the same entry raises."""
    path = directory / head_file_name(head)
    if write_new_file(path, envelope):
        return path, False
    before, _ = open_head(_read_file(path), None)
    if (before.ledger, before.seq, before.hash) != (head.ledger, head.seq, head.hash):
        raise AuditBroken(
            f"the head of entry {head.seq} was not exported; expected {before.hash}, which {path.name} has kept since"
            f" {before.at}, found {head.hash}: the log was rebuilt or forked",
            state="the stored head is unchanged",
            hint="errata audit verify; then find out who wrote to the ledger",
        )
    return path, True


def find_newest_seq(directory: Path, ledger: str) -> int:
    """The newest entry with a stored head of this ledger, judged by file names only; 0 when there is none."""
    start = f"{_PREFIX}{ledger}-"
    names = (path.name.removeprefix(start).removesuffix(_ENDING) for path in directory.glob(f"{start}*{_ENDING}"))
    return max((int(name) for name in names if name.isdecimal()), default=0)


def load_stored_head(directory: Path, ledger: str, seq: int) -> Head:
    """The stored head of this entry, without checking its signature."""
    return open_head(_read_file(directory / head_file_name(Head(ledger, "", seq, "", ""))), None)[0]


def write_new_file(path: Path, content: bytes) -> bool:
    """Create a file with its full content, or nothing; False when the file exists, which is left as it is."""
    # written under another name and linked, so that a crash never leaves half a head under the real name
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        _create_file(draft, content)
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _LINK_UNSUPPORTED:
                raise
            _create_file(path, content)  # no hard links here: exclusive creation still never replaces a file
        finally:
            draft.unlink(missing_ok=True)
        _sync_directory(path.parent)
    except FileExistsError:
        return False
    except OSError as error:
        raise StorageRefused(
            f"the head was not written to {path.parent}: {error.strerror}",
            state="the ledger is unchanged; the head is exported together with the next one",
            hint="errata audit head exports it when the place can be written again",
        ) from None
    return True


def read_heads(place: Path, keys: Sequence[PublicKey] | None) -> tuple[HeadFile, ...]:
    """Heads in a file, or in all head files of a directory, oldest first; raises when a file is not a head."""
    if not place.exists():
        raise UsageError(f"no head was read; expected a file or directory at {place}, found none")
    found = []
    for path in _list_files(place):
        try:
            head, keyid = open_head(_read_file(path), keys)
        except SignatureInvalid as error:
            raise SignatureInvalid(f"{path.name}: {error.message}", state=error.state, hint=error.hint) from None
        found.append(HeadFile(head, str(path), keyid))
    return tuple(sorted(found, key=lambda one: (one.head.seq, one.file)))


def _list_files(place: Path) -> Iterator[Path]:
    if place.is_dir():
        yield from sorted(place.glob(f"{_PREFIX}*{_ENDING}"))
    else:
        yield place


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise StorageRefused(f"the head {path} was not read: {error.strerror}") from None
    if len(content) > _MAX_BYTES:
        raise SignatureInvalid(f"{path.name} was refused; expected at most {_MAX_BYTES} bytes")
    return content


def _create_file(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(handle)


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
