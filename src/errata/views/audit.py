"""The audit log, signed heads, erasure and cleanup. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from errata.model.product.erasure_place import Place


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
class ErasureWhereView:
    """Every place that can still show some subjects, on a day."""

    subjects: int
    listed: int  # of the given subjects
    places: tuple[Place, ...]
    day: str


@dataclass(frozen=True, slots=True)
class ErasureProofView:
    """The record that nothing shows some subjects any more."""

    subjects: int
    day: str
    left: Mapping[str, str]  # places that stay, and why
    audit_seq: int


@dataclass(frozen=True, slots=True)
class RedactedFileView:
    """A recorded file that had rows of erased subjects."""

    file_id: str
    source: str
    name: str
    rows: str  # of the subjects; below 5 only that
    redacted_as: str | None  # the file in its place; None: nothing reads it, and it was removed


@dataclass(frozen=True, slots=True)
class RedactionView:
    """Recordings after the rows of erased subjects were taken out."""

    sources: tuple[str, ...]  # whose readers name subjects
    files: tuple[RedactedFileView, ...]
    unproven: Mapping[str, str]  # files that stay, and why nobody can tell whom they are about
    expired_runs: tuple[str, ...]


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


@dataclass(frozen=True, slots=True)
class ForeignCommitView:
    """A commit on main that neither a run nor a registered live job made."""

    snapshot_id: str
    at: str
    application: str
    operation: str
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GapView(ForeignCommitView):
    """A foreign commit that changed rows, and who answers for them since."""

    open: tuple[str, ...] = ()  # partitions that nobody answers for
    closed_by: Mapping[str, str] = field(default_factory=dict)  # partition → the run that attested or replaced it
    whole_table: bool = False  # nothing proves which partitions it touched; ``partitions`` are all of the table


@dataclass(frozen=True, slots=True)
class ProductGapsView:
    """Foreign commits on the table of a product since its first plan."""

    product: str
    table: str
    grain: str
    adopted_at: str | None  # None: nothing was planned yet, so the table is not governed
    complete: bool  # false: commits before the oldest snapshot that is left cannot be seen
    gaps: tuple[GapView, ...] = ()
    maintenance: tuple[ForeignCommitView, ...] = ()  # compaction: other files, the same rows
    next: str = ""


@dataclass(frozen=True, slots=True)
class GapsView:
    """Gaps by product; ``ok``: none is open."""

    ok: bool
    products: tuple[ProductGapsView, ...]
