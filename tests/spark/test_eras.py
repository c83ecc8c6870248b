"""Eras of a source: each shape is read as it is and adapted, and a broken file is an error by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from errata.canonical import canonical_bytes, digest_of
from errata.engines.failures import classify_error
from errata.engines.files.source import FileSource
from errata.engines.spark.inputs.exact_cast import is_changed
from errata.engines.spark.inputs.frames import read_input_frames, read_screened
from errata.errors import ManifestTampered, SourceCorrupt
from errata.model.manifest import InputPin, Manifest
from errata.model.partition import Grain
from errata.model.product import Input
from errata.model.product.eras import Era, RowRule
from errata.model.types import is_castable, to_spark_type
from errata.planning.era_coverage import check_coverage
from unit.gate.manifests import input_pin, manifest, target_pin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")
COLUMNS = {"account": "string", "amount": "decimal(12, 2)", "n": "long", "tags": "array<string>"}
ERAS = (
    Era(
        "text",
        has=("amt",),
        rename={"Acct No": "account", "amt": "amount"},
        cast={"amount": "decimal(12, 2)"},
        default={"n": "7", "tags": None},
    ),
    Era("today", lacks=("amt",), drop=("junk",)),
)


def _write(path: Path, columns: Any, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path, **options)
    return path


def _run(pin: InputPin) -> Manifest:
    return manifest(inputs=(pin,), partitions=DAYS, target=target_pin("lake.t", "d", "date", Grain.DAY, {"d": "date"}))


def _planned(root: Path, **declared: Any) -> tuple[InputPin, dict[str, bytes]]:
    """The pin that a plan would seal for these files."""
    partition = declared.pop("partition", "d")
    pattern = f"{root}/d={{d}}/*.parquet" if partition else f"{root}/**/*.parquet"
    source = Input("raw", files=pattern, partition=partition, **({"columns": COLUMNS, "eras": ERAS} | declared))
    facts = FileSource(str(root)).read_input(source, Grain.DAY, DAYS)
    proof = check_coverage(source, facts, Grain.DAY, "date")
    assert not proof.problems
    digest = digest_of(facts.files)
    pin = input_pin(
        "raw", pattern, partition, "date" if partition else None, kind="files", files_part=digest,
        columns=proof.columns, eras=source.eras, era_of=proof.era_of, schemas=facts.schemas, row_rules=source.rows,
    )  # fmt: skip
    return pin, {digest: canonical_bytes(facts.files)}


def test_three_shapes_become_one_and_a_day_may_have_two(spark: SparkSession, tmp_path: Path) -> None:
    """Renamed, cast, defaulted and dropped columns meet in one schema; no shape is read by another one's columns."""
    old = {"Acct No": ["a"], "amt": ["1.50"], "n": ["not this one"]}
    new = {
        "account": ["b"],
        "amount": pa.array([Decimal("2.00")], pa.decimal128(9, 2)),
        "n": pa.array([2], pa.int32()),
        "tags": [["x", "y"]],
    }
    _write(tmp_path / "d=2026-01-01/0.parquet", {key: old[key] for key in ("Acct No", "amt")})
    _write(tmp_path / "d=2026-01-02/0.parquet", {key: old[key] for key in ("amt", "Acct No")})
    _write(tmp_path / "d=2026-01-02/1.parquet", new | {"junk": [1]})
    _write(tmp_path / "d=2026-01-03/0.parquet", new | {"n": [3], "tags": pa.array([None], pa.list_(pa.string()))})
    pin, parts = _planned(tmp_path)
    assert pin.era_of == {DAYS[0]: ("text",), DAYS[1]: ("text", "today"), DAYS[2]: ("today",)}
    found = read_input_frames(spark, _run(pin), parts, DAYS)["raw"]
    assert found.dtypes == [
        ("account", "string"),
        ("amount", "decimal(12,2)"),
        ("n", "bigint"),
        ("tags", "array<string>"),
        ("d", "date"),
    ]
    assert sorted(map(tuple, found.collect())) == [
        ("a", Decimal("1.50"), 7, None, date(2026, 1, 1)),
        ("a", Decimal("1.50"), 7, None, date(2026, 1, 2)),
        ("b", Decimal("2.00"), 2, ["x", "y"], date(2026, 1, 2)),
        ("b", Decimal("2.00"), 3, None, date(2026, 1, 3)),
    ]
    assert read_input_frames(spark, _run(pin), parts, ["2025-12-31"])["raw"].count() == 0


def test_rules_work_without_eras_and_on_input_that_is_read_whole(spark: SparkSession, tmp_path: Path) -> None:
    """Row rules alone read files as they always were; what they take out carries the file it came from."""
    place = _write(tmp_path / "d=2026-01-01/0.parquet", {"n": pa.array([1, None, -1]), "name": ["x", "y", "z"]})
    rule = RowRule("negative", "n < 0", "quarantine", "`n` < 0")
    pin, parts = _planned(tmp_path, columns={}, eras=(), rows=(rule,), partition=None)
    run = _run(pin)
    assert sorted(row["name"] for row in read_input_frames(spark, run, parts, DAYS)["raw"].collect()) == ["x", "y"]
    (out,) = read_screened(spark, pin, parts, DAYS, Grain.DAY, "date").where("__errata_out is not null").collect()
    assert (out["__errata_out"]["reason"], out["__errata_source"]) == ("negative", '{"n":-1,"name":"z"}')
    assert out["__errata_origin"].endswith(str(place))


def test_a_table_is_adapted_by_span(spark: SparkSession) -> None:
    """One schema, two meanings: cents until the first, amounts after it; each partition is read in its own era."""
    spark.sql("CREATE TABLE lake.era_in (d date, cents bigint, amount decimal(12,2)) USING iceberg PARTITIONED BY (d)")
    spark.sql("INSERT INTO lake.era_in VALUES (date'2026-01-01', 150, null), (date'2026-01-02', null, 2.50)")
    (snapshot,) = spark.sql("SELECT snapshot_id FROM lake.era_in.snapshots").collect()
    eras = (
        Era("cents", last=DAYS[0], rename={"cents": "amount"}, drop=("amount",), cast={"amount": "decimal(12, 2)"}),
        Era("amounts", first=DAYS[1]),
    )
    pin = input_pin(
        "raw", "lake.era_in", "d", "date", snapshot_id=str(snapshot[0]), eras=eras,
        columns={"amount": "decimal(12, 2)", "d": "date"}, era_of={DAYS[0]: ("cents",), DAYS[1]: ("amounts",)},
        schemas=({"d": "date", "cents": "long", "amount": "decimal(12, 2)"},),
    )  # fmt: skip
    found = read_input_frames(spark, _run(pin), {}, DAYS)["raw"].collect()
    assert sorted(row["amount"] for row in found) == [Decimal("2.50"), Decimal("150.00")]
    origins = {row["__errata_origin"] for row in read_screened(spark, pin, {}, DAYS, Grain.DAY, "date").collect()}
    assert origins == {f"lake.era_in@{snapshot[0]}"}
    assert read_input_frames(spark, _run(pin), {}, ["2025-12-31"])["raw"].count() == 0
    unseen = replace(pin, era_of={DAYS[1]: ("amounts",)})  # metadata did not show that the first day has rows
    found = read_input_frames(spark, _run(unseen), {}, DAYS)["raw"].collect()
    assert sorted(row["amount"] for row in found) == [Decimal("2.50"), Decimal("150.00")]
    with pytest.raises(ManifestTampered, match="raw: 2026-01-01 is in 0 eras; expected exactly one"):
        read_input_frames(spark, _run(replace(unseen, eras=eras[1:])), {}, DAYS)
    spark.sql("DROP TABLE lake.era_in PURGE")


EXACT: dict[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...]]] = {
    # (found, wanted): (values that are kept, values that a cast would change), in the words of Spark SQL
    ("string", "date"): (
        ("'2023-11-30'",),
        ("'2023'", "'2023-11'", "'2023-11-30 garbage'", "'2023-11-30T10'", "'2023-02-30'", "' 2023-11-30'"),
    ),
    ("string", "timestamp"): (
        ("'2023-11-30T10:00:00'", "'2023-11-30 10:00:00.123456'"),
        (
            "'2023'",
            "'2023-11-30'",
            "'2023-11-30 10:00'",
            "'2023-11-30 10:00:00Z'",
            "'10:00:00'",
            "'2023-11-30 10:00:00\\n'",
        ),
    ),
    ("string", "timestamptz"): (
        ("'2023-11-30T10:00:00Z'", "'2023-11-30 10:00:00.5+01:00'"),
        ("'2023-11-30T10:00:00'", "'2023-11-30'", "'2023-11-30T10:00:00 nowhere'", "'2023-11-30T25:00:00Z'"),
    ),
    ("string", "int"): (("'12'", "' -7 '"), ("'1.0'", "'1.5'", "'12x'", "'2147483648'", "''")),
    ("string", "decimal(38, 2)"): (
        ("'1.50'", "'.5'", "'1.500'", "'123456789012345678901234567890.12'", "'15e-1'", "'1e2'", "'-0'"),
        (
            "'1.005'",
            "'123456789012345678901234567890.123'",
            "'15e-3'",
            "'1.5e-18'",
            "'1e-99999999999'",
            "'1e-9223372036854775808'",
            "'1e36'",
        ),
    ),
    ("string", "double"): (
        ("'0.1'", "'1e300'", "'0'", "'0.30000000000000004'", "'-0.0'", "'123456789012345e10'"),
        ("'1e999'", "'1e-999'", "'NaN'", "'Infinity'", "'1.5d'", "'0.1234567890123456789'", "'9007199254740993'"),
    ),
    ("string", "float"): (("'0.1'", "'16777216'"), ("'0.123456789'", "'16777217'", "'1e39'")),
    ("string", "boolean"): (("'true'", "'F'"), ("'maybe'", "'2'")),
    ("long", "double"): (("9007199254740992L", "-1L"), ("9007199254740993L", "9223372036854775807L")),
    ("long", "int"): (("1L",), ("2147483648L",)),
    ("int", "float"): (("16777216",), ("16777217", "2147483647")),
    ("long", "decimal(3, 1)"): (("99L",), ("100L",)),
    ("double", "float"): (("0.5D", "double('NaN')"), ("0.1D", "1e300D")),
    ("double", "long"): (("2D",), ("1.5D", "double('NaN')", "9223372036854775808D", "1e300D")),
    ("double", "decimal(12, 2)"): (("0.1D",), ("1.005D", "double('Infinity')")),
    ("decimal(20, 2)", "double"): (("0.10BD",), ("123456789012345678.91BD",)),
    ("decimal(20, 2)", "decimal(20, 1)"): (("0.10BD",), ("0.11BD",)),
    ("int", "boolean"): (("0", "1"), ("2", "-1")),
    ("boolean", "int"): (("true", "false"), ()),
    ("long", "timestamptz"): (("1700000000L",), ("9223372036854775807L",)),
    ("double", "timestamptz"): (("1.5D",), ("1.00000001D", "double('NaN')")),
    ("timestamp", "date"): (("timestamp_ntz'2023-11-30 00:00:00'",), ("timestamp_ntz'2023-11-30 00:00:01'",)),
    ("date", "timestamp"): (("date'2023-11-30'",), ()),
    ("timestamptz", "timestamp"): (("timestamp'2023-11-30 10:00:00Z'",), ()),
    ("double", "string"): (("0.1D", "double('NaN')"), ()),
    ("timestamp", "string"): (("timestamp_ntz'2023-11-30 10:00:00.123456'",), ()),
}


def _told(found: str, wanted: str) -> Callable[[Column], Column]:
    return lambda value: is_changed(value, found, value.try_cast(to_spark_type(wanted)), wanted)


def test_no_cast_changes_a_value(spark: SparkSession) -> None:
    """For each pair of types: what comes out is what went in, and what would not be is named; NULL stays NULL."""
    asked = []
    for n, ((found, wanted), (kept, changed)) in enumerate(EXACT.items()):
        values = F.expr(f"cast(array({', '.join([*kept, *changed, 'NULL'])}) AS array<{to_spark_type(found)}>)")
        asked += [values.cast("array<string>").alias(f"v{n}"), F.transform(values, _told(found, wanted)).alias(f"t{n}")]
    answers = spark.range(1).select(*asked).first()
    assert answers is not None
    wrong = []
    for n, ((found, wanted), (kept, changed)) in enumerate(EXACT.items()):
        expected = [False] * len(kept) + [True] * len(changed) + [False]
        told = zip(answers[f"v{n}"], answers[f"t{n}"], expected, strict=True)
        wrong += [f"{found} to {wanted}: {value} was {was}" for value, was, right in told if was is not right]
    assert wrong == []
    assert all(is_castable(found, wanted) for found, wanted in EXACT)


@pytest.mark.parametrize("spoil", ["cut", "empty", "page"])
def test_a_broken_file_is_an_error_by_name_and_never_fewer_rows(
    spark: SparkSession, tmp_path: Path, spoil: str
) -> None:
    """Cut off, emptied, or one bit of a page flipped: the file is named, even where the session would look away."""
    whole = pa.table({"n": list(range(5000))})
    _write(tmp_path / "d=2026-01-01/good.parquet", whole)
    bad = _write(tmp_path / "d=2026-01-01/bad.parquet", whole, compression="none", write_page_checksum=True)
    pin, parts = _planned(tmp_path, columns={}, eras=())
    content = bytearray(bad.read_bytes())
    content[len(content) // 2] ^= 1
    bad.write_bytes({"cut": bad.read_bytes()[:-100], "empty": b"", "page": bytes(content)}[spoil])
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    with pytest.raises(Exception) as broken:  # noqa: PT011 - Spark's own, of several kinds
        read_input_frames(spark, _run(pin), parts, DAYS)["raw"].agg({"n": "sum"}).collect()
    error = broken.value if isinstance(broken.value, SourceCorrupt) else classify_error(broken.value, "chunk c1", None)
    assert isinstance(error, SourceCorrupt)
    assert str(bad) in error.message
