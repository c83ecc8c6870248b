"""Every error Errata raises, as one tree. Pure.

::

    ErrataError                         exit  code
    ├── UsageError                      2     usage
    │   └── ProjectFileError            2     project-file
    ├── SetupError                      1     setup
    ├── Refused                         3     refused
    │   ├── PlanRefused                 3     plan-refused
    │   ├── StateRefused                3     state
    │   ├── ApprovalRefused             3     approval
    │   ├── PermissionRefused           3     permission
    │   ├── ManifestTampered            3     manifest-tampered
    │   ├── ScopeLocked                 3     scope-locked
    │   ├── PublishHeld                 3     publish-held
    │   ├── Frozen                      3     frozen
    │   └── NotFound                    3     not-found
    ├── ValidationRejected              4     validation-rejected
    ├── PublishConflict                 5     publish-conflict
    │   └── Rebased                     5     rebased
    ├── ChunkError                      1     chunk-failed
    │   ├── TransformFailed             1     transform-failed
    │   ├── SourceChanged               1     source-changed
    │   ├── SourceCorrupt               1     source-corrupt
    │   ├── ForeignPartition            1     foreign-partition
    │   └── OutputContract              1     output-contract
    ├── AttemptLost                     1     attempt-lost       (retryable)
    ├── RunFailed                       1     run-failed
    ├── RunExpired                      3     run-expired
    ├── AuditBroken                     1     audit-broken
    ├── KeyRefused                      1     key
    ├── SignatureInvalid                1     signature
    └── EngineError                     1     engine             (retryable)

The wording is always: what was refused, what was expected, what was found (``message``), the state the data is in
(``state``), and the next command (``hint``). ``fields`` are for programs; they are part of the ``--json`` error.
Errors cross process borders (Spark, Airflow), so all of them pickle.
"""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "ApprovalRefused",
    "AttemptLost",
    "AuditBroken",
    "ChunkError",
    "CostCapReached",
    "EngineError",
    "ErrataError",
    "ForeignPartition",
    "Frozen",
    "KeyRefused",
    "LedgerUnavailable",
    "ManifestTampered",
    "Nondeterministic",
    "NotFound",
    "OutOfMemory",
    "OutputContract",
    "PermissionRefused",
    "PlanRefused",
    "ProjectFileError",
    "PublishConflict",
    "PublishHeld",
    "Rebased",
    "Refused",
    "RunExpired",
    "RunFailed",
    "ScopeLocked",
    "SetupError",
    "SignatureInvalid",
    "SourceChanged",
    "SourceCorrupt",
    "StateRefused",
    "StorageRefused",
    "TransformFailed",
    "UsageError",
    "ValidationRejected",
    "WorkerDied",
]


class ErrataError(Exception):
    """Base of the tree; a message for people and fields for programs."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None, state: str | None = None, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.state = state
        self.fields = fields

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.message, self.hint, self.state, self.fields))


def _rebuild(
    kind: type[ErrataError], message: str, hint: str | None, state: str | None, fields: dict[str, Any]
) -> ErrataError:
    return kind(message, hint=hint, state=state, **fields)


class UsageError(ErrataError):
    """The command line or the call does not make sense."""

    code = "usage"
    exit_code = 2


class ProjectFileError(UsageError):
    """A project or product file says something Errata does not understand."""

    code = "project-file"


class SetupError(ErrataError):
    """Java, jars, an extra or a server that this command needs is not there."""

    code = "setup"


class Refused(ErrataError):
    """A rule says no."""

    code = "refused"
    exit_code = 3


class PlanRefused(Refused):
    """A guardrail refused the plan; ``fields["verdicts"]`` has all of them."""

    code = "plan-refused"


class StateRefused(Refused):
    """The run is not in a state that allows this move."""

    code = "state"


class ApprovalRefused(Refused):
    """Approvals or the release are missing, too old, not by another person, or over another digest."""

    code = "approval"


class PermissionRefused(Refused):
    """This person's roles do not include this command."""

    code = "permission"


class ManifestTampered(Refused):
    """The stored manifest no longer has the digest it was sealed with."""

    code = "manifest-tampered"


class ScopeLocked(Refused):
    """Another publication or rollback holds these partitions."""

    code = "scope-locked"


class PublishHeld(Refused):
    """The next group of partitions may not go yet."""

    code = "publish-held"


class Frozen(Refused):
    """A correction holds live jobs off these partitions."""

    code = "frozen"


class NotFound(Refused):
    """No such run, product, table or partition."""

    code = "not-found"


class RunExpired(Refused):
    """Something the plan pinned is gone; the run cannot go on."""

    code = "run-expired"


class ValidationRejected(ErrataError):
    """The gate said no; ``fields["validation"]`` has every check."""

    code = "validation-rejected"
    exit_code = 4


class PublishConflict(ErrataError):
    """Someone else wrote the partitions after they were planned or published."""

    code = "publish-conflict"
    exit_code = 5


class Rebased(PublishConflict):
    """Someone else wrote partitions, live wins, and they wait to be computed again."""

    code = "rebased"


class ChunkError(ErrataError):
    """A chunk cannot be computed; trying again will not help by itself."""

    code = "chunk-failed"


class TransformFailed(ChunkError):
    """The user's transform raised, or Spark failed while computing it."""

    code = "transform-failed"


class SourceChanged(ChunkError):
    """A pinned source file is missing or is not the one that was planned."""

    code = "source-changed"


class SourceCorrupt(ChunkError):
    """A source file is the one that was planned and cannot be read: cut off, overwritten, or not Parquet."""

    code = "source-corrupt"


class ForeignPartition(ChunkError):
    """The transform produced rows for partitions that the chunk does not own."""

    code = "foreign-partition"


class OutputContract(ChunkError):
    """The transform's columns do not match the target table."""

    code = "output-contract"


class AttemptLost(ErrataError):
    """The lease of this attempt was taken over; its result is not wanted."""

    code = "attempt-lost"
    retryable = True


class RunFailed(ErrataError):
    """One or more chunks failed; the others are staged."""

    code = "run-failed"


class AuditBroken(ErrataError):
    """The audit chain does not verify."""

    code = "audit-broken"


class KeyRefused(ErrataError):
    """A key is missing, is not one, is an example, or can be read by everyone."""

    code = "key"


class SignatureInvalid(ErrataError):
    """An envelope is not signed as it claims, or not by whom it should be."""

    code = "signature"


class EngineError(ErrataError):
    """Spark, Iceberg or the catalog failed in a way that may pass."""

    code = "engine"
    retryable = True


class LedgerUnavailable(EngineError):
    """The ledger's database does not answer, is full or may not be written."""

    code = "ledger"


class StorageRefused(EngineError):
    """A disk is full or a place may not be written; nothing is wrong with the chunk."""

    code = "storage"


class OutOfMemory(EngineError):
    """Computing a chunk took more memory than there is; a smaller one may do."""

    code = "memory"


class WorkerDied(EngineError):
    """The JVM of this worker is gone."""

    code = "worker-died"


class Nondeterministic(Refused):
    """The same chunk computed twice gave different rows."""

    code = "nondeterministic"


class CostCapReached(Refused):
    """The run has cost what its plan allows."""

    code = "cost-cap"
