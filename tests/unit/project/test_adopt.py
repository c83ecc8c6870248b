from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errata.errors import UsageError
from errata.model.partition import Grain
from errata.model.product import LINEAGE_COLUMNS, Product
from errata.ports.tables import Column, PartitionField
from errata.project import load_project
from errata.project.adopt import draft_product
from unit.project.conftest import PROJECT
from unit.project.test_check import BY_DAY, Facts


def loaded(text: str, catalog: str = "lake") -> Product:
    """The draft, read as a product file."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "products").mkdir()
        (root / "errata.yaml").write_text(PROJECT.replace("  lake:", f'  "{catalog}":'), encoding="utf-8")
        (root / "products" / "draft.yaml").write_text(text, encoding="utf-8")
        (product,) = load_project(root, environ={}).products.values()
        return product


def test_a_draft_says_what_the_table_is():
    """Names, grain, key and the checks that follow from the key come from the table."""
    text = draft_product(Facts(identifier_columns=("business_date", "account_id")), owner='fin "data"')
    product = loaded(text)
    assert (product.name, product.owner) == ("fin.daily_revenue", 'fin "data"')
    assert (product.target.column, product.target.grain) == ("business_date", Grain.DAY)
    assert product.target.key == ("business_date", "account_id")
    assert [check.name for check in product.checks] == [
        "rowCount",
        "nullValues(business_date)",
        "nullValues(account_id)",
        "duplicateValues(business_date,account_id)",
    ]
    assert product.lineage_columns == ()
    assert "ALTER TABLE lake.fin.daily_revenue ADD COLUMNS (produced_by_run_id STRING," in text


def test_a_draft_offers_a_query_first_and_a_function_beside_it():
    """The query is written out as far as the table tells; lineage columns are Errata's."""
    columns = (Column("business_date", "date"), Column("gross total", "long"), Column("produced_by_run_id", "string"))
    text = draft_product(Facts(columns=columns))
    assert loaded(text).transform.call == "transforms/daily_revenue.sql"
    assert "#   SELECT business_date, `gross total` FROM source\n" in text
    assert '# transform: {call: "transforms.daily_revenue:build"' in text


def test_time_is_preferred_to_value():
    """A table by tenant and hour is corrected by hour."""
    fields = (
        PartitionField("tenant", "string", "identity", Grain.VALUE),
        PartitionField("ts", "timestamptz", "hour", Grain.HOUR),
    )
    product = loaded(draft_product(Facts(partition_fields=fields)))
    assert (product.target.column, product.target.grain) == ("ts", Grain.HOUR)


def test_lineage_columns_that_are_there_are_used():
    """Those that `true` means become `true`, some or more become a list."""
    every = tuple(Column(name, "string") for name in LINEAGE_COLUMNS)
    assert loaded(draft_product(Facts(columns=every))).lineage_columns == LINEAGE_COLUMNS
    assert loaded(draft_product(Facts(columns=every[:2]))).lineage_columns == LINEAGE_COLUMNS[:2]
    assert "lineage_columns: true" in draft_product(Facts(columns=every[:-1]))


def test_a_table_without_a_unit_of_correction_is_refused():
    """Buckets mean nothing to readers."""
    bucket = PartitionField("id", "long", "bucket[16]", None)
    with pytest.raises(UsageError, match=r"found bucket\[16\]\(id\)"):
        draft_product(Facts(partition_fields=(bucket,)))
    with pytest.raises(UsageError, match="found nothing"):
        draft_product(Facts(partition_fields=()))


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True) | st.sampled_from(
    ["null", "True", "NO", "on", "_1"]
)


@given(
    parts=st.lists(NAMES, min_size=3, max_size=5),
    columns=st.lists(
        st.tuples(NAMES | st.text(max_size=8), st.sampled_from(["long", "decimal(9, 2)", "struct<1: a: int>"]))
    ),
    column=NAMES,
    grain=st.sampled_from(list(Grain)),
    key=st.lists(NAMES | st.text(max_size=5), unique=True, max_size=4),
)
@settings(deadline=None)  # a busy machine is no failure
def test_every_draft_loads(parts: list[str], columns: list[tuple[str, str]], column: str, grain: Grain, key: list[str]):
    """Whatever the table is called and holds, its draft is a product file."""
    facts = Facts(
        table=".".join(parts),
        columns=tuple(Column(name, kind) for name, kind in columns),
        partition_fields=(PartitionField(column, "timestamptz", "day", grain),),
        identifier_columns=tuple(key),
    )
    product = loaded(draft_product(facts), catalog=parts[0])
    assert product.target.table == facts.table
    assert product.target.column == column


def test_a_hostile_column_name_stays_in_its_comment():
    """A line break in a name cannot add a key to the file."""
    text = draft_product(Facts(columns=(Column("a\nowner: mallory", "string"),)))
    assert loaded(text).owner == "CHANGE_ME"
    assert BY_DAY.column in text
