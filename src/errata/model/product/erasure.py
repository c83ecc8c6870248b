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


ERASED = "erased subject"
"""Reason of rows that are left out because their subject is on the list."""
HIDDEN_BELOW = 5
"""Smaller counts of erased rows are not shown: the difference of two such counts could point to one person."""


@dataclass(frozen=True, slots=True)
class ErasureSettings:
    """The list of erased subjects, for products that name subject columns."""

    table: Annotated[TableName, Key("Iceberg table of keyed hashes; errata erase add creates and fills it.")]
    key: Annotated[
        KeyText,
        Key("Key of the hashes: a file that errata audit keygen made, or the key itself from the environment."),
    ] = field(repr=False)
    """A path relative to the project, or the private key itself; ``${NAME}`` while that variable is not set."""


@dataclass(frozen=True, slots=True)
class ErasurePin:
    """The list as a plan seals it: an attempt reads this list, at this snapshot or a later one.

    In the manifest that an attempt or a measurement works with, ``snapshot_id`` is the snapshot that it reads.
    """

    table: str
    table_uuid: str
    key_id: str  # identifies the key of the hashes
    snapshot_id: str | None  # None: nobody was on the list
    sequence: int  # of the snapshot; a list that goes back to a lower one has lost subjects
    columns: tuple[str, ...] = ()  # columns of the target that identify subjects


def find_list_problem(planned: ErasurePin, now: ErasurePin) -> str | None:
    """Why the list that is there cannot take the place of the planned one; None if it can."""
    if planned.table_uuid != now.table_uuid:
        return "it was dropped and created again since the plan"
    if planned.key_id != now.key_id:
        return "it is made with another key than when the run was planned"
    if now.sequence < planned.sequence:
        return "it was set back to an earlier state than the planned one, so that subjects are missing"
    return None


def is_hidden(count: int) -> bool:
    """Whether a number of erased rows may be shown only roughly outside the ledger."""
    return 0 < count < HIDDEN_BELOW


def format_erased_count(count: int) -> str:
    """A number of erased rows, as it may be shown outside the ledger.

    >>> format_erased_count(0), format_erased_count(4), format_erased_count(1200)
    ('0', '<5', '1,200')
    """
    return f"<{HIDDEN_BELOW}" if is_hidden(count) else f"{count:,}"


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
