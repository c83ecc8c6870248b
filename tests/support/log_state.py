"""Compare the state that a change log gives with what the database held, column by column and typed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from errata.engines.spark.inputs.change_rows import screen_change_log
from errata.engines.spark.inputs.row_rules import select_used
from errata.model.change_log.declaration import ChangeCapture
from errata.model.change_log.log_pin import LogState, build_log_pin, build_shape_schemas, find_log_refusals
from errata.model.change_log.log_positions import choose_span
from errata.model.manifest import InputPin
from errata.model.partition import Grain
from errata.model.product import Input
from errata.model.product.eras import Era
from errata.project.build.sources.change_inputs import build_change_input
from support.capture import Mark
from support.change_log import Message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = {
    "id": "long",
    "account": "string",
    "amount": "decimal(12,2)",
    "created": "timestamptz",
    "due": "date",
    "changed": "timestamp",
    "note": "string",
}
CDC = ChangeCapture(("id",), "transactions")
ERAS = (Era("before-note", lacks=("note",), default={"note": "n/a"}), Era("since-note", has=("note",)))


def build_source(declared: ChangeCapture = CDC) -> Input:
    """The orders of the story as an input."""
    return build_change_input(Input("orders", recording="orders", columns=COLUMNS, eras=ERAS, cdc=declared), COLUMNS)


def read_state(changes: DataFrame, source: Input, state: LogState, position: int) -> dict[str, list[str | None]]:
    """The rows at a position as the transform gets them, as text; fails if the position is refused."""
    assert source.cdc is not None
    declared = replace(source.cdc, at=str(position))
    assert find_log_refusals(declared, replace(state, held=None)) == (), position
    at = replace(state, span=choose_span(declared, state.facts))
    pin = replace(
        InputPin(source.name, "files", source.location, None, None, 0, 0, (), {}, 0, 0, 0),
        columns=source.columns,
        eras=source.eras,
        schemas=build_shape_schemas(declared, source.columns, state.held),
        log=build_log_pin(declared, "orders_transactions", at),
    )
    rows = select_used(screen_change_log(changes, pin, (), Grain.DAY, "date"))
    told = rows.selectExpr(
        "string(id)", "account", "string(amount)", "string(unix_micros(created))", "string(due)",
        "string(unix_micros(cast(changed AS timestamp)))", "note",
    )  # fmt: skip
    return {row[0]: list(row[1:]) for row in told.collect()}


def list_differences(found: dict[str, list[str | None]], mark: Mark) -> list[str]:
    """Keys whose rows differ; a column that the table did not have yet is not compared."""
    has_note = any(row[-1] is not None for row in mark.rows.values())
    width = 6 if has_note else 5
    keys = found.keys() | mark.rows.keys()
    return [key for key in keys if found.get(key, [])[:width] != mark.rows.get(key, [])[:width]]


def replay_by_lsn(messages: Sequence[Message], position: int) -> dict[str, Any]:
    """What the order of log records alone gives: the last change of each key, up to a position."""
    told = [json.loads(one.value) for one in messages if one.value is not None]
    rows: dict[str, Any] = {}
    for one in sorted(told, key=lambda each: each["source"]["lsn"]):
        if one["source"]["lsn"] > position:
            continue
        if one["op"] == "t":
            rows.clear()
        elif one["op"] == "d":
            rows.pop(str(one["before"]["id"]), None)
        else:
            rows[str(one["after"]["id"])] = one["after"]
    return rows
