"""The tree of all errors that Errata raises. Pure.

::

    ErrataError                         exit  code
    ├── UsageError                      2     usage
    │   └── ProjectFileError            2     project-file
    ├── SetupError                      1     setup
    │   ├── MissingCredentials          1     credentials
    │   └── MissingDriver               1     driver
    ├── Refused                         3     refused
    │   ├── PlanRefused                 3     plan-refused
    │   ├── StateRefused                3     state
    │   │   └── ErasureListMoved        3     erasure-list-moved
    │   ├── ApprovalRefused             3     approval
    │   ├── PermissionRefused           3     permission
    │   ├── ManifestTampered            3     manifest-tampered
    │   ├── ScopeLocked                 3     scope-locked
    │   ├── InputWithdrawn              3     input-withdrawn
    │   ├── Drifted                     3     drifted
    │   ├── PublishHeld                 3     publish-held
    │   ├── ConsumerStopped             3     consumer-stopped
    │   ├── Frozen                      3     frozen
    │   ├── NotFound                    3     not-found
    │   ├── RunExpired                  3     run-expired
    │   ├── Nondeterministic            3     nondeterministic
    │   ├── CostCapReached              3     cost-cap
    │   └── CopyOvertaken               3     copy-overtaken
    ├── ValidationRejected              4     validation-rejected
    │   ├── NeedsAcceptance             4     needs-acceptance
    │   └── Differs                     4     differs
    ├── PublishConflict                 5     publish-conflict
    │   ├── Rebased                     5     rebased
    │   │   └── ErasedSince             5     erased-since
    │   ├── CopyChanged                 5     copy-changed
    │   └── CopyLocked                  5     copy-locked        (retryable)
    ├── ChunkError                      1     chunk-failed
    │   ├── TransformFailed             1     transform-failed
    │   ├── SourceChanged               1     source-changed
    │   ├── SourceCorrupt               1     source-corrupt
    │   ├── ForeignPartition            1     foreign-partition
    │   └── OutputContract              1     output-contract
    ├── AttemptLost                     1     attempt-lost       (retryable)
    ├── RunFailed                       1     run-failed
    ├── AuditBroken                     1     audit-broken
    ├── KeyRefused                      1     key
    ├── SignatureInvalid                1     signature
    └── EngineError                     1     engine             (retryable)
        ├── LedgerUnavailable           1     ledger             (retryable)
        ├── StorageRefused              1     storage            (retryable)
        ├── OutOfMemory                 1     memory             (retryable)
        ├── OutcomeUnknown              1     outcome-unknown    (retryable)
        └── WorkerDied                  1     worker-died        (retryable)

An error says what happened (``message``), the state of the data (``state``) and the next command (``hint``).
``fields`` are for programs and part of the ``--json`` error. Errors cross process borders (Spark, Airflow), so all of
them can be pickled.
"""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "ApprovalRefused",
    "AttemptLost",
    "AuditBroken",
    "ChunkError",
    "ConsumerStopped",
    "CopyChanged",
    "CopyLocked",
    "CopyOvertaken",
    "CostCapReached",
    "Differs",
    "EngineError",
    "ErasedSince",
    "ErasureListMoved",
    "ErrataError",
    "ForeignPartition",
    "Frozen",
    "KeyRefused",
    "LedgerUnavailable",
    "ManifestTampered",
    "MissingCredentials",
    "MissingDriver",
    "NeedsAcceptance",
    "Nondeterministic",
    "NotFound",
    "OutOfMemory",
    "OutcomeUnknown",
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
    """Base class: a message for people and fields for programs."""

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
    """The command line or the call is wrong."""

    code = "usage"
    exit_code = 2


class ProjectFileError(UsageError):
    """A project or product file is wrong."""

    code = "project-file"


class SetupError(ErrataError):
    """Java, jars, an extra or a server that this command needs is missing."""

    code = "setup"


class MissingCredentials(SetupError):
    """What the project names is not set here: a variable of the environment, a file with a key."""

    code = "credentials"


class MissingDriver(SetupError):
    """The Python package for a warehouse is not installed here; the hint names the extra."""

    code = "driver"


class Refused(ErrataError):
    """A rule refused the command."""

    code = "refused"
    exit_code = 3


class PlanRefused(Refused):
    """A guardrail refused the plan; ``fields["plan"]`` has the result of every guardrail."""

    code = "plan-refused"


class StateRefused(Refused):
    """The run is not in a state that allows this move."""

    code = "state"


class ErasureListMoved(StateRefused):
    """Subjects were erased after the candidate was judged, and it has to be judged again."""

    code = "erasure-list-moved"


class ApprovalRefused(Refused):
    """Approvals or the release are missing, too old, by the requester, or for another digest."""

    code = "approval"


class PermissionRefused(Refused):
    """This person's roles do not include this command."""

    code = "permission"


class ManifestTampered(Refused):
    """The stored manifest no longer has the digest it was sealed with."""

    code = "manifest-tampered"


class ScopeLocked(Refused):
    """Another publication or rollback has locked these partitions."""

    code = "scope-locked"


class InputWithdrawn(Refused):
    """What the run was computed from was rolled back or published again since."""

    code = "input-withdrawn"


class Drifted(Refused):
    """A member of a campaign would read or replace something that nobody approved."""

    code = "drifted"


class PublishHeld(Refused):
    """The next wave cannot be published yet, or consumers are waited for."""

    code = "publish-held"


class ConsumerStopped(Refused):
    """A consumer did not acknowledge its hold in time, and its terms say that nothing is published then."""

    code = "consumer-stopped"


class Frozen(Refused):
    """A correction has frozen these partitions, so live jobs may not write them."""

    code = "frozen"


class NotFound(Refused):
    """No such run, product, table or partition."""

    code = "not-found"


class RunExpired(Refused):
    """A pinned snapshot or file is gone; the run cannot continue."""

    code = "run-expired"


class ValidationRejected(ErrataError):
    """The candidate did not pass the gate; ``fields["validation"]`` has every check."""

    code = "validation-rejected"
    exit_code = 4


class NeedsAcceptance(ValidationRejected):
    """The gate warned and nothing blocks: the candidate passes once an approver accepts each warning."""

    code = "needs-acceptance"


class Differs(ValidationRejected):
    """Main is not what an attestation computed, or does not pass the rules that a reconciliation judged it by."""

    code = "differs"


class PublishConflict(ErrataError):
    """Another job wrote the partitions after they were planned or published."""

    code = "publish-conflict"
    exit_code = 5


class Rebased(PublishConflict):
    """A live job wrote partitions, live wins, and they have to be computed again."""

    code = "rebased"


class ErasedSince(Rebased):
    """A subject was erased whose rows the run had used, and those chunks have to be computed again."""

    code = "erased-since"


class CopyChanged(PublishConflict):
    """Partitions of a copy hold other rows than Errata left there; ``fields["partitions"]`` lists them."""

    code = "copy-changed"


class CopyLocked(PublishConflict):
    """Another session kept a lock on a copy or its marker for too long; ``fields["blocked_by"]`` lists sessions."""

    code = "copy-locked"
    retryable = True


class ChunkError(ErrataError):
    """A chunk cannot be computed; a retry alone will not help."""

    code = "chunk-failed"


class TransformFailed(ChunkError):
    """The transform raised an error, also inside Spark."""

    code = "transform-failed"


class SourceChanged(ChunkError):
    """A pinned source file is missing or has changed since planning."""

    code = "source-changed"


class SourceCorrupt(ChunkError):
    """A source file is unchanged since planning but cannot be read: truncated, overwritten, or not Parquet."""

    code = "source-corrupt"


class ForeignPartition(ChunkError):
    """The transform produced rows for partitions that the chunk does not own."""

    code = "foreign-partition"


class OutputContract(ChunkError):
    """The transform's columns do not match the target table."""

    code = "output-contract"


class AttemptLost(ErrataError):
    """Another worker took over the chunk; the result of this attempt does not count."""

    code = "attempt-lost"
    retryable = True


class RunFailed(ErrataError):
    """One or more chunks failed; the others are staged."""

    code = "run-failed"


class AuditBroken(ErrataError):
    """The audit chain does not verify."""

    code = "audit-broken"


class KeyRefused(ErrataError):
    """A key is missing, invalid, an example, or readable by everyone."""

    code = "key"


class SignatureInvalid(ErrataError):
    """The signature of an envelope is wrong, or by another key."""

    code = "signature"


class EngineError(ErrataError):
    """Spark, Iceberg or the catalog failed, perhaps only for a time."""

    code = "engine"
    retryable = True


class LedgerUnavailable(EngineError):
    """The ledger's database does not answer, is full or cannot be written."""

    code = "ledger"


class StorageRefused(EngineError):
    """A disk is full or a path cannot be written; the chunk itself is fine."""

    code = "storage"


class OutOfMemory(EngineError):
    """A chunk needed more memory than available; a smaller one may fit."""

    code = "memory"


class OutcomeUnknown(EngineError):
    """The answer to a commit was lost: only the marker tells whether it landed."""

    code = "outcome-unknown"


class WorkerDied(EngineError):
    """The JVM of this worker is gone."""

    code = "worker-died"


class Nondeterministic(Refused):
    """The same chunk computed twice gave different rows."""

    code = "nondeterministic"


class CostCapReached(Refused):
    """The run has reached the cost limit of its plan."""

    code = "cost-cap"


class CopyOvertaken(Refused):
    """Another delivery to the copy came first; ``fields["partitions"]`` lists what it delivered."""

    code = "copy-overtaken"
