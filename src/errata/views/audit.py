"""The audit, what is kept beside it, and what cleanup removed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class HeadsView:
    """What the chain was held against: signed heads that were kept outside the ledger."""

    checked: int
    newest: int | None  # the last entry that one of them covers
    behind: int  # entries after it
    signatures: str  # checked | not checked
    signed_by: tuple[str, ...]
    lag_seconds: int  # how long the oldest publication without a head has been standing
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
class HeadView:
    """A signed head; ``envelope`` is what a file of it holds."""

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
    """A person who was forgotten, and what goes on naming them."""

    pseudonym: str
    entries: int  # audit entries under the pseudonym, which stay and verify
    already: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListedView:
    """Subjects that are on the list of erased ones now, and who looks at it."""

    table: str
    added: int
    already: int  # of those asked for
    watermark: str
    products: Mapping[str, tuple[str, ...]]  # columns of ids, by product
    judge_again: tuple[str, ...]  # runs with something left to publish, which must be judged again before


@dataclass(frozen=True, slots=True)
class KeyView:
    """A new key pair."""

    key_id: str
    private: str
    public: str


@dataclass(frozen=True, slots=True)
class CleanupView:
    """What was, or would be, removed."""

    removed: tuple[Mapping[str, str], ...]
    kept: tuple[Mapping[str, str], ...] = field(default_factory=tuple)
    dry_run: bool = False
