"""`errata erase redact`: take the rows of everyone on the list out of recordings."""

from __future__ import annotations

import re
import string

from errata.approval.permissions import require_role
from errata.commands.sources.redaction import redact_recordings
from errata.commands.upkeep.erase import refuse_id_in_reason
from errata.model.audit import Actor
from errata.model.product import Role
from errata.model.product.erasure import format_erased_count
from errata.model.recording.subject_names import SubjectNames, list_subject_names
from errata.text.escape import require_reason
from errata.views import RedactedFileView, RedactionView
from errata.workspace import Workspace


def redact_erased(workspace: Workspace, actor: Actor, reason: str) -> RedactionView:
    """Replace recorded files that hold rows of erased subjects by files without them; safe to repeat."""
    workspace.ledger.create()
    require_role(workspace, actor, (Role.APPROVER,), "erase redact")
    require_reason("a redaction", reason, "errata erase redact")
    hashed, listed = workspace.engines.erased.hasher(), workspace.engines.erased.read_listed()

    def is_erased(subject: str) -> bool:
        return subject in listed or hashed(subject) in listed  # a masked id is its own hash already

    words = {*re.findall(r"[\w-]+", reason), *(word.strip(string.punctuation) for word in reason.split())}
    if any(map(is_erased, words)):
        raise refuse_id_in_reason("no recording was changed")
    subjects: dict[str, SubjectNames] = {}
    for product in workspace.project.products.values():
        for source in product.inputs:
            if source.recording is not None and source.subjects:
                before = subjects.get(source.recording, SubjectNames())
                subjects[source.recording] = before | list_subject_names(source)
    done = redact_recordings(workspace, actor, subjects, is_erased, reason)
    files = tuple(
        RedactedFileView(one.file_id, one.source, one.name, format_erased_count(one.rows), one.redacted_as)
        for one in done.files
    )
    return RedactionView(tuple(sorted(subjects)), files, dict(done.unproven), done.expired_runs)
