"""Read the list of erased subjects as it is now, in place of the one that a run was planned with."""

from __future__ import annotations

from errata.errors import StateRefused
from errata.model.manifest import Manifest, with_list_at
from errata.model.product.erasure import find_list_problem
from errata.workspace import Workspace


def read_newest_list(workspace: Workspace, manifest: Manifest) -> Manifest:
    """The manifest with the newest snapshot of the list of erased subjects, which is at least the planned one."""
    planned = manifest.erasure
    if planned is None:
        return manifest
    now = workspace.engines.erased.read_pin(planned.columns)
    why = find_list_problem(planned, now)
    if why is not None:
        raise StateRefused(
            f"the list of erased subjects {planned.table} was refused; {why}",
            state="nothing was computed; main is unchanged",
            hint="bring back the list that was planned with, or plan again",
        )
    return with_list_at(manifest, now.snapshot_id)
