"""1,825 days of customer value, corrected by a run that is killed and joined (`make demo-clv`).

For five years, release 1.4.0 credited orders to touches that came after them. Ana plans the correction of every day,
and Bo approves it. A worker is killed with -9 at day 1,200, and two workers finish the rest. A reader that uses nothing
of Errata compares every row with the raw files. The project directory is kept for you to experiment with.

    python examples/clv/demo.py [--directory build/demo/clv] [--days 1825] [--events-per-day 100]
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # started as a file: the example is a package of the repository
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from examples.clv import generate, independent
from examples.clv.lake import DAYS, FIRST_DAY, Lake
from examples.clv.workshop import Worker, lay_out
from examples.finsight.claims import Claim, print_claims, same
from examples.finsight.command import Errata
from examples.finsight.demo import DIGEST, RUN_ID, first, heading, say
from examples.finsight.workshop import ROOT, DemoError, environment

PRODUCT = "crm.customer_value"
TABLE = "lake.crm.customer_value"
REASON = "Orders credited to touches that came after them, release 1.4.0 (CRM-1186)"
CHUNKS = 45
BYTES_PER_EVENT = 35  # in a Parquet file of this example
LIMIT_SECONDS = 1_800.0


@dataclass(slots=True)
class Demo:
    """State of the demo: the project, the commands, the workers, and the findings so far."""

    project: Path
    days: int
    errata: Errata
    run: str = ""
    workers: list[Worker] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    in_flight: list[str] = field(default_factory=list)
    done_at_kill: set[str] = field(default_factory=set)

    @property
    def lake(self) -> Lake:
        """The lake of the project."""
        return Lake(self.project / "lake")

    @property
    def ledger(self) -> Path:
        """The ledger's file, for the independent reader."""
        return self.project / ".errata" / "ledger.db"

    def plan(self) -> str:
        """Plan all days in one request, and approve it by its digest."""
        heading(f"Ana plans the correction of {self.days:,} days")
        end = FIRST_DAY + timedelta(self.days)
        scope = ("--from", FIRST_DAY.isoformat(), "--to", end.isoformat())
        output = self.errata.show("ana", "plan", PRODUCT, *scope, "--reason", REASON)
        run = self.run = first(RUN_ID, output)
        heading("Bo approves this plan")
        self.errata.show("bo", "approve", run, "--digest", first(DIGEST, output))
        return run

    def run_until_killed(self, run: str, at: int) -> None:
        """Start worker A, and kill it without warning."""
        heading("Worker A starts. It will be killed")
        worker = self.start("a", run)
        started = time.monotonic()
        while (done := independent.partitions_done(self.ledger, run)) < at:
            if worker.ended:
                raise DemoError(f"worker a ended unexpectedly at {done} days; see {worker.log}")
            if time.monotonic() - started > LIMIT_SECONDS:
                raise DemoError(f"{done} of {at} days after {LIMIT_SECONDS:.0f} s; see {worker.log}")
            time.sleep(0.1)
        worker.kill()
        typed(f"kill -9 -- -{worker.pid}")
        self.done_at_kill = {chunk for chunk, _, _, state in self.attempts() if state == "adopted"}
        self.in_flight = [chunk for chunk, _, _, state in self.attempts() if state == "running"]
        say(f"Worker A and its JVM were killed {time.monotonic() - started:.0f} s after they started.")
        say(
            f"{independent.partitions_done(self.ledger, run):,} days were done; in flight: {', '.join(self.in_flight)}."
        )
        heading("What is left to compute, according to the ledger")
        self.errata.show("ana", "status", run)

    def finish_together(self, run: str) -> None:
        """Start A again, and B too: two processes that do not know each other."""
        heading("Worker A starts again and worker B joins: the same command, typed twice")
        started = time.monotonic()
        both = [self.start("a", run), self.start("b", run)]
        for worker in both:
            printed = worker.wait(LIMIT_SECONDS).splitlines()
            say(f"Last lines of worker {worker.name} ({worker.pid}):")
            for line in printed[-5:]:
                say(f"  {line}")
        say(f"Both ended {time.monotonic() - started:.0f} s after they started.")
        heading("Only the chunks in flight were computed again")
        status = self.errata.ask("ana", "status", run)
        typed(f"errata --as ana --json status {run} | jq -c '{{state, chunks, recomputed}}'")
        say(json.dumps({name: status[name] for name in ("state", "chunks", "recomputed")}))
        self.claims += self.claims_of_recovery(status, both)

    def start(self, name: str, run: str) -> Worker:
        """Another ``errata run``."""
        typed(f"errata --as ana run {run} &")
        self.workers.append(Worker(self.project, name, run))
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

    def release(self, run: str) -> None:
        """Validate, publish, compare."""
        heading("The gate checks every day")
        self.errata.show("ana", "validate", run)
        early = independent.columns(self.lake) & set(independent.FEATURES)
        heading("Bo publishes all days in one commit")
        on_disk = independent.data_files_on_disk(self.lake)
        self.errata.show("bo", "publish", run)
        new = independent.data_files_on_disk(self.lake) - on_disk
        published = self.errata.ask("bo", "publish", run)
        heading("An independent reader compares every row with the raw files")
        found = independent.compare(self.lake)
        say(f"{found.rows:,} rows on {found.days:,} days; {found.wrong:,} differ from the raw files.")
        self.claims += [
            same("days published", len(published["partitions"]), found.days, want=self.days),
            Claim("published rows equal the raw files", "gate passed", f"{found.wrong:,} of {found.rows:,} differ",
                  found.wrong == 0 and found.rows > 0),
            same("data files written by publishing", published["data_files_written"], len(new), want=0),
            *self.claims_of_columns(run, early),
        ]  # fmt: skip

    def claims_of_columns(self, run: str, early: set[str]) -> list[Claim]:
        """Three features for the churn model: staged with the correction, visible with its publication."""
        new = sorted(self.errata.ask("ana", "show", run)["new_columns"])
        late, wrong = independent.columns(self.lake) & set(independent.FEATURES), independent.wrong_features(self.lake)
        return [
            Claim("new columns, before publication", f"staged: {', '.join(new)}", f"{len(early)} in the table",
                  not early and new == sorted(independent.FEATURES)),
            Claim("new columns, with publication", f"{len(new)} published",
                  f"{len(late)} in the table, {wrong:,} rows differ", len(late) == len(new) and wrong == 0),
        ]  # fmt: skip


def typed(command: str) -> None:
    """A command as a user would type it."""
    print(f"\n\033[1m$ {command}\033[0m" if sys.stdout.isatty() else f"\n$ {command}", flush=True)


def prepare(demo: Demo, events_per_day: int) -> tuple[str, str]:
    """Write five wrong years; returns a customer and a day to look at."""
    heading("The shop's lake")
    lay_out(demo.project, chunk_kilobytes=max(1, demo.days * events_per_day * BYTES_PER_EVENT // CHUNKS // 1000))
    events = generate.generate(demo.lake.root, count=demo.days, events_per_day=events_per_day)
    say(f"{events:,} raw events on {demo.days:,} days, one Parquet file per day.")
    say("Release 1.4.0 computed the customer value table from them with plain Spark:")
    write_history(demo)
    found = independent.compare(demo.lake)
    say(f"{found.wrong:,} of {found.rows:,} rows are wrong, and so is every lifetime value.")
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
    run = demo.plan()
    demo.run_until_killed(run, demo.days * 1200 // DAYS)
    demo.finish_together(run)
    demo.release(run)
    heading("Anyone can ask why a number changed")
    after = independent.lifetime_value(demo.lake, customer)
    say(f"Lifetime value of {customer}: {before} before, {after} after.")
    demo.errata.show("ana", "why", TABLE, day, "--key", f"customer_id={customer}")
    print()
    holds = print_claims(demo.claims)
    where = demo.project.relative_to(Path.cwd()) if demo.project.is_relative_to(Path.cwd()) else demo.project
    print(f"\n{time.monotonic() - started:.0f} s. The project is in {where}. Try next:")
    print(f"  .venv/bin/errata -C {where} status {run}")
    print(f"  .venv/bin/errata -C {where} --as bo rollback {run} --reason 'just to see'")
    return holds


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Correct five years of customer value, with a kill in the middle.")
    parser.add_argument("--directory", type=Path, default=ROOT / "build" / "demo" / "clv")
    parser.add_argument("--days", type=int, default=DAYS)
    parser.add_argument("--events-per-day", type=int, default=generate.EVENTS_PER_DAY)
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    project = asked.directory.absolute()
    demo = Demo(project, asked.days, Errata(project))
    try:
        return 0 if replay(demo, asked.events_per_day) else 1
    except DemoError as error:
        print(f"\nThe demo stopped: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. No process is left running.", file=sys.stderr)
        return 130
    finally:
        for worker in demo.workers:
            worker.stop()


if __name__ == "__main__":
    sys.exit(main())
