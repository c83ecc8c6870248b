"""Copies of a product file and their warehouses: what they become, and what is refused."""

from __future__ import annotations

import pytest

from errata.model.consumer.declaration import Warehouse
from errata.model.copy.declaration import Copy
from errata.project import load_project
from unit.project.conftest import PRODUCT, Write
from unit.project.test_load import problems_of

WAREHOUSES = """\
warehouses:
  pg: {type: postgres, uri: "${PG}"}
  snow: {type: snowflake, account: org-fin, user: ERRATA, private_key: "${KEY}", role: BACKFILL, warehouse: BACKFILL_WH,
         database: FIN, schema: PUBLIC, stage: "@errata"}
"""


def with_copies(*copies: str, product: str = PRODUCT) -> str:
    lines = "".join(f"    - {copy}\n" for copy in copies)
    return product.replace("transform:", f"  copies:\n{lines}transform:", 1)


def test_every_key_of_a_copy_has_its_field(write: Write):
    """What the files declare is what commands get, also without the variables of the warehouses."""
    full = (
        "{warehouse: snow, table: DAILY_REVENUE, partition: BUSINESS_DATE, columns: {revenue_usd: REVENUE_USD}, "
        "default: [LOAD_TS], required: true, tolerance: 0.01, keep: 3d, lock_timeout: 1min}"
    )
    root = write(product=with_copies(full, "{warehouse: pg, table: fin.daily_revenue}"), also=WAREHOUSES)
    project = load_project(root, environ={})
    snow, pg = project.products["fin.daily_revenue"].target.copies
    assert snow == Copy(
        "snow", "DAILY_REVENUE", partition="BUSINESS_DATE", columns={"revenue_usd": "REVENUE_USD"},
        default=("LOAD_TS",), required=True, tolerance="0.01", keep_seconds=259_200, lock_seconds=60,
    )  # fmt: skip
    assert pg == Copy("pg", "fin.daily_revenue")
    assert (pg.name, pg.keep_seconds, pg.lock_seconds, pg.required) == ("pg:fin.daily_revenue", 1_209_600, 10, False)
    assert project.warehouses["snow"] == Warehouse(
        "snow", "snowflake", None, "org-fin", "ERRATA", "${KEY}", "BACKFILL", "BACKFILL_WH", "FIN", "PUBLIC", "@errata"
    )
    assert project.unset == {"PG", "KEY"}


def test_a_private_key_is_shown_nowhere(write: Write):
    """Its value may have several lines, and is not part of what a project prints."""
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvgIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----"
    project = load_project(write(also=WAREHOUSES), environ={"PG": "postgresql://u:sesame-open@h/db", "KEY": key})
    assert project.warehouses["snow"].private_key == key
    assert "MIIEvgIBADANBgkqhkiG9w0BAQEFAASC" not in repr(project)
    assert "MIIEvgIBADANBgkqhkiG9w0BAQEFAASC" not in project.redact(f"login with {key} failed")


WRONG = {
    "{warehouse: pgs, table: t}": 'target.copies[0].warehouse: expected a warehouse of errata.yaml (nearest: "pg"); '
    'found "pgs"',
    "{warehouse: pg, table: 'a b'}": "target.copies[0].table: expected a table, or schema.table, of letters, digits, _ "
    'and $; found "a b"',
    "{warehouse: pg, table: a.b.c}": "target.copies[0].table: expected a table, or schema.table, of letters, digits, _ "
    'and $; found "a.b.c"',
    "{warehouse: pg, table: t, partition: d, columns: {business_date: e}}": "target.copies[0].partition: columns has e "
    'for business_date, the partition column; expected one of the two keys; found "d"',
    "{warehouse: pg, table: t, columns: {a: x, b: x}}": "target.copies[0].columns.b: x is the copy's column of a "
    'already; found "x"',
    "{warehouse: pg, table: t, columns: {a: x}, default: [x]}": "target.copies[0].default[0]: x gets its values from "
    'the target; expected another column; found "x"',
    "{warehouse: pg, table: t, default: [x, x]}": 'target.copies[0].default[1]: given twice; found "x"',
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_copy_is_refused_with_its_line(write: Write, text: str):
    """Each mistake is one problem at its place."""
    assert [one.partition(": ")[2] for one in problems_of(write(product=with_copies(text), also=WAREHOUSES))] == [
        WRONG[text]
    ]


def test_two_copies_are_two_tables(write: Write):
    """A table can follow one product only, and once."""
    twice = with_copies("{warehouse: pg, table: t}", "{warehouse: pg, table: T}")
    [problem] = problems_of(write(product=twice, also=WAREHOUSES))
    assert 'target.copies[1].table: this copy is declared twice; expected a table of its own; found "T"' in problem
    root = write(product=with_copies("{warehouse: pg, table: t}"), also=WAREHOUSES)
    other = with_copies("{warehouse: pg, table: t}").replace("fin.daily_revenue", "fin.other")
    (root / "products" / "other.yaml").write_text(other, encoding="utf-8")
    [problem] = problems_of(root)
    assert problem.startswith("products/other.yaml:")
    assert (
        'target.copies[0].table: it is a copy of fin.daily_revenue; expected a table of its own; found "t"' in problem
    )


def test_a_table_that_publications_leave_alone_has_no_copies(write: Write):
    """In modes with a side table the rows that readers should see are not in the target."""
    product = with_copies("{warehouse: pg, table: t}") + "publish: {mode: version, versions: lake.fin.versions}\n"
    [problem] = problems_of(write(product=product, also=WAREHOUSES))
    assert "publish.mode version leaves the table as it is, so that a copy has nothing to follow" in problem


def test_a_warehouse_has_the_keys_of_its_type(write: Write):
    """Missing keys and those of another type are named."""
    also = """\
warehouses:
  pg: {type: postgres, account: x}
  snow: {type: snowflake, uri: "postgresql://h/db", account: a, user: u, private_key: k, role: r, database: d,
         schema: s}
"""
    found = problems_of(write(also=also))
    texts = " ".join(found)
    assert 'missing key "uri" in warehouses.pg, which postgres needs' in texts
    assert 'the key "account" belongs to a warehouse with type: snowflake' in texts
    assert 'the key "uri" belongs to a warehouse with type: postgres' in texts
    assert 'missing key "warehouse" in warehouses.snow, which snowflake needs' in texts
    assert len(found) == 4


def test_statements_of_consumers_run_in_postgres_only(write: Write):
    """A refresh cannot name a Snowflake account."""
    also = WAREHOUSES + "consumers:\n  x: {reads: [fin.daily_revenue], refresh: [{sql: SELECT 1, on: snow}]}\n"
    [problem] = problems_of(write(also=also))
    assert 'refresh[0].on: expected a warehouse of errata.yaml with type: postgres; found "snow"' in problem
