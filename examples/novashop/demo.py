"""Nine hours without product views: NovaShop rebuilds what its app did not record (`make demo-novashop`).

A release of the app drops three events for nine hours. The stream keeps writing to the table of events while Ana and
Bo rebuild them from API logs, orders and retry buffers, in waves of hours. One bad rule is stopped by the gate, another
one is published, rolled back and superseded. In the middle, two users ask to be erased. At the end a reader that uses
nothing of Errata checks every claim.

    python examples/novashop/demo.py [--directory build/demo/novashop]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":  # started as a file: the example is a package of the repository
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from examples.finsight.claims import Claim, print_claims, same
from examples.finsight.command import Errata
from examples.finsight.demo import DIGEST, RUN_ID, first, heading, say
from examples.finsight.lake import Lake
from examples.finsight.workshop import ROOT, DemoError, run_demo
from examples.novashop import independent, servers, shop, workshop
from examples.novashop.stream import find_request

EVENTS, SESSIONS = "raw.events", "app.sessions"
HOURS = shop.list_lost_hours()
FROM, TO = HOURS[0], f"{shop.MONDAY:%Y-%m-%d}T{shop.LOST.stop:02d}"
START, END = shop.MONDAY.replace(hour=shop.LOST.start), shop.MONDAY.replace(hour=shop.LOST.stop)
SCOPE = ("--from", FROM, "--to", TO)
ALL = f"{HOURS[0]}..{HOURS[-1]}"
CAMPAIGN = r"(?<=^campaign )[0-9a-f]{64}$"
CAMPAIGN_ID = r"\bca-\d{8}-[a-z0-9_-]+-[0-9a-f]{8}\b"
REQUESTS = "requests 17 and 18"
REASON = "SDK 8.2 dropped views, carts and checkouts (APP-4711)"


@dataclass(slots=True)
class Demo:
    """State of the demo: the project, the servers, and the findings so far."""

    project: Path
    errata: Errata
    stream: workshop.Stream
    app: servers.App
    database: servers.Database
    worker: workshop.Worker
    claims: list[Claim] = field(default_factory=list)
    before: list[independent.Row] = field(default_factory=list)
    run: str = ""

    @property
    def lake(self) -> Lake:
        """The lake of the project."""
        return Lake(self.project / "lake")

    def show_hole(self) -> None:
        """Judge main by the product's own rules: control periods and orders."""
        heading("Nobody looked at a product for nine hours")
        self.before = independent.read_events(self.lake)
        found = independent.compare(self.before)
        say(f"{found.missing:,} events of nine hours are missing; only the generator of this demo knows that.")

    def record(self) -> None:
        """Record what others know, before anything reads it."""
        heading("The list of users who asked to be erased is there from the beginning, with nobody on it")
        self.errata.show("bo", "audit", "keygen", "-o", "erasure.key")
        (self.project / "requests.txt").write_text("", "utf-8")
        self.errata.show("bo", "erase", "add", "--from", "requests.txt", "--reason", "the list")
        heading("What others know is recorded first: API logs, retry buffers, orders")
        servers.write_logs(self.project)
        self.errata.show("ana", "import", "landing/api", "--source", "api")
        say("Each client sends its retry buffer when it is online again; some arrive twice.")
        files = self.errata.ask("ana", "import", "landing/retry", "--source", "retry")["files"]
        ignored = sum(1 for one in files if one["status"] == "ignored")
        say(f"{len(files)} files of retry buffers, {ignored} of them ignored: their content was recorded before.")
        day = f"{shop.MONDAY:%Y-%m-%d}"
        self.errata.show("ana", "record", "orders", "--from", day, "--to", f"{shop.MONDAY:%Y-%m}-03")
        heading("The warehouse has the hole too. Bo accepts what it holds as the beginning")
        self.errata.show(
            "bo", "deliver", EVENTS, "--baseline", "--partitions", ALL, "--reason", "loaded by the nightly job"
        )
        heading("Main as it is, by the product's own rules: the same hours of other weeks, and the orders")
        output = self.errata.show("ana", "plan", EVENTS, *SCOPE, "--kind", "reconcile", "--reason", "is there a hole?")
        judged = first(RUN_ID, output)
        self.worker.call("run", judged)
        self.worker.call("validate", judged)
        missing, state = independent.compare(self.before).missing, self.state(judged)
        self.claims.append(
            Claim(
                "control periods show the hole",
                state,
                f"{missing:,} events missing",
                state == "differs" and missing > 0,
            )
        )

    def refuse_bad_rule(self) -> str:
        """The first version of a rule takes prefetches for views; the gate stops it in the first wave."""
        heading("The first rule takes prefetches for views")
        run = self.plan(*SCOPE, reason=REASON)
        self.worker.call("run", run, publish=True)
        rows = independent.read_events(self.lake)
        changed = len(
            {row for row in rows if row.hour in independent.LOST}
            ^ {row for row in self.before if row.hour in independent.LOST}
        )
        self.claims.append(Claim("a bad rule is stopped by the gate", self.state(run), f"{changed} events changed",
                                 changed == 0))  # fmt: skip
        return run

    def state(self, run: str) -> str:
        """The state of a run, as Errata reports it."""
        return str(self.errata.ask("ana", "status", run)["state"])

    def plan(self, *arguments: str, reason: str, kind: str = "reconstruct") -> str:
        """Plan and approve; returns the run."""
        output = self.errata.show("ana", "plan", EVENTS, *arguments, "--kind", kind, "--reason", reason)
        run = first(RUN_ID, output)
        self.errata.show("bo", "approve", run, "--digest", first(DIGEST, output))
        return run

    def publish_subtle_rule(self, refused: str) -> str:
        """The second version passes the gate and is wrong; it is rolled back."""
        heading("The second rule trusts the clocks too much, and nobody notices at once")
        workshop.release(self.project, workshop.SUBTLE)
        run = self.plan(*SCOPE, "--supersede", refused, reason=f"{REASON}: without prefetches")
        self.worker.call("run", run, publish=True)
        self.errata.show("bo", "status", run)
        self.measure_waves(run)
        found = independent.compare(independent.read_events(self.lake))
        say(f"All nine hours are out. {found.twice:,} events are there twice: the log is up to 2.5 s late.")
        heading("Bo rolls it back, in lake and warehouse")
        self.errata.show("bo", "rollback", run, "--reason", "api-nearest 2 counts views twice (APP-4720)")
        rows = [row for row in independent.read_events(self.lake) if row.hour in independent.LOST]
        rebuilt = sum(1 for row in rows if row.origin)
        self.claims.append(Claim("… rolled back, stream rows stay", f"{self.state(run)}",
                                 f"{found.twice} twice before, {rebuilt} rebuilt events left",
                                 found.twice > 0 and rebuilt == 0))  # fmt: skip
        return run

    def measure_waves(self, run: str) -> None:
        """When the waves of a run were visible and delivered, beside the time of its last chunk."""
        times = independent.read_wave_times(self.project, run)
        longest = max(
            (there - seen).total_seconds() for there, seen in zip(times.delivered, times.visible, strict=False)
        )
        early = sum(1 for at in times.delivered[:-1] if at < times.computed[-1])
        self.claims += [
            Claim("waves delivered while others compute", f"{len(times.visible)} waves published",
                  f"{early} of {len(times.delivered) - 1} before the last hour was computed",
                  len(times.visible) == len(times.delivered) == 3 and early > 0),
            Claim("from batch to warehouse", "30 minutes allowed", f"{longest:.0f} s at most", longest < 1800),
        ]  # fmt: skip

    def rebuild(self, superseded: str) -> None:
        """The third version, in waves; two clients send their lost events through the stream meanwhile."""
        heading("Some clients send their events after all, through the stream")
        late = list(shop.live_monday().late)
        self.app.send(late)
        self.wait_for_stream()
        say(f"{len(late)} events of the nine hours arrive late. What is recorded wins.")
        heading("The third rule, in waves of three hours: each is visible and delivered while the next is computed")
        workshop.release(self.project, workshop.RIGHT)
        self.run = self.plan(*SCOPE, "--supersede", superseded, reason=f"{REASON}: api-nearest 3 (APP-4720)")
        self.worker.call("run", self.run, publish=True, max_chunks=1, parallel=1)
        self.worker.call("run", self.run, max_chunks=1, parallel=1)
        self.ask_for_erasure()
        heading("The run continues under the same approval; what used their rows is computed again without them")
        self.worker.call("run", self.run, publish=True)
        self.errata.show("bo", "status", self.run)
        self.worker.write_report(self.run)

    def ask_for_erasure(self) -> None:
        """Two users ask, when the first wave is out and the second one is computed."""
        heading("Two users ask to be erased. The first wave is out, and the second one is computed")
        self.app.closed = shop.ERASED
        (self.project / "requests.txt").write_text("".join(f"{user}\n" for user in sorted(shop.ERASED)), "utf-8")
        self.errata.show("bo", "erase", "add", "--from", "requests.txt", "--reason", REQUESTS)

    def erase(self) -> None:
        """Owners delete what is theirs, recordings are redacted, and the first wave is corrected."""
        heading("Each owner deletes their rows: the stream's team while it runs, the order service, the gateway")
        self.wait_for_stream()
        find_request(self.project).write_text("\n".join(sorted(shop.ERASED)), "utf-8")
        self.database.execute("DELETE FROM shop.orders WHERE user_id = ANY(%s)", values=[sorted(shop.ERASED)])
        shutil.rmtree(self.project / "landing")
        self.wait_for_deletion()
        heading("Recordings are redacted, and the hours that were out already are corrected, in lake and warehouse")
        self.errata.show("bo", "erase", "redact", "--reason", REQUESTS)
        first_wave = f"{HOURS[0]}..{HOURS[2]}"
        run = self.plan("--partitions", first_wave, reason=REQUESTS)
        self.worker.call("run", run)
        self.worker.call("validate", run)
        self.worker.call("publish", run, by_itself=True)

    def wait_for_deletion(self) -> None:
        """Wait until the stream's team has deleted the rows, or two minutes."""
        deadline = time.monotonic() + 120
        while find_request(self.project).exists():
            self.stream.read()
            if time.monotonic() > deadline:
                raise DemoError("the rows of erased users were not deleted in 120 s")
            time.sleep(0.5)

    def show_erased(self) -> None:
        """Look for the erased users everywhere, and compare with what Errata says is left."""
        heading("What can still show the two users, and until when")
        self.errata.show("bo", "erase", "where", "--from", "requests.txt")
        listed = self.errata.ask("bo", "erase", "where", "--from", "requests.txt")["places"]
        days = {one["name"].removeprefix("lake."): one["until"] for one in listed}
        found = independent.find_traces(self.project, self.lake, shop.ERASED)
        copied = self.database.execute(
            "SELECT count(*) FROM raw.events WHERE user_id = ANY(%s)", values=[sorted(shop.ERASED)]
        )[0][0]
        silent = [name for name in found.kept if name not in days]
        ends = {days.get(name) or "errata cleanup" for name in found.kept}
        self.claims += [
            Claim("erased users: tables and copy", f"{found.searched} states searched",
                  f"{found.visible} rows at main, {copied} in psql", found.visible == 0 and copied == 0),
            Claim("erased users: recordings", "redacted", f"{len(found.files)} of {found.searched_files} files",
                  not found.files and found.searched_files > 0),
            Claim("erased users: kept to undo", f"{len(found.kept)} states, until {max(ends, default='now')}",
                  f"{len(silent)} that erase where does not list", not silent),
        ]  # fmt: skip

    def follow(self) -> None:
        """Sessions, funnels and attribution follow as a campaign."""
        heading("Sessions, funnels and attribution follow, as one campaign")
        before = independent.read_funnel(self.lake)
        output = self.errata.show(
            "ana", "plan", SESSIONS, *SCOPE, "--cascade", "--reason", "events were rebuilt (APP-4711)"
        )
        campaign = first(CAMPAIGN_ID, output)
        self.errata.show("bo", "approve", campaign, "--digest", first(CAMPAIGN, output))
        self.worker.call("run_campaign", campaign, publish=True)
        viewed, bought = independent.read_funnel(self.lake)
        truth = [event for event in shop.live_monday().truth
                 if event.hour in independent.LOST and event.user_id not in shop.ERASED]  # fmt: skip
        users = {action: len({(event.hour, event.user_id) for event in truth if event.action == action})
                 for action in ("product_view", "purchase")}  # fmt: skip
        purchases, attributed = independent.read_attribution(self.lake)
        orders = self.database.execute("SELECT count(*) FROM shop.orders")[0][0]
        self.claims += [
            Claim("funnels equal what happened", f"viewed {before[0]} before", f"viewed {viewed}, bought {bought}",
                  (viewed, bought) == (users["product_view"], users["purchase"])),
            Claim("attribution equals the orders", "published", f"{attributed} of {purchases}; {orders} orders in psql",
                  purchases == attributed == orders),
        ]  # fmt: skip

    def wait_for_stream(self) -> None:
        """Wait until the stream has committed everything that was sent, or a minute."""
        deadline = time.monotonic() + 60
        wanted = {event.event_id for event in self.app.sent if event.user_id not in self.app.closed}
        while time.monotonic() < deadline:
            if wanted <= {row.event_id for row in independent.read_events(self.lake)}:
                return
            time.sleep(1)

    def settle(self) -> None:
        """Stop the app and the stream, and compare everything."""
        heading("The app and the stream stop, and the table is compared with everything that was sent")
        self.app.stop()
        self.wait_for_stream()
        journal = self.stream.read()
        self.stream.stop()
        rows = independent.read_events(self.lake)
        found = independent.compare(rows, shop.ERASED)
        there = {row.event_id for row in rows if row.origin is None}
        sent = [event for event in self.app.sent if event.user_id not in shop.ERASED]
        lost = [event for event in sent if event.event_id not in there]
        kept = set(rows)
        recorded = [
            row for row in self.before if row.origin is None and row not in kept and row.user_id not in shop.ERASED
        ]
        repeated = independent.count_repeated_ids(rows)
        queries = {(one["query"], one["run"]) for one in journal}
        copied = self.database.execute(
            "SELECT event_id, coalesce(rule, '') FROM raw.events WHERE ts >= %s AND ts < %s", values=(START, END)
        )
        lake = sorted(
            (row.event_id, (row.rule or "").rpartition(" ")[0]) for row in rows if row.hour in independent.LOST
        )
        orders = self.database.execute(
            "SELECT count(*) FROM shop.orders WHERE ordered_at >= %s AND ordered_at < %s", values=(START, END)
        )[0][0]
        bought = sum(1 for row in rows if row.hour in independent.LOST and row.action == "purchase")
        origins = ", ".join(f"{name} {n:,}" for name, n in sorted(independent.count_origins(rows).items()))
        say(f"Events of the nine hours by rule: {origins}.")
        self.claims += [
            Claim("0 events twice", "gate passed", f"{found.twice} twice, {repeated} ids repeat",
                  found.twice == 0 and repeated == 0),
            Claim("0 events missing", f"{found.rows:,} rows", f"{found.missing} missing", found.missing == 0),
            Claim("0 stream rows lost", f"{journal[-1]['batch'] + 1} batches",
                  f"{len(lost)} of {len(sent):,} sent, {len(recorded)} changed", not lost and not recorded),
            Claim("one query throughout", "never stopped", f"{len(queries)} query run", len(queries) == 1),
            same("purchases equal orders", int(orders), bought),
            Claim("lake = warehouse copy", f"{len(lake):,} rows", f"{len(copied):,} rows in psql",
                  sorted((one, two) for one, two in copied) == lake),
        ]  # fmt: skip


def replay(project: Path) -> bool:
    """Run the whole demo; returns whether every claim holds."""
    heading("NovaShop's servers")
    with servers.open_broker() as broker, servers.open_database() as database:
        say(f"A Kafka broker and {database.title} run only for this demo.")
        workshop.lay_out(project, database.uri)
        started = time.monotonic()
        with workshop.Stream(project, broker.bootstrap) as stream, servers.App(broker) as app:
            say("The stream appends to the table of events and will not stop until the end.")
            stream.wait_for(1)
            demo = Demo(project, Errata(project), stream, app, database, workshop.Worker(project, "backfill"))
            demo.show_hole()
            demo.record()
            refused = demo.refuse_bad_rule()
            subtle = demo.publish_subtle_rule(refused)
            demo.rebuild(subtle)
            demo.erase()
            demo.follow()
            demo.settle()
            demo.show_erased()
    print()
    holds = print_claims(demo.claims)
    where = project.relative_to(Path.cwd()) if project.is_relative_to(Path.cwd()) else project
    print(
        f"\n{time.monotonic() - started:.0f} s. The project is in {where}; {where / 'report.html'} compares the rules."
    )
    return holds


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Rebuild nine hours of events.")
    parser.add_argument("--directory", type=Path, default=ROOT / "build" / "demo" / "novashop")
    arguments = parser.parse_args()
    return run_demo(lambda: replay(arguments.directory.absolute()))


if __name__ == "__main__":
    sys.exit(main())
