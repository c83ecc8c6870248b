"""How to see that a partition of an input has all its rows. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from errata.model.file_keys import NOT_A_KEY, Key
from errata.model.file_values import Column, LengthText, Line, TableColumn


@dataclass(frozen=True, slots=True)
class Completeness:
    """What tells that a partition of an input is complete: one of a marker file, a row count and a watermark."""

    marker: Annotated[
        Line | None, Key("File that is written last beside the files of a partition, such as _SUCCESS.")
    ] = None
    rows_from: Annotated[
        TableColumn | None, Key("Column (catalog.namespace.table.column) with the number of rows of each partition.")
    ] = None
    watermark: Annotated[
        Column | None, Key("Column of the table whose newest value must reach the end of the partition.")
    ] = None
    after: Annotated[LengthText, Key("watermark: how long after the end of the partition.")] = "0s"
    latest_ms: Annotated[int | None, NOT_A_KEY] = None  # later values are no watermark, but wrong

    @property
    def announcing_table(self) -> tuple[str, str]:
        """Table and column of ``rows_from``."""
        table, _, column = (self.rows_from or "").rpartition(".")
        return table, column
