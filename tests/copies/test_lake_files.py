"""Data files of real Iceberg tables: which of them Snowflake may load as they are, and that the rows are the same."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from contract.iceberg_subject import open_engines
from copies.snowflake_sessions import hook_sessions
from copies.snowflake_subject import make_account
from errata.engines.copies.snowflake_copies import SnowflakeCopies
from errata.model.copy.table import CopyColumn, CopyTable
from errata.model.partition import Grain
from errata.ports.copies import LakeRows
from errata.wiring.engines import ProjectEngines
from support.fakesnow import FakeSnowflake

pytestmark = pytest.mark.spark
DAYS = ("2026-01-01", "2026-01-02")
KINDS = {"day": "date", "n": "int", "amount": "decimal(12, 2)", "note": "string"}
ROWS = ", ".join(
    f"(DATE'{day}', {n}, {n}.5, {note})" for day in DAYS for n, note in ((1, "'é'"), (2, "NULL"), (3, "''"))
)
PARTITIONED = "PARTITIONED BY (day)"


@dataclass
class Case:
    """A table, what was done to it after its first rows, and why its first files are refused."""

    told: str | None
    then: tuple[str, ...] = ()
    partitions: str = PARTITIONED
    properties: str = ""
    kinds: dict[str, str] | None = None


CASES = {
    "fresh": Case(None),
    "renamed": Case(
        "called amount", ("ALTER TABLE {t} RENAME COLUMN amount TO gross",), kinds={"gross": "decimal(12, 2)"}
    ),
    "dropped and added again": Case(
        "note is not stored", ("ALTER TABLE {t} DROP COLUMN note", "ALTER TABLE {t} ADD COLUMN note string")
    ),
    "added": Case("extra is not stored", ("ALTER TABLE {t} ADD COLUMN extra int",), kinds={"extra": "int"}),
    "promoted": Case("n is int in it", ("ALTER TABLE {t} ALTER COLUMN n TYPE bigint",), kinds={"n": "long"}),
    "deleted": Case("deleted", ("DELETE FROM {t} WHERE n = 2",), properties=", 'write.delete.mode'='merge-on-read'"),
    "without partitions": Case("other partitions", partitions=""),
    "coarser partitions": Case("other partitions", partitions="PARTITIONED BY (months(day))"),
    "orc": Case("it is orc", properties=", 'write.format.default'='orc'"),
}  # fmt: skip


@pytest.fixture(scope="module")
def engines(base_spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProjectEngines]:
    with open_engines(tmp_path_factory.mktemp("files"), base_spark) as made:
        yield made


def make_rows(engines: ProjectEngines, case: Case) -> tuple[CopyTable, LakeRows, str]:
    """A table of this case, one day of which is delivered."""
    table, session = f"lake.fin.t{uuid.uuid4().hex[:12]}", engines.runtime.session
    columns = "day date, n int, amount decimal(12,2), note string"
    session.sql(
        f"CREATE TABLE {table} ({columns}) USING iceberg {case.partitions}"
        f" TBLPROPERTIES ('format-version'='2'{case.properties})"
    )
    session.sql(f"INSERT INTO {table} VALUES {ROWS}")
    for statement in case.then:
        session.sql(statement.format(t=table))
    names = [field.name for field in session.table(table).schema]
    kinds = KINDS | (case.kinds or {})
    chosen = tuple(CopyColumn(name, name.upper(), kinds[name]) for name in names)
    copy = CopyTable("snow", "DAILY", chosen, chosen[0], Grain.DAY)
    snapshot = str(session.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at DESC").first()[0])
    return copy, engines.lake_rows.read(copy, table, snapshot, DAYS[:1]), table


@pytest.mark.parametrize("name", CASES)
def test_a_file_is_loaded_as_it_is_only_if_its_metadata_proves_it(engines: ProjectEngines, name: str) -> None:
    """What is refused is named; without the files that are loaded, the rows of all others are left."""
    case = CASES[name]
    _, rows, _ = make_rows(engines, case)
    files = rows.files()
    assert files
    for file in files:
        assert (file.refusal is None) if case.told is None else (case.told in (file.refusal or ""))
    chosen = [file.path for file in files if file.refusal is None]
    left = sum(batch.num_rows for batch in rows.batches(chosen))
    counted = rows.measure()
    assert left == (0 if case.told is None else counted[DAYS[0]].rows)
    assert sum(batch.num_rows for batch in rows.batches()) == counted[DAYS[0]].rows
    assert rows.measure() == counted


@pytest.mark.slow
@pytest.mark.parametrize("stage", [None, "@LAKE_STAGE"], ids=["uploaded", "external stage"])
@pytest.mark.parametrize("name", CASES)
def test_staging_holds_the_rows_of_the_table_either_way(
    engines: ProjectEngines, fakesnow: FakeSnowflake, snowflake_database: str, name: str, stage: str | None
) -> None:
    """Files as they are, or rows that are written again: the checksum is that of a read by the table."""
    copy, rows, table = make_rows(engines, CASES[name])
    location = engines.catalogs.load(table).location().removeprefix("file:").lstrip("/")
    account = replace(make_account(fakesnow, snowflake_database), stage=stage)
    fakesnow.execute(
        f"create stage LAKE_STAGE url = 'file:///{location}/'", database=snowflake_database, schema="PUBLIC"
    )
    seen: list[str] = []
    copies = SnowflakeCopies({"snow": account}, hook_sessions(before=seen.append))
    loaded = copies.load(copy, "errata_stage_1", rows)
    assert copies.measure(copy, None, staging="errata_stage_1") == rows.measure()
    assert loaded.rows == rows.measure()[DAYS[0]].rows
    puts = [one for one in seen if one.startswith("PUT")]
    is_as_it_is = CASES[name].told is None
    assert (loaded.rows_as_is, loaded.files_as_is > 0) == (loaded.rows if is_as_it_is else 0, is_as_it_is)
    assert any("/lake-" in one for one in puts) == (is_as_it_is and stage is None)
    assert any("FROM @LAKE_STAGE FILES" in one for one in seen) == (is_as_it_is and stage is not None)
    assert any("rows-00000.parquet" in one for one in puts) == (not is_as_it_is)


def test_old_and_new_files_are_loaded_together(
    engines: ProjectEngines, fakesnow: FakeSnowflake, snowflake_database: str
) -> None:
    """A file from before a column was renamed is written again, one from after it is loaded as it is."""
    copy, _, table = make_rows(engines, CASES["renamed"])
    session = engines.runtime.session
    session.sql(f"INSERT INTO {table} VALUES (DATE'{DAYS[0]}', 9, 9.5, 'new')")
    snapshot = str(session.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at DESC").first()[0])
    rows = engines.lake_rows.read(copy, table, snapshot, DAYS[:1])
    assert sorted(file.refusal is None for file in rows.files()) == [False, True]
    copies = SnowflakeCopies({"snow": make_account(fakesnow, snowflake_database)})
    assert copies.load(copy, "errata_stage_1", rows).rows == 4
    assert copies.measure(copy, None, staging="errata_stage_1") == rows.measure()
