"""`errata adopt TABLE --parquet PATH`: make a table of plain Parquet files where they are, without copying one.

Table and files appear in one commit, so a process that dies leaves all of it or nothing; the same command then finds
the table that it made.
"""

from __future__ import annotations

from errata.approval.permissions import require_role
from errata.errors import PlanRefused
from errata.model.audit import Actor
from errata.model.dataset.parquet_files import Dataset, find_flaws
from errata.model.product import Role
from errata.ports.datasets import TakenOver
from errata.views.recordings import DatasetView
from errata.workspace import Workspace


def adopt_dataset(workspace: Workspace, actor: Actor, table: str, path: str) -> DatasetView:
    """Make a table of the files below a path; a repeated call finds it."""
    workspace.ledger.create()
    require_role(workspace, actor, (Role.OPERATOR, Role.REQUESTER), "adopt")
    workspace.narrate(f"reading the footers below {path}")
    dataset = workspace.engines.datasets.read(path)
    if flaws := list(find_flaws(dataset)):
        raise PlanRefused(
            f"{path} was refused; " + "; ".join(flaws),
            state="nothing was changed; no file was touched",
            hint="correct the files, or write them to a table with Spark: CREATE TABLE … AS SELECT",
        )
    tables = workspace.engines.dataset_tables
    found = tables.find(table, dataset.digest)
    if found is None:
        told = {"table": table, "path": dataset.path, "files": len(dataset.files), "rows": dataset.rows}
        workspace.ledger.audit.note(None, actor, "dataset.intended", told | {"digest": dataset.digest})
        found = tables.take_over(table, dataset)
        _note(workspace, actor, table, found)
    elif not _is_noted(workspace, table, found):  # a process died before it could
        _note(workspace, actor, table, found)
    return _describe(table, dataset, found)


def _note(workspace: Workspace, actor: Actor, table: str, found: TakenOver) -> None:
    told = {"table": table, "snapshot_id": found.snapshot_id, "files": found.files, "rows": found.rows}
    workspace.ledger.audit.note(None, actor, "dataset.adopted", told)


def _is_noted(workspace: Workspace, table: str, found: TakenOver) -> bool:
    entries = workspace.ledger.audit.readable_entries(actions=("dataset.adopted",))
    return any((one.body["table"], one.body["snapshot_id"]) == (table, found.snapshot_id) for one in entries)


def _describe(table: str, dataset: Dataset, found: TakenOver) -> DatasetView:
    inside = set(dataset.files[0].columns)
    return DatasetView(
        table=table,
        path=dataset.path,
        files=found.files,
        rows=found.rows,
        partitions=found.partitions,
        snapshot_id=found.snapshot_id,
        already=found.already,
        only_in_folders=tuple(key for key in dataset.keys if key not in inside),
    )
