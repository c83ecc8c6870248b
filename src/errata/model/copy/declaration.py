"""Copies of a target in a warehouse, as a product file declares them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from errata.model.file_keys import Key, OneOf
from errata.model.file_values import Amount, Column, Identifier, Length, WarehouseTable, YesNo

KEEP_SECONDS = 14 * 86_400
REPLACE, REFRESH = "replace", "refresh"
"""Rows of partitions are replaced; or the warehouse reads the lake itself, and only has to look again."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A table in a warehouse that follows what is accepted in the lake."""

    warehouse: Annotated[Identifier, Key("The warehouse in errata.yaml that has the table.")]
    table: Annotated[WarehouseTable, Key("The table, as the warehouse spells it; with its schema: schema.table.")]
    mode: Annotated[
        str,
        OneOf(REPLACE, REFRESH),
        Key("refresh: a table of Snowflake that reads the lake's own metadata; it only has to be refreshed."),
    ] = REPLACE
    partition: Annotated[Column | None, Key("Column of the copy with the partitions (default: the target's).")] = None
    columns: Annotated[
        Mapping[Column, Column],
        Key("Columns of the target and their names in the copy (default: the same name, in any case)."),
    ] = field(default_factory=dict)
    default: Annotated[
        tuple[Column, ...], Key("Columns of the copy that the target lacks; new rows get the warehouse's default.")
    ] = ()
    required: Annotated[YesNo, Key("Commands fail, and readers wait, until the copy is delivered.")] = False
    tolerance: Annotated[
        Amount | None,
        Key("Largest difference of the sum of a double column, such as 0.01 or 0.0001%. Needed if there is one."),
    ] = None
    keep_seconds: Annotated[
        Length, Key("How long rows that are owed to the copy are kept in the lake.", path="keep", default="14d")
    ] = KEEP_SECONDS
    lock_seconds: Annotated[
        Length, Key("How long a delivery waits for other writers of the copy.", path="lock_timeout", default="10s")
    ] = 10

    @property
    def name(self) -> str:
        """What people and the outbox call it.

        >>> Copy("pg", "fin.daily_revenue").name
        'pg:fin.daily_revenue'
        """
        return f"{self.warehouse}:{self.table}"
