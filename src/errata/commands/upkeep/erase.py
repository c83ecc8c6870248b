"""`errata audit erase-person` and `errata erase`: erase a user's name, or record data subjects as erased.

For users the ledger deletes the name behind the pseudonym and the key to their texts. Data subjects are added to the
list of erased subjects, which gate, publication and rollback check.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection

from errata.approval.permissions import require_role
from errata.approval.release import PUBLISHABLE_STATES
from errata.errors import UsageError
from errata.failpoints import failpoint
from errata.gate.diff.kept_diff import discard_kept_diffs
from errata.model.audit import Actor
from errata.model.product import Role
from errata.text.escape import require_reason
from errata.views import ErasedView, ListedView
from errata.workspace import Workspace


def erase_person(workspace: Workspace, actor: Actor, name: str, reason: str) -> ErasedView:
    """Erase the name behind a pseudonym; audited under the pseudonym, and the audit chain stays valid."""
    require_role(workspace, actor, (Role.APPROVER,), "erase-person")
    require_reason("an erasure", reason, f"errata audit erase-person {shlex.quote(name)}")
    done = workspace.ledger.people.erase(name, reason, actor)
    warnings = [done.remains] if done.remains else []
    if done.accounts:
        warnings.append(
            f"only they used the account {', '.join(done.accounts)}, whose name is still known: "
            f"errata audit erase-person {shlex.quote(done.accounts[0])}"
        )
    if name in workspace.project.people:
        warnings.append("errata.yaml still lists them under people")
    return ErasedView(done.pseudonym, done.entries, done.already, tuple(warnings))


def refuse_id_in_reason(state: str) -> UsageError:
    """The error of a reason that names a subject."""
    return UsageError(
        "the reason names one of the ids; expected one without, because reasons are kept for good",
        state=state,
        hint='name the request instead: --reason "request 114"',
    )


def add_erased_subjects(workspace: Workspace, actor: Actor, subjects: Collection[str], reason: str) -> ListedView:
    """Add subjects to the list of erased subjects. Their ids appear in no audit entry or message."""
    workspace.ledger.create()
    require_role(workspace, actor, (Role.APPROVER,), "erase add")
    require_reason("an erasure", reason, "errata erase add --from FILE")
    if any(not subject.strip() for subject in subjects):
        raise UsageError(
            "an empty id was refused; expected a value of the columns that products name under subjects",
            state="nobody was added",
        )
    if any(re.search(rf"(?<![\w-]){re.escape(subject)}(?![\w-])", reason) for subject in subjects):
        raise refuse_id_in_reason("nobody was added")
    erased, asked = workspace.engines.erased, sorted(set(subjects))
    # audited before the list changes, so that no subject is added without an entry
    workspace.ledger.audit.note(
        None, actor, "erasure.asked", {"list": erased.table, "subjects": len(asked), "reason": reason}
    )
    failpoint("erase.before_add")
    added = erased.add(asked)
    mark = erased.watermark()
    workspace.ledger.audit.note(
        None, actor, "erasure.listed", {"list": erased.table, "added": added, "watermark": mark}
    )
    honoured = {p.name: p.target.subjects for p in workspace.project.products.values() if p.target.subjects}
    runs = [run for run in workspace.ledger.runs.list() if run.product in honoured]
    for run in runs:  # kept before the product named subjects
        discard_kept_diffs(workspace, run.run_id)
    judged = [run.run_id for run in runs if run.state in PUBLISHABLE_STATES]
    return ListedView(
        table=erased.table,
        added=added,
        already=len(asked) - added,
        watermark=mark,
        products={name: tuple(columns) for name, columns in sorted(honoured.items())},
        judge_again=tuple(judged) if added else (),
    )
