from __future__ import annotations

from pathlib import Path

import pytest

from errata.errors import ProjectFileError
from errata.model.partition import Grain
from errata.model.product import LINEAGE_COLUMNS, Product, Role, Threshold
from errata.project import load_project
from unit.project.conftest import PRODUCT, PROJECT, Write


def problems_of(root: Path, **environ: str) -> list[str]:
    """Every problem as ``file:line: message``."""
    with pytest.raises(ProjectFileError) as refused:
        load_project(root, environ=environ)
    listed = [line.strip() for line in refused.value.message.splitlines()[1:]]
    assert len(listed) == len(refused.value.fields["problems"])
    return listed


def product_with(write: Write, extra: str) -> Product:
    return load_project(write(extra=extra)).products["fin.daily_revenue"]


def test_a_project_loads_from_its_directory_and_from_its_file(write: Write):
    """The directory and the file name the same project."""
    root = write()
    assert load_project(root) == load_project(root / "errata.yaml") == load_project(str(root))


def test_relative_places_become_absolute_and_other_schemes_stay(write: Write):
    """Paths are relative to errata.yaml, wherever the command runs."""
    elsewhere = "  far: {type: rest, uri: https://catalog.example/api, warehouse: s3://lake/wh}\n"
    root = write(project=PROJECT.replace("people:", elsewhere + "people:"))
    project = load_project(root)
    base = root.resolve()
    assert project.ledger == f"sqlite:///{base}/.errata/ledger.db"
    assert project.catalogs["lake"].uri == f"sqlite:///{base}/.errata/catalog.db"
    assert project.catalogs["lake"].warehouse == f"{base}/.errata/warehouse"
    assert (project.catalogs["far"].uri, project.catalogs["far"].warehouse) == (
        "https://catalog.example/api",
        "s3://lake/wh",
    )
    files = project.products["fin.daily_revenue"].inputs[0].files
    assert files == f"{base}/raw/transactions/business_date={{business_date}}/*.parquet"


def test_people_have_their_roles(write: Write):
    """Named people make a project that is not single-user."""
    project = load_project(write())
    assert project.people["bo"].roles == (Role.APPROVER, Role.PUBLISHER)
    assert not project.single_user


def test_single_user_is_said_and_never_assumed(write: Write):
    """Leaving people out is a problem; `single-user` is a decision."""
    nobody = PROJECT.partition("people:")[0]
    assert problems_of(write(project=nobody)) == ['errata.yaml:1: missing key "people"']
    project = load_project(write(project=nobody + "people: single-user\n"))
    assert project.single_user
    assert not project.people


def test_an_unknown_key_names_file_line_and_the_nearest_key(write: Write):
    """A typo is answered with what was probably meant."""
    root = write(
        project=PROJECT.replace("ledger:", "ledgr:"),
        extra="    lookbck: 1d\nfrobnicate: 1\n",
    )
    listed = problems_of(root)
    assert 'errata.yaml:1: missing key "ledger"' in listed
    assert 'errata.yaml:2: unknown key "ledgr"; nearest valid key: "ledger"' in listed
    where = 'products/daily_revenue.yaml:12: unknown key "lookbck" in inputs.transactions'
    assert f'{where}; nearest valid key: "lookback"' in listed
    assert any(
        line.startswith('products/daily_revenue.yaml:13: unknown key "frobnicate"; valid keys: ') for line in listed
    )


def test_keys_differing_only_in_case_are_recognised(write: Write):
    """`mustbe` is answered with `mustBe`."""
    root = write(extra="checks:\n  - {metric: rowCount, mustbe: 0}\n")
    said = 'products/daily_revenue.yaml:13: unknown key "mustbe" in checks[0]; nearest valid key: "mustBe"'
    assert problems_of(root) == [said]


def test_duplicate_keys_are_refused_at_every_depth(write: Write):
    """The last of two keys never wins silently."""
    root = write(also="project: other\n", product=PRODUCT.replace("grain: day}", "grain: day, grain: hour}"))
    assert problems_of(root) == [
        'errata.yaml:8: duplicate key "project"; it was given before, on line 1',
        'products/daily_revenue.yaml:5: duplicate key "grain"; it was given before, on line 5',
    ]


def test_problems_carry_fields_for_programs(write: Write):
    """Each problem is data: file, line, column, message, key, level."""
    with pytest.raises(ProjectFileError) as refused:
        load_project(write(product=PRODUCT.replace("grain: day", "grain: dayly")))
    assert refused.value.fields["problems"] == [
        {
            "file": "products/daily_revenue.yaml",
            "line": 5,
            "column": 45,
            "message": "target.partition.grain: expected one of hour, day, month, year, value"
            ' (nearest: "day"); found "dayly"',
            "key": "target.partition.grain",
            "level": "problem",
        }
    ]


@pytest.mark.parametrize(
    "old,new,said",
    [
        ("owner: finance-data", "owner: 12", "2: owner: expected one line of text; found 12"),
        ("owner: finance-data", "owner:", "2: owner: expected one line of text; found nothing"),
        ("owner: finance-data", "owner: [a]", "2: owner: expected one line of text; found a list"),
        (
            "key: [business_date, account_id]",
            "key: business_date",
            '6: target.key: expected a list; found "business_date"',
        ),
        ("key: [business_date, account_id]", "key: [a, a]", '6: target.key[1]: given twice; found "a"'),
        ("{column: business_date, grain: day}", "day", '5: target.partition: expected a mapping; found "day"'),
        (
            "lake.fin.daily_revenue",
            "lake.daily",
            '4: target.table: expected catalog.namespace.table; found "lake.daily"',
        ),
        (
            "lake.fin.daily_revenue",
            "pond.fin.daily",
            '4: target.table: expected a table of a catalog in errata.yaml (lake); found "pond.fin.daily"',
        ),
        (
            "transforms.daily_revenue:build",
            "transforms/daily.py",
            '7: transform.call: expected package.module:function; found "transforms/daily.py"',
        ),
        (
            "column: business_date, grain",
            'column: "a b; --", grain',
            '5: target.partition.column: expected a column name of letters, digits and _; found "a b; --"',
        ),
        (
            "fin.daily_revenue\nowner",
            "fin-x\nowner",
            '1: product: expected a name such as fin.daily_revenue; found "fin-x"',
        ),
    ],
)
def test_wrong_values_say_what_was_expected_and_found(write: Write, old: str, new: str, said: str):
    """One message per fault, at the line of the fault."""
    assert old in PRODUCT
    assert problems_of(write(product=PRODUCT.replace(old, new))) == [f"products/daily_revenue.yaml:{said}"]


def test_input_names_must_fit_a_parameter(write: Write):
    """`ctx`, keywords and the like cannot be given to the transform."""
    for name in ("ctx", "class", "a-b"):
        listed = problems_of(write(product=PRODUCT.replace("  transactions:", f"  {name}:")))
        wanted = "a name that can be a parameter of the transform, other than ctx"
        assert listed == [f'products/daily_revenue.yaml:9: inputs.{name}: expected {wanted}; found "{name}"']


@pytest.mark.parametrize(
    "line,said",
    [
        ("table: lake.a.b", "expected one of table, files, recording, kafka and own"),
        ("lookback: 12h", 'lookback: expected whole days or months; found "12h"'),
        (
            "grain: value",
            'grain: expected day, the grain of the target, or no key: only times are nested; found "value"',
        ),
        ("lookback: 3m", 'lookback: expected a whole number and h, d, w, mo or y, such as 3d; found "3m"'),
        ("lookback: 3", "lookback: expected a whole number and h, d, w, mo or y, such as 3d; found 3"),
        ("version: v1", "; only tables have tags"),
        (
            "reference: as_recorded",
            'reference: only a table has snapshots; expected current, corrected_truth or none; found "as_recorded"',
        ),
        (
            "reference: now",
            'reference: expected one of as_recorded, corrected_truth, current, as_decided; found "now"',
        ),
    ],
)
def test_inputs_are_judged(write: Write, line: str, said: str):
    """Look-back is whole partitions; an input is a table, files or own output."""
    (listed,) = problems_of(write(extra=f"    {line}\n"))
    assert listed.partition("inputs.transactions")[2].lstrip(".: ") == said


@pytest.mark.parametrize("reference", ["as_recorded", "as_decided"])
@pytest.mark.parametrize(
    "other,said",
    [
        ("version: v1", "it names one snapshot for all partitions"),
        ("columns: {rate: double}", "it describes one snapshot"),
        ("rows: [{name: x, expression: rate < 0, action: suppress}]", "it counts the rows of one snapshot"),
    ],
)
def test_what_describes_one_snapshot_does_not_go_with_several(write: Write, reference: str, other: str, said: str):
    """Which of them would it be?"""
    (listed,) = problems_of(write(extra=f"  rates: {{table: lake.a.b, reference: {reference}, {other}}}\n"))
    assert f"{said}, and {reference} reads several" in listed


def test_values_have_no_end_at_which_a_reference_was_recorded(write: Write):
    """What an accepted run read is known for values, too."""
    by_value = PRODUCT.replace("grain: day", "grain: value")
    (listed,) = problems_of(write(product=by_value, extra="  r: {table: lake.a.b, reference: as_recorded}\n"))
    assert "values have no end in time" in listed
    product_with(write, "  r: {table: lake.a.b, reference: as_decided}\n")


def test_a_file_pattern_has_the_partition_and_nothing_else_in_braces(write: Write):
    """A pattern without a place for the partition would read every day for each."""
    for pattern in ("raw/all/*.parquet", "raw/{day}/*.parquet", "raw/{business_date}/{hour}.parquet"):
        old = "raw/transactions/business_date={business_date}/*.parquet"
        (listed,) = problems_of(write(product=PRODUCT.replace(old, pattern)))
        assert "expected {business_date} in place of the partition" in listed


def test_yaml_traps_stay_text(write: Write):
    """What YAML 1.1 would turn into booleans, minutes, dates or floats stays as written."""
    values = "[on, NO, 12:30:45, 2026-01-03, 0755, 1_000, 1.10, '007', yes]"
    product = product_with(
        write, f"checks:\n  - {{metric: invalidValues, column: c, validValues: {values}, mustBe: 0}}\n"
    )
    assert product.checks[0].valid_values == (
        "on",
        "NO",
        "12:30:45",
        "2026-01-03",
        "0755",
        "1_000",
        "1.10",
        "007",
        "yes",
    )
    root = write(product=PRODUCT.replace("version: 2.4.1", "version: 2.10"))
    assert load_project(root).products["fin.daily_revenue"].transform.version == "2.10"


def test_yes_is_not_true(write: Write):
    """Only true and false are booleans."""
    said = 'products/daily_revenue.yaml:12: lineage_columns: expected true or false; found "yes"'
    assert problems_of(write(extra="lineage_columns: yes\n")) == [said]


def test_lineage_columns_are_all_none_or_some_in_their_order(write: Write):
    """`true` means every one but produced_at; a list is put into the standard order."""
    assert product_with(write, "lineage_columns: true\n").lineage_columns == LINEAGE_COLUMNS[:-1]
    named = "lineage_columns: [produced_at, produced_by_run_id]\n"
    assert product_with(write, named).lineage_columns == ("produced_by_run_id", "produced_at")
    assert product_with(write, "").lineage_columns == ()
    some = "lineage_columns: [transform_version, produced_by_run_id]\n"
    assert product_with(write, some).lineage_columns == ("produced_by_run_id", "transform_version")
    (said,) = problems_of(write(extra="lineage_columns: [transform_versio]\n"))
    assert '(nearest: "transform_version"); found "transform_versio"' in said


def test_config_is_json_data(write: Write):
    """A transform gets numbers as numbers; a number that JSON would round is refused."""
    text = "{rounding: half_even, digits: 2, rate: 0.5, strict: true, of: [1, {a: null}]}"
    root = write(product=PRODUCT.replace("version: 2.4.1}", f"version: 2.4.1, config: {text}}}"))
    assert load_project(root).products["fin.daily_revenue"].transform.config == {
        "rounding": "half_even",
        "digits": 2,
        "rate": 0.5,
        "strict": True,
        "of": [1, {"a": None}],
    }
    for bad in ("9007199254740993", ".nan", "-.inf"):
        (said,) = problems_of(write(product=PRODUCT.replace("2.4.1}", f"2.4.1, config: {{n: {bad}}}}}")))
        assert said.startswith("products/daily_revenue.yaml:7: transform.config.n: expected ")


def test_money_and_limits_are_never_binary_floats(write: Write):
    """Prices keep their digits; sizes may carry a unit."""
    project = load_project(
        write(
            also="price: {core_hour_usd: 0.10}\nlimits: {max_usd: 12.50, max_bytes: 2GB, max_rows: 10}\n"
            "chunk_bytes: 64MiB\n"
        )
    )
    assert project.core_hour_usd == "0.10"
    assert (project.limits.max_usd, project.limits.max_bytes, project.limits.max_rows) == ("12.50", 2 * 10**9, 10)
    assert project.limits.max_partitions == 180
    assert project.chunk_bytes == 64 * 2**20


@pytest.mark.parametrize("text", ["0", "-1", "1.5", '"7"', "many", "1e3"])
def test_counts_are_whole_numbers_from_one(write: Write, text: str):
    """A quoted or fractional count is a wrong type."""
    (said,) = problems_of(write(also=f"limits: {{max_partitions: {text}}}\n"))
    assert said.startswith("errata.yaml:8: limits.max_partitions: expected a whole number from 1; found ")


def test_locked_partitions_follow_the_grain(write: Write):
    """Closed books are partitions or inclusive spans of the product's grain."""
    good = "protect: {recent: 1d, locked: [2025-12-31, 2026-01-10..2026-01-14]}\n"
    assert product_with(write, good).protect.locked == ("2025-12-31", "2026-01-10..2026-01-14")
    (said,) = problems_of(write(extra="protect: {locked: [2026-01]}\n"))
    assert said.startswith("products/daily_revenue.yaml:12: protect.locked[0]: expected a partition of grain day")


def test_two_files_cannot_hold_one_product(write: Write):
    """The second file names the first."""
    root = write()
    (root / "products" / "zz.yaml").write_text(PRODUCT, encoding="utf-8")
    said = 'the product "fin.daily_revenue" is also in products/daily_revenue.yaml; expected one file each'
    assert problems_of(root) == [f"products/zz.yaml:1: {said}"]


def test_a_yml_file_is_not_silently_left_out(write: Write):
    """A product that would never be seen is a problem."""
    root = write()
    (root / "products" / "other.yml").write_text(PRODUCT, encoding="utf-8")
    assert problems_of(root) == ["products/other.yml: expected the ending .yaml; this file would not be read"]


def test_problems_of_all_files_come_at_once(write: Write):
    """Nobody should have to run the check once per fault."""
    root = write(also="x: 1\n", extra="y: 1\n")
    (root / "products" / "other.yaml").write_text("product: [\n", encoding="utf-8")
    files = {line.partition(":")[0] for line in problems_of(root)}
    assert files == {"errata.yaml", "products/daily_revenue.yaml", "products/other.yaml"}


def test_a_directory_without_a_project_says_how_to_make_one(tmp_path: Path):
    """The hint is the next command."""
    with pytest.raises(ProjectFileError, match=r"no errata\.yaml") as refused:
        load_project(tmp_path)
    assert "errata init" in str(refused.value.hint)


@pytest.mark.parametrize("grain", [grain for grain in Grain if grain is not Grain.VALUE])
def test_every_grain_loads(write: Write, grain: Grain):
    """The file's word is the model's grain."""
    root = write(product=PRODUCT.replace("grain: day", f"grain: {grain}"))
    assert load_project(root).products["fin.daily_revenue"].target.grain is grain


def test_catalogs_need_what_their_type_needs(write: Write):
    """A JDBC catalog without a warehouse would fail at the first write."""
    root = write(project=PROJECT.replace(", warehouse: .errata/warehouse", ""))
    assert problems_of(root) == ['errata.yaml:4: missing key "warehouse" in catalogs.lake, which type jdbc needs']


def test_a_ledger_must_be_a_database_we_know(write: Write):
    """The ledger runs on SQLite and PostgreSQL."""
    (said,) = problems_of(write(project=PROJECT.replace("sqlite:///.errata/ledger.db", "mysql://h/d")))
    assert said == 'errata.yaml:2: ledger: expected sqlite:///path or postgresql+psycopg://…; found "mysql://h/d"'


def test_thresholds_keep_their_text(write: Write):
    """An operand is a decimal in text, with the digits written."""
    product = product_with(
        write, "checks:\n  - {metric: nullValues, column: a, mustBeBetween: [-1.50, 2], unit: percent}\n"
    )
    assert product.checks[0].threshold == Threshold("mustBeBetween", "-1.50", "2")


@pytest.mark.parametrize("where", ["shop/products", "."])
def test_someone_who_is_one_directory_off_is_shown_the_project(tmp_path: Path, where: str):
    """A project above, or directly below, comes with the command that uses it."""
    (tmp_path / "shop" / "products").mkdir(parents=True)
    (tmp_path / "shop" / "errata.yaml").touch()
    with pytest.raises(ProjectFileError) as refused:
        load_project(tmp_path / where)
    project = tmp_path / "shop"
    assert refused.value.message.endswith(f"; there is one in {project}")
    assert refused.value.hint == f"errata -C {project} status"
