"""Which data files a warehouse may read by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from errata.model.copy.lake_file import FileColumn, FileFacts, LakeFile, find_load_refusal
from errata.model.copy.load_plan import plan_load

DAY, AMOUNT = FileColumn(1, "day", "date"), FileColumn(2, "amount", "decimal(12, 2)")
WANTED = (DAY, AMOUNT)
GOOD = FileFacts("PARQUET", is_encrypted=False, has_deletes=False, is_whole=True, columns=WANTED)


def test_a_file_is_loaded_when_everything_is_proven() -> None:
    """Columns that nobody copies, and their order, do not matter."""
    assert find_load_refusal(GOOD, WANTED) is None
    assert find_load_refusal(replace(GOOD, columns=(AMOUNT, FileColumn(9, "note", "binary"), DAY)), WANTED) is None


@pytest.mark.parametrize(
    "facts,told",
    [
        (replace(GOOD, format="ORC"), "orc"),
        (replace(GOOD, format="AVRO"), "avro"),
        (replace(GOOD, is_encrypted=True), "encrypted"),
        (replace(GOOD, has_deletes=True), "deleted"),
        (replace(GOOD, is_whole=False), "other partitions"),
        # renamed since: by its name the warehouse would find nothing, and load NULL without an error
        (replace(GOOD, columns=(DAY, FileColumn(2, "amt", "decimal(12, 2)"))), "called amt"),
        # dropped, and added again under the same name: by its name the warehouse would load the old values
        (replace(GOOD, columns=(DAY, FileColumn(7, "amount", "decimal(12, 2)"))), "not stored"),
        # a column of a table that was adopted has no id
        (replace(GOOD, columns=(DAY, FileColumn(None, "amount", "decimal(12, 2)"))), "not stored"),
        # in the path only, as in Hive; or added later, perhaps with a default
        (replace(GOOD, columns=(AMOUNT,)), "day is not stored"),
        (replace(GOOD, columns=(DAY, FileColumn(2, "amount", "decimal(9, 2)"))), "decimal(9, 2)"),
        (replace(GOOD, columns=(DAY, FileColumn(2, "amount", "timestamp[ns]"))), "timestamp[ns]"),
        (replace(GOOD, columns=(*WANTED, FileColumn(8, "AMOUNT", "int"))), "different cases"),
    ],
)
def test_a_file_that_a_warehouse_would_read_differently_is_refused(facts: FileFacts, told: str) -> None:
    """The number of rows would agree in most of these cases, and the values would not."""
    assert told in (find_load_refusal(facts, WANTED) or "")


def test_files_are_loaded_from_the_stage_that_is_over_them() -> None:
    """Others from this machine; what is neither, or is refused, is written again."""
    paths = [
        "s3a://lake/fin/t/a.parquet",
        "s3://lake/fin2/t/b.parquet",
        "file:///lake/t/c.parquet",
        "/lake/t/d=1/e.parquet",
    ]
    odd = ["/lake/it's/f.parquet", "/lake/*.parquet", "file:///lake/a b.parquet"]
    files = [LakeFile(path, 1, None) for path in (*paths, *odd)] + [LakeFile("s3://lake/fin/x", 1, "it is encrypted")]
    plan = plan_load(files, "s3://lake/fin")
    assert [name for _, name in plan.staged] == ["t/a.parquet"]
    assert [path for _, path in plan.local] == ["/lake/t/c.parquet", "/lake/t/d=1/e.parquet"]
    assert plan.rows == 3
    assert plan_load(files, None).staged == ()
