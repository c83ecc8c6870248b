"""Ed25519 key pairs that sign audit heads and evidence. Reads and writes the given key files.

A private key is PKCS#8 PEM, a public key SubjectPublicKeyInfo PEM, as ``openssl`` writes them. The key id is the
SHA-256 of the public key's DER, so that ``openssl pkey -pubin -in FILE -outform DER | sha256sum`` prints it. There is
no default key: a key that is missing, empty, a published example or readable by everyone is refused.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from errata.canonical import sha256
from errata.errors import KeyRefused

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_SETTING = "evidence.key"
_WRAPPING_PURPOSE = b"errata: what wraps the keys of people\x00"
_HASHING_PURPOSE = b"errata: what hashes the ids of erased subjects\x00"
_HINT = "errata audit keygen -o FILE makes a key pair; keep the private one out of the project and of its repository"
_PEM = "-----BEGIN "
_UNSET = re.compile(r"\$\{([^}]*)\}")
_MAX_BYTES = 10_000
_OTHERS, _GROUP_WRITES = 0o007, 0o020
_MIN_DISTINCT_BYTES = 8
"""A random 32-byte seed has about 30 distinct bytes; a seed with fewer than this was made up by hand."""
_EXAMPLE_KEYS = frozenset(
    {
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",  # RFC 8032, 7.1: the test vectors
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "278117fc144c72340f67d0f2316e8386ceffbf2b2428c9c51fef7c597f1d426e",
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1",  # RFC 8410, 10.1: the example certificate
    }
)
"""Public keys whose private halves are published."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key; ``pem`` is what a verifier is given."""

    keyid: str
    pem: bytes
    raw: bytes


@dataclass(frozen=True, slots=True, repr=False)
class SigningKey:
    """A private key in memory; it is never shown."""

    private: Ed25519PrivateKey
    public: PublicKey

    def __repr__(self) -> str:
        return f"SigningKey({self.public.keyid})"


def public_path(private: Path) -> Path:
    """Path of the public key next to a private key."""
    return private.with_name(f"{private.name}.pub")


def generate_key_pair(path: Path) -> PublicKey:
    """Write a new private key, readable only by its owner, and its public key next to it; never replaces a file."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = Ed25519PrivateKey.generate()
    public = _build_public_key(private.public_key())
    beside = public_path(path)
    _check_absent(beside)
    _create_file(path, private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600)
    _create_file(beside, public.pem, 0o644)
    return public


def load_signing_key(setting: str, root: Path, name: str = _SETTING) -> SigningKey:
    """The private key in the setting ``name``: a path relative to ``root``, or PEM text from the environment."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    pem, place = _read_private_pem(setting, root, name)
    try:
        private = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError):
        raise _refused_error(f"expected an Ed25519 private key as PEM without a password, {place} has none") from None
    if not isinstance(private, Ed25519PrivateKey):
        raise _refused_error(f"expected an Ed25519 private key, found another kind in {place}")
    public = _build_public_key(private.public_key())
    if public.raw.hex() in _EXAMPLE_KEYS or len(set(private.private_bytes_raw())) < _MIN_DISTINCT_BYTES:
        raise _refused_error(f"expected a key of your own, found an example key in {place}, which everyone has")
    return SigningKey(private, public)


def derive_wrapping_key(key: SigningKey) -> bytes:
    """64 bytes that only the holder of the private key can derive."""
    return _derive_key(_WRAPPING_PURPOSE, key)


def derive_hashing_key(key: SigningKey) -> bytes:
    """Like :func:`derive_wrapping_key` for another purpose; neither key reveals the other."""
    return _derive_key(_HASHING_PURPOSE, key)


def _derive_key(purpose: bytes, key: SigningKey) -> bytes:
    return hashlib.sha512(purpose + key.private.private_bytes_raw()).digest()


def load_public_key(path: Path) -> PublicKey:
    """The public key in a file."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    pem = _read_key_file(path)
    if b"PRIVATE KEY" in pem:
        raise _refused_error(f"expected a public key, found a private one in {path}; it does not belong to a verifier")
    try:
        public = load_pem_public_key(pem)
    except ValueError:
        raise _refused_error(f"expected an Ed25519 public key as PEM, {path} has none") from None
    if not isinstance(public, Ed25519PublicKey):
        raise _refused_error(f"expected an Ed25519 public key, found another kind in {path}")
    return _build_public_key(public)


def _build_public_key(key: Ed25519PublicKey) -> PublicKey:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return PublicKey(sha256(der), pem, key.public_bytes_raw())


def _read_private_pem(setting: str, root: Path, name: str) -> tuple[bytes, str]:
    value = setting.strip()
    if not value:
        raise _refused_error(f"expected a private key at {name}, found nothing")
    if unset := _UNSET.fullmatch(value):
        raise KeyRefused(
            f"the key was refused; {name} needs the environment variable {unset[1]}, which is not set here",
            state="nothing was signed or changed",
            hint=f"set {unset[1]} to the file of the private key, or to its text; errata audit keygen makes one",
        )
    if value.startswith(_PEM):
        # variables of many CI systems hold a single line
        return value.replace("\\n", "\n").encode() + b"\n", name
    path = root / Path(value).expanduser()
    content = _read_key_file(path)
    _check_permissions(path)
    return content, str(path)


def _read_key_file(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_BYTES)
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or "no file can have this name"
        raise _refused_error(f"expected a key file at {path}, found: {found}") from None
    if not content.strip():
        raise _refused_error(f"expected a key in {path}, found an empty file")
    return content


def _check_permissions(path: Path) -> None:
    mode = path.stat().st_mode & 0o777
    if mode & (_OTHERS | _GROUP_WRITES):
        raise KeyRefused(
            f"the key was refused; expected a file that nobody else can read or change, {path} has mode {mode:04o}",
            state="nothing was signed or changed",
            hint=f"chmod 600 {path}; make a new key if others may have read it",
        )


def _check_absent(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise _file_exists_error(path)


def _create_file(path: Path, content: bytes, mode: int) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    except FileExistsError:
        raise _file_exists_error(path) from None
    except OSError as error:
        raise KeyRefused(
            f"the key was not written; expected a place for it, {path}: {error.strerror}", state="nothing was written"
        ) from None
    with os.fdopen(handle, "wb") as stream:
        os.fchmod(handle, mode)
        stream.write(content)
        stream.flush()
        os.fsync(handle)


def _file_exists_error(path: Path) -> KeyRefused:
    return KeyRefused(
        f"the key was not written; expected no file at {path}, found one, and a key is never replaced",
        state="nothing was written",
        hint="choose another file",
    )


def _refused_error(why: str) -> KeyRefused:
    return KeyRefused(f"the key was refused; {why}", state="nothing was signed or changed", hint=_HINT)
