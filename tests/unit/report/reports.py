"""A report made by hand: 45 days whose revenue was converted with inverted rates. Every number follows from a day's."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

from errata.gate.diff.movements import build_movement, find_extremes, sum_values
from errata.model.diff import (
    MASK,
    QUANTILES,
    ChangePattern,
    ColumnChange,
    Diff,
    Distribution,
    MetricMoves,
    OutsideScope,
    PartitionDiff,
    Profile,
    SampleRow,
    SchemaDiff,
    TopValue,
    sum_by_column,
)
from errata.views import ValidateView
from errata.views.diff import DiffView
from errata.views.report import AcceptedWarning, ReportView
from unit.cli import samples

SCOPE, RUN = samples.SCOPE, samples.RUN
SAME = "2026-01-01"
CHECKS = ("rowCount", "nullValues(account_id)", "duplicateValues(business_date, account_id, currency)")


def _weekly(n: int) -> Decimal:
    """Business falls at the weekend and grows a little."""
    weekday = date.fromisoformat(SCOPE[n]).weekday()
    return Decimal(1_180_000 - 320_000 * (weekday >= 5) + 4_100 * n + 9_170 * ((n * 7) % 5))


def _after(n: int) -> Decimal:
    off = Decimal(98 + (n * 13) % 52) / 1000
    return _weekly(n) if SCOPE[n] == SAME else (_weekly(n) * (1 - off)).quantize(Decimal("0.01"))


def _part(n: int) -> PartitionDiff:
    rows = 48_000 + 37 * n
    if SCOPE[n] == SAME:
        return PartitionDiff(SCOPE[n], rows, rows, 0, 0, 0, rows, method="same")
    changed = rows * (55 + (n * 11) % 35) // 100
    columns = {
        "revenue_usd": ColumnChange(changed, str(_weekly(n)), str(_after(n))),
        "fx_rate": ColumnChange(changed - 300, "49105.1", "41673.2", within=211),
        "booked_by": ColumnChange(18 + n % 4),
        "account_id": ColumnChange(0),
        "event_count": ColumnChange(0, "190300", "190300"),
    }
    return PartitionDiff(
        SCOPE[n], rows, rows + (n % 9 == 4), int(n % 9 == 4), 0, changed, rows - changed, "key", columns, within=97
    )


def parts() -> tuple[PartitionDiff, ...]:
    return tuple(_part(n) for n in range(len(SCOPE)))


def _moves(name: str, kind: str, sides: list[tuple[str, str]], *words: str) -> MetricMoves:
    found = tuple(build_movement(SCOPE[n], before, after) for n, (before, after) in enumerate(sides))
    largest, smallest = find_extremes(found)
    sums = [sum_values(getattr(one, side) for one in found) for side in ("before", "after")]
    return MetricMoves(name, kind, *(words or ("before", "after")), found, sums[0], sums[1], largest, smallest)


def metrics() -> tuple[MetricMoves, ...]:
    revenue = [(str(_weekly(n)), str(_after(n))) for n in range(len(SCOPE))]
    gross = [(f"{int(_weekly(n)) + 91}.40", f"{int(_weekly(n)) + 91}.40") for n in range(len(SCOPE))]
    return (
        _moves("sum(revenue_usd)", "compare", revenue),
        _moves("gross", "reconcile", gross, "sum(amount) of transactions", "sum(gross) of the output"),
    )


def _points(*values: str) -> dict[str, str]:
    return dict(zip(QUANTILES, values, strict=True))


def _distributions() -> dict[str, Distribution]:
    return {
        "revenue_usd": Distribution(
            "number",
            Profile(2_160_000, 0, "-220.10", "99120.55", "19.06", _points("1.10", "6.40", "14.20", "27.90", "61.00")),
            Profile(2_160_005, 0, "-201.77", "91200.01", "16.92", _points("0.98", "5.60", "12.50", "24.90", "54.10")),
        ),
        "booked_by": Distribution(
            "text",
            Profile(2_160_000, 14, distinct=3, top=(TopValue("batch", 2_100_000), TopValue("manual", 59_986))),
            Profile(2_160_005, 0, distinct=3, top=(TopValue("batch", 2_100_900), TopValue("workspace-7", 59_105))),
        ),
        "account_id": Distribution("other", Profile(2_160_000, 0), Profile(2_160_005, 0)),
    }  # fmt: skip


def _sample() -> tuple[SampleRow, ...]:
    def key(day: str, currency: str) -> dict[str, Any]:
        return {"business_date": day, "account_id": MASK, "currency": currency}

    return (
        SampleRow("2026-01-17", "changed", key("2026-01-17", "EUR"), {"revenue_usd": "1204.11", "fx_rate": "1.0913"},
                  {"revenue_usd": "1021.76", "fx_rate": "0.9260"}),
        SampleRow("2026-01-17", "changed", key("2026-01-17", "GBP"), {"revenue_usd": "88.20", "booked_by": None},
                  {"revenue_usd": "54.03", "booked_by": "workspace-7"}),
        SampleRow("2026-01-18", "added", key("2026-01-18", "CHF"), {},
                  {"revenue_usd": "7.00", "fx_rate": "1.1201", "booked_by": "batch"}),
    )  # fmt: skip


def diff(**changes: Any) -> DiffView:
    found = parts()
    totals = sum_by_column(found)
    totals["revenue_usd"] = replace(totals["revenue_usd"], median_percent="-11.24")
    facts: dict[str, Any] = {
        "schema": SchemaDiff(),
        "partitions": found,
        "columns": totals,
        "sample": _sample(),
        "together": (
            ChangePattern(("revenue_usd", "fx_rate"), totals["fx_rate"].changed - 20),
            ChangePattern(("revenue_usd",), 13_180),
            ChangePattern(("revenue_usd", "fx_rate", "booked_by"), 20),
        ),
        "distributions": _distributions(),
        "masked": ("account_id",),
        "tolerance": {"fx_rate": "0.000001"},
    }
    return DiffView(
        RUN, "fin.daily_revenue", "5528119922337744001", "5528119922337744000", "day", 15,
        ("business_date", "account_id", "currency"), Diff(**(facts | changes)), metrics(), OutsideScope(15),
    )  # fmt: skip


def _checks() -> tuple[dict[str, Any], ...]:
    found: list[dict[str, Any]] = [
        {"name": "schema", "partition": None, "value": None, "level": "ok", "message": "9 columns as planned",
         "accepted_by": None}
    ]  # fmt: skip
    for n, day in enumerate(SCOPE):
        found += [
            {
                "name": name,
                "partition": day,
                "value": "0",
                "level": "ok",
                "message": f"{name} is 0",
                "accepted_by": None,
            }
            for name in CHECKS
        ]
        one = metrics()[0].partitions[n]
        level = "warn" if one.percent and Decimal(one.percent) < -13 else "ok"
        message = (
            f"sum(revenue_usd) was {one.before}, is {one.after} ({one.percent} %); warns above 13%, blocks above 60%"
        )
        found.append(
            {"name": "sum(revenue_usd)", "partition": day, "value": f"{one.percent}%", "level": level,
             "message": message, "accepted_by": "bo" if level == "warn" else None}
        )  # fmt: skip
    return tuple(found)


def report(**changes: Any) -> ReportView:
    """Validated, with one accepted warning."""
    verdict = ValidateView(
        RUN, "validated", already=True, passed=True, snapshot_id="5528119922337744001",
        candidate=f"errata_{RUN}_c1_5d41402a", checks=_checks(), measured=405,
    )  # fmt: skip
    facts: dict[str, Any] = {
        "run_id": RUN,
        "state": "validated",
        "plan": samples.plan(state="validated", approvals=(samples.APPROVAL,)),
        "verdict": verdict,
        "judged_by": "bo",
        "judged_at": "2026-02-14T11:02:00+00:00",
        "partitions": SCOPE,
        "accepted": (
            AcceptedWarning(
                "sum(revenue_usd)", "rates of EUR and GBP were inverted; treasury recomputed five days and agrees",
                "bo", "2026-02-14T11:01:40+00:00",
            ),
        ),
        "releases": (),
        "diff": diff(),
        "next": (f"errata publish {RUN}",),
        "undo": "30d",
        "digests": {"run manifest": samples.DIGEST, "candidate": "5f" * 32, "candidate snapshot": "5528119922337744001",
                    "compared with snapshot": "5528119922337744000", "code": samples.CODE},
        "made_at": "2026-02-14T11:05:00+00:00",
    }  # fmt: skip
    return ReportView(**(facts | changes))
