"""The FinSight incident, replayed with the real commands (`make demo`).

A release inverted FX rates for 45 days. Ana plans the correction; Bo approves and publishes it while the daily
pipeline keeps writing. Three days are rolled back and corrected by a second run. At the end, a reader that uses nothing
of Errata checks every claim. The project directory is kept for you to experiment with.

    python examples/finsight/demo.py [--directory build/demo/finsight]
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # started as a file: the example is a package of the repository
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from examples.finsight import generate, independent, warehouse, workshop
from examples.finsight.background import LivePipeline
from examples.finsight.claims import Claim, print_claims, same
from examples.finsight.command import Errata
from examples.finsight.lake import FIRST_DAY, FIXED_ON, TODAY, days

PRODUCT = "fin.daily_revenue"
TABLE = "lake.fin.daily_revenue"
WRONG = [day.isoformat() for day in days(FIRST_DAY, FIXED_ON)]
RIGHT = [day.isoformat() for day in days(FIXED_ON, TODAY)]
ROLLED_BACK = ["2026-01-13", "2026-01-14", "2026-01-15"]
LOADED = f"{WRONG[0]}..{RIGHT[-1]}"  # days that the nightly job has brought into the warehouse
SPAN = f"{ROLLED_BACK[0]}..{ROLLED_BACK[-1]}"
ACCOUNT, DAY, CURRENCY = "A-10035", "2026-01-17", "EUR"

DIGEST = r"(?<=^manifest )[0-9a-f]{64}$"
RUN_ID = r"\bbf-\d{8}-[a-z0-9_-]+-[0-9a-f]{8}\b"
REASON = "FX rates applied inverted by release 2.3.9 (FIN-231)"
BACK = "Audit of mid-January settlements is still open (FIN-240)"
AGAIN = "FX correction of mid-January, settlements audited (FIN-231, FIN-240)"
WARNED = "sum(revenue_usd)"
NIGHTLY = "loaded by the nightly job until now"
ACCEPTED = "FIN-231: the FX fix moves revenue by about 18 %"


@dataclass(slots=True)
class Demo:
    """State of the demo: the project, the commands, the live pipeline, and the findings so far."""

    project: Path
    errata: Errata
    live: LivePipeline
    warehouse: warehouse.Warehouse | None = None
    claims: list[Claim] = field(default_factory=list)
    before: independent.Files = field(default_factory=dict)
    replaced: set[str] = field(default_factory=set)  # days that publications and rollbacks replaced
    files_written: tuple[int, int] = (0, 0)  # by publications, as reported and as found on disk
    copied: list[independent.RevenueRow] = field(default_factory=list)  # the wrong days in the warehouse, as loaded

    @property
    def lake(self) -> Path:
        """The lake of the project."""
        return self.project / "lake"

    def number(self, files: independent.Files) -> str:
        """One account's revenue as the dashboard shows it."""
        found = independent.one_number(self.lake, files, DAY, ACCOUNT, CURRENCY)
        return (
            f"{ACCOUNT} on {DAY}: {found['gross']} {CURRENCY} × {found['fx_rate']} = {found['revenue_usd']} USD"
            f"   (rate on that day: {found['usd_per_unit']})"
        )

    def the_wrong_number(self) -> None:
        """The number that started it."""
        heading("A number looks wrong")
        self.before = independent.files_at(self.lake)
        rows, wrong = independent.wrong_rows(self.lake, self.before, WRONG)
        say(self.number(self.before))
        say(f"Release 2.3.9 divided instead of multiplying: {wrong:,} of {rows:,} rows on {len(WRONG)} days are wrong.")
        say(f"The {len(RIGHT)} days since release 2.4.1 are correct and must not be touched.")

    def the_wrong_copy(self) -> None:
        """The nightly job has loaded the wrong days into the warehouse; a person accepts that as the beginning."""
        if self.warehouse is None:
            return
        heading("The warehouse has the wrong days too")
        rows = self.warehouse.load([path for day in WRONG + RIGHT for path in self.before[day]])
        self.copied = self.warehouse.read(WRONG[0], WRONG[-1])
        say(f"Its nightly job has loaded {rows:,} rows of {len(WRONG + RIGHT)} days. {self.copied_number()}")
        say("From now on Errata replaces corrected days there. Bo accepts what the table holds as the beginning:")
        self.errata.show("bo", "deliver", PRODUCT, "--baseline", "--partitions", LOADED, "--reason", NIGHTLY)

    def copied_number(self) -> str:
        """The same number as the warehouse has it."""
        assert self.warehouse is not None
        (found,) = [row for row in self.warehouse.read(DAY, DAY) if row[1:3] == (ACCOUNT, CURRENCY)]
        return f"{ACCOUNT} on {DAY} has {found[5]} USD there."

    def plan(self, *scope: str, reason: str) -> tuple[str, str]:
        """Plan; returns the run and its digest."""
        output = self.errata.show("ana", "plan", PRODUCT, *scope, "--reason", reason)
        run = first(RUN_ID, output)
        return run, first(DIGEST, output)

    def correct(self) -> str:
        """From plan to publication of all 45 days."""
        heading("Ana plans the correction of 45 days")
        run, digest = self.plan("--from", WRONG[0], "--to", RIGHT[0], reason=REASON)
        heading("Ana cannot approve her own plan")
        self.errata.show("ana", "approve", run, "--digest", digest, exits=[3])
        heading("Bo approves this plan by its digest")
        self.errata.show("bo", "approve", run, "--digest", digest, "--note", "rates checked against the bank sheet")
        say(f"The daily pipeline keeps writing: {self.live.commits} commits so far.")
        heading("The days are computed without touching the live table")
        self.errata.show("ana", "run", run)
        heading("The gate: revenue moved by more than 5 %, so a person has to confirm it")
        self.errata.show("ana", "validate", run, exits=[4])
        self.accept(run)
        heading("The difference between old and new")
        difference = self.errata.show("ana", "diff", run, "--sample", "3")
        heading("Bo publishes while the daily pipeline keeps writing")
        published = self.publish(run)
        after = independent.files_at(self.lake)
        say(self.number(after))
        self.claims += self.claims_of_publication(difference, published, after)
        if self.warehouse is not None:
            say(f"The warehouse followed. {self.copied_number()}")
            changed = Counter(self.warehouse.read(WRONG[0], WRONG[-1])) - Counter(self.copied)
            self.claims.append(same("rows corrected in the warehouse", count("changed", difference), changed.total()))
        return run

    def accept(self, run: str) -> None:
        """Bo accepts the warning; the checks stay as strict for the next run."""
        self.errata.show("bo", "validate", run, "--accept", f"{WARNED}={ACCEPTED}")

    def publish(self, run: str) -> Any:
        """Publish, count the new data files on disk, and publish again to see that nothing happens."""
        return self.watched("bo", "publish", run)

    def watched(self, person: str, *arguments: str) -> Any:
        """Run a command that changes the table, compare the disk before and after, and run the command again."""
        on_disk = independent.data_files_on_disk(self.lake, WRONG)
        commits = self.live.commits
        self.errata.show(person, *arguments)
        say(f"Commits of the daily pipeline meanwhile: {self.live.commits - commits}.")
        new = independent.data_files_on_disk(self.lake, WRONG) - on_disk
        again = self.errata.ask(person, *arguments)
        if again["already"]:
            say("The same command again: Errata reports that it is already done, and does nothing.")
        self.replaced |= set(again["partitions"])
        self.deliver(again)
        reported, found = self.files_written
        self.files_written = (reported + again["data_files_written"], found + len(new))
        return again

    def deliver(self, answer: Any) -> None:
        """Pay the rest, if the command had no time left to bring its days into the warehouse."""
        if any(copy["state"] != "delivered" for copy in answer["copies"]):
            self.errata.show("bo", "deliver", PRODUCT)

    def claims_of_publication(self, difference: str, published: Any, after: independent.Files) -> list[Claim]:
        """Claims about the first publication."""
        found = independent.difference(self.before, after, WRONG)
        reported = {word: count(word, difference) for word in ("added", "removed", "changed")}
        untouched = sum(1 for day in RIGHT if after[day] == self.before[day])
        beyond = set(published["partitions"]) - set(WRONG)
        return [
            same("rows corrected in 45 days", reported["changed"], found.changed),
            same("rows added or removed by it", reported["added"] + reported["removed"],
                 found.added + found.removed, want=0),
            Claim("days outside the scope: identical files", f"{len(beyond)} days beyond the plan",
                  f"{untouched} of {len(RIGHT)} days identical", not beyond and untouched == len(RIGHT)),
        ]  # fmt: skip

    def look_and_roll_back(self, run: str) -> None:
        """Ask why a number changed, and roll three days back."""
        heading("Anyone can ask why a number changed")
        self.errata.show("ana", "why", TABLE, DAY, "--key", f"account_id={ACCOUNT}", "--key", f"currency={CURRENCY}")
        heading("Three days must be restored")
        rolled = self.watched("bo", "rollback", run, "--partitions", SPAN, "--reason", BACK)
        now = independent.files_at(self.lake)
        restored = sum(1 for day in ROLLED_BACK if now[day] == self.before[day])
        self.claims.append(
            same("days rolled back, file for file as before", len(rolled["partitions"]), restored, want=3)
        )
        if self.warehouse is not None:
            there, before = (rows_by_day(rows) for rows in (self.warehouse.read(WRONG[0], WRONG[-1]), self.copied))
            back = sum(1 for day in WRONG if there[day] == before[day])
            self.claims.append(
                same("days of the warehouse, row for row as before", len(rolled["partitions"]), back, want=3)
            )

    def correct_again(self) -> None:
        """Correct the three days with a second run."""
        heading("A week later, a second run corrects the three days")
        run, digest = self.plan("--partitions", SPAN, reason=AGAIN)
        self.errata.show("bo", "approve", run, "--digest", digest)
        self.errata.show("ana", "run", run)
        self.accept(run)
        self.publish(run)

    def settle(self) -> None:
        """Stop the live pipeline and compare the whole table with the raw files and the journal."""
        heading("The daily pipeline stops, and the table is compared with the raw files")
        self.live.stop()
        files = independent.files_at(self.lake)
        rows, wrong = independent.wrong_rows(self.lake, files, WRONG)
        live = independent.live_rows(self.lake, self.live.journal)
        reported, found = self.files_written
        replaced = self.replaced & set(live.days)
        lost = "all there" if not live.problems else "; ".join(live.problems[:3])
        self.claims += [
            Claim("corrected rows equal the raw files", "gate passed", f"{wrong:,} of {rows:,} differ", wrong == 0),
            same("data files written by publish and rollback", reported, found, want=0),
            Claim("live rows kept", f"{len(replaced)} live days replaced",
                  f"{live.rows:,} rows of {live.commits} commits, {lost}", not replaced and not live.problems),
        ]  # fmt: skip

    def settle_warehouse(self) -> None:
        """Compare all days that the nightly job loaded with the lake, row for row."""
        if self.warehouse is None:
            return
        lake = independent.revenue_rows(independent.files_at(self.lake), WRONG + RIGHT)
        found = self.warehouse.read(WRONG[0], RIGHT[-1])
        owed = len(self.errata.ask("bo", "outbox")["items"])
        [checked] = self.errata.ask("bo", "copies", "check", PRODUCT, exits=(0, 4))["copies"]
        compared = f"{len(checked['differing'])} of {checked['checked_count']} days differ"
        differing, twice = independent.rows_that_differ(lake, found), self.warehouse.count_duplicates()
        self.claims += [
            Claim("lake = warehouse", f"{owed} deliveries owed", f"{differing:,} of {len(found):,} rows differ",
                  not owed and not differing and bool(found)),
            Claim("duplicates in the warehouse", compared, f"{twice:,} keys twice",
                  not twice and not checked["differing"]),
        ]  # fmt: skip

    def audit(self) -> None:
        """Verify the chain, and a copy of it with one changed word."""
        heading("The audit trail")
        self.errata.show("bo", "audit", "verify")
        verified = self.errata.ask("bo", "audit", "verify")
        chain = independent.verify_chain(self.project / ".errata" / "ledger.db")
        intact = verified["ok"] and chain.first_bad is None
        self.claims.append(
            Claim("audit chain verified", f"{verified['entries']} entries", f"{chain.entries} entries hashed again",
                  intact and verified["entries"] == chain.entries)
        )  # fmt: skip
        copy, edited = workshop.tampered_copy(self.project)
        heading(f"In a copy of the ledger, entry {edited} now claims that ana approved her own request")
        tampered = Errata(copy)
        tampered.show("bo", "audit", "verify", exits=[1, 3, 4])
        bad = int(tampered.ask("bo", "audit", "verify", exits=[1, 3, 4])["first_bad"])
        again = independent.verify_chain(copy / ".errata" / "ledger.db").first_bad
        caught = bad == again == edited
        self.claims.append(Claim("tampered copy caught", f"at entry {bad}", f"at entry {again}", caught))


def heading(text: str) -> None:
    """A step of the story."""
    print(f"\n── {text} " + "─" * max(0, 96 - len(text)), flush=True)


def say(text: str) -> None:
    """One sentence."""
    print(f"  {text}", flush=True)


def rows_by_day(rows: list[independent.RevenueRow]) -> dict[str, Counter[independent.RevenueRow]]:
    """The rows of each day."""
    found: dict[str, Counter[independent.RevenueRow]] = {}
    for row in rows:
        found.setdefault(str(row[0]), Counter())[row] += 1
    return found


def first(pattern: str, text: str) -> str:
    """The first match in a command's output."""
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise workshop.DemoError(f"expected {pattern} in the output, found none")
    return found[0]


def count(word: str, text: str) -> int:
    """The number after a word: ``changed 1,466,020``."""
    return int(first(rf"(?<=\b{word} )[\d,]+", text).replace(",", ""))


def prepare(project: Path, live: LivePipeline) -> None:
    """Create the lake, and wait for the history."""
    rows = generate.generate(project / "lake")
    say(f"{rows:,} raw transactions on {len(WRONG) + len(RIGHT)} days, {WRONG[0]} … {RIGHT[-1]}.")
    say("The daily pipeline runs in a separate process. It first writes its history with Spark:")
    say("45 days by release 2.3.9, 15 days by release 2.4.1. Then it commits every few seconds until the end.")
    live.wait_for(1)


def replay(project: Path, kind: str = warehouse.AUTO, *, timings: bool = False) -> bool:
    """Run the whole demo; returns whether every claim holds."""
    started = time.monotonic()
    heading("FinSight's lake and warehouse")
    with warehouse.open_warehouse(kind, say) as server:
        workshop.lay_out(project, server)
        with LivePipeline(project) as live:
            prepare(project, live)
            demo = Demo(project, Errata(project), live, server)
            demo.the_wrong_number()
            demo.the_wrong_copy()
            run = demo.correct()
            demo.look_and_roll_back(run)
            demo.correct_again()
            demo.settle()
            demo.settle_warehouse()
            demo.audit()
    print()
    holds = print_claims(demo.claims)
    where = project.relative_to(Path.cwd()) if project.is_relative_to(Path.cwd()) else project
    print(f"\n{time.monotonic() - started:.0f} s. The project is in {where}. Try next:")
    command = f"  .venv/bin/errata -C {where}"
    print(f"{command} status {run}")
    print(f"{command} why {TABLE} {ROLLED_BACK[0]}")
    print(f"{command} audit log --run {run}")
    if timings:
        for text, seconds in demo.errata.seconds:
            print(f"{seconds:6.1f} s  {text[:110]}")
    return holds


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Replay the FinSight incident.")
    parser.add_argument("--directory", type=Path, default=workshop.ROOT / "build" / "demo" / "finsight")
    kinds = (warehouse.AUTO, warehouse.POSTGRES, warehouse.SNOWFLAKE, warehouse.NONE)
    parser.add_argument("--warehouse", choices=kinds, default=warehouse.AUTO, help="the server that has the copy")
    parser.add_argument("--timings", action="store_true", help="print how long each command took")
    arguments = parser.parse_args()
    return workshop.run_demo(
        lambda: replay(arguments.directory.absolute(), arguments.warehouse, timings=arguments.timings)
    )


if __name__ == "__main__":
    sys.exit(main())
