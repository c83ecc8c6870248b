"""Signed envelopes: what they prove, and every change of one that must be seen."""

import base64
import json

import pytest

from errata.errors import SignatureInvalid
from errata.evidence.dsse import open_envelope, open_unverified, sign_envelope
from errata.evidence.keys import PublicKey, SigningKey, generate_key_pair, load_signing_key

TYPE = "application/vnd.errata.test+json"
PAYLOAD = b'{"b": 1, "a":  [2]}\n'


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    place = tmp_path_factory.mktemp("keys")
    generate_key_pair(place / "signing")
    return load_signing_key("signing", place)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> PublicKey:
    return generate_key_pair(tmp_path_factory.mktemp("keys") / "other")


def test_the_payload_comes_back_byte_for_byte(key: SigningKey):
    """Nothing is parsed and written again, so spaces, order and line ends stay."""
    envelope = sign_envelope(PAYLOAD, TYPE, key)
    found = open_envelope(envelope, TYPE, [key.public])
    assert (found.payload, found.payload_type, found.keyid) == (PAYLOAD, TYPE, key.public.keyid)
    assert open_unverified(envelope, TYPE).payload == PAYLOAD
    assert open_unverified(envelope, TYPE).keyid is None


def test_it_is_the_published_format(key: SigningKey):
    """Any DSSE verifier can check it: the signature is over the type and the payload with their lengths."""
    data = json.loads(sign_envelope(PAYLOAD, TYPE, key))
    told = b"DSSEv1 %d %b %d %b" % (len(TYPE), TYPE.encode(), len(PAYLOAD), PAYLOAD)
    key.private.public_key().verify(base64.b64decode(data["signatures"][0]["sig"]), told)
    assert base64.b64decode(data["payload"]) == PAYLOAD


def test_every_change_of_every_byte_is_refused(key: SigningKey):
    """No byte of an envelope can be flipped, dropped or doubled without being seen."""
    envelope = sign_envelope(PAYLOAD, TYPE, key)
    for place in range(len(envelope)):
        flipped = envelope[:place] + bytes([envelope[place] ^ 1]) + envelope[place + 1 :]
        dropped = envelope[:place] + envelope[place + 1 :]
        doubled = envelope[:place] + envelope[place : place + 1] + envelope[place:]
        for changed in (flipped, dropped, doubled):
            if changed == envelope:
                continue
            with pytest.raises(SignatureInvalid):
                open_envelope(changed, TYPE, [key.public])


def test_the_type_is_checked_inside_the_signature(key: SigningKey):
    """A head can not be relabelled as a statement about a run, nor be taken for one."""
    envelope = sign_envelope(PAYLOAD, TYPE, key)
    with pytest.raises(SignatureInvalid, match="expected the type"):
        open_envelope(envelope, "application/vnd.in-toto+json", [key.public])
    relabelled = json.dumps(json.loads(envelope) | {"payloadType": "application/vnd.in-toto+json"}).encode()
    with pytest.raises(SignatureInvalid, match="expected a signature"):
        open_envelope(relabelled, "application/vnd.in-toto+json", [key.public])


def test_another_key_does_not_open_it(key: SigningKey, other: PublicKey):
    """Also when it claims the first one's id."""
    envelope = sign_envelope(PAYLOAD, TYPE, key)
    with pytest.raises(SignatureInvalid, match=other.keyid):
        open_envelope(envelope, TYPE, [other])
    with pytest.raises(SignatureInvalid):
        open_envelope(envelope, TYPE, [PublicKey(key.public.keyid, other.pem, other.raw)])
    assert open_envelope(envelope, TYPE, [other, key.public]).keyid == key.public.keyid


def test_without_a_key_nothing_counts_as_checked(key: SigningKey):
    """An empty list of keys never verifies."""
    with pytest.raises(SignatureInvalid, match="found none"):
        open_envelope(sign_envelope(PAYLOAD, TYPE, key), TYPE, [])


@pytest.mark.parametrize(
    "change",
    [
        {"signatures": []},
        {"signatures": None},
        {"signatures": [{"keyid": "x"}]},
        {"signatures": "x"},
        {"payload": None},
        {"payload": "***"},
        {"payloadType": 1},
        {"more": 1},
    ],
    ids=str,
)
def test_what_is_not_an_envelope_is_refused_as_such(key: SigningKey, change: dict[str, object]):
    """Whatever stands in the file, the answer is a refusal and never a trace."""
    data = json.loads(sign_envelope(PAYLOAD, TYPE, key)) | change
    with pytest.raises(SignatureInvalid):
        open_envelope(json.dumps(data).encode(), TYPE, [key.public])


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"[" * 100_000, b"null", b'"x"'], ids=repr)
def test_other_files_are_refused(key: SigningKey, content: bytes):
    """Files that were never envelopes end the same way."""
    with pytest.raises(SignatureInvalid):
        open_envelope(content, TYPE, [key.public])


def test_a_key_that_stands_twice_is_refused(key: SigningKey):
    """Two parsers could otherwise read two different payloads."""
    envelope = sign_envelope(PAYLOAD, TYPE, key)
    twice = b'{"payload":"eA==",' + envelope[1:]
    with pytest.raises(SignatureInvalid):
        open_envelope(twice, TYPE, [key.public])
