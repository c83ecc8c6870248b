"""The keys under ``publish``. Pure."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from errata.project.files.section import FileModel
from errata.project.yaml.scalars import Column, Count, Duration, HoldText, Length, Line, TableName, YesNo


class MergeFile(FileModel):
    """Which row of a key wins when the transform returns another one."""

    version: Column | None = Field(
        default=None, description="Version column. A row with an older version changes nothing."
    )
    delete: Line | None = Field(
        default=None, description="Condition on the transform's rows; where it is true, the key is removed."
    )


class GroupsFile(FileModel):
    """Publish a few partitions at a time, with a hold in between."""

    size: Count = Field(description="Maximum number of partitions in one publication.")
    hold: HoldText = Field(description="Minimum time between two groups.")
    order: Literal["newest", "oldest"] | None = Field(
        default=None, description="Which partitions are published first (default: as the run computes them)."
    )


class FreezeFile(FileModel):
    """How long cooperating live jobs are kept out."""

    idle: Length = Field(
        default=3600,
        json_schema_extra={"default": "1h"},
        description="The freeze ends when no command has worked on the run for this long.",
    )
    at_most: Length = Field(
        default=28_800, json_schema_extra={"default": "8h"}, description="Longest time from the start of the run."
    )


class PublishFile(FileModel):
    """How the correction reaches readers."""

    mode: Literal["replace_partitions", "append", "merge", "swap_view", "version", "corrections"] = "replace_partitions"
    rollback_window: Duration = "30d"
    manual: YesNo = Field(default=True, description="false: publish automatically if the gate finds nothing.")
    merge: MergeFile | None = Field(default=None, description="mode merge: which row of a key wins.")
    versions: TableName | None = Field(default=None, description="mode version: the table of versions.")
    view: TableName | None = Field(
        default=None,
        description="mode swap_view: the view that readers use; mode version: a view of the current versions.",
    )
    corrections: TableName | None = Field(
        default=None, description="Table of old and new values by key; with any mode, or alone in mode corrections."
    )
    groups: GroupsFile | None = Field(default=None, description="Publish in groups, one at a time.")
    on_live_write: Literal["conflict", "freeze", "live_wins"] = Field(
        default="conflict",
        description="On a live write to the partitions: refuse to publish, keep live jobs out, or compute them again.",
    )
    freeze: FreezeFile | None = Field(default=None, description="on_live_write freeze: how long at most.")
