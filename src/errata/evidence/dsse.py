"""Signed envelopes (DSSE): exact bytes and their type under one signature. Pure except for the keys it is given.

The type is signed too, so a signed head can never pass for a signed statement about a run. A verifier uses exactly the
bytes that were verified: :func:`open_envelope` returns them, and nothing re-serialises them.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from errata.canonical import canonical_bytes
from errata.errors import SignatureInvalid
from errata.evidence.keys import PublicKey, SigningKey

if TYPE_CHECKING:
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]  # it has no __all__

MAX_BYTES = 64 * 1024 * 1024
_ENVELOPE_KEYS = {"payload", "payloadType", "signatures"}
_SIGNATURE_KEYS = {"keyid", "sig"}


@dataclass(frozen=True, slots=True)
class OpenedEnvelope:
    """Content of an envelope; ``keyid`` is the key whose signature is valid, None if none was checked."""

    payload: bytes
    payload_type: str
    keyid: str | None


def sign_envelope(payload: bytes, payload_type: str, key: SigningKey) -> bytes:
    """An envelope around ``payload`` as JSON bytes, signed by ``key``."""
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import CryptoSigner  # type: ignore[attr-defined]

    envelope = Envelope(payload, payload_type, {})
    envelope.sign(CryptoSigner(key.private, _to_sslib_key(key.public)))
    return canonical_bytes(envelope.to_dict())


def open_envelope(envelope: bytes, payload_type: str, keys: Sequence[PublicKey]) -> OpenedEnvelope:
    """The payload, if signed as this type by one of these keys; otherwise raise :class:`SignatureInvalid`."""
    from securesystemslib.exceptions import VerificationError

    read = _parse_envelope(envelope)
    _check_type(read, payload_type)
    if not keys:
        raise _invalid_error("expected a public key to check it with, found none")
    try:
        held = read.verify([_to_sslib_key(key) for key in keys], 1)
    except (VerificationError, ValueError):
        names = ", ".join(sorted(read.signatures)) or "nobody"
        expected = " or ".join(key.keyid for key in keys)
        raise _invalid_error(f"expected a signature by {expected} over these bytes, found one by {names}") from None
    return OpenedEnvelope(read.payload, read.payload_type, next(iter(held)))


def open_unverified(envelope: bytes, payload_type: str) -> OpenedEnvelope:
    """The payload without checking the signature; for readers without a key, who must say that it is unchecked."""
    read = _parse_envelope(envelope)
    _check_type(read, payload_type)
    return OpenedEnvelope(read.payload, read.payload_type, None)


def _parse_envelope(content: bytes) -> Envelope:
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import FormatError

    if len(content) > MAX_BYTES:
        raise _invalid_error(f"expected at most {MAX_BYTES} bytes, found {len(content)}")
    try:
        data = json.loads(content, object_pairs_hook=_reject_duplicates)
        if not isinstance(data, dict) or set(data) != _ENVELOPE_KEYS or not isinstance(data["payloadType"], str):
            raise _invalid_error(f"expected an envelope with {', '.join(sorted(_ENVELOPE_KEYS))}")
        envelope = Envelope.from_dict(copy.deepcopy(data))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, FormatError):
        raise _invalid_error("expected a DSSE envelope as JSON, found something else") from None
    # base64 has several spellings of the same bytes, and signatures may carry unchecked fields: accept one form only
    if envelope.to_dict() != data or any(set(signature) != _SIGNATURE_KEYS for signature in data["signatures"]):
        raise _invalid_error("expected the one form in which envelopes are written, found another")
    return envelope


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _check_type(envelope: Envelope, payload_type: str) -> None:
    if envelope.payload_type != payload_type:
        raise _invalid_error(f"expected the type {payload_type}, found {envelope.payload_type[:200]}")


def _to_sslib_key(key: PublicKey) -> SSlibKey:
    from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]

    return SSlibKey(key.keyid, "ed25519", "ed25519", {"public": key.raw.hex()})


def _invalid_error(why: str) -> SignatureInvalid:
    return SignatureInvalid(f"the envelope was refused; {why}", state="do not trust anything in it")
