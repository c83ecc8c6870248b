"""The list of erased subjects: keyed hashes of their ids, so that whoever reads it learns nobody's. Pure."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field

SUBJECT = "subject"
"""The list's column of hashes."""
KEY_CHECK = "errata.key-check"
"""The list's property that only the key it was made with leads to: another key would find nobody, in silence."""
SUBJECT_TYPES = ("string", "int", "long")
"""Column types whose values have one text."""


@dataclass(frozen=True, slots=True)
class ErasureSettings:
    """``erasure`` of errata.yaml."""

    table: str  # catalog.namespace.table
    key: str = field(repr=False)
    """A path from the project, or the private key itself; ``${NAME}`` while that variable is not set."""


def build_hasher(key: bytes) -> Callable[[str], str]:
    """Gives what stands for a subject on the list; without the key nobody can try names against it.

    A closure, because Spark carries those to its workers whole: they need not have Errata.
    """

    def hashed(subject: str) -> str:
        return hmac.new(key, b"subject\x00" + subject.encode(), hashlib.sha256).hexdigest()

    return hashed


def compute_key_check(key: bytes) -> str:
    """What says that a list was made with this key; the hash of no subject."""
    return hmac.new(key, b"check", hashlib.sha256).hexdigest()
