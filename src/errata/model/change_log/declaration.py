"""Change data capture as a product file declares it, and the columns that each reading has. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from errata.model.file_keys import AtLeast, Key, OneOf
from errata.model.file_values import Column, Line, ScalarText, YesNo

STATE, CHANGES, HISTORY = "state", "changes", "history"
NEWEST, ACCEPTED = "newest", "accepted"
BEFORE = "before_"
"""Begins the names of the columns with the row as it was before a change."""

READING_COLUMNS: Mapping[str, Mapping[str, str]] = {
    STATE: {"cdc_position": "long", "cdc_time": "timestamptz"},
    CHANGES: {
        "cdc_op": "string",
        "cdc_position": "long",
        "cdc_lsn": "long",
        "cdc_transaction": "long",
        "cdc_time": "timestamptz",
    },
    HISTORY: {
        "valid_from": "timestamptz",
        "valid_to": "timestamptz",
        "valid_from_position": "long",
        "valid_to_position": "long",
    },
}
"""Columns beside those of the row, by reading."""


@dataclass(frozen=True, slots=True)
class ChangeCapture:
    """How the change messages of a table are read."""

    key: Annotated[tuple[Column, ...], AtLeast(1), Key("Columns of the primary key in the database.")]
    transactions: Annotated[
        Line | None,
        Key(
            "Where the BEGIN and END messages of transactions are: a topic of the same cluster, a source of recordings "
            "or a table, as the changes. Needed."
        ),
    ] = None
    reading: Annotated[
        str,
        OneOf(STATE, CHANGES, HISTORY),
        Key(
            "state: the rows at a position; changes: one row per change; history: one row per version of a row.",
            path="as",
        ),
    ] = STATE
    envelope: Annotated[str, OneOf("debezium"), Key("Form of the messages.")] = "debezium"
    at: Annotated[
        ScalarText,
        Key("newest, a position of the log (0/1970FA8 or a number), or an instant such as 2026-02-01T00:00:00Z."),
    ] = NEWEST
    since: Annotated[
        Annotated[str, OneOf(ACCEPTED)] | None,
        Key(
            "as changes: only those after the position that the accepted run of a partition read; a partition without "
            "such a run gets the state, as op r."
        ),
    ] = None
    source_table: Annotated[
        Line | None, Key("schema.table in the database, if messages of several tables are in one place.")
    ] = None
    starts_empty: Annotated[
        YesNo, Key("The table was empty when the connector began, so that there is no snapshot to begin with.")
    ] = False
    integer_times: Annotated[
        str,
        OneOf("microseconds", "milliseconds"),
        Key("Unit of integers in columns of type timestamp (time.precision.mode of the connector)."),
    ] = "microseconds"

    @property
    def follows_newest(self) -> bool:
        """Whether a later plan reads more, once the log has grown."""
        return self.at == NEWEST


def list_change_columns(declared: ChangeCapture, columns: Mapping[str, str]) -> dict[str, str]:
    """Columns that the transform sees: those of the row, of changes also the row before, then those of the reading."""
    before = {f"{BEFORE}{name}": kind for name, kind in columns.items()} if declared.reading == CHANGES else {}
    return {**columns, **before, **READING_COLUMNS[declared.reading]}


def list_row_columns(declared: ChangeCapture, columns: Mapping[str, str]) -> dict[str, str]:
    """Columns of the row alone, of those that the transform sees."""
    beside = READING_COLUMNS[declared.reading]
    return {
        name: kind
        for name, kind in columns.items()
        if name not in beside and not (declared.reading == CHANGES and _is_before(name, columns))
    }


def _is_before(name: str, columns: Mapping[str, str]) -> bool:
    return name.startswith(BEFORE) and name.removeprefix(BEFORE) in columns
