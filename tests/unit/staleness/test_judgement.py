"""The rule that decides whether a partition is stale, on values."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from errata.model.graph.read_rule import ReadRule, Shift
from errata.model.partition import Grain
from errata.ports.tables import MainEntry
from errata.staleness.judgement import (
    CURRENT,
    RECORDED,
    STALE,
    Claim,
    CodeState,
    Facts,
    InputState,
    Judgement,
    Reason,
    add_waiting,
    find_own_reasons,
    judge_partition,
)
from errata.staleness.times import Change, InputTimes, Written, find_set_back, find_time_reasons
from errata.staleness.used_code import find_used_files

CODE = CodeState("a:b", "1", "c", "u")
FIRST = date(2026, 1, 1)
NAMES = [(FIRST + timedelta(days=n)).isoformat() for n in range(8)]
prints = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["x", "y", "z"]))
looks = st.integers(0, 3)


def state(found: dict[str, str], back: int = 0, ahead: int = 0) -> InputState:
    rule = ReadRule(Grain.DAY, Grain.DAY, Shift(hours=24 * back), Shift(hours=24 * ahead))
    return InputState("raw", rule, found)


def judge(partition: str, then: InputState, now: InputState, *, code: CodeState = CODE) -> Judgement:
    claim = Claim(RECORDED, "bf-1", 1, {"raw": then}, CODE)
    facts = Facts(Grain.DAY, {"raw": now}, code, {partition: [claim]})
    return judge_partition(partition, facts, lambda _name, _then, names: (names, ""))


@given(prints, prints, looks, looks, st.sampled_from(NAMES))
def test_a_partition_is_stale_exactly_if_something_in_its_window_is_not_as_it_was(
    then: dict[str, str], now: dict[str, str], back: int, ahead: int, partition: str
) -> None:
    """New, emptied and changed partitions count alike, and nothing outside the window does."""
    day = date.fromisoformat(partition)
    window = {(day + timedelta(days=n)).isoformat() for n in range(-back, ahead + 1)}
    differs = any(then.get(name) != now.get(name) for name in window)
    found = judge(partition, state(then, back, ahead), state(now, back, ahead))
    assert found.state == (STALE if differs else CURRENT)
    told = {name for reason in found.reasons for name in reason.partitions}
    assert told == {name for name in window if then.get(name) != now.get(name)}


@given(prints, looks, looks, st.sampled_from(NAMES))
def test_a_window_of_another_width_counts_if_it_holds_something_else(
    held: dict[str, str], then: int, now: int, partition: str
) -> None:
    """What is read by the product file of today is compared with what was read, not with what was pinned."""
    day = date.fromisoformat(partition)
    reads = [{(day - timedelta(days=n)).isoformat() for n in range(back + 1)} & set(held) for back in (then, now)]
    found = judge(partition, state(held, then), state(held, now))
    assert found.state == (CURRENT if reads[0] == reads[1] else STALE)


def test_one_claim_that_holds_is_enough_and_the_newest_gives_the_reasons() -> None:
    """An attestation answers for a publication that no longer does."""
    old, new = state({NAMES[0]: "x"}), state({NAMES[0]: "y"})
    claims = [Claim(RECORDED, "newest", 3, {"raw": old}), Claim(RECORDED, "older", 2, {"raw": new})]
    facts = Facts(Grain.DAY, {"raw": new}, CODE, {NAMES[0]: claims})
    found = judge_partition(NAMES[0], facts, lambda _name, _then, names: (names, ""))
    assert (found.state, found.claim and found.claim.told_by) == (CURRENT, "older")


def test_compaction_is_no_reason() -> None:
    """Whoever explains the change says that nothing is left of it."""
    claim = Claim(RECORDED, "bf-1", 1, {"raw": state({NAMES[0]: "x"})}, CODE)
    facts = Facts(Grain.DAY, {"raw": state({NAMES[0]: "y"})}, CODE, {NAMES[0]: [claim]})
    assert judge_partition(NAMES[0], facts, lambda *_: ((), "")).state == CURRENT


times = st.integers(0, 100)


@given(times, st.integers(0, 50), st.lists(st.tuples(times, st.sampled_from(NAMES)), max_size=5), times)
def test_by_time_a_partition_is_current_only_if_every_change_is_older_than_the_longest_run(
    written: int, longest: int, changed: list[tuple[int, str]], since: int
) -> None:
    """And if the history reaches back that far."""
    ordered = sorted(changed, reverse=True)
    known = InputTimes(tuple(Change(at, frozenset({name}), "job") for at, name in ordered), known_since_ms=since)
    found = find_time_reasons(Written(written), longest, {"raw": NAMES[:3]}, {"raw": known})
    limit = written - longest
    is_safe = all(at < limit for at, name in changed if name in NAMES[:3]) and since <= limit
    assert (found == []) == is_safe


def test_without_a_declared_longest_run_times_show_nothing() -> None:
    """However old the inputs are."""
    assert find_time_reasons(Written(100), None, {"raw": NAMES[:1]}, {"raw": InputTimes()})
    assert not find_time_reasons(Written(100), 0, {"raw": NAMES[:1]}, {"raw": InputTimes()})


def test_main_is_set_back_when_it_leaves_its_line_or_returns_to_an_older_snapshot() -> None:
    """The last time counts; a line that only grows was never set back."""
    log = [MainEntry(n, name, exists=True) for n, name in enumerate("abcb")]
    assert find_set_back(log, "ba") == 3
    assert find_set_back(log[:3], "cba") is None
    assert find_set_back([*log, MainEntry(4, "d", exists=True)], "dba") == 3
    assert find_set_back(log, "cba") == 3  # main returned to an older snapshot of the same line


def test_what_builds_on_stale_partitions_of_its_own_is_stale() -> None:
    """One after the other, as far as the look-back leads."""
    rule = ReadRule(Grain.DAY, Grain.DAY, Shift(hours=24), is_own=True)
    claim = Claim(RECORDED, "bf-1", 1, {}, as_of_ms=10)
    judged = {name: Judgement(name, CURRENT, RECORDED, claim=claim) for name in NAMES}
    judged[NAMES[2]] = judged[NAMES[2]].add(Reason("raw", RECORDED, "changed"))
    found = find_own_reasons(rule, "own", judged, {})
    assert [name for name, one in found.items() if one.state == STALE] == NAMES[2:]
    other = Claim(RECORDED, "bf-2", 1, {}, as_of_ms=10)
    judged = {name: Judgement(name, CURRENT, RECORDED, claim=claim) for name in NAMES[:3]}
    judged[NAMES[0]] = Judgement(NAMES[0], CURRENT, RECORDED, claim=other)
    found = find_own_reasons(rule, "own", judged, {NAMES[0]: 11})
    assert [name for name, one in found.items() if one.state == STALE] == NAMES[1:3]


def test_only_what_is_stale_waits() -> None:
    """A partition that follows from its inputs does not become wrong because more is to come."""
    judged = {
        NAMES[0]: Judgement(NAMES[0], CURRENT, RECORDED),
        NAMES[1]: Judgement(NAMES[1], STALE, RECORDED, (Reason("raw", RECORDED, "changed"),)),
    }
    waiting = {name: {"raw": {name: "no _SUCCESS beside its files"}} for name in NAMES[:2]}
    assert [one.state for one in add_waiting(judged, waiting).values()] == [CURRENT, "waiting"]


def test_the_files_of_a_transform_are_those_that_it_imports() -> None:
    """Directly or through others; packages around them count, and a file that cannot be parsed makes all count."""
    files = {
        "transforms/sales.py": b"from lib import rates\nfrom . import helper\n",
        "transforms/helper.py": b"import lib.deep.more\n",
        "transforms/other.py": b"x = 1\n",
        "lib/__init__.py": b"",
        "lib/rates.py": b"import os\n",
        "lib/deep/more.py": b"",
        "lib/unused.py": b"",
    }
    assert find_used_files(files, "transforms.sales") == frozenset(files) - {"transforms/other.py", "lib/unused.py"}
    assert find_used_files({**files, "lib/rates.py": b"def"}, "transforms.sales") == frozenset(files)
    assert find_used_files(files, "nowhere") == frozenset(files)
