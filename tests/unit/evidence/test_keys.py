"""Key pairs: how they are written, and which ones are refused."""

import hashlib
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_public_key,
)

from errata.errors import KeyRefused
from errata.evidence.keys import generate_key_pair, load_public_key, load_signing_key, public_path

RFC_8032_SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")


def _private_pem(seed: bytes) -> bytes:
    key = Ed25519PrivateKey.from_private_bytes(seed)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _file(path: Path, content: bytes, mode: int = 0o600) -> str:
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def test_a_new_pair_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path):
    """The private file has mode 0600 from its first byte on; the public one may be given away."""
    before = os.umask(0)
    try:
        public = generate_key_pair(tmp_path / "signing")
    finally:
        os.umask(before)
    assert (tmp_path / "signing").stat().st_mode & 0o777 == 0o600
    assert load_public_key(public_path(tmp_path / "signing")) == public
    assert load_signing_key("signing", tmp_path).public == public


def test_the_key_id_is_what_openssl_and_sha256sum_show(tmp_path: Path):
    """An auditor can tell which key it is without Errata."""
    public = generate_key_pair(tmp_path / "signing")
    der = load_pem_public_key(public.pem).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert public.keyid == hashlib.sha256(der).hexdigest()


@pytest.mark.parametrize("taken", ["signing", "signing.pub"])
def test_a_key_is_never_replaced(tmp_path: Path, taken: str):
    """What an old key signed could not be checked any more."""
    (tmp_path / taken).write_bytes(b"kept")
    with pytest.raises(KeyRefused, match="never replaced"):
        generate_key_pair(tmp_path / "signing")
    assert [path.name for path in tmp_path.iterdir()] == [taken]
    assert (tmp_path / taken).read_bytes() == b"kept"


def test_the_text_of_a_key_may_come_from_the_environment_also_as_one_line(tmp_path: Path):
    """Variables of many CI systems cannot hold line breaks."""
    public = generate_key_pair(tmp_path / "signing")
    pem = (tmp_path / "signing").read_text()
    assert load_signing_key(pem, tmp_path).public == public
    assert load_signing_key(pem.strip().replace("\n", "\\n"), tmp_path).public == public


@pytest.mark.parametrize(
    "setting, says",
    [
        ("", "found nothing"),
        ("  ", "found nothing"),
        ("${ERRATA_SIGNING_KEY}", "ERRATA_SIGNING_KEY, which is not set"),
        ("not-there", "No such file"),
        ("changeme", "No such file"),
        ("-----BEGIN PRIVATE KEY-----\nexample\n-----END PRIVATE KEY-----", "as PEM without a password"),
        ("nul\0name", "no file can have this name"),
    ],
)
def test_a_key_that_is_not_there_is_refused(tmp_path: Path, setting: str, says: str):
    """There is no default key to fall back to."""
    with pytest.raises(KeyRefused, match=says) as refused:
        load_signing_key(setting, tmp_path)
    assert refused.value.state == "nothing was signed or changed"
    assert "keygen" in (refused.value.hint or "")


@pytest.mark.parametrize(
    "content, says",
    [
        (b"", "empty file"),
        (b"\n \n", "empty file"),
        (b"changeme", "as PEM without a password"),
        (_private_pem(bytes(32)), "example key"),
        (_private_pem(b"\x01\x02" * 16), "example key"),
        (_private_pem(RFC_8032_SEED), "example key"),
        (
            Ed25519PrivateKey.generate().private_bytes(
                Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")
            ),
            "without a password",
        ),
        (
            generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
            "another kind",
        ),
    ],
    ids=["empty", "blank", "placeholder", "zeros", "typed", "printed in an RFC", "with a password", "RSA"],
)
def test_a_file_without_a_key_of_ones_own_is_refused(tmp_path: Path, content: bytes, says: str):
    """Empty, placeholder and example keys sign nothing."""
    with pytest.raises(KeyRefused, match=says):
        load_signing_key(_file(tmp_path / "signing", content), tmp_path)


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o602, 0o620, 0o666, 0o777])
def test_a_private_key_that_others_can_open_is_refused(tmp_path: Path, mode: int):
    """Whoever can read it can sign; whoever can change it can make others sign with theirs."""
    generate_key_pair(tmp_path / "signing")
    (tmp_path / "signing").chmod(mode)
    with pytest.raises(KeyRefused, match=f"mode {mode:04o}") as refused:
        load_signing_key("signing", tmp_path)
    assert "chmod 600" in (refused.value.hint or "")


def test_a_group_may_read_a_key_as_mounted_secrets_are(tmp_path: Path):
    """Secrets that a cluster mounts belong to root and are read by a group."""
    public = generate_key_pair(tmp_path / "signing")
    (tmp_path / "signing").chmod(0o440)
    assert load_signing_key("signing", tmp_path).public == public


def test_a_verifier_is_never_handed_a_private_key(tmp_path: Path):
    """Whoever passes the wrong file learns it before the key travels further."""
    generate_key_pair(tmp_path / "signing")
    with pytest.raises(KeyRefused, match="found a private one"):
        load_public_key(tmp_path / "signing")


def test_no_error_and_no_text_of_a_key_shows_its_secret(tmp_path: Path):
    """Errors are printed and logged."""
    secret = _private_pem(bytes(range(32)))
    body = secret.splitlines()[1].decode()
    (tmp_path / "signing").write_bytes(secret)
    (tmp_path / "signing").chmod(0o644)
    with pytest.raises(KeyRefused) as refused:
        load_signing_key("signing", tmp_path)
    assert body not in str(refused.value)
    with pytest.raises(KeyRefused) as refused:
        load_signing_key(secret.decode().replace("PRIVATE", "PRIVAT"), tmp_path)
    assert body not in str(refused.value)
    (tmp_path / "signing").chmod(0o600)
    assert body not in repr(load_signing_key("signing", tmp_path))
