"""The small governed lake of :mod:`support.world` on tables in memory: the same project, people and wrong history.

Commands run in milliseconds on a real ledger. What it says about the table comes from the table's own metadata.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from errata.client import Client
from errata.ledger import Ledger
from errata.model.product import Project
from errata.testing import Lake, MemoryTable
from errata.testing.memory_engines import MemoryEngines
from errata.wiring import build_client, open_workspace
from support.empty_ledger import empty_ledger
from support.world import FIRST, PRODUCT, PRODUCT_FILE, PROJECT, TABLE, correct_rows, write_raw

__all__ = ["COLUMNS", "MemoryWorld", "build"]

COLUMNS = {
    "day": "date",
    "account": "string",
    "gross": "decimal(12, 2)",
    "n": "long",
    "produced_by_run_id": "string",
    "restatement_reason": "string",
}
Row = tuple[str, str, Decimal, int]


def build(_ctx: Any, raw: Any) -> list[dict[str, Any]]:
    """The transform: totals by day and account."""
    totals: dict[tuple[Any, str], tuple[Decimal, int]] = {}
    for row in raw.to_pylist():
        gross, n = totals.get((row["day"], row["account"]), (Decimal(0), 0))
        totals[row["day"], row["account"]] = (gross + row["amount"], n + 1)
    return [
        {"day": day, "account": account, "gross": gross, "n": n}
        for (day, account), (gross, n) in sorted(totals.items())
    ]


@dataclass
class MemoryWorld:
    """One project directory with its lake in memory."""

    root: Path
    lake: Lake
    days: tuple[str, ...]
    transform: Callable[..., Any]
    sleep: Callable[[float], None] = time.sleep
    said: list[str] = field(default_factory=list)
    prepare: Callable[[MemoryEngines], MemoryEngines] = lambda engines: engines  # the engines of every client

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        """Open the project as its files are now; what hooks recorded before is gone."""
        self.workspace = open_workspace(
            self.root,
            build_engines=self._build,
            now=self.lake.clock,
            sleep=self.sleep,
            narrate=self.said.append,
        )
        self.client: Client = build_client(self.workspace)

    def _build(self, project: Project, ledger: Ledger) -> MemoryEngines:
        self.ledger, self.engines = ledger, MemoryEngines(project, ledger, self.lake, {PRODUCT: self.transform})
        return self.prepare(self.engines)

    @classmethod
    def make(
        cls,
        root: Path,
        *,
        days: int = 4,
        chunk_bytes: str = "1MiB",
        product: str = PRODUCT_FILE,
        transform: Callable[..., Any] = build,
        sleep: Callable[[float], None] = time.sleep,
        rows: int = 3,
        history: bool = True,
        project: str = "",
        partition: tuple[str, str] | None = ("day", "identity"),
        properties: Mapping[str, str] | None = None,
    ) -> MemoryWorld:
        """Files, table and client. The history is wrong: every gross is doubled."""
        text = PROJECT + project
        words = {"LEDGER": "sqlite:///.errata/ledger.db", "CHUNK_BYTES": chunk_bytes, "STORAGE": "{}",
                 "LAKE": '{type: jdbc, uri: "sqlite:///.errata/none.db", warehouse: .errata/none}'}  # fmt: skip
        for word, value in words.items():
            text = text.replace(word, value)
        for place, content in {
            "errata.yaml": text, "products/sales.yaml": product, "transforms/sales.py": "def build(ctx, raw): ...\n",
        }.items():  # fmt: skip
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).write_text(content, "utf-8")
        names = tuple((FIRST + timedelta(days=n)).isoformat() for n in range(days))
        for name in names:
            write_raw(root, name, rows)
        (root / ".errata").mkdir()
        (root / ".errata/ledger.db").write_bytes(empty_ledger())
        lake = Lake()
        lake.create(TABLE, COLUMNS, partition=partition, properties=properties)
        made = cls(root, lake, names, transform, sleep)
        if history:
            made.write_history(names)
        return made

    @property
    def table(self) -> MemoryTable:
        """The target."""
        return self.lake.table(TABLE)

    def configure(self, old: str, new: str) -> None:
        """Change the project file and open it again."""
        place = self.root / "errata.yaml"
        assert old in place.read_text()
        place.write_text(place.read_text().replace(old, new))
        self.client.close()
        self.open()

    def write_history(self, names: Iterable[str]) -> None:
        """What the live pipeline left behind: right rows, wrong gross."""
        rows = [row for name in names for row in correct_rows(self.root, name)]
        self.table.append([{"day": d, "account": a, "gross": g * 2, "n": n} for d, a, g, n in rows])

    def live(self, day: str, account: str = "live", gross: str = "1.00") -> str:
        """One live append."""
        return self.table.append([{"day": day, "account": account, "gross": gross, "n": 1}])

    def another_client(self, **options: Any) -> Client:
        """A client of one's own, as another process has it."""
        return build_client(
            open_workspace(
                self.root,
                build_engines=lambda project, ledger: self.prepare(
                    MemoryEngines(project, ledger, self.lake, {PRODUCT: self.transform})
                ),
                now=self.lake.clock,
                **{"narrate": self.said.append, **options},
            )
        )

    def compact(self, *, only_split: bool = False) -> None:
        """Rewrite the data files, all of them or only those of partitions with several."""
        split = [name for name, files in self.files().items() if len(files) > 1]
        self.table.compact(*(split if only_split else ()))

    def expire(self) -> None:
        """Expire every snapshot that no ref keeps."""
        self.table.expire(older_than_ms=self.lake.now_ms() + 1000)

    def drop_refs(self, *names: str) -> None:
        """Drop branches and tags, as a tool does that does not know them."""
        self.table.drop_ref(*names)

    def set_main(self, snapshot_id: str) -> None:
        """Set main back, as its owner may."""
        self.table.set_main(snapshot_id)

    def remove_day(self, day: str) -> None:
        """Delete all rows of a day."""
        self.table.remove_where(lambda row: str(row["day"]) != day)

    def plan(self, partitions: str | None = None, **options: Any) -> Any:
        """Plan the given days, all by default."""
        scope = partitions or f"{self.days[0]}..{self.days[-1]}"
        reason = options.pop("reason", "doubled")
        return self.client.plan(PRODUCT, partitions=scope, reason=reason, as_="ana", **options)

    def to(self, state: str, partitions: str | None = None, **options: Any) -> str:
        """A run brought to this state: planned, approved, staged, validated or published."""
        plan = self.plan(partitions, **options)
        steps: dict[str, Callable[[], object]] = {
            "planned": lambda: None,
            "approved": lambda: self.client.approve(plan.id, digest=plan.digest, as_="bo"),
            "staged": lambda: self.client.run(plan.id, as_="ana"),
            "validated": lambda: self.client.validate(plan.id, as_="ana"),
            "published": lambda: self.client.publish(plan.id, as_="bo"),
        }
        for name, act in steps.items():
            act()
            if name == state:
                break
        return str(plan.id)

    def publication(self, run: str, n: int = 1) -> str:
        """The id of the run's n-th publication or rollback."""
        return next(one.pub_id for one in self.ledger.publications.list(run) if one.n == n)

    def snapshot(self) -> str:
        """Main's head."""
        head = self.table.metadata.head
        assert head is not None
        return head.snapshot_id

    def count_publications(self) -> int:
        """Number of snapshots of the table that say they are a publication."""
        found = self.table.metadata.snapshots.values()
        return sum(1 for snapshot in found if snapshot.summary.get("errata.kind") == "publish")

    def files(self, snapshot_id: str | None = None) -> dict[str, frozenset[str]]:
        """Partition → live data files."""
        found: dict[str, set[str]] = {}
        for file in self.table.metadata.snapshots[snapshot_id or self.snapshot()].files.values():
            found.setdefault(str(file.partition), set()).add(file.path)
        return {name: frozenset(paths) for name, paths in found.items()}

    def rows(self, at: str | None = None) -> list[Row]:
        """Business columns of every row, sorted."""
        return sorted((str(r["day"]), r["account"], r["gross"], r["n"]) for r in self.table.rows(at))

    def expected(self, days: Iterable[str] | None = None) -> list[Row]:
        """The right answer, computed here."""
        return sorted(row for name in (days or self.days) for row in correct_rows(self.root, name))

    def wrong(self, days: Iterable[str] | None = None) -> list[Row]:
        """What the history held."""
        return sorted((d, a, g * 2, n) for d, a, g, n in self.expected(days))

    def refs(self) -> set[str]:
        """Branches and tags."""
        return set(self.table.metadata.refs)
