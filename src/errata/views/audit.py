"""The audit log, signed heads, erasure and cleanup. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class HeadsView:
    """Result of comparing the chain with signed heads from outside the ledger."""

    checked: int
    newest: int | None  # the last entry that a head covers
    behind: int  # entries after it
    signatures: str  # checked | not checked
    signed_by: tuple[str, ...]
    lag_seconds: int  # age of the oldest publication without a head
    late: bool


@dataclass(frozen=True, slots=True)
class AuditView:
    """Result of verifying the audit chain.

    ``first_bad`` is the first entry that is wrong, missing or differs from the stored rows; None when all is well, or
    when a row is wrong that no entry mentions.
    """

    ok: bool
    entries: int
    first_bad: int | None
    reason: str | None
    head: str
    heads: HeadsView | None = None


@dataclass(frozen=True, slots=True)
class LedgerView:
    """A ledger that was created, or was there ``already``."""

    ledger: str  # its id
    place: str
    already: bool


@dataclass(frozen=True, slots=True)
class HeadView:
    """A signed head; ``envelope`` is the content of its file."""

    seq: int
    hash: str
    at: str
    ledger: str
    project: str
    key_id: str
    files: tuple[str, ...]
    already: bool
    envelope: str


@dataclass(frozen=True, slots=True)
class ErasedView:
    """An erased person, and where their name remains."""

    pseudonym: str
    entries: int  # audit entries under the pseudonym, which stay and verify
    already: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListedView:
    """Subjects added to the list of erased ones, and the products that use it."""

    table: str
    added: int
    already: int  # of the given subjects
    watermark: str
    products: Mapping[str, tuple[str, ...]]  # subject columns by product
    judge_again: tuple[str, ...]  # runs with unpublished partitions, which must be validated again first


@dataclass(frozen=True, slots=True)
class KeyView:
    """A new key pair."""

    key_id: str
    private: str
    public: str


@dataclass(frozen=True, slots=True)
class CleanupView:
    """Refs that were, or would be, removed."""

    removed: tuple[Mapping[str, str], ...]
    kept: tuple[Mapping[str, str], ...] = field(default_factory=tuple)
    dry_run: bool = False
