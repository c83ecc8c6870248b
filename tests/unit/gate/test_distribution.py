"""How far quantiles and shares of a column may move, against the prior output and against control partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.canonical import to_plain
from errata.errors import UsageError
from errata.evidence.verifier import judge_spread
from errata.gate.measure.scan_plan import compile_plan
from errata.gate.rules.rule_check import find_flaws
from errata.gate.verdict.findings import CandidateSummary
from errata.gate.verdict.judge import judge_candidate
from errata.model.product import Distribution
from errata.ports.measure import CANDIDATE, CONTROL, MAX_CATEGORIES, PRIOR, Measurement, decode_shares, encode_shares
from errata.views.checks import CheckResult
from unit.gate.manifests import COLUMNS, manifest

DAY = "2026-01-15"
CONTROLS = ("2026-01-01", "2026-01-08", "2026-01-22", "2026-01-29")
GROSS = Distribution("gross", "gross", quantiles=("0.5", "0.95"), warn="5%", block="20%")
MIX = Distribution("mix", "currency", shares=True, warn="5%", block="20%")
Sides = Mapping[tuple[str, str], Mapping[str, str | None]]


def judge(rule: Distribution, sides: Sides, controls: tuple[str, ...] = CONTROLS) -> CheckResult:
    """The finding on one day; every side has 100 rows unless it says otherwise."""
    run = manifest(partitions=(DAY,), distribution=(rule,), control_partitions={DAY: controls})
    measured = [
        Measurement(scope, name, measure, value)
        for (scope, name), numbers in sides.items()
        for measure, value in {"rowCount": "100", **numbers}.items()
    ]
    rows = next(int(m.value or 0) for m in measured if (m.scope, m.name) == (CANDIDATE, "rowCount"))
    verdict = judge_candidate(run, measured, CandidateSummary({DAY: rows}, COLUMNS))
    (found,) = [check for check in verdict.checks if check.name == rule.name]
    return found


def quantiles(middle: str | None, high: str | None) -> dict[str, str | None]:
    """Measured quantiles of the rule on gross."""
    return {"distribution.gross 0.5": middle, "distribution.gross 0.95": high}


def shares(**rows: int) -> dict[str, str | None]:
    """Measured rows by currency."""
    return {"distribution.mix": encode_shares(rows)}


@pytest.mark.parametrize(
    "now, level, value",
    [
        (quantiles("10.00", "90.00"), "ok", "0.00%"),
        (quantiles("10.50", "90.00"), "ok", "5.00%"),  # the limit itself is allowed
        (quantiles("10.51", "90.00"), "warn", "5.10%"),
        (quantiles("10.00", "72.00"), "warn", "-20.00%"),
        (quantiles("10.51", "71.99"), "block", "-20.01%"),
        (quantiles(None, "90.00"), "block", "0.00%"),
    ],
)
def test_the_quantile_that_moved_most_decides(now: dict[str, str | None], level: str, value: str) -> None:
    """A middle that stays does not hide a tail that moves; a quantile that is gone moved as far as possible."""
    found = judge(GROSS, {(CANDIDATE, DAY): now, (PRIOR, DAY): quantiles("10.00", "90.00")})
    assert (found.level, found.value) == (level, value)


def test_a_finding_names_every_quantile_and_the_error_of_quantiles() -> None:
    """Old and new values, the change, the limits, and that quantiles are estimates."""
    found = judge(GROSS, {(CANDIDATE, DAY): quantiles("10.00", "140.00"), (PRIOR, DAY): quantiles("10.00", "90.00")})
    assert found.message == (
        "gross: p50 was 10.00, is 10.00 (+0.00 %); p95 was 90.00, is 140.00 (+55.56 %); "
        "warns above 5 %, blocks above 20 %; ranks within 0.01 % of the rows"
    )


@pytest.mark.parametrize(
    "before, now, level",
    [
        ("0.00", "0.00", "ok"),
        ("0.00", "1.00", "warn"),
        (None, None, "ok"),
        (None, "1.00", "warn"),
        ("NaN", "NaN", "warn"),
    ],
)
def test_what_has_no_percentage_is_a_warning_unless_it_is_equal(
    before: str | None, now: str | None, level: str
) -> None:
    """A change from zero, from NULL, and a value that is no number."""
    rule = replace(GROSS, quantiles=("0.5",))
    sides = {(CANDIDATE, DAY): quantiles(now, None), (PRIOR, DAY): quantiles(before, None)}
    assert judge(rule, sides).level == level


def test_an_amount_is_a_limit_on_the_quantile_itself() -> None:
    """Without a percent sign the change is compared with the amount."""
    rule = replace(GROSS, quantiles=("0.5",), warn="0.05", block=None)
    for now, level in (("10.05", "ok"), ("10.06", "warn")):
        sides = {(CANDIDATE, DAY): quantiles(now, None), (PRIOR, DAY): quantiles("10.00", None)}
        assert judge(rule, sides).level == level


@pytest.mark.parametrize(
    "before, now, level, value",
    [
        ({"EUR": 60, "USD": 40}, {"EUR": 6, "USD": 4}, "ok", "0.00%"),
        ({"EUR": 60, "USD": 40}, {"EUR": 65, "USD": 35}, "ok", "5.00%"),
        ({"EUR": 60, "USD": 40}, {"EUR": 66, "USD": 34}, "warn", "6.00%"),
        ({"EUR": 60, "USD": 40}, {"EUR": 60, "USD": 10, "GBP": 30}, "block", "30.00%"),
        ({"EUR": 1, "USD": 999}, {"EUR": 2, "USD": 998}, "ok", "0.10%"),  # doubled, and a tenth of a point
        ({"EUR": 1, "USD": 2}, {"EUR": 23, "USD": 37}, "ok", "5.00%"),  # exactly 5 points, of thirds
    ],
)
def test_a_share_is_judged_by_the_points_it_moved(
    before: dict[str, int], now: dict[str, int], level: str, value: str
) -> None:
    """However many rows there are; a new value came from 0, a lost one went to 0."""
    found = judge(MIX, {(CANDIDATE, DAY): shares(**now), (PRIOR, DAY): shares(**before)})
    assert (found.level, (found.value or "").lstrip("-")) == (level, value)


def test_a_finding_names_the_shares_that_moved_most() -> None:
    """At most three, the largest movement first."""
    now, before = shares(EUR=50, USD=30, GBP=20), shares(EUR=60, USD=40)
    found = judge(MIX, {(CANDIDATE, DAY): now, (PRIOR, DAY): before})
    assert found.message == (
        "currency, 3 values: 'GBP' was 0.00 %, is 20.00 % (+20.00 points); 'EUR' was 60.00 %, is 50.00 % (-10.00 "
        "points); 'USD' was 40.00 %, is 30.00 % (-10.00 points); warns above 5 points, blocks above 20 points"
    )


def test_a_column_with_too_many_values_is_not_compared_and_does_not_pass() -> None:
    """Nobody compared anything, so a person has to look."""
    many = encode_shares({str(n): 1 for n in range(MAX_CATEGORIES + 1)})
    assert many is None
    for now, before in ((many, encode_shares({"a": 1})), (encode_shares({"a": 1}), many)):
        sides = {(CANDIDATE, DAY): {"distribution.mix": now}, (PRIOR, DAY): {"distribution.mix": before}}
        found = judge(MIX, sides)
        assert (found.level, found.value) == ("warn", None)
        assert "more than 1,000 different values" in found.message


@pytest.mark.parametrize("rule", [GROSS, MIX])
def test_nothing_before_is_said_and_not_compared(rule: Distribution) -> None:
    """As in a comparison: no value, and words that say why."""
    now: dict[str, str | None] = {**quantiles("1", "2"), **shares(EUR=1)}
    found = judge(rule, {(CANDIDATE, DAY): now, (PRIOR, DAY): {"rowCount": "0"}})
    assert (found.level, found.value, found.message) == ("ok", None, "nothing was there before to compare with")
    empty = judge(rule, {(CANDIDATE, DAY): {"rowCount": "0"}, (PRIOR, DAY): now})
    assert (empty.level, empty.value) == ("ok", None)
    assert "rule empty" in empty.message


@pytest.mark.parametrize("rule", [GROSS, MIX])
@pytest.mark.parametrize("against", ["prior", "control"])
def test_what_was_not_measured_blocks(rule: Distribution, against: str) -> None:
    """On either side."""
    now: dict[str, str | None] = {**quantiles("1", "2"), **shares(EUR=1)}
    others = [(PRIOR, DAY)] if against == "prior" else [(CONTROL, name) for name in CONTROLS]
    one = replace(rule, against=against)
    for missing in [(CANDIDATE, DAY), others[-1]]:
        sides = {place: {} if place == missing else now for place in [(CANDIDATE, DAY), *others]}
        assert judge(one, sides).message == "was not measured"
        assert judge(one, sides).level == "block"


def test_controls_are_compared_by_their_median() -> None:
    """One odd control changes nothing; only those within reach count."""
    rule = replace(GROSS, quantiles=("0.5",), against="control", least=3)
    values = dict(zip(CONTROLS, ("10", "10", "10", "900"), strict=True))
    sides: dict[tuple[str, str], dict[str, str | None]] = {
        (CONTROL, name): quantiles(value, None) for name, value in values.items()
    }
    found = judge(rule, sides | {(CANDIDATE, DAY): quantiles("11", None)})
    assert (found.level, found.value) == ("warn", "10.00%")
    assert "p50 median of 4 controls 10, is 11 (+10.00 %)" in found.message
    near = judge(replace(rule, reach=1, least=2), sides | {(CANDIDATE, DAY): quantiles("10", None)})
    assert "median of 2 controls 10" in near.message


def test_shares_of_controls_are_compared_value_by_value() -> None:
    """A control that lacks a value has none of it."""
    rule = replace(MIX, against="control", least=3)
    sides: dict[tuple[str, str], dict[str, str | None]] = {
        (CONTROL, name): shares(EUR=60, USD=40) for name in CONTROLS[1:]
    }
    sides[CONTROL, CONTROLS[0]] = shares(GBP=1)
    found = judge(rule, sides | {(CANDIDATE, DAY): shares(EUR=60, USD=32, GBP=8)})
    assert (found.level, found.value) == ("warn", "8.00%")


@pytest.mark.parametrize("rule", [GROSS, MIX])
def test_too_few_controls_are_a_warning_that_nothing_was_compared(rule: Distribution) -> None:
    """Also where they were emptied since planning."""
    now: dict[str, str | None] = {**quantiles("1", "2"), **shares(EUR=1)}
    sides: dict[tuple[str, str], dict[str, str | None]] = {(CONTROL, name): now for name in CONTROLS}
    sides |= {(CANDIDATE, DAY): now, (CONTROL, CONTROLS[0]): {"rowCount": "0", **now}}
    found = judge(replace(rule, against="control", least=4), sides)
    assert (found.level, found.value) == ("warn", None)
    assert found.message.endswith(
        "3 comparable partitions with rows outside the run, expected at least 4; nothing was compared"
    )
    assert judge(replace(rule, against="control", least=3), sides).level == "ok"


@given(st.dictionaries(st.none() | st.text(), st.integers(1, 10**6), max_size=20))
def test_shares_are_read_back_as_they_were_counted(rows: dict[str | None, int]) -> None:
    """NULL, the empty text and any character included."""
    text = encode_shares(rows)
    assert text is not None
    assert decode_shares(text) == rows


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 50), min_size=1), st.integers(1, 99))
def test_equal_mixes_of_any_size_agree(rows: dict[str, int], times: int) -> None:
    """Shares do not depend on the number of rows."""
    held = {value: n for value, n in rows.items() if n}
    if held:
        many = {value: n * times for value, n in held.items()}
        found = judge(
            replace(MIX, warn="0%", block=None), {(CANDIDATE, DAY): shares(**many), (PRIOR, DAY): shares(**held)}
        )
        assert (found.level, found.value) == ("ok", "0.00%")
        assert sum((Fraction(n, sum(held.values())) for n in held.values()), Fraction(0)) == 1


def test_each_side_measures_only_what_is_compared_there() -> None:
    """A rule against control reads no prior output, and one against the prior output no control."""
    rules = (GROSS, replace(MIX, against="control"))
    run = manifest(partitions=(DAY,), distribution=rules, control_partitions={DAY: CONTROLS})
    scans = {scan.scope: scan for scan in compile_plan(run).scans}
    names = {scope: {*scan.aggregates, *scan.shares} - {"rowCount"} for scope, scan in scans.items()}
    assert names == {
        CANDIDATE: {"distribution.gross 0.5", "distribution.gross 0.95", "distribution.mix"},
        PRIOR: {"distribution.gross 0.5", "distribution.gross 0.95"},
        CONTROL: {"distribution.mix"},
    }
    assert scans[CANDIDATE].estimated == {"distribution.gross 0.5", "distribution.gross 0.95"}


@pytest.mark.parametrize(
    "rule, said",
    [
        (replace(GROSS, column="price"), "expected a column of the target, found price"),
        (replace(GROSS, column="currency"), "expected a column of numbers, found currency string"),
        (replace(MIX, column="price"), "expected a column of the target, found price"),
        (replace(MIX, column="ratio"), "expected a column whose values are categories"),
    ],
)
def test_a_column_that_does_not_fit_is_refused_before_a_run(rule: Distribution, said: str) -> None:
    """By `errata check` and `errata plan`, with the key at fault."""
    run = manifest(distribution=(rule,))
    run = replace(run, target=replace(run.target, columns={**COLUMNS, "ratio": "double"}))
    (flaw,) = find_flaws(run)
    assert (flaw.section, flaw.position, flaw.key) == ("distribution", 0, "column")
    assert said in flaw.message
    with pytest.raises(UsageError):
        compile_plan(run)


def test_a_name_is_used_by_one_rule() -> None:
    """Whatever kind of rule has it."""
    with pytest.raises(UsageError, match="is used 2 times"):
        compile_plan(manifest(distribution=(GROSS, replace(MIX, name="gross"))))


amounts = st.sampled_from([None, "NaN", "0", "0.00", "9.50", "10.00", "10.50", "-10", "12.01", "1E+2"])
counts = st.none() | st.dictionaries(st.sampled_from(["EUR", "USD", "GBP"]), st.integers(1, 40), min_size=1)
limits = st.sampled_from([None, "0", "0.5", "5%", "20%"])
row_counts = st.sampled_from(["0", "100", "100", "100"])


@given(st.data())
def test_the_verifier_of_evidence_reaches_the_same_level(data: st.DataObject) -> None:
    """It has code of its own, which needs nothing but Python; both read the same numbers."""
    against, is_shares = data.draw(st.sampled_from(["prior", "control"])), data.draw(st.booleans())
    rule = Distribution(
        "r", "currency", () if is_shares else ("0.5", "0.9"), is_shares, against, reach=data.draw(st.integers(1, 3)),
        least=data.draw(st.integers(1, 4)), warn=data.draw(limits), block=data.draw(limits),
    )  # fmt: skip
    if is_shares and any(limit and not limit.endswith("%") for limit in (rule.warn, rule.block)):
        rule = replace(rule, warn="5%", block="20%")
    places = [(CANDIDATE, DAY), *([(PRIOR, DAY)] if against == "prior" else [(CONTROL, name) for name in CONTROLS])]
    sides: dict[tuple[str, str], dict[str, str | None]] = {}
    for place in places:
        held: dict[str, str | None] = {"rowCount": data.draw(row_counts)}
        if is_shares and data.draw(st.integers(0, 9)):
            found = data.draw(counts)
            held["distribution.r"] = None if found is None else encode_shares(found)
        elif data.draw(st.integers(0, 9)):
            held |= {f"distribution.r {quantile}": data.draw(amounts) for quantile in rule.quantiles}
        sides[place] = held
    numbers = {(*place, name): value for place, held in sides.items() for name, value in held.items()}
    run = to_plain(manifest(partitions=(DAY,), control_partitions={DAY: CONTROLS}))
    assert judge_spread(to_plain(rule), DAY, run, numbers) == judge(rule, sides).level
