"""A regulatory restatement: the 2025 reports of enforcement deadlines, corrected and proven (`make demo-case-sla`).

Release 2.4.1 counted deadlines from the UTC date of filing, so cases filed in the evening got one day too many. Ana
plans the restatement of the year, and the gate rejects it because the calendar is outdated. A second run supersedes the
first; Bo accepts the changes and publishes. A calculation in plain Python, without Errata or Spark, agrees on every
deadline. The project directory is kept for you to experiment with.

    python examples/case_sla/demo.py [--directory build/demo/case-sla] [--cases-per-month 200]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # started as a file: the example is a package of the repository
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from examples.case_sla import calendars, generate, independent
from examples.case_sla.lake import FIRST_DAY, TODAY, YEAR, Lake, months, text_of
from examples.case_sla.workshop import change, commit, lay_out
from examples.clv.demo import typed
from examples.finsight.claims import Claim, print_claims, same
from examples.finsight.command import Errata
from examples.finsight.demo import DIGEST, RUN_ID, count, first, heading, say
from examples.finsight.workshop import ROOT, DemoError, environment, run_demo

PRODUCT = "silver.case_sla"
TABLE = "lake.silver.case_sla"
EVERY = [text_of(month) for month in months(FIRST_DAY, TODAY)]
SCOPE = [text for text in EVERY if text.startswith(str(YEAR))]
WARM_UP, AFTER, TRIED = "2024-12", "2026-01", "2025-03"
REASON = "TIMEZONE_BUG_FIX: 2.4.1 counted from the UTC date of filing (REG-2071)"
AGAIN = f"{REASON}; calendar {calendars.RESTATED}"
MOVED = "breaches_moved"
ACCEPTED = "REG-2071: the breaches that evening filings hid; notices of the registries agree"
CHUNKS = 4
BYTES_PER_EVENT, BYTES_PER_FILE = 27, 3_300  # in the register's Parquet files, one a day


@dataclass(slots=True)
class Demo:
    """State of the demo: the project, the commands, and the findings so far."""

    project: Path
    errata: Errata
    claims: list[Claim] = field(default_factory=list)
    events: list[independent.Row] = field(default_factory=list)
    before: dict[independent.Key, independent.Row] = field(default_factory=dict)
    files: dict[str, frozenset[str]] = field(default_factory=dict)
    disputed: list[independent.Key] = field(default_factory=list)

    @property
    def lake(self) -> Lake:
        """The lake of the project."""
        return Lake(self.project / "lake")

    def complaint(self) -> None:
        """The registries count more breaches than the report."""
        heading("The registries served notices of breach that the report does not show")
        self.events = independent.register(self.lake)
        self.before = independent.report(self.lake, SCOPE)
        self.files = independent.files_by_month(self.lake)
        self.disputed = independent.disputed(self.events, self.before)
        served = by_jurisdiction(independent.notices(self.events, SCOPE))
        shown = by_jurisdiction(independent.breaches(self.before))
        for name in calendars.ZONES:
            say(f"{name:6} notices served in {YEAR}: {served[name]:4}   breaches reported: {shown[name]:4}")
        say(f"{len(self.disputed)} respondents have a notice of a breach that was never reported.")
        month, case = self.disputed[0]
        row = self.before[month, case]
        say(f"{case} ({row['jurisdiction']}) was filed at {row['opened_at']:%Y-%m-%d %H:%M} UTC;")
        say(f"the report for {month} says filed on {row['opened_on']}, due on {row['due_on']}.")

    def try_it(self) -> None:
        """Try the fix on one month, then January without its warm-up; neither writes anything."""
        heading("Ana tries release 3.1.0 on one month; nothing is written")
        self.errata.show("ana", "try", PRODUCT, TRIED, "--sample", "2")
        heading("Does January need December? Ana tries January without it")
        self.edit("lookback: 1mo", "lookback: 0d")
        output = self.errata.show("ana", "try", PRODUCT, SCOPE[0], "--sample", "1")
        self.edit("lookback: 0d", "lookback: 1mo")
        cold = independent.expected(self.events, self.calendars(calendars.AS_RECORDED), SCOPE[:1], warm_up=False)
        lost = sum(row is None for row in cold.values())
        say(f"{lost} of {len(cold)} cases on January's docket were opened in December. The warm-up stays.")
        claimed = count_after(r"nullValues\(due_on\)", output)
        self.claims.append(same("without the warm-up, January cases without a deadline", claimed, lost))

    def edit(self, old: str, new: str) -> None:
        """Change the product file as its owner would."""
        typed(f"sed -i 's/{old}/{new}/' products/case_sla.yaml")
        change(self.project / "products" / "case_sla.yaml", old, new)

    def calendars(self, version: str) -> dict[str, Any]:
        """The calendars of a version, read from the lake."""
        return independent.calendars(self.lake, version)

    def plan(self, *more: str, reason: str) -> str:
        """Plan the year, and approve it by its digest."""
        scope = ("--from", SCOPE[0], "--to", AFTER)
        output = self.errata.show("ana", "plan", PRODUCT, *scope, *more, "--reason", reason)
        run = first(RUN_ID, output)
        heading("Bo, who owns regulatory reporting, approves this plan")
        self.errata.show("bo", "approve", run, "--digest", first(DIGEST, output))
        return run

    def wrong_calendar(self) -> str:
        """The first run: correct code, outdated calendar."""
        heading(f"Ana plans the restatement of {YEAR}")
        run = self.plan(reason=REASON)
        heading("The year is computed without touching the live table, and validated")
        self.errata.show("ana", "run", run, "--validate", exits=[4])
        verdict = self.errata.ask("ana", "validate", run, exits=[4])["error"]["validation"]
        blocked = sorted({check["partition"] for check in verdict["checks"] if check["level"] == "block"})
        recorded = independent.expected(self.events, self.calendars(calendars.AS_RECORDED), SCOPE)
        found, served = independent.breaches(recorded), independent.notices(self.events, SCOPE)
        cells = sorted(cell for cell in found.keys() | served.keys() if found[cell] != served[cell])
        say("Release 3.1.0 is correct; the calendar is not. Where breaches and notices differ, a holiday is missing:")
        for month, jurisdiction in cells:
            say(f"  {month} {jurisdiction:6} {named(month, jurisdiction)}")
        wrong = sorted({month for month, _ in cells})
        self.claims.append(
            Claim("wrong calendar stopped at the gate", ", ".join(blocked), ", ".join(wrong), blocked == wrong != [])
        )
        return run

    def restate(self, earlier: str) -> str:
        """The second run pins the restated calendar and supersedes the first."""
        heading(f"The product file still names {calendars.AS_RECORDED}. Ana changes it to the restated calendar")
        self.edit(calendars.AS_RECORDED, calendars.RESTATED)
        typed(f"git commit --all --message 'Calendar {calendars.RESTATED} (REG-2071)'")
        commit(self.project, f"Calendar {calendars.RESTATED} (REG-2071)")
        heading("Ana plans a run that supersedes the rejected one")
        run = self.plan("--supersede", earlier, reason=AGAIN)
        heading("The same year with the restated calendar")
        self.errata.show("ana", "run", run, "--validate", exits=[4])
        heading("Every reconciliation holds; breaches moved by more than 5 %, so a person has to confirm it")
        self.errata.show("bo", "validate", run, "--accept", f"{MOVED}={ACCEPTED}")
        return run

    def review(self, run: str) -> str:
        """Compare old and new, and look at the disputed cases before anything is published."""
        heading("The difference between old and new")
        difference = self.errata.show("ana", "diff", run, "--sample", "3")
        heading("Disputed cases, as published and as corrected")
        candidate = int(self.errata.ask("ana", "validate", run)["snapshot_id"])
        after = independent.report(self.lake, SCOPE, candidate)
        chosen = self.disputed[:: max(1, len(self.disputed) // 6)][:6]
        for key in chosen:
            old, new = self.before[key], after[key]
            breach = f"no breach → {new['breached_on']}" if new["breached_on"] else "no breach"
            say(f"{key[0]} {key[1]} {old['jurisdiction']:6} due {old['due_on']} → {new['due_on']}   {breach}")
        settled = sum(bool(after[key]["new_breach"]) for key in self.disputed)
        self.claims.append(same("disputed cases that show their breach now", settled, len(self.disputed)))
        return difference

    def publish(self, run: str, earlier: str, difference: str) -> None:
        """Publish in one commit, and check every claim about it."""
        heading("Bo publishes: twelve months in one commit")
        on_disk = independent.data_files_on_disk(self.lake)
        self.errata.show("bo", "publish", run)
        new = independent.data_files_on_disk(self.lake) - on_disk
        published = self.errata.ask("bo", "publish", run)
        heading("Plain Python computes every deadline and compares")
        after = independent.report(self.lake, SCOPE)
        wanted = independent.expected(self.events, self.calendars(calendars.RESTATED), SCOPE)
        wrong = independent.differing(after, wanted)
        moved = independent.differing(after, self.before)
        say(f"{len(after):,} rows in {len(SCOPE)} months; {len(wrong):,} differ from the calculation.")
        self.claims += [
            same("active cases restated", count("after", difference), len(wanted)),
            same("rows changed by the restatement", count("changed", difference), len(moved)),
            Claim("every deadline equals plain Python", "gate passed", f"{len(wrong):,} of {len(after):,} differ",
                  not wrong and bool(after)),
            self.breaches_by_cell(after),
            *self.claims_of_scope(published, len(new)),
            self.lineage(run, earlier, after),
        ]  # fmt: skip

    def breaches_by_cell(self, after: dict[independent.Key, independent.Row]) -> Claim:
        """Compare breaches with notices in every jurisdiction and month."""
        found, served = independent.breaches(after), independent.notices(self.events, SCOPE)
        cells = [(month, name) for month in SCOPE for name in calendars.ZONES]
        agree = sum(found[cell] == served[cell] for cell in cells)
        text = f"{agree} of {len(cells)} agree, {served.total():,} notices"
        return Claim(
            "breaches = notices, by jurisdiction and month", "breaches_served holds", text, agree == len(cells)
        )

    def claims_of_scope(self, published: Any, new: int) -> list[Claim]:
        """Claims about months that were only read, and about files that publishing wrote."""
        now = independent.files_by_month(self.lake)
        kept = [month for month in (WARM_UP, AFTER) if now[month] == self.files[month]]
        outside = set(published["partitions"]) - set(SCOPE)
        return [
            Claim(f"{WARM_UP} read, {AFTER} live: neither written", f"{len(outside)} months beyond the plan",
                  f"identical files in {', '.join(kept)}", not outside and kept == [WARM_UP, AFTER]),
            same("data files written by publishing", published["data_files_written"], new, want=0),
        ]  # fmt: skip

    def lineage(self, run: str, earlier: str, after: dict[independent.Key, independent.Row]) -> Claim:
        """Every row names its run, release and calendar; none comes from the superseded run."""
        snapshot = independent.calendar_snapshot(self.lake, calendars.RESTATED)
        pinned = f"calendar/{calendars.RESTATED}@{snapshot}:corrected_truth"
        named_in_full = Counter(
            row["produced_by_run_id"] == run
            and row["transform_version"] == "3.1.0"
            and row["reference_data_version"] == pinned
            and row["restatement_reason"] == AGAIN
            for row in after.values()
        )
        all_named = named_in_full[True] == len(after)
        state = self.errata.ask("ana", "status", earlier)["state"]
        return Claim("every row names run, release, calendar, reason; none is of the first run",
                     f"first run {state}", f"{named_in_full[True]:,} of {len(after):,} name {run}",
                     all_named and state == "rejected")  # fmt: skip


def by_jurisdiction(cells: Counter[tuple[str, str]]) -> Counter[str]:
    """Counts for all months together."""
    found: Counter[str] = Counter()
    for (_, jurisdiction), number in cells.items():
        found[jurisdiction] += number
    return found


def named(month: str, jurisdiction: str) -> str:
    """The holiday that was declared late, if it is in that month."""
    late = calendars.DECLARED_LATE.get(jurisdiction, {})
    days = [f"{text} {name}" for name, texts in late.items() for text in texts if text.startswith(month)]
    return ", ".join(days) or "a deadline moved across the end of the month"


def count_after(rule: str, output: str) -> int:
    """The value that the gate shows for the first partition that fails a rule."""
    return int(
        first(rf"(?<=\n)\s+{SCOPE[0]}\s+[\d,]+", output[output.index(first(rule, output)) :])
        .split()[1]
        .replace(",", "")
    )


def prepare(demo: Demo, cases_per_month: int) -> None:
    """Write thirteen wrong months and a correct one."""
    heading("The regulator's lake")
    monthly = 30 * BYTES_PER_FILE + cases_per_month * 5 * BYTES_PER_EVENT
    lay_out(demo.project, chunk_kilobytes=max(1, monthly * len(SCOPE) // CHUNKS // 1000))
    total = generate.generate(demo.lake.root, cases_per_month=cases_per_month)
    say(f"{total:,} events of enforcement cases in {len(calendars.ZONES)} jurisdictions, {EVERY[0]} … {EVERY[-1]}.")
    say(f"The month-end job wrote the reports with calendar {calendars.AS_RECORDED}:")
    say("thirteen months with release 2.4.1, one with release 3.1.0.")
    write_history(demo)
    generate.publish_calendar(demo.lake, calendars.RESTATED)
    say(f"Since then, the owner of the calendar has published {calendars.RESTATED}. It adds holidays declared late.")


def write_history(demo: Demo) -> None:
    """Run the month-end job as a separate process that logs to a file."""
    log = demo.project / "logs" / "month-end.log"
    command = [sys.executable, "-m", "examples.case_sla.history", str(demo.project)]
    with log.open("wb") as out:
        done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=out, stderr=out, check=False)
    if done.returncode != 0:
        raise DemoError(f"the month-end job ended with {done.returncode}; see {log}")


def replay(demo: Demo, cases_per_month: int, *, timings: bool = False) -> bool:
    """Run the whole demo; returns whether every claim holds."""
    started = time.monotonic()
    prepare(demo, cases_per_month)
    demo.complaint()
    demo.try_it()
    earlier = demo.wrong_calendar()
    run = demo.restate(earlier)
    demo.publish(run, earlier, demo.review(run))
    heading("The rejected run is cancelled and no longer reserves these months; its measurements stay on record")
    demo.errata.show("ana", "cancel", earlier, "--reason", "planned again with the corrected rule")
    heading("Anyone can ask why a deadline changed")
    month, case = demo.disputed[0]
    demo.errata.show("ana", "why", TABLE, month, "--key", f"case_id={case}")
    heading("One page for the records: scope, verdicts, months, movements, sample rows")
    demo.errata.show("bo", "report", run, "-o", "report.html")
    print()
    holds = print_claims(demo.claims)
    where = demo.project.relative_to(Path.cwd()) if demo.project.is_relative_to(Path.cwd()) else demo.project
    print(f"\n{time.monotonic() - started:.0f} s. The project is in {where}. Try next:")
    print(f"  .venv/bin/errata -C {where} status {run}")
    print(f"  .venv/bin/errata -C {where} audit log --run {earlier}")
    print(f"  open {where}/report.html")
    if timings:
        for text, seconds in demo.errata.seconds:
            print(f"{seconds:6.1f} s  {text[:110]}")
    return holds


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Restate a year of regulatory deadlines.")
    parser.add_argument("--directory", type=Path, default=ROOT / "build" / "demo" / "case-sla")
    parser.add_argument("--cases-per-month", type=int, default=generate.CASES_PER_MONTH)
    parser.add_argument("--timings", action="store_true", help="print how long each command took")
    asked = parser.parse_args(arguments)
    project = asked.directory.absolute()
    return run_demo(lambda: replay(Demo(project, Errata(project)), asked.cases_per_month, timings=asked.timings))


if __name__ == "__main__":
    sys.exit(main())
