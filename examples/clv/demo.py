"""1,825 days of customer value and two tables that follow, corrected by a campaign that is killed (`make demo-clv`).

For five years, release 1.4.0 credited orders to touches that came after them. Ana plans the correction of every day
and of the two tables that are computed from it, and Bo approves all of it. He releases the newest year, which is in use
while the older ones are computed. A worker is killed with -9 at day 1,200, and two workers finish the rest. A reader
that uses nothing of Errata looks at the tables all the while and compares every row with the raw files. The project
directory is kept for you to experiment with.

    python examples/clv/demo.py [--directory build/demo/clv] [--days 1825] [--events-per-day 100]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # started as a file: the example is a package of the repository
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from examples.clv import generate, independent
from examples.clv.lake import DAYS, FIRST_DAY, VALUE, Lake, days
from examples.clv.workshop import WORKERS, Worker, lay_out
from examples.finsight.claims import Claim, print_claims, same
from examples.finsight.command import Errata
from examples.finsight.demo import first, heading, say
from examples.finsight.workshop import ROOT, DemoError, environment, run_demo

PRODUCT = "crm.customer_value"
TABLE = "lake.crm.customer_value"
REASON = "Orders credited to touches that came after them, release 1.4.0 (CRM-1186)"
CHUNKS = 45
WAVES = 5
CAMPAIGN_ID = r"\bca-\d{8}-[a-z0-9_-]+-[0-9a-f]{8}\b"
CAMPAIGN = r"(?<=^campaign )[0-9a-f]{64}$"
RELEASE = r"(?<=^release  )[0-9a-f]{64}$"
BYTES_PER_EVENT = 35  # in a Parquet file of this example
LIMIT_SECONDS = 1_800.0


@dataclass(slots=True)
class Demo:
    """State of the demo: the project, the commands, the workers, and the findings so far."""

    project: Path
    days: int
    errata: Errata
    campaign: str = ""
    run: str = ""  # of customer value, a member of the campaign
    workers: list[Worker] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    before: independent.Files = field(default_factory=dict)  # the wrong history
    in_flight: list[str] = field(default_factory=list)
    done_at_kill: set[str] = field(default_factory=set)
    wrong_readers: dict[str, int] = field(default_factory=dict)  # wrong rows of the tables that follow, before

    @property
    def lake(self) -> Lake:
        """The lake of the project."""
        return Lake(self.project / "lake")

    @property
    def ledger(self) -> Path:
        """The ledger's file, for the independent reader."""
        return self.project / ".errata" / "ledger.db"

    def plan(self) -> None:
        """Plan all days and what follows from them in one request, and approve it by its digest."""
        heading(f"Ana plans the correction of {self.days:,} days, and of the tables that are computed from them")
        end = FIRST_DAY + timedelta(self.days)
        scope = ("--from", FIRST_DAY.isoformat(), "--to", end.isoformat())
        output = self.errata.show("ana", "plan", PRODUCT, *scope, "--cascade", "--reason", REASON)
        self.campaign = first(CAMPAIGN_ID, output)
        heading("Bo approves all of it with one signature")
        self.errata.show("bo", "approve", self.campaign, "--digest", first(CAMPAIGN, output))

    def publish_newest_year(self) -> None:
        """Start worker A, release the first wave, and look at the table while the rest is computed."""
        heading("Worker A starts, and publishes each year as soon as it may")
        early, tables = independent.columns(self.lake) & set(independent.FEATURES), independent.snapshots(self.lake)
        worker = self.start("a", self.campaign, "--publish")
        self.wait(worker, "the run of customer value", lambda: bool(independent.find_run(self.ledger, PRODUCT)))
        run = self.run = independent.find_run(self.ledger, PRODUCT)
        self.wait(worker, "the verdict on the first wave", lambda: independent.verdicts(self.ledger, run) > 0)
        heading("The newest year is judged. Bo looks at what he signs, and releases it")
        shown = self.errata.show("bo", "release", run, exits=(3,))
        self.errata.show("bo", "release", run, "--digest", first(RELEASE, shown))
        self.wait(worker, "the newest year", lambda: independent.snapshots(self.lake)[VALUE] != tables[VALUE])
        visible, _ = independent.snapshots(self.lake)[VALUE]
        progress = independent.chunks_done(self.ledger, run)  # read later than the table: it had no more at that moment
        heading("The newest year is in use; the rest is still being computed")
        seen = independent.look(self.lake, self.before, visible)
        self.errata.show("ana", "status", run)
        say(f"The independent reader finds {describe(seen.corrected)} corrected.")
        self.claims += self.claims_of_newest_year(seen, *progress, early)
        now = independent.snapshots(self.lake)
        self.claims.append(
            Claim("tables that follow wait for all years", self.member_states(),
                  "both as before" if all(now[name] == tables[name] for name in independent.READERS) else "changed",
                  all(now[name] == tables[name] for name in independent.READERS)),
        )  # fmt: skip

    def member_states(self) -> str:
        """The states of the members that follow, as Errata reports them."""
        members = self.errata.ask("ana", "status", self.campaign)["members"]
        return ", ".join(one["state"] for one in members if one["product"] != PRODUCT)

    def claims_of_newest_year(
        self, seen: independent.Visible, done: int, chunks: int, early: set[str]
    ) -> Sequence[Claim]:
        """Claims about the moment at which the first wave is visible and most of the run is to be computed."""
        states = self.wave_states()
        features, oldest = set(independent.FEATURES), days(self.days)[0]
        values = independent.features_on(self.lake, oldest)
        return [
            Claim("newest year readable on main", f"wave 1 is {states[0]}",
                  f"{len(seen.corrected):,} days, {seen.wrong:,} rows differ",
                  seen.corrected == tuple(days(self.days)[-self.wave_days :]) and seen.wrong == 0),
            Claim("… while most chunks are to be computed", f"wave {len(states)} is {states[-1]}",
                  f"{done} of {chunks} done", done * 2 < chunks and states[-1] == "computing"),
            Claim("… and older years are untouched", f"{states.count('published')} of {len(states)} waves published",
                  f"{seen.untouched:,} days have the files they had", seen.untouched == self.days - self.wave_days),
            Claim("new columns come with the first wave", "NULL in later waves",
                  f"{len(early)} before, {len(seen.columns & features)} after; {values} values on {oldest}",
                  not early and seen.columns >= features and values == 0),
        ]  # fmt: skip

    def wave_states(self) -> list[str]:
        """The state of each wave, as Errata reports it."""
        return [wave["state"] for wave in self.errata.ask("ana", "status", self.run)["waves"]]

    @property
    def wave_days(self) -> int:
        """Days in a wave."""
        return max(1, self.days // WAVES)

    def wait(self, worker: Worker, what: str, is_there: Callable[[], bool]) -> None:
        """Wait while a worker works."""
        started = time.monotonic()
        while not is_there():
            if worker.ended:
                raise DemoError(f"worker {worker.name} ended unexpectedly before {what}; see {worker.log}")
            if time.monotonic() - started > LIMIT_SECONDS:
                raise DemoError(f"{what} did not come in {LIMIT_SECONDS:.0f} s; see {worker.log}")
            time.sleep(0.1)

    def kill_worker(self, at: int) -> None:
        """Kill worker A without warning, and look at what readers have."""
        worker, run = self.workers[-1], self.run
        self.wait(worker, f"day {at:,}", lambda: independent.partitions_done(self.ledger, run) >= at)
        worker.kill()
        heading("Worker A is killed")
        typed(f"kill -9 -- -{worker.pid}")
        seen = independent.look(self.lake, self.before)
        self.done_at_kill = {chunk for chunk, _, _, state in self.attempts() if state == "adopted"}
        self.in_flight = [chunk for chunk, _, _, state in self.attempts() if state == "running"]
        say("Worker A and its JVM are gone.")
        say(
            f"{independent.partitions_done(self.ledger, run):,} days were done; in flight: {', '.join(self.in_flight)}."
        )
        heading("What readers have, and what is left to compute, according to the ledger")
        self.errata.show("ana", "status", run)
        self.claims.append(self.claim_of_whole_waves(seen))

    def claim_of_whole_waves(self, seen: independent.Visible) -> Claim:
        """The claim that a killed publisher leaves every wave either old or new."""
        states = self.wave_states()
        # a publisher that was killed before it recorded its commit leaves a wave in publishing
        out, open_ = states.count("published"), states.count("publishing")
        whole, rest = divmod(len(seen.corrected), self.wave_days)
        is_newest = seen.corrected == tuple(days(self.days)[self.days - len(seen.corrected) :])
        is_untouched = seen.untouched == self.days - len(seen.corrected)
        return Claim(
            "after kill -9, whole waves are visible",
            f"{out} of {len(states)} waves published" + (", 1 publishing" if open_ else ""),
            f"{len(seen.corrected):,} days = {whole} waves; {seen.wrong:,} rows differ",
            is_newest and is_untouched and rest == 0 and out <= whole <= out + open_ and 0 < whole < WAVES
            and seen.wrong == 0,
        )  # fmt: skip

    def finish_together(self) -> None:
        """Start A again, and B beside it: two processes that do not know each other. A publishes, B only computes."""
        heading("The same command again, and worker B beside it")
        started = time.monotonic()
        run = self.run
        both = [self.start("a", self.campaign, "--publish"), self.start("b", run)]
        for worker in both:
            printed = worker.wait(LIMIT_SECONDS).splitlines()
            say(f"Last lines of worker {worker.name} ({worker.pid}):")
            for line in printed[-8:]:
                say(f"  {line}")
        say(f"Both ended {time.monotonic() - started:.0f} s after they started.")
        heading("Only the chunks in flight were computed again")
        status = self.errata.ask("ana", "status", run)
        typed(f"errata --as ana --json status {run} | jq -c '{{state, chunks, recomputed}}'")
        say(json.dumps({name: status[name] for name in ("state", "chunks", "recomputed")}))
        self.claims += self.claims_of_recovery(status, both)

    def start(self, name: str, *arguments: str) -> Worker:
        """Another ``errata run``."""
        typed(f"errata --as {WORKERS} run {' '.join(arguments)} &")
        self.workers.append(Worker(self.project, name, *arguments))
        return self.workers[-1]

    def attempts(self) -> Sequence[tuple[str, int, str, str]]:
        """Every attempt in the ledger."""
        return independent.attempts(self.ledger, self.run)

    def claims_of_recovery(self, status: Any, both: Sequence[Worker]) -> list[Claim]:
        """Claims about what was computed again, and by which worker."""
        counts = status["chunks"]
        again = sorted({chunk for chunk, fence, _, _ in self.attempts() if fence > 1})
        kept = self.done_at_kill - set(again)
        shares = {
            w.name: sum(1 for _, _, owner, how in self.attempts() if str(w.pid) in owner and how == "adopted")
            for w in both
        }
        return [
            same("chunks computed again after the kill", status["recomputed"], len(again), want=len(self.in_flight)),
            Claim("… exactly those in flight", ", ".join(self.in_flight), ", ".join(again), again == self.in_flight),
            Claim("chunks done before the kill are kept", "recomputed: none of them",
                  f"{len(kept)} of {len(self.done_at_kill)}", kept == self.done_at_kill),
            Claim("two workers shared the rest", f"{counts['done']} of {counts['total']} chunks done",
                  ", ".join(f"{name} {count}" for name, count in shares.items()), all(shares.values())),
        ]  # fmt: skip

    def compare(self) -> None:
        """Compare every row of every year with the raw files."""
        heading("Every year is out. An independent reader compares every row with the raw files")
        status = self.errata.ask("ana", "status", self.run)
        found, seen = independent.compare(self.lake), independent.look(self.lake, self.before)
        wrong, new = independent.wrong_features(self.lake), self.errata.ask("ana", "show", self.run)["new_columns"]
        say(f"{found.rows:,} rows on {found.days:,} days; {found.wrong:,} differ from the raw files.")
        out = [wave for wave in status["waves"] if wave["state"] == "published"]
        self.claims += [
            same("days published", sum(len(wave["partitions"]) for wave in out), len(seen.corrected), want=self.days),
            Claim("… in one commit per wave", f"{len(out)} waves published", f"{seen.commits - 1} commits on main",
                  len(out) == seen.commits - 1 == WAVES),
            Claim("published rows equal the raw files", "gate passed", f"{found.wrong:,} of {found.rows:,} differ",
                  found.wrong == 0 and found.rows > 0),
            Claim("… and so do the new columns", f"{len(new)} published",
                  f"{len(seen.columns & set(independent.FEATURES))} in the table, {wrong:,} rows differ",
                  seen.columns >= set(independent.FEATURES) and wrong == 0),
        ]  # fmt: skip

    def follow(self) -> None:
        """Compare the tables that follow, and look at what a rollback would do."""
        heading("The two tables that are computed from it followed, each with its own gate and publication")
        self.errata.show("ana", "status", self.campaign)
        tables = independent.snapshots(self.lake)
        states = {one["product"]: one["state"] for one in self.errata.ask("ana", "status", self.campaign)["members"]}
        for name, wrong in self.wrong_readers.items():
            found = independent.compare_reader(self.lake, name)
            say(f"{name}: {found.rows:,} rows; {wrong:,} differed from the raw files before, {found.wrong:,} now.")
            self.claims.append(
                Claim(f"{name} follows", states[name],
                      f"{found.wrong:,} of {found.rows:,} rows differ; before: {wrong:,}",
                      states[name] == "published" and found.wrong == 0 and wrong == found.rows > 0),
            )  # fmt: skip
        last_year, *rest = (since for _, since in tables.values())
        heading("What a rollback of all three would do; without a reason it is only shown")
        look = self.errata.ask("bo", "rollback", self.campaign)
        self.errata.show("bo", "rollback", self.campaign)
        can = [one["product"] for one in look["members"] if one["state"] == "can"]
        is_same = independent.snapshots(self.lake) == tables
        self.claims += [
            Claim("… after the last year, not before", "in order",
                  " < ".join(f"{since:%H:%M:%S}" for since in (last_year, *sorted(filter(None, rest))) if since),
                  all(since and last_year and last_year < since for since in rest)),
            Claim("all can go back, in reverse order", ", then ".join(can),
                  "no table changed by looking" if is_same else "tables changed",
                  is_same and can[-1:] == [PRODUCT] and set(can[:-1]) == set(independent.READERS)),
        ]  # fmt: skip


def describe(found: Sequence[date]) -> str:
    """Days in a row, shortened."""
    return f"{len(found):,} days, {found[0]} … {found[-1]}," if found else "no day"


def typed(command: str) -> None:
    """A command as a user would type it."""
    print(f"\n\033[1m$ {command}\033[0m" if sys.stdout.isatty() else f"\n$ {command}", flush=True)


def prepare(demo: Demo, events_per_day: int) -> tuple[str, str]:
    """Write five wrong years; returns a customer and a day to look at."""
    heading("The shop's lake")
    kilobytes = max(1, demo.days * events_per_day * BYTES_PER_EVENT // CHUNKS // 1000)
    lay_out(demo.project, chunk_kilobytes=kilobytes, wave_days=demo.wave_days)
    events = generate.generate(demo.lake.root, count=demo.days, events_per_day=events_per_day)
    say(f"{events:,} raw events on {demo.days:,} days, one Parquet file per day.")
    say("Release 1.4.0 computed the customer value table from them with plain Spark:")
    write_history(demo)
    demo.before = independent.files_of_days(demo.lake)
    found = independent.compare(demo.lake)
    say(f"{found.wrong:,} of {found.rows:,} rows are wrong, and so is every lifetime value.")
    demo.wrong_readers = {name: independent.compare_reader(demo.lake, name).wrong for name in independent.READERS}
    say(f"Wrong rows in what is computed from it: {', '.join(f'{n} in {t}' for t, n in demo.wrong_readers.items())}.")
    return independent.hardest_hit(demo.lake)


def write_history(demo: Demo) -> None:
    """Run the nightly job of release 1.4.0 as a separate process that logs to a file."""
    command = [sys.executable, "-m", "examples.clv.history", str(demo.project), "--days", str(demo.days)]
    log = demo.project / "logs" / "nightly.log"
    with log.open("wb") as out:
        done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=out, stderr=out, check=False)
    if done.returncode != 0:
        raise DemoError(f"the nightly job ended with {done.returncode}; see {log}")


def replay(demo: Demo, events_per_day: int) -> bool:
    """Run the whole demo; returns whether every claim holds."""
    started = time.monotonic()
    customer, day = prepare(demo, events_per_day)
    before = independent.lifetime_value(demo.lake, customer)
    demo.plan()
    demo.publish_newest_year()
    demo.kill_worker(demo.days * 1200 // DAYS)
    demo.finish_together()
    demo.compare()
    demo.follow()
    heading("Anyone can ask why a number changed")
    after = independent.lifetime_value(demo.lake, customer)
    say(f"Lifetime value of {customer}: {before} before, {after} after.")
    demo.errata.show("ana", "why", TABLE, day, "--key", f"customer_id={customer}")
    print()
    holds = print_claims(demo.claims)
    where = demo.project.relative_to(Path.cwd()) if demo.project.is_relative_to(Path.cwd()) else demo.project
    print(f"\n{time.monotonic() - started:.0f} s. The project is in {where}. Try next:")
    print(f"  .venv/bin/errata -C {where} status {demo.campaign}")
    print(f"  .venv/bin/errata -C {where} --as bo rollback {demo.campaign} --reason 'just to see'")
    return holds


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Correct five years of customer value, with a kill in the middle.")
    parser.add_argument("--directory", type=Path, default=ROOT / "build" / "demo" / "clv")
    parser.add_argument("--days", type=int, default=DAYS)
    parser.add_argument("--events-per-day", type=int, default=generate.EVENTS_PER_DAY)
    asked = parser.parse_args()
    project = asked.directory.absolute()
    demo = Demo(project, asked.days, Errata(project))
    try:
        return run_demo(lambda: replay(demo, asked.events_per_day))
    finally:
        for worker in demo.workers:
            worker.stop()


if __name__ == "__main__":
    sys.exit(main())
