"""The books of an input's rows: they balance to the row, or they block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.errors import UsageError
from errata.gate.measure.scan_plan import compile_plan
from errata.gate.rules.row_rules import row_rule_sql
from errata.gate.verdict.findings import CandidateSummary, MeasurementIndex
from errata.gate.verdict.row_counts import judge_rows
from errata.model.product.eras import RowLimits, RowRule
from errata.ports.measure import Measurement
from errata.views.checks import CheckResult
from unit.gate.manifests import input_pin, manifest

DAY, NEXT = "2026-01-01", "2026-01-02"
RULES = (RowRule("negative", "amount < 0", "quarantine", "x"), RowRule("tests", "account = 't'", "suppress", "x"))
FULL = {"rows.in": 10, "rows.used": 7, 'rows.quarantine ["negative"]': 2, 'rows.suppress ["tests"]': 1}
RUN = {"rows_in": 10, "rows_used": 7, "rows_quarantined": 2, "rows_suppressed": 1}


def _judged(
    measured: Mapping[str, int] = FULL,
    kept: Mapping[str, int] | None = None,
    ran: Mapping[str, int] | None = RUN,
    *,
    trial: bool = False,
    also: tuple[Measurement, ...] = (),
    limits: tuple[RowLimits, ...] = (RowLimits("raw", block="50%"),),
    **pin: Any,
) -> list[CheckResult]:
    run = manifest(
        partitions=(DAY,),
        inputs=(input_pin("raw", "lake.raw", "day", "date", **({"row_rules": RULES} | pin)),),
        row_limits=limits,
    )
    found = {name: str(count) for name, count in measured.items()}
    found |= {name: str(count) for name, count in ({'kept.rule ["negative"]': 2} if kept is None else kept).items()}
    numbers = [Measurement("input:raw", DAY, name, value) for name, value in found.items()]
    if ran is not None:
        numbers.append(Measurement("input:raw", DAY, "chunk", "c1"))
        numbers += [Measurement("input:raw", "", f'{what} ["c1"]', str(count)) for what, count in ran.items()]
    by_place = {(m.scope, m.partition, m.name): m for m in (*numbers, *also)}
    return list(judge_rows(run, MeasurementIndex(by_place), CandidateSummary({}, {}, is_trial=trial)))


def _blocks(results: list[CheckResult]) -> list[tuple[str, str | None, str]]:
    return [(one.name, one.partition, one.message) for one in results if one.level == "block"]


def test_balanced_books_say_so():
    """One line a partition, one for the chunks, and the limits."""
    said = [(one.name, one.partition, one.level, one.message) for one in _judged()]
    assert said == [
        ("accounting", DAY, "ok", "raw: 10 rows in = 7 used + 2 quarantined + 1 suppressed"),
        (
            "accounting",
            None,
            "ok",
            "1 chunks counted the same rows of the pinned input, by the same rules, as the gate does",
        ),
        ("quarantine", DAY, "ok", "raw: 2 of 10 rows in quarantine; blocks above 50 %"),
        ("quarantine", None, "ok", "raw: 2 of 10 rows in quarantine over the run; blocks above 50 %"),
    ]


def test_an_input_that_loses_no_rows_is_not_spoken_of():
    """A product without eras and rules has no such lines."""
    assert _judged({}, {}, None, row_rules=()) == []


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"measured": FULL | {"rows.used": 6}}, "10 rows in = 6 used + 2 quarantined + 1 suppressed, which does not"),
        ({"measured": {}}, "raw: was not counted"),
        ({"kept": {}}, "raw: negative: 2 rows were taken out, the quarantine table has 0"),
        ({"kept": {'kept.rule ["negative"]': 2, 'kept.cast ["cast x"]': 1}}, "cast x: 0 rows were taken out"),
        ({"counts": {DAY: 11}}, "raw: 10 rows were read, its files hold 11 by their own account"),
        ({"counts": {NEXT: 11}}, "raw: 10 rows were read, its files hold 0 by their own account"),
        ({"kept": {'kept.rule ["negative"]': 2, 'kept.transform ["r"]': 8}}, "set 8 rows aside, of 7"),
        ({"ran": RUN | {"rows_used": 8}}, "rows used was 8 when chunk c1 ran, is 7 at the gate"),
        ({"ran": {"rows_in": 10}}, "rows used was not counted when chunk c1 ran"),
        ({"ran": None}, "no chunk says that it computed"),
        ({"ran": RUN | {"rows_set_aside": 1}}, "rows set aside was 1 when chunk c1 ran, is 0 at the gate"),
        (
            {"also": (Measurement("input:raw", NEXT, "rows.in", "3"),)},
            "raw has rows of 2026-01-02, which was not asked",
        ),
    ],
)
def test_books_that_do_not_balance_block(changes: dict[str, Any], said: str):
    """Each of the four accounts is held against the others, and what is missing is not fine."""
    blocked = _blocks(_judged(**changes))
    assert "accounting" in {name for name, _, _ in blocked}
    assert any(said in message for _, _, message in blocked)


def test_a_trial_has_no_chunks_and_no_table():
    """What nobody wrote is held against nothing, but rows in still equal rows out."""
    assert _blocks(_judged(kept={}, ran=None, trial=True)) == []
    assert _blocks(_judged(FULL | {"rows.in": 11}, kept={}, ran=None, trial=True))


@pytest.mark.parametrize(
    "limits, level",
    [
        ((), "warn"),
        ((RowLimits("raw", warn="20%"),), "ok"),
        ((RowLimits("raw", warn="19.9%"),), "warn"),
        ((RowLimits("raw", warn="1", block="2"),), "warn"),
        ((RowLimits("raw", warn="0", block="1"),), "block"),
        ((RowLimits("other", block="0"),), "warn"),
    ],
)
def test_limits_decide_over_rows_in_quarantine(limits: tuple[RowLimits, ...], level: str):
    """More than the limit is beyond it, exactly the limit is not; no word about limits means none goes unseen."""
    assert {one.level for one in _judged(limits=limits) if one.name == "quarantine"} == {level}


def test_rows_that_a_transform_set_aside_count_for_the_limits():
    """Also where the input has no rules; a share of an unknown number is beyond any limit."""
    ran, kept = {"rows_set_aside": 3}, {'kept.transform ["r"]': 3}
    results = _judged({}, kept, ran, row_rules=(), limits=(RowLimits("raw", block="2"),))
    assert [one.level for one in results if one.name == "quarantine"] == ["block", "block"]
    assert results[0].message == "raw: the transform set 3 rows aside"
    results = _judged({}, kept, ran, row_rules=(), limits=(RowLimits("raw", block="2%"),))
    assert [one.level for one in results if one.name == "quarantine"] == ["block", "block"]
    assert results[-1].message.endswith("blocks above 2 %, but the total row count is missing")
    results = _judged({}, kept, ran, row_rules=(), limits=(RowLimits("raw", warn="2%"),))
    assert [one.level for one in results if one.name == "quarantine"] == ["warn", "warn"]
    results = _judged({"rowCount": 300}, kept, ran, row_rules=(), limits=(RowLimits("raw", block="2%"),))
    assert [one.level for one in results if one.name == "quarantine"] == ["ok", "ok"]


def test_rows_that_a_transform_set_aside_are_missed_when_the_table_has_none():
    """A chunk said that it wrote three; an input without rules is no reason not to look for them."""
    said = "raw: rows set aside was 3 when chunk c1 ran, is 0 at the gate"
    assert _blocks(_judged({}, {}, {"rows_set_aside": 3}, row_rules=())) == [("accounting", None, said)]
    assert _judged({}, {}, {"rows_set_aside": 0}, row_rules=()) == []


@pytest.mark.parametrize(
    "pin, scans", [({}, 1), ({"row_rules": RULES}, 0), ({"partition": None}, 0), ({"own": True}, 0)]
)
def test_an_input_with_limits_is_counted_where_its_accounts_do_not(pin: dict[str, Any], scans: int):
    """A share needs the whole; rows of a screened input are counted with their fates, by one scan and not two."""
    given = {"name": "raw", "location": "lake.raw", "partition": "day", "column_type": "date"} | pin
    run = manifest(partitions=(DAY,), inputs=(input_pin(**given),), row_limits=(RowLimits("raw", block="2%"),))
    found = [scan for scan in compile_plan(run).scans if scan.scope == "input:raw"]
    assert [scan.aggregates for scan in found] == [{"rowCount": "COUNT(*)"}] * scans


@given(
    st.lists(st.integers(0, 50), min_size=4, max_size=4),
    st.sampled_from(["rows.in", "rows.used", 'rows.quarantine ["negative"]', 'rows.suppress ["tests"]']),
    st.integers(-3, 3),
)
def test_any_single_number_that_is_off_blocks(parts: list[int], name: str, off: int):
    """Whatever the numbers are, they pass exactly when they agree."""
    used, bad, hidden, _ = parts
    total = used + bad + hidden
    true = {"rows.in": total, "rows.used": used, 'rows.quarantine ["negative"]': bad, 'rows.suppress ["tests"]': hidden}
    ran = {"rows_in": total, "rows_used": used, "rows_quarantined": bad, "rows_suppressed": hidden}
    few = (RowLimits("raw", warn="100"),)
    results = _judged(true | {name: true[name] + off}, {'kept.rule ["negative"]': bad}, ran, limits=few)
    assert bool(_blocks(results)) == (off != 0)


def test_rules_cannot_fail_on_a_bad_value_and_must_be_conditions():
    """Casts and divisions are tried; anything but a condition on the row is refused by name."""
    types = {"amount": "string", "n": "long"}
    rule = RowRule("r", "cast(amount as int) / n > 2", "suppress")
    assert row_rule_sql(rule, "raw", types) == "TRY_DIVIDE(TRY_CAST(`amount` AS INT), `n`) > 2"
    for text in ("amount", "sum(n) > 1", "rand() > 0.5", "no_such > 1", "n in (select 1)"):
        with pytest.raises(UsageError, match=r"inputs\.raw\.rows, r: "):
            row_rule_sql(RowRule("r", text, "suppress"), "raw", types)


@pytest.mark.parametrize(
    "text",
    [
        "account = 'A-17'",
        "'A-17' = account",
        "n > 3 or Account in ('A-17', 'A-18')",
        "upper(trim(account)) <=> 'A-17'",
        "cast(account as bigint) = 17",
        "not (account != 'A-17')",
    ],
)
def test_a_row_rule_names_no_subject(text: str):
    """The rule is sealed for good; the message does not repeat the id. Other columns may be compared as ever."""
    types = {"account": "string", "n": "long"}
    rule = RowRule("left out", text, "suppress")
    with pytest.raises(UsageError, match="a comparison of account with constants was refused") as refused:
        row_rule_sql(rule, "raw", types, ("account",))
    assert "17" not in f"{refused.value}{refused.value.hint}{refused.value.fields}"
    assert row_rule_sql(rule, "raw", types, ("n",))


@pytest.mark.parametrize("text", ["account like 'test-%'", "account = ''", "length(account) = 3", "account = other"])
def test_a_row_rule_may_speak_about_a_column_of_subjects(text: str):
    """A pattern, an empty value, a length and another column are no id."""
    types = {"account": "string", "other": "string"}
    assert row_rule_sql(RowRule("odd", text, "suppress"), "raw", types, ("account",))
