"""The keys under ``publish``. Pure."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from errata.project.files.section import FileModel
from errata.project.yaml.scalars import Column, Count, Duration, HoldText, Length, Line, TableName, YesNo


class MergeFile(FileModel):
    """Which row of a key stays when the transform gives another one."""

    version: Column | None = Field(default=None, description="A row with an older version changes nothing.")
    delete: Line | None = Field(
        default=None, description="A condition on the transform's rows: where it is true, the key is taken out."
    )


class GroupsFile(FileModel):
    """A few partitions at a time, with a hold in between."""

    size: Count = Field(description="Partitions in one publication, at most.")
    hold: HoldText = Field(description="How long readers have each group before the next one goes.")
    order: Literal["newest", "oldest"] | None = Field(
        default=None, description="Which partitions go first; else as the run computes them."
    )


class FreezeFile(FileModel):
    """How long cooperating live jobs are held off."""

    idle: Length = Field(
        default=3600,
        json_schema_extra={"default": "1h"},
        description="A run on which no command has worked for so long lets them go on.",
    )
    at_most: Length = Field(
        default=28_800, json_schema_extra={"default": "8h"}, description="Since the run started, whatever happens."
    )


class PublishFile(FileModel):
    """How the correction reaches readers."""

    mode: Literal["replace_partitions", "append", "merge", "swap_view", "version", "corrections"] = "replace_partitions"
    rollback_window: Duration = "30d"
    manual: YesNo = Field(default=True, description="false: what the gate finds nothing in publishes by itself.")
    merge: MergeFile | None = Field(default=None, description="mode merge: which row of a key stays.")
    versions: TableName | None = Field(
        default=None, description="mode version: the table in which outputs stand side by side."
    )
    view: TableName | None = Field(
        default=None, description="mode swap_view: what readers read; mode version: a view of what is accepted."
    )
    corrections: TableName | None = Field(
        default=None, description="A table of old and new values by key, beside any mode, or alone in mode corrections."
    )
    groups: GroupsFile | None = Field(default=None, description="Progressive publication: in groups, one at a time.")
    on_live_write: Literal["conflict", "freeze", "live_wins"] = Field(
        default="conflict",
        description="A live write into the partitions: refuse to publish, hold live jobs off, or compute those again.",
    )
    freeze: FreezeFile | None = Field(default=None, description="on_live_write freeze: for how long at most.")
