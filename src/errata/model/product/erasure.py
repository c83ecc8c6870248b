"""The erasure list: keyed hashes of data subjects' ids, so that reading the list reveals no id. Pure."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from errata.model.file_keys import Key
from errata.model.file_values import KeyText, TableName

SUBJECT = "subject"
"""Column of hashes in the list."""
KEY_CHECK = "errata.key-check"
"""Table property that identifies the key of the list: with another key, lookups would silently find no one."""
SUBJECT_TYPES = ("string", "int", "long")
"""Column types whose values have exactly one text form."""


@dataclass(frozen=True, slots=True)
class ErasureSettings:
    """The list of erased subjects, for products that name subject columns."""

    table: Annotated[TableName, Key("Iceberg table of keyed hashes; errata erase add creates and fills it.")]
    key: Annotated[
        KeyText,
        Key("Key of the hashes: a file that errata audit keygen made, or the key itself from the environment."),
    ] = field(repr=False)
    """A path relative to the project, or the private key itself; ``${NAME}`` while that variable is not set."""


def build_hasher(key: bytes) -> Callable[[str], str]:
    """Function that hashes a subject for the list; without the key, ids cannot be guessed and checked against it.

    Returns a closure, because Spark ships closures to its workers whole: Errata need not be installed there.
    """

    def hashed(subject: str) -> str:
        return hmac.new(key, b"subject\x00" + subject.encode(), hashlib.sha256).hexdigest()

    return hashed


def compute_key_check(key: bytes) -> str:
    """Value that identifies the key of a list; never equal to the hash of a subject."""
    return hmac.new(key, b"check", hashlib.sha256).hexdigest()
