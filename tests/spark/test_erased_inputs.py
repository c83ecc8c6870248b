"""Erased subjects are left out of inputs of every kind on real Spark, and no id or key gets into a plan."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from errata.engines.spark.inputs.access import InputAccess
from errata.engines.spark.inputs.protection import protect_rows
from errata.errors import ErasedSince, StateRefused
from errata.evidence.keys import generate_key_pair
from errata.evidence.verifier import verify
from errata.model.manifest import InputPin
from errata.model.product.erasure import build_hasher
from errata.model.product.erasure_place import Place
from errata.model.product.input_policy import mask_text
from errata.ports.measure import LISTED
from errata.report.page import render_page
from support.world import PRODUCT_FILE, World
from unit.evidence.forging import unpacked

Make = Callable[..., World]
LIST = "lake.privacy.erased"
SUBJECTS = PRODUCT_FILE.replace("    partition: day\n", "    partition: day\n    subjects: [account]\n").replace(
    "key: [day, account]\n", "key: [day, account]\n  subjects: [account]\n"
)


def governed(make: Make, key: Path, product: str = SUBJECTS, more: str = "", **options: object) -> World:
    """A world whose input names subjects, with an empty list."""
    generate_key_pair(key)
    world = make(product=product, project=f'{more}erasure: {{table: {LIST}, key: "{key}"}}\n', **options)
    world.client.erase([], reason="the list", as_="bo")
    return world


def ids(world: World, day: str) -> list[str]:
    return sorted({str(row[1]) for row in world.rows() if str(row[0]) == day})


PLANTED = ("planted-subject-7f3a", "planted-subject-91c0")


def plant(world: World, day: str, *subjects: str) -> None:
    """Rows of these subjects in the source, among others."""
    place = next((world.root / f"raw/day={day}").glob("*.parquet"))
    rows = pq.read_table(place, partitioning=None)
    more = pa.table({"account": list(subjects), "amount": [Decimal("7.00")] * len(subjects)}, schema=rows.schema)
    pq.write_table(pa.concat_tables([rows, more]), place)


def find_texts(world: World, *others: bytes) -> Iterator[bytes]:
    """What Errata wrote for people and machines, except the data of the lake."""
    for path in (world.root / ".errata").rglob("*"):
        if path.is_file() and "warehouse" not in path.parts:
            yield path.read_bytes()
    yield from others
    yield "\n".join(world.said).encode()


def test_someone_erased_in_the_middle_of_a_run_is_neither_published_nor_named(make_world: Make, tmp_path: Path) -> None:
    """Left out at the start, computed again when the list grows; the id is in no plan, log, ledger, audit or report."""
    world = governed(
        make_world, tmp_path / "key", days=2, chunk_bytes="1", history=False, more='evidence: {key: "errata.key"}\n'
    )
    public = generate_key_pair(world.root / "errata.key").pem
    for day, subject in zip(world.days, PLANTED, strict=True):
        plant(world, day, subject)
    world.client.erase([PLANTED[0]], reason="request 1", as_="bo")
    run = world.to("validated")
    world.client.erase([PLANTED[1]], reason="request 2", as_="bo")
    with pytest.raises(ErasedSince) as raised:
        world.client.validate(run, as_="ana")
    assert raised.value.fields["partitions"] == [world.days[1]]
    world.client.run(run, as_="ana")
    view = world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert {str(row[1]) for row in world.rows()} == {"a0", "a1", "a2"}
    page = render_page(world.client.report(run))
    _, bundle = world.client.evidence(run, as_="bo")
    assert verify(bundle, [public]).problems == []
    told = [
        page.encode(), *unpacked(bundle).values(), repr(view).encode(), repr(world.client.status(run)).encode(),
        repr(world.client.audit_log()).encode(), str(raised.value).encode(),
    ]  # fmt: skip
    texts = list(find_texts(world, *told))
    assert len(texts) > len(told)
    for subject in PLANTED:
        assert not any(subject.encode() in text for text in texts)


def build_pin(**given: object) -> InputPin:
    """An input with nothing but what these tests need."""
    empty = dict.fromkeys(("name", "kind", "location"), "x") | {
        "partition": None, "column_type": None, "lookback": 0, "lookahead": 0, "input_partitions": (),
        "fingerprints": {}, "rows": 0, "bytes": 0, "file_count": 0,
    }  # fmt: skip
    return InputPin(**{**empty, **given})  # type: ignore[arg-type]


def explain(frame: DataFrame) -> str:
    said = io.StringIO()
    with redirect_stdout(said):
        frame.explain(extended=True)
    return said.getvalue()


def test_masks_are_those_of_the_rule_and_their_key_is_in_no_plan(make_world: Make, tmp_path: Path) -> None:
    """Spark masks as the pure function does, NULL and short texts included."""
    world = governed(make_world, tmp_path / "key", days=1)
    hasher = build_hasher(b"a key of the test")
    values = ["ann@example.com", "4111111111111234", "abc", "abcd", "", None, "ünïcödé"]
    masks = {"h": "hash", "r": "redact", "l": "last4", "b": "blank"}
    rows = world.spark.createDataFrame([(v, v, v, v) for v in values], "h string, r string, l string, b string")
    masked = protect_rows(rows, build_pin(masks=masks), InputAccess(hasher=lambda: hasher))
    expected = [tuple(mask_text(value, how, hasher) for how in masks.values()) for value in values]
    assert [tuple(row) for row in masked.collect()] == expected
    assert "a key of the test" not in explain(masked)


def test_ids_count_as_the_source_has_them_as_declared_and_masked(make_world: Make, tmp_path: Path) -> None:
    """An id of an erased subject is found as text, as a padded number, and as its own hash; NULL is nobody."""
    world = governed(make_world, tmp_path / "key", days=1)
    world.client.erase(["42", "ann"], reason="request 1", as_="bo")
    erased = world.engines.erased
    access = InputAccess(hasher=erased.hasher).for_list(erased.read_pin(()))
    texts = ["42", "042", "43", None, erased.hasher()("42")]
    rows = world.spark.createDataFrame([(text,) for text in texts], "who string")
    marked = protect_rows(rows, build_pin(subjects=("who",), columns={"who": "long"}), access)
    found = {row.who: row[LISTED] for row in marked.collect()}
    assert found == dict(zip(texts, [True, True, False, False, True], strict=True))
    plan = explain(marked)
    assert not re.search(r"\bann\b|\b42\b", plan)
    assert erased.hasher()("42") not in plan


RECORDED = """\
inputs:
  raw:
    recording: orders
    partition: day
    columns: {account: string, amount: "decimal(12,2)", day: date}
    subjects: [account]
    quarantine: {warn: 99%}
"""


@pytest.mark.slow
def test_lines_of_recorded_files_that_cannot_be_read_are_not_kept_where_subjects_are_named(
    make_world: Make, tmp_path: Path
) -> None:
    """They could be anyone's: the quarantine has their numbers. Rows of erased subjects are in no quarantine at all."""
    product = SUBJECTS.replace(SUBJECTS[SUBJECTS.index("inputs:") : SUBJECTS.index("publish:")], RECORDED)
    source = 'sources: {orders: {format: json, range: {name: "orders_{%Y-%m-%d}*"}}}\n'
    key = tmp_path / "key"
    generate_key_pair(key)
    project = f'{source}erasure: {{table: {LIST}, key: "{key}"}}\n'
    world = make_world(days=1, product=product, project=project, history=False)
    place = world.root / "landing/orders_2026-01-01.json"
    place.parent.mkdir()
    who = PLANTED[0]
    place.write_text(
        '{"day": "2026-01-01", "account": "a", "amount": 1.10}\n'
        f"{who} is no JSON\n"
        f'{{"day": "2026-01-01", "account": "{who}", "amount": 2}}\n'
        f'{{"day": "2026-01-01", "account": "{who}", "amount": 1.005}}\n'
    )
    world.client.import_files(str(place), "orders", as_="ana")
    world.client.erase([who], reason="request 1", as_="bo")
    run = world.to("staged")
    counted = world.ledger.progress.attempts(run)[0].cost
    found = {name: counted[f"rows_{name}:raw"] for name in ("in", "used", "quarantined", "suppressed")}
    assert found == {"in": 4, "used": 1, "quarantined": 1, "suppressed": 2}
    (kept,) = world.client.quarantine(run, sample=9).rows
    assert dict(kept.row) == {"line": 2}
    assert "recording" in {place.kind for place in world.client.erase_where([who], as_="bo").places}
    done = world.client.erase_redact(reason="request 1", as_="bo")
    assert [(one.name, one.rows) for one in done.files] == [("orders_2026-01-01.json", "<5")]
    assert done.expired_runs == (run,)
    assert not {place.kind for place in world.client.erase_where([who], as_="bo").places} & {"recording", "quarantine"}
    recorded = [path for path in (world.root / "recordings").rglob("*") if path.is_file()]
    assert recorded
    assert not any(who.encode() in path.read_bytes() for path in recorded)


RENAMED = """\
inputs:
  raw:
    files: "raw/day={day}/*.parquet"
    partition: day
    columns: {who: string, amount: "decimal(12,2)"}
    eras: [{rename: {account: who}}]
    rows: [{name: dear, expression: "amount > 1000000 or who = ''", action: quarantine}]
    quarantine: {warn: 99%}
    subjects: [who]
    policy: {mask: {who: hash}}
"""
HASHED = """
from pyspark.sql import functions as F


def build(ctx, raw):
    gross = F.sum("amount").cast("decimal(12,2)").alias("gross")
    return raw.withColumnRenamed("who", "account").groupBy("day", "account").agg(gross, F.count("*").alias("n"))
"""


def test_a_masked_column_that_an_era_renames_is_hashed_and_its_erased_subjects_are_found(
    make_world: Make, tmp_path: Path
) -> None:
    """The transform sees hashes that are those of the list, so the gate finds who is erased in masked output."""
    product = SUBJECTS.replace(SUBJECTS[SUBJECTS.index("inputs:") : SUBJECTS.index("publish:")], RENAMED)
    world = governed(make_world, tmp_path / "key", product, days=1, transform=HASHED, history=False)
    world.client.erase(["a0"], reason="request 1", as_="bo")
    world.to("published")
    hasher = world.engines.erased.hasher()
    assert {str(row[1]) for row in world.rows()} == {hasher("a1"), hasher("a2")}
    world.client.erase(["a1"], reason="request 2", as_="bo")
    target = world.ledger.runs.manifest(world.ledger.runs.list()[0].run_id).target
    assert world.engines.suppressions.held(target.table, target, {str(world.snapshot()): world.days}) == world.days


@pytest.mark.slow
def test_every_state_of_a_real_table_that_shows_a_subject_is_listed_with_its_last_day(
    make_world: Make, tmp_path: Path
) -> None:
    """The live table before, the undo set after the next publication; ids of other types and nobody find nothing."""
    world = governed(make_world, tmp_path / "key", days=1)

    def find(*subjects: str) -> dict[str, Place]:
        return {place.kind: place for place in world.client.erase_where(subjects, as_="bo").places}

    assert find("a0")["live table"].until is None
    assert set(find("nobody")) == {"files"}
    world.client.erase(["a0"], reason="request 1", as_="bo")
    world.to("published")
    found = find("a0")
    assert "live table" not in found
    assert found["undo set"].name.startswith("lake.fin.sales@errata_bf-")
    assert str(found["undo set"].until) > world.days[0]
    assert found["undo set"].ends.startswith("errata cleanup")
    with pytest.raises(StateRefused, match="can still show the subjects"):
        world.client.erase_prove(["a0"], reason="request 1", as_="bo")
    world.client.erase(["nobody"], reason="request 2", as_="bo")
    label = find("nobody")["files"].label
    assert world.client.erase_prove(["nobody"], reason="request 2", leave={label: "of others"}, as_="bo").subjects == 1


MERGED = PRODUCT_FILE.replace("{mode: replace_partitions,", "{mode: merge, merge: {version: n},").replace(
    "key: [day, account]\n", "key: [day, account]\n  subjects: [account]\n"
)
MERGED = MERGED.replace("reconcile:" + MERGED.partition("reconcile:")[2].partition("lineage_columns:")[0], "")


@pytest.mark.slow
def test_a_merge_leaves_out_prior_rows_of_erased_subjects(make_world: Make, tmp_path: Path) -> None:
    """The rows that the merge starts from are looked at, counted and left out."""
    product = MERGED.replace("    partition: day\n", "    partition: day\n    subjects: [account]\n", 1)
    world = governed(make_world, tmp_path / "key", product=product, days=2)
    world.client.erase(["a1"], reason="request 1", as_="bo")
    run = world.to("validated")
    (cost,) = (one.cost for one in world.ledger.progress.attempts(run))
    assert cost["rows_suppressed:lake.fin.sales"] == 2
    assert cost["rows_in:lake.fin.sales"] == cost["rows_used:lake.fin.sales"] + 2
    world.client.erase(["a2"], reason="request 2", as_="bo")
    with pytest.raises(ErasedSince):
        world.client.validate(run, as_="ana")
    world.client.run(run, as_="ana")
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert {str(row[1]) for row in world.rows()} == {"a0"}
