"""Eras cover what is read, or the plan says what they do not: partition, file, column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.model.manifest import SourceFile
from errata.model.partition import WHOLE, Grain, expand_range
from errata.model.product import Input
from errata.model.product.eras import Era, find_matching_eras, resolve_columns
from errata.planning.era_coverage import Coverage, check_coverage
from errata.ports.tables import InputState, PartitionSize

DAYS = expand_range(Grain.DAY, "2026-01-01", "2026-01-11")
COLUMNS = {"account": "string", "amount": "decimal(12, 2)", "channel": "string"}
OLD = {"acct": "string", "amt": "string"}
NEW = {"account": "string", "amount": "decimal(12, 2)", "channel": "string"}
TEXT = Era(
    "text",
    has=("amt",),
    rename={"acct": "account", "amt": "amount"},
    cast={"amount": "decimal(12, 2)"},
    default={"channel": "web"},
)
TODAY = Era("today", has=("channel",))


def _source(*eras: Era, **changes: Any) -> Input:
    given = {"files": "raw/{day}/*", "partition": "day", "columns": COLUMNS, "eras": eras}
    return Input("raw", **(given | changes))


def _facts(schemas: list[Mapping[str, str]], days: Mapping[str, list[int]], **changes: Any) -> InputState:
    files = {
        day: tuple(SourceFile(f"file://raw/{day}/{n}.parquet", 1, "mtime:1", number) for n, number in enumerate(listed))
        for day, listed in days.items()
    }
    sizes = {day: PartitionSize(1, 1, len(listed)) for day, listed in days.items()}
    return InputState("raw", "files", "raw/{day}/*", None, sizes, files=files, schemas=tuple(schemas), **changes)


def _cover(source: Input, facts: InputState) -> Coverage:
    return check_coverage(source, facts, Grain.DAY, "date")


def test_a_proof_says_which_partition_has_which_era():
    """A day on which the format changed has both; the partition column comes along from the path."""
    proof = _cover(_source(TEXT, TODAY), _facts([OLD, NEW], {DAYS[0]: [0], DAYS[1]: [0, 1], DAYS[2]: [1]}))
    assert proof.problems == ()
    assert proof.era_of == {DAYS[0]: ("text",), DAYS[1]: ("text", "today"), DAYS[2]: ("today",)}
    assert proof.columns == {**COLUMNS, "day": "date"}


def test_an_input_without_columns_needs_no_proof():
    """Nothing declared, nothing read, nothing sealed."""
    assert _cover(_source(columns={}), _facts([], {DAYS[0]: [0]})) == Coverage()


@pytest.mark.parametrize(
    "eras, schema, said",
    [
        ((TODAY,), OLD, "no era covers it; expected one of today, found columns acct, amt"),
        ((TEXT, Era("any")), OLD, "eras text and any both cover it; expected exactly one"),
        (
            (Era("v"),),
            OLD | NEW | {"amount": "double"},
            "era v, column amount is double, expected decimal(12, 2): add a cast",
        ),
        (
            (Era("v", cast={"amount": "decimal(12, 2)"}),),
            NEW | {"amount": "array<long>"},
            "era v, column amount is array<long>, which cannot be cast to decimal(12, 2)",
        ),
        (
            (Era("v"),),
            {"account": "string", "amount": "decimal(12, 2)"},
            "era v, column channel is not there: expected a rename or an explicit default",
        ),
        (
            (Era("v", default={"channel": "web"}),),
            NEW,
            "era v, column channel is there and has a default: drop the column, or the default",
        ),
        (
            (Era("v", rename={"way": "channel"}),),
            NEW,
            "era v, column way is not there to be renamed to channel",
        ),
        (
            (Era("v", rename={"way": "channel"}),),
            NEW | {"way": "string"},
            "era v, column way is renamed to channel, which is there as well: drop one of them",
        ),
    ],
)
def test_what_is_not_covered_is_named(eras: tuple[Era, ...], schema: Mapping[str, str], said: str):
    """Partitions are folded, the first file stands for the others, and the column has its reason."""
    facts = _facts([schema], {DAYS[0]: [0], DAYS[1]: [0], DAYS[4]: [0]})
    place = "2026-01-01 … 2026-01-02, 2026-01-05 (first file://raw/2026-01-01/0.parquet)"
    assert _cover(_source(*eras), facts).problems == (f"raw: {place}: {said}",)


def test_dropping_makes_room_for_a_rename_or_a_default():
    """What is dropped counts as not there, so that two names for one thing have one meaning."""
    both = NEW | {"way": "string"}
    renamed = Era("v", rename={"way": "channel"}, drop=("channel",))
    fixed = Era("v", default={"channel": None}, drop=("channel", "way"))
    assert not _cover(_source(renamed), _facts([both], {DAYS[0]: [0]})).problems
    assert not _cover(_source(fixed), _facts([both], {DAYS[0]: [0]})).problems
    assert [one.default for one in resolve_columns(fixed, COLUMNS, both)][2] is None


def test_a_file_that_cannot_be_looked_into_refuses_the_plan():
    """A cut-off file has no footer; it is named, and never read as fewer rows."""
    facts = _facts([NEW], {DAYS[0]: [0]}, unreadable={"file://raw/x.parquet": "Parquet magic bytes not found"})
    said = ("raw: file://raw/x.parquet cannot be read: Parquet magic bytes not found",)
    assert _cover(_source(TODAY), facts).problems == said
    assert _cover(_source(columns={}), facts).problems == said


def test_tables_have_one_schema_and_reference_data_no_partitions():
    """A table is proven for each of its partitions, an input that is read whole once."""
    table = InputState(
        "raw", "table", "lake.raw", "date", {DAYS[0]: PartitionSize(1, 1, 1)}, snapshot_id="7", schemas=(OLD,)
    )
    proof = _cover(_source(TEXT, files=None, table="lake.raw"), table)
    said = "era text, column day is not there: expected a rename or an explicit default"
    assert proof.problems == (f"raw: 2026-01-01 (lake.raw at snapshot 7): {said}",)
    whole = InputState("raw", "table", "lake.raw", None, {}, whole=PartitionSize(1, 1, 1), schemas=(NEW,))
    assert _cover(_source(TODAY, partition=None), whole).era_of == {WHOLE: ("today",)}


def test_partitions_that_metadata_does_not_show_are_proven_too():
    """Files of an older partition spec hold rows of partitions that no entry names; each asked for needs its era."""
    shown = {DAYS[1]: PartitionSize(1, 1, 1)}
    schema = NEW | {"day": "date"}
    table = InputState("raw", "table", "lake.raw", "date", shown, snapshot_id="7", schemas=(schema,))
    eras = (Era("old", last=DAYS[0]), Era("new", first=DAYS[1], last=DAYS[2]))
    source = _source(*eras, files=None, table="lake.raw")
    proof = check_coverage(source, table, Grain.DAY, "date", DAYS[:3])
    assert proof == Coverage((), {DAYS[0]: ("old",), DAYS[1]: ("new",), DAYS[2]: ("new",)}, proof.columns)
    (problem,) = check_coverage(source, table, Grain.DAY, "date", DAYS[:4]).problems
    assert problem.startswith("raw: 2026-01-04 (lake.raw at snapshot 7): no era covers it; expected one of old, new")
    unseen = InputState("raw", "table", "lake.raw", "date", {}, snapshot_id="7", schemas=(schema,))
    assert check_coverage(source, unseen, Grain.DAY, "date", DAYS[:1]).era_of == {DAYS[0]: ("old",)}


@st.composite
def spans(draw: st.DrawFn) -> list[tuple[str | None, str | None]]:
    """Where eras begin and end, sound or not."""
    day = st.none() | st.sampled_from(DAYS)
    return draw(st.lists(st.tuples(day, day), min_size=1, max_size=4))


@given(spans(), st.sets(st.sampled_from(DAYS), min_size=1))
def test_a_partition_is_proven_exactly_when_one_span_has_it(
    bounds: list[tuple[str | None, str | None]], days: set[str]
):
    """Against a naive count of spans: every partition is either sealed with its era or named in a problem."""
    eras = [Era(f"e{n}", first, last) for n, (first, last) in enumerate(bounds)]
    facts = _facts([NEW], {day: [0] for day in sorted(days)})
    proof = _cover(_source(*eras), facts)
    hits = {day: [e.name for e in eras if (e.first or day) <= day <= (e.last or day)] for day in days}
    assert proof.era_of == {day: (found[0],) for day, found in hits.items() if len(found) == 1}
    assert bool(proof.problems) == any(len(found) != 1 for found in hits.values())


names = st.sampled_from(["account", "amount", "channel", "acct", "amt", "way"])


@given(
    st.dictionaries(names, st.sampled_from(["string", "decimal(12, 2)", "decimal(9, 2)", "double"])),
    st.dictionaries(names, st.sampled_from(sorted(COLUMNS)), max_size=2),
    st.dictionaries(st.sampled_from(sorted(COLUMNS)), st.none() | st.just("x"), max_size=3),
    st.sets(names, max_size=2),
)
def test_every_declared_column_has_a_source_a_default_or_a_problem(
    schema: dict[str, str], rename: dict[str, str], default: dict[str, str | None], drop: set[str]
):
    """Never silence: what is delivered is in the file and not dropped, or was said to be a default."""
    era = Era("v", rename=rename, default=default, drop=tuple(drop - set(rename)))
    for one in resolve_columns(era, COLUMNS, schema):
        if one.problem:
            continue
        if one.source is None:
            assert one.column in default
            assert one.column not in schema or one.column in {*era.drop, *rename}
        else:
            assert one.column not in default
            assert one.source in schema
            assert one.source not in era.drop
            assert rename.get(one.source, one.source) == one.column


def test_ranges_and_columns_both_count():
    """An era with both needs both; partitions without a value are in no span."""
    era = Era("v", first=DAYS[1], last=DAYS[3], has=("amt",), lacks=("channel",))
    assert find_matching_eras([era], DAYS[1], OLD) == (era,)
    assert find_matching_eras([era], DAYS[0], OLD) == ()
    assert find_matching_eras([era], DAYS[2], OLD | {"channel": "string"}) == ()
    assert find_matching_eras([era], "null", OLD) == ()
