"""Load the files that the plan expects in the scope, and look for conflicts early."""

from __future__ import annotations

import json
from collections.abc import Sequence

from errata.canonical import from_plain
from errata.errors import PublishConflict
from errata.gate.measure.names import content_columns
from errata.ledger import RunRecord
from errata.model.manifest import ExpectedFile, Manifest
from errata.model.rebase import Rebase, list_rebase_bases
from errata.model.table import FileSets
from errata.publishing.replacement import Replacement, examine_version
from errata.workspace import Workspace


def load_expected_files(
    workspace: Workspace, manifest: Manifest, rebases: Sequence[Rebase], scope: Sequence[str]
) -> FileSets:
    """Files that the plan, or the newest rebase of a partition, found live in these partitions."""
    found = json.loads(workspace.ledger.parts.get(manifest.target.expected_part))
    for rebase in rebases:
        found |= json.loads(workspace.ledger.parts.get(rebase.expected_part))
    return {name: tuple(from_plain(ExpectedFile, file) for file in found.get(name, ())) for name in scope}


def build_replacement(workspace: Workspace, run: RunRecord, manifest: Manifest, scope: tuple[str, ...]) -> Replacement:
    """Replacement of the scope's expected files, without the files to add."""
    rebases = workspace.ledger.rebases.list(run.run_id)
    return Replacement(
        kind="publish",
        run_id=run.run_id,
        product=run.product,
        manifest_digest=run.manifest_digest,
        target=manifest.target,
        partitions=scope,
        expected=load_expected_files(workspace, manifest, rebases, scope),
        base_snapshot_id=manifest.target.base_snapshot_id,
        rebased=list_rebase_bases(rebases),
        add={},
        add_from=(),
        undo_days=0,
        keep_refs={},
        content_columns=content_columns(manifest),
        only_into_empty=manifest.publish.mode == "append",
        on_live_write=manifest.publish.on_live_write,
    )


def find_written_partitions(workspace: Workspace, run: RunRecord, manifest: Manifest) -> tuple[str, ...]:
    """Partitions that publish would currently refuse because of a conflict. Reads only."""
    order = build_replacement(workspace, run, manifest, manifest.partitions)
    try:
        examine_version(order, workspace.engines.publishing.version(manifest.target), workspace.engines.content)
    except PublishConflict as conflict:
        return tuple(conflict.fields.get("partitions", manifest.partitions))
    return ()
