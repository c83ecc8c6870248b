"""The checks of transforms: a sound one passes, and each kind of unsound one fails with what differed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from errata.testing.transforms import TransformCase

FIRST = date(2026, 1, 1)
DAYS = [(FIRST + timedelta(days=n)).isoformat() for n in range(3)]
RAW = [
    {"day": FIRST + timedelta(days=n), "account": account, "amount": Decimal(n + 1)}
    for n in range(3)
    for account in ("a", "a", "b")
]


def totals(ctx: Any, raw: Any) -> list[dict[str, Any]]:
    """Sound: totals by day and account."""
    found: dict[tuple[Any, str], Decimal] = {}
    for row in raw.to_pylist():
        key = (row["day"], row["account"])
        found[key] = found.get(key, Decimal(0)) + row["amount"]
    return [
        {"day": day, "account": account, "gross": gross}
        for (day, account), gross in found.items()
        if day.isoformat() in ctx.partitions
    ]


def case(build: Callable[..., Any], **options: Any) -> TransformCase:
    settings: dict[str, Any] = {"column": "day", "key": ("day", "account"), "read_by": {"raw": "day"}, **options}
    return TransformCase(build, {"raw": RAW}, DAYS, **settings)


def test_a_sound_transform_passes_every_check() -> None:
    """Also against golden totals and against its input."""
    sound = case(totals)
    sound.assert_sound()
    sound.assert_totals({DAYS[0]: {"sum(gross)": "3", "count(*)": 2}, DAYS[2]: {"max(gross)": 6}})
    sound.assert_reconciles("sum(amount)", "sum(gross)", of="raw")


def test_rows_that_depend_on_the_order_of_the_input_are_found() -> None:
    """The failure shows rows of both runs."""

    def first_of_day(_ctx: Any, raw: Any) -> list[dict[str, Any]]:
        seen: dict[Any, Any] = {}
        for row in raw.to_pylist():
            seen.setdefault(row["day"], row["account"])
        return [{"day": day, "account": account} for day, account in seen.items()]

    with pytest.raises(AssertionError) as found:
        case(first_of_day).assert_deterministic()
    assert "in another order" in str(found.value)
    assert "{'day': '2026-01-0" in str(found.value)


def test_a_transform_that_returns_other_partitions_is_found() -> None:
    """With the stray rows, and what to do."""

    def whole(ctx: Any, raw: Any) -> list[dict[str, Any]]:
        return [*totals(ctx, raw), {"day": date(2025, 12, 31), "account": "x", "gross": Decimal(0)}]

    with pytest.raises(AssertionError, match=r"keep rows of ctx\.partitions only") as found:
        case(whole).assert_stays_in_its_partitions()
    assert "2025-12-31" in str(found.value)


def test_a_look_back_that_is_too_short_is_found() -> None:
    """The day computed alone lacks what a run over all days sees; with the look-back declared, both agree."""

    def running(ctx: Any, raw: Any) -> list[dict[str, Any]]:
        rows = raw.to_pylist()
        days = [date.fromisoformat(name) for name in ctx.partitions]
        since = {day: [row for row in rows if day - timedelta(days=1) <= row["day"] <= day] for day in days}
        return [{"day": day, "two_days": sum(row["amount"] for row in since[day])} for day in days]

    with pytest.raises(AssertionError, match="2026-01-02 computed alone"):
        case(running, key=("day",)).assert_chunks_agree()
    case(running, key=("day",), lookback={"raw": 1}).assert_chunks_agree()


def test_repeated_keys_are_found() -> None:
    """By their values."""
    with pytest.raises(AssertionError, match="3 keys are there more than once") as found:
        case(lambda _ctx, raw: raw).assert_keys_are_unique()
    assert "'account': 'a'" in str(found.value)


def test_a_transform_that_adds_to_its_own_output_is_not_idempotent() -> None:
    """On a table that already holds its output it returns other rows."""

    def grow(ctx: Any, raw: Any, previous: Any) -> list[dict[str, Any]]:
        return [
            {**row, "gross": row["gross"] + previous.num_rows} for row in totals(ctx, raw)
        ]  # fmt: skip

    grown = TransformCase(
        grow, {"raw": RAW, "previous": []}, DAYS, column="day", read_by={"raw": "day"}, own="previous"
    )
    with pytest.raises(AssertionError, match="on a table that holds that output"):
        grown.assert_idempotent()


def _writes(place: Path) -> Callable[..., Any]:
    def build(ctx: Any, raw: Any) -> Any:
        place.write_text("seen")
        return totals(ctx, raw)

    return build


def _asks(ask: Callable[[], object]) -> Callable[..., Any]:
    def build(ctx: Any, raw: Any) -> Any:
        ask()
        return totals(ctx, raw)

    return build


def test_files_clocks_and_chance_are_noticed(tmp_path: Path) -> None:
    """Each is named; a transform that only computes is not suspected."""
    with pytest.raises(AssertionError, match=r"opens the file .*out\.txt for writing"):
        case(_writes(tmp_path / "out.txt")).assert_no_side_effects()
    with pytest.raises(AssertionError, match=r"calls time\.time"):
        case(_asks(lambda: time.time())).assert_no_side_effects()  # noqa: PLW0108 - looked up when it is called
    with pytest.raises(AssertionError, match=r"calls random\.random"):
        case(_asks(lambda: random.random())).assert_no_side_effects()  # noqa: PLW0108, S311
    case(totals).assert_no_side_effects()


def test_a_wrong_total_is_shown_beside_the_golden_one() -> None:
    """With its partition and expression."""
    with pytest.raises(AssertionError, match=r"2026-01-01: sum\(gross\) is 3, expected 4"):
        case(totals).assert_totals({DAYS[0]: {"sum(gross)": 4}})


def test_lost_rows_do_not_reconcile() -> None:
    """Input and output of the partition are both shown."""

    def loses(ctx: Any, raw: Any) -> Any:
        return [row for row in totals(ctx, raw) if row["account"] != "b"]

    with pytest.raises(AssertionError, match=r"sum\(amount\) of raw is 3, sum\(gross\) of the output is 2"):
        case(loses).assert_reconciles("sum(amount)", "sum(gross)", of="raw")


def test_the_context_is_that_of_a_run() -> None:
    """Interval, clock and config are there, and rows that are set aside are left out."""
    asked: list[Any] = []

    def build(ctx: Any, raw: Any) -> Any:
        asked.append((ctx.start, ctx.end, ctx.clock, ctx.config["rate"]))
        return totals(ctx, ctx.quarantine(raw, "account = 'b'", "unknown"))

    rows = case(build, config={"rate": 2}).run([DAYS[0]])
    assert asked == [(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC), asked[0][2], 2)]
    assert [row["account"] for row in rows] == ["a"]
