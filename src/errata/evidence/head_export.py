"""Export of signed audit heads outside the ledger, and verification of the chain against them.

A head is exported after every publication and rollback, and by ``errata audit head``. A failed export does not undo the
publication. It is reported, shown by ``errata doctor`` and ``errata audit verify``, and bounded: the next publication
is refused when an earlier one has had no head for longer than ``evidence.max_lag``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from errata.errors import (
    AuditBroken,
    ErrataError,
    KeyRefused,
    SignatureInvalid,
    StateRefused,
    StorageRefused,
    UsageError,
)
from errata.evidence.heads import (
    HeadFile,
    find_newest_seq,
    load_stored_head,
    read_heads,
    sign_head,
    store_head,
    write_new_file,
)
from errata.evidence.keys import PublicKey, SigningKey, load_public_key, load_signing_key, public_path
from errata.failpoints import failpoint
from errata.ledger import Ledger
from errata.model.audit import Head
from errata.model.product import Project
from errata.views import AuditView, HeadsView, HeadView
from errata.workspace import Workspace


@dataclass(frozen=True, slots=True)
class HeadLag:
    """How far the exported heads are behind the log."""

    newest: int  # entry of the newest head; 0 if none was exported
    behind: int  # entries after it
    seconds: int  # since the oldest publication that no head covers
    late: bool


def load_project_key(workspace: Workspace) -> SigningKey:
    """The project's private key; raises when there is no acceptable key."""
    return load_signing_key(workspace.project.evidence.key or "", Path(workspace.project.root))


def export_head(workspace: Workspace, output: Path | None = None) -> HeadView:
    """Sign the current head of the log and store it in ``evidence.heads``, and in a new file ``output`` if given."""
    key = load_project_key(workspace)
    seq, digest, at = workspace.ledger.audit.head()
    head = Head(workspace.ledger.ledger_id, workspace.project.name, seq, digest, at)
    envelope = sign_head(head, key)
    files, already = [], False
    if workspace.project.evidence.heads is not None:
        # never sign a log that contradicts the head exported before
        _require_continuity(workspace)
        failpoint("audit.before_head")
        path, already = store_head(Path(workspace.project.evidence.heads), head, envelope)
        files.append(str(path))
    if output is not None:
        if not write_new_file(output, envelope):
            raise UsageError(f"the head was not written; expected no file at {output}, found one")
        files.append(str(output))
    return HeadView(
        seq, digest, at, head.ledger, head.project, key.public.keyid, tuple(files), already, envelope.decode()
    )


def try_export_head(workspace: Workspace) -> None:
    """Export the head after a publication; a failure is reported and does not undo the publication."""
    if workspace.project.evidence.heads is None:
        return
    try:
        export_head(workspace)
    except ErrataError as error:
        workspace.narrate(f"the head of the audit was not exported: {error.message}; errata audit head exports it")


def require_recent_head(workspace: Workspace) -> None:
    """Refuse to publish if the newest head contradicts the log, or if the log has had no head for too long."""
    if workspace.project.evidence.heads is None:
        return
    _require_continuity(workspace)
    lag = measure_lag(workspace.project, workspace.ledger)
    if not lag.late:
        return
    try:
        export_head(workspace)
    except AuditBroken:
        raise
    except ErrataError as error:
        found = f"one of entry {lag.newest}" if lag.newest else "none"
        raise StateRefused(
            f"publish was refused; expected a head in {workspace.project.evidence.heads} that covers what was published"
            f" {lag.seconds} seconds ago, found {found}: {error.message}",
            state="nothing was published",
            hint="errata audit head exports it; evidence.max_lag says how long that may take",
        ) from error


def _require_continuity(workspace: Workspace) -> None:
    """Require that the log still has the entry of the newest exported head; a rebuilt log does not."""
    place = Path(workspace.project.evidence.heads or "")
    newest = find_newest_seq(place, workspace.ledger.ledger_id)
    if not newest:
        return
    expected, found = (
        load_stored_head(place, workspace.ledger.ledger_id, newest).hash,
        workspace.ledger.audit.hash_at(newest),
    )
    if found != expected:
        raise AuditBroken(
            f"the log was refused; expected entry {newest} with {expected}, whose head was exported, found"
            f" {found or 'no such entry'}: it was cut, rebuilt or forked",
            state="nothing was published or exported",
            hint="errata audit verify; then find out who wrote to the ledger",
        )


def measure_lag(project: Project, ledger: Ledger) -> HeadLag:
    """How far the heads in ``evidence.heads`` are behind the log."""
    place = project.evidence.heads
    newest = find_newest_seq(Path(place), ledger.ledger_id) if place is not None else 0
    since = ledger.audit.uncovered_since(newest)
    now = ledger.now_ms() / 1000
    seconds = 0 if since is None else max(0, int(now - datetime.fromisoformat(since).timestamp()))
    behind = max(0, ledger.audit.head()[0] - newest)
    return HeadLag(newest, behind, seconds, place is not None and seconds > project.evidence.max_lag_seconds)


def verify_against_heads(workspace: Workspace, places: Sequence[Path] = (), keys: Sequence[Path] = ()) -> AuditView:
    """Verify the chain against the heads in these places (default: ``evidence.heads``)."""
    known = tuple(load_public_key(path) for path in keys) or _load_own_public_key(workspace.project)
    heads: tuple[HeadFile, ...] = ()
    trouble = None
    try:
        heads = _read_own_heads(workspace, places, known)
    except (AuditBroken, SignatureInvalid, StorageRefused) as error:
        trouble = error.message
    check = workspace.ledger.audit.verify([one.head for one in heads])
    reason = check.reason or trouble
    newest = max((one.head.seq for one in heads), default=None)
    lag = measure_lag(workspace.project, workspace.ledger)
    told = HeadsView(
        checked=len(heads),
        newest=newest,
        behind=max(0, check.entries - (newest or 0)),
        signatures="not checked" if known is None else "checked",
        signed_by=tuple(sorted({one.keyid for one in heads if one.keyid})),
        lag_seconds=lag.seconds if workspace.project.evidence.heads is not None else 0,
        late=lag.late,
    )
    is_asked = bool(places) or workspace.project.evidence.heads is not None
    return replace(check, ok=reason is None, reason=reason, heads=told if is_asked else None)


def _read_own_heads(
    workspace: Workspace, places: Sequence[Path], keys: Sequence[PublicKey] | None
) -> tuple[HeadFile, ...]:  # fmt: skip
    """Heads of this ledger; a head of another ledger of the same project means that this ledger was recreated."""
    configured = workspace.project.evidence.heads
    wanted = list(places) or ([Path(configured)] if configured is not None else [])
    found = []
    for place in wanted:
        if not places and not place.is_dir():
            raise StorageRefused(f"the heads were not read; expected a directory at {place}, found none")
        for one in read_heads(place, keys):
            head = one.head
            if head.ledger == workspace.ledger.ledger_id:
                found.append(one)
            elif head.project == workspace.project.name or not place.is_dir():
                raise AuditBroken(
                    f"{Path(one.file).name} is the head of entry {head.seq} of ledger {head.ledger} of project"
                    f" {head.project}; this is ledger {workspace.ledger.ledger_id} of project {workspace.project.name}:"
                    " another ledger, or a new one in its place"
                )
    return tuple(found)


def _load_own_public_key(project: Project) -> tuple[PublicKey, ...] | None:
    """The public half of the project's key; None when it is not available, so signatures cannot be checked."""
    setting = project.evidence.key
    if not setting:
        return None
    beside = public_path(Path(project.root) / setting) if "\n" not in setting else None
    try:
        if beside is not None and beside.is_file():
            return (load_public_key(beside),)
        return (load_signing_key(setting, Path(project.root)).public,)
    except (KeyRefused, OSError, ValueError):
        return None
