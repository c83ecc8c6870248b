"""How long the lake keeps the rows of a publication that copies may still need."""

from __future__ import annotations

from errata.model.refs import STEP_DAYS
from errata.workspace import Workspace

_DAY_SECONDS = 86_400


def count_kept_days(workspace: Workspace, product: str) -> int:
    """Days that the state after a publication or rollback is kept: those of its copy that keeps it longest.

    The tag is made in the commit itself, so that a process that dies right after it leaves the rows readable.
    """
    found = workspace.project.products.get(product)
    wanted = [copy.keep_seconds for copy in found.target.copies] if found else []
    return max([STEP_DAYS, *(-(-seconds // _DAY_SECONDS) for seconds in wanted)])
