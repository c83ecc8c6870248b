"""Change logs in product files: keys that belong together, and what each reading gives the transform."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.errors import ProjectFileError
from errata.model.change_log.declaration import list_row_columns
from errata.model.product import Product
from errata.project import load_project

PROJECT = """
project: shop
ledger: sqlite:///.errata/ledger.db
catalogs: {lake: {type: jdbc, uri: "sqlite:///lake/catalog.db", warehouse: lake}}
people: single-user
kafka: {events: {bootstrap: "127.0.0.1:9092"}}
sources: {orders: {format: json}, ends: {format: json}}
"""
PRODUCT = """
product: shop.orders
owner: shop
target:
  table: lake.shop.orders
  partition: {column: day, grain: day}
  key: [day, id]
transform: {call: "transforms.orders:build", version: 1.0.0}
inputs:
  orders:
    recording: orders
    cdc: {key: [id], transactions: ends}
    columns: {id: long, status: string, created: timestamptz}
    partition: created
"""


def _load(tmp_path: Path, *changes: tuple[str, str]) -> Product:
    text = PRODUCT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "products").mkdir(exist_ok=True)
    (tmp_path / "errata.yaml").write_text(PROJECT, "utf-8")
    (tmp_path / "products" / "orders.yaml").write_text(text, "utf-8")
    return load_project(tmp_path).products["shop.orders"]


def test_the_ends_of_transactions_are_an_input_that_is_read_first(tmp_path: Path) -> None:
    """So that every END that planning has seen has its changes in the range."""
    ends, orders = _load(tmp_path).inputs
    assert (ends.name, ends.recording, ends.transactions_of) == ("orders_transactions", "ends", "orders")
    assert orders.cdc is not None
    assert orders.partition == "created"
    topic = "recording: orders", "kafka: {cluster: events, topic: cdc.public.orders}"
    ends, _ = _load(tmp_path, topic, ("transactions: ends", "transactions: cdc.transaction")).inputs
    assert ends.location == "kafka://events/cdc.transaction"
    table = "recording: orders", "table: lake.raw.orders"
    ends, _ = _load(tmp_path, table, ("transactions: ends", "transactions: lake.raw.ends")).inputs
    assert ends.table == "lake.raw.ends"


@pytest.mark.parametrize(
    "reading,columns",
    [
        ("state", {"cdc_position", "cdc_time"}),
        ("history", {"valid_from", "valid_to", "valid_from_position", "valid_to_position"}),
        (
            "changes",
            {"cdc_op", "cdc_position", "cdc_lsn", "cdc_transaction", "cdc_time"}
            | {"before_id", "before_status", "before_created"},
        ),
    ],
)
def test_each_reading_has_its_columns(tmp_path: Path, reading: str, columns: set[str]) -> None:
    """Beside those of the row; values of rows are cast from text."""
    _, orders = _load(tmp_path, ("cdc: {", f"cdc: {{as: {reading}, ")).inputs
    assert orders.cdc is not None
    rows = list_row_columns(orders.cdc, orders.columns)
    assert rows == {"id": "long", "status": "string", "created": "timestamptz"}
    assert set(orders.columns) - set(rows) == columns
    assert orders.eras[0].cast["id"] == "long"


@pytest.mark.parametrize(
    "change,said",
    [
        (("cdc: {key: [id], transactions: ends}", "cdc: {key: [id]}"), "only the order of sending is known"),
        (("transactions: ends", "transactions: nowhere"), "expected a source of errata.yaml, as the changes"),
        (("key: [id]", "key: [number]"), "expected a column of columns (id, status, created)"),
        (("cdc: {", "cdc: {at: soon, "), "expected newest, a position such as 0/1970FA8, or an instant"),
        (("cdc: {", "cdc: {since: accepted, "), "expected as: changes, and the key partition"),
        (("status: string", "cdc_time: string"), "cdc_time is a column of every state row"),
        (("partition: created", "partition: when"), "expected a column of the rows"),
        (("partition: created", "partition: created\n    reference: current"), 'the key "reference" was refused'),
        (("    columns: {id: long, status: string, created: timestamptz}\n", ""), 'missing key "columns"'),
        (
            ("partition: created", "partition: created\n    eras: [{name: old, from: 2026-01-01, lacks: [status]}]"),
            "rows of a change log have no span of partitions",
        ),
        (
            ("    partition: created", "  orders_transactions: {recording: ends, columns: {id: long}}"),
            "expected another name",
        ),
    ],
)
def test_keys_that_do_not_fit_are_refused(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    """With the place in the file and what was expected."""
    with pytest.raises(ProjectFileError) as caught:
        _load(tmp_path, change)
    assert said in str(caught.value)
