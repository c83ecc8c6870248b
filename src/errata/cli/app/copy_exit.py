"""The exit code of a command that leaves a copy without what it should have. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from errata.errors import CopyChanged, CopyLocked, PublishConflict

if TYPE_CHECKING:
    from errata.views.copies import CopyLine

OWED = 7
"""Exit code when something is still owed."""
CONFLICT = PublishConflict.exit_code
WRITTEN_BY_OTHERS = {CopyChanged.code, CopyLocked.code}


def choose_copy_exit(copies: Iterable[CopyLine]) -> int:
    """0 unless a required copy is not delivered: 5 if others wrote it or keep it locked, otherwise 7."""
    missing = [one for one in copies if one.required and one.state != "delivered"]
    if not missing:
        return 0
    return CONFLICT if any(one.code in WRITTEN_BY_OTHERS for one in missing) else OWED
