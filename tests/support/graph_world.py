"""Four products that build on each other, hour → day → month and a rolling sum, on tables in memory.

``ops.hourly`` reads raw events, ``ops.daily`` the hours of a day, ``ops.monthly`` the days of a month, and
``ops.rolling`` a day with the two before it. Every table has one row per partition, so that the right content of all of
them follows from the events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from errata.client import Client
from errata.ledger import Ledger
from errata.model.product import Project
from errata.testing import Lake
from errata.testing.memory_engines import MemoryEngines
from errata.wiring import build_client, open_workspace
from support.empty_ledger import empty_ledger

PROJECT = """
project: graph
ledger: sqlite:///.errata/ledger.db
catalogs:
  lake: {type: jdbc, uri: "sqlite:///.errata/none.db", warehouse: .errata/none}
people:
  ana: {roles: [requester, operator]}
  bo: {roles: [approver, publisher]}
limits: {max_partitions: 2000}
"""

PRODUCTS = {
    "hourly": """
product: ops.hourly
owner: ops
target: {table: lake.ops.hourly, partition: {column: at, grain: hour}}
transform: {call: "transforms.graph:hourly", version: 1.0.0}
inputs:
  events: {table: lake.raw.events, partition: at}
reconcile: [{name: total, input: events, source: "sum(amount)", target: "sum(amount)", tolerance: 0}]
consumers: [status page]
""",
    "daily": """
product: ops.daily
owner: ops
target: {table: lake.ops.daily, partition: {column: day, grain: day}}
transform: {call: "transforms.graph:daily", version: 1.0.0}
inputs:
  hours: {table: lake.ops.hourly, partition: at, grain: hour}
reconcile: [{name: total, input: hours, source: "sum(amount)", target: "sum(amount)", tolerance: 0}]
""",
    "monthly": """
product: ops.monthly
owner: finance
target: {table: lake.ops.monthly, partition: {column: month, grain: month}}
transform: {call: "transforms.graph:monthly", version: 1.0.0}
inputs:
  days: {table: lake.ops.daily, partition: day, grain: day}
reconcile: [{name: total, input: days, source: "sum(amount)", target: "sum(amount)", tolerance: 0}]
consumers: [board report]
""",
    "rolling": """
product: ops.rolling
owner: ops
target: {table: lake.ops.rolling, partition: {column: day, grain: day}}
transform: {call: "transforms.graph:rolling", version: 1.0.0}
inputs:
  days: {table: lake.ops.daily, partition: day, lookback: 2d}
""",
}
CODE = "".join(f"def {name}(ctx, **inputs): ...\n" for name in PRODUCTS)


def _sum_by(rows: list[dict[str, Any]], unit: Callable[[dict[str, Any]], Any], column: str) -> list[dict[str, Any]]:
    totals: dict[Any, int] = {}
    for row in rows:
        totals[unit(row)] = totals.get(unit(row), 0) + row["amount"]
    return [{column: value, "amount": amount} for value, amount in sorted(totals.items())]


def hourly(_ctx: Any, events: Any) -> list[dict[str, Any]]:
    """Sum by hour."""
    return _sum_by(events.to_pylist(), lambda row: row["at"].replace(minute=0), "at")


def daily(_ctx: Any, hours: Any) -> list[dict[str, Any]]:
    """Sum by day."""
    return _sum_by(hours.to_pylist(), lambda row: row["at"].date(), "day")


def daily_as_text(_ctx: Any, hours: Any) -> list[dict[str, Any]]:
    """Sum by day, with days as text."""
    return _sum_by(hours.to_pylist(), lambda row: row["at"].date().isoformat(), "day")


def monthly(_ctx: Any, days: Any) -> list[dict[str, Any]]:
    """Sum by month."""
    return _sum_by(days.to_pylist(), lambda row: str(row["day"])[:7], "month")


def rolling(ctx: Any, days: Any) -> list[dict[str, Any]]:
    """Sum over a day and the two before it."""
    known = {str(row["day"]): row["amount"] for row in days.to_pylist()}
    found = []
    for name in ctx.partitions:
        day = date.fromisoformat(name)
        amount = sum(known.get((day - timedelta(days=n)).isoformat(), 0) for n in range(3))
        found.append({"day": day, "amount": amount})
    return found


TRANSFORMS: Mapping[str, Callable[..., Any]] = {
    "ops.hourly": hourly,
    "ops.daily": daily,
    "ops.monthly": monthly,
    "ops.rolling": rolling,
}


@dataclass
class GraphWorld:
    """One project with its lake; ``events`` says what the raw table holds, by hour."""

    root: Path
    lake: Lake
    events: dict[datetime, int]
    transforms: dict[str, Callable[..., Any]]
    said: list[str] = field(default_factory=list)

    @classmethod
    def make(
        cls,
        root: Path,
        *,
        first: str = "2026-01-30",
        days: int = 4,
        products: Mapping[str, str] | None = None,
        project: str = "",
        text_days: bool = False,
    ) -> GraphWorld:
        """Files, tables with their right content, and a client. With ``text_days`` the daily table has days as text."""
        files = {"errata.yaml": PROJECT + project, "transforms/graph.py": CODE}
        files |= {f"products/{name}.yaml": text for name, text in {**PRODUCTS, **(products or {})}.items() if text}
        for place, text in files.items():
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).write_text(text, "utf-8")
        (root / ".errata").mkdir()
        (root / ".errata/ledger.db").write_bytes(empty_ledger())
        start = datetime.fromisoformat(first).replace(tzinfo=UTC)
        events = {start + timedelta(hours=n): n + 1 for n in range(24 * days)}
        lake, day = Lake(), "string" if text_days else "date"
        lake.create("lake.raw.events", {"at": "timestamptz", "amount": "long"}, partition=("at", "hour"))
        lake.create("lake.ops.hourly", {"at": "timestamptz", "amount": "long"}, partition=("at", "hour"))
        lake.create("lake.ops.daily", {"day": day, "amount": "long"}, partition=("day", "identity"))
        lake.create("lake.ops.monthly", {"month": "string", "amount": "long"}, partition=("month", "identity"))
        lake.create("lake.ops.rolling", {"day": "date", "amount": "long"}, partition=("day", "identity"))
        made = cls(root, lake, events, dict(TRANSFORMS) | ({"ops.daily": daily_as_text} if text_days else {}))
        for name, rows in made.expect().items():
            lake.table(f"lake.{name}").append(rows)
        made.open()
        return made

    def open(self, **options: Any) -> None:
        """Open the project as its files are now."""
        self.workspace = open_workspace(
            self.root, build_engines=self._build, now=self.lake.clock, narrate=self.said.append, **options
        )
        self.client: Client = build_client(self.workspace)

    def _build(self, project: Project, ledger: Ledger) -> MemoryEngines:
        return MemoryEngines(project, ledger, self.lake, self.transforms)

    def write(self, place: str, text: str) -> None:
        """Change a file of the project and open it again."""
        (self.root / place).parent.mkdir(parents=True, exist_ok=True)
        (self.root / place).write_text(text, "utf-8")
        self.client.close()
        self.open()

    def expect(self) -> dict[str, list[dict[str, Any]]]:
        """The right rows of every table, computed from the events alone."""
        days = sorted({at.date() for at in self.events})
        by_day = {day: sum(n for at, n in self.events.items() if at.date() == day) for day in days}
        months = sorted({day.isoformat()[:7] for day in days})
        is_text = self.lake.table("lake.ops.daily").metadata.schema.find("day").type == "string"
        return {
            "raw.events": [{"at": at, "amount": n} for at, n in self.events.items()],
            "ops.hourly": [{"at": at, "amount": n} for at, n in self.events.items()],
            "ops.daily": [{"day": day.isoformat() if is_text else day, "amount": n} for day, n in by_day.items()],
            "ops.monthly": [
                {"month": month, "amount": sum(n for day, n in by_day.items() if day.isoformat()[:7] == month)}
                for month in months
            ],
            "ops.rolling": [
                {"day": day, "amount": sum(by_day.get(day - timedelta(days=n), 0) for n in range(3))} for day in days
            ],
        }

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table, in order."""
        return sorted((dict(row) for row in self.lake.table(f"lake.{name}").rows()), key=str)

    def is_right(self, name: str) -> bool:
        """Whether a table holds what follows from the events."""
        return self.rows(name) == sorted(self.expect()[name], key=str)

    def change(self, at: str, amount: int) -> None:
        """Write another amount for one hour of the raw events, as a late job does."""
        moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
        self.events[moment] = amount
        self.lake.table("lake.raw.events").overwrite([{"at": moment, "amount": amount}])

    def correct(self, product: str, partitions: str) -> Any:
        """Plan, approve, run, judge, publish; returns the plan."""
        plan = self.client.plan(product, partitions=partitions, reason="late events", as_="ana")
        self.client.approve(plan.id, digest=plan.digest, as_="bo")
        self.client.run(plan.id, as_="ana")
        self.client.validate(plan.id, as_="ana")
        self.client.publish(plan.id, as_="bo")
        return plan
