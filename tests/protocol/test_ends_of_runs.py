"""Runs that end early or oddly: what the commands say then, and that nobody is sent in circles."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from errata.errors import (
    CostCapReached,
    Nondeterministic,
    Refused,
    RunExpired,
    StateRefused,
    UsageError,
    ValidationRejected,
)
from errata.ports.compute import Candidate
from errata.testing.staging import MemoryStaging
from support.memory_world import MemoryWorld, build
from support.terminal import text
from support.world import PRODUCT_FILE, TABLE

Make = Callable[..., MemoryWorld]
ONE_DAY = "1"  # bytes: every day is a chunk of its own
OWN = PRODUCT_FILE.replace("publish: {", "  previous: {own: true, lookback: 1d}\npublish: {").replace(
    'reconcile:\n  - {name: gross, input: raw, source: "sum(amount)", target: "sum(gross)", tolerance: 0}\n', ""
)


def test_a_run_that_its_canary_ended_asks_for_another_plan(make_world: Make) -> None:
    """Validate cannot help, run has nothing to do; the diff shows what the canary computed and nothing else."""

    def wrong(ctx: Any, raw: Any) -> list[dict[str, Any]]:
        return [{**row, "gross": row["gross"] + 1} for row in build(ctx, raw)]

    world = make_world(days=3, chunk_bytes=ONE_DAY, transform=wrong)
    run = world.to("approved", canary=1)
    with pytest.raises(ValidationRejected):
        world.client.run(run, as_="ana")
    again = f"errata plan fin.sales … --supersede {run}"
    assert f"--partitions 2026-01-01..2026-01-03 --supersede {run}" in world.client.status(run).next
    with pytest.raises(StateRefused) as refused:
        world.client.validate(run, as_="ana")
    assert (refused.value.hint or "").startswith(again)
    assert [part.partition for part in world.client.diff(run).diff.partitions] == ["2026-01-03"]
    with pytest.raises(StateRefused, match="2026-01-01 was not computed"):
        world.client.diff(run, partitions="2026-01-01")


@dataclass(frozen=True)
class Pausing(MemoryStaging):
    """Staging during which somebody pauses the run, once."""

    pauses: list[Callable[[], None]] = field(default_factory=list)

    def make_candidate(self, *args: Any) -> Candidate:
        """Pause first."""
        if self.pauses:
            self.pauses.pop()()
        return super().make_candidate(*args)


def test_a_pause_while_the_canary_is_judged_is_a_pause(make_world: Make) -> None:
    """The worker waits and judges after resume; what was made of the canary is no candidate of the run."""
    world = make_world(days=2, chunk_bytes=ONE_DAY)
    run = world.to("approved", canary=1)

    def pause() -> None:
        world.client.pause(run, as_="ana")
        threading.Timer(0.5, lambda: world.client.resume(run, as_="ana")).start()

    world.engines.staging = Pausing(world.lake, [pause])
    assert world.client.run(run, as_="ana").state == "staged"
    with pytest.raises(StateRefused, match="no candidate yet"):
        world.client.diff(run)
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()


def test_a_canary_is_not_judged_by_rules_over_the_whole_run(make_world: Make) -> None:
    """A total over every partition cannot hold for the first of them; the gate of the whole run judges it."""
    total = "  - {name: total, input: all, source: sum(amount), target: sum(gross), per: run, tolerance: 0}\n"
    product = PRODUCT_FILE.replace("publish:", '  all: {files: "raw/*/*.parquet"}\npublish:', 1).replace(
        "lineage_columns:", f"{total}lineage_columns:"
    )
    world = make_world(
        days=3, chunk_bytes=ONE_DAY, product=product, transform=lambda ctx, raw, **_whole: build(ctx, raw)
    )
    run = world.to("approved", canary=1)
    assert world.client.run(run, as_="ana").state == "staged"
    verdict = world.client.validate(run, as_="ana")
    assert [check["level"] for check in verdict.checks if check["name"] == "total"] == ["ok"]


def test_a_sequential_product_stands_on_a_day_without_rows(make_world: Make) -> None:
    """A chunk that computed nothing is staged like any other, and the next day reads it as empty."""

    def running_total(ctx: Any, raw: Any, previous: Any) -> list[dict[str, Any]]:
        before = {row["account"]: row["gross"] for row in previous.to_pylist()}
        rows = [row for row in build(ctx, raw) if str(row["day"]) != "2026-01-02"]
        return [{**row, "gross": row["gross"] + before.get(row["account"], 0)} for row in rows]

    world = make_world(days=3, product=OWN, transform=running_total)
    run = world.to("approved", "2026-01-02..2026-01-03")
    assert world.client.run(run, as_="ana").state == "staged"
    snapshot = world.ledger.progress.chunks(run)[1].snapshot_id
    staged = [row for row in world.rows(snapshot) if row[0] == "2026-01-03"]
    assert staged == world.expected(["2026-01-03"])


def test_a_refuted_proof_is_not_repeated_until_it_passes(make_world: Make) -> None:
    """Retry brings the same refusal, without computing anything."""
    calls: list[int] = []

    def moody(ctx: Any, raw: Any) -> list[dict[str, Any]]:
        calls.append(1)
        return [{**row, "gross": row["gross"] + len(calls)} for row in build(ctx, raw)]

    world = make_world(days=1, transform=moody)
    run = world.to("approved", prove_determinism=1)
    for _ in range(2):
        with pytest.raises(Nondeterministic, match="different rows for 2026-01-01"):
            world.client.run(run, as_="ana")
        assert world.client.status(run).next.startswith("errata plan fin.sales")
        world.client.retry(run, as_="ana")
    assert sum("computed twice" in line for line in world.said) == 1


def test_a_run_at_its_cap_asks_for_another_plan(make_world: Make) -> None:
    """Resume would only meet the cap again."""
    world = make_world(days=2, chunk_bytes=ONE_DAY, project="price: {core_hour_usd: 0.01}\n")
    world.configure("max_partitions: 400", "max_partitions: 400, max_usd: 60")
    run = world.to("approved")
    world.client.run(run, max_chunks=1, as_="ana")
    world.configure("core_hour_usd: 0.01", "core_hour_usd: 9999999999")
    with pytest.raises(CostCapReached):
        world.client.run(run, as_="ana")
    assert '--override cost="…"' in world.client.status(run).next


def test_a_limit_on_rows_that_nobody_counts_is_said_to_hold_nothing(make_world: Make) -> None:
    """Source files are not opened, so their rows are not known: the run says which limit holds instead."""
    world = make_world(days=1, project="throttle: {rows_per_minute: 1, bytes_per_minute: 1GiB}\n")
    assert world.client.run(world.to("approved"), as_="ana").state == "staged"
    (told,) = [line for line in world.said if "rows_per_minute" in line]
    assert told == (
        "WARNING: throttle.rows_per_minute does not count the rows of raw, whose files are not opened; "
        "throttle.bytes_per_minute counts them"
    )


def test_a_request_that_was_given_up_is_planned_anew_as_often_as_one_likes(make_world: Make) -> None:
    """Each new run names the one before; none of them is a run that was cancelled."""
    world = make_world(days=1)
    runs = []
    for _ in range(3):
        runs.append(world.plan().id)
        world.client.cancel(runs[-1], reason="no longer needed", as_="ana")
    assert len(set(runs)) == 3
    assert world.plan().id not in runs


def test_the_reason_of_a_cancellation_stays_on_the_record(make_world: Make) -> None:
    """The audit log names it; without one nothing is cancelled, and the hint is the command with a place for it."""
    world = make_world(days=1)
    run = world.plan().id
    with pytest.raises(UsageError, match="a cancellation without a reason was refused") as refused:
        world.client.cancel(run, reason=" ", as_="ana")
    assert refused.value.hint == f'errata cancel {run} --reason "…"'
    assert text(world, f"errata cancel {run}", "ana")[0] == 2
    assert world.client.status(run).state == "planned"
    world.client.cancel(run[-8:], reason="the source is corrected first", as_="ana")
    entry = world.client.audit_log(run)[-1]
    assert (entry.action, entry.body["reason"]) == ("run.cancelled", "the source is corrected first")


def test_a_run_whose_pinned_snapshot_is_gone_has_expired_and_reads_nothing_instead(make_world: Make) -> None:
    """Between two chunks its pin was dropped and the snapshot expired: no fallback to what is there now."""
    world = make_world(days=2, chunk_bytes=ONE_DAY)
    run = world.to("approved")
    assert world.client.run(run, max_chunks=1, as_="ana").chunks.done == 1
    world.live("2026-02-01")
    (pin,) = [ref for ref in world.refs() if ref.endswith("_base")]
    world.drop_refs(pin)
    world.expire()
    head = world.snapshot()
    with pytest.raises(RunExpired, match=f"{TABLE} @ .* was pinned and is gone") as expired:
        world.client.run(run, as_="ana")
    assert f"--supersede {run}" in (expired.value.hint or "")
    assert world.client.status(run).state == "expired"
    for act in (world.client.run, world.client.validate, world.client.publish):
        with pytest.raises(Refused):
            act(run, as_="bo" if act == world.client.publish else "ana")
    assert world.snapshot() == head
    assert len(world.ledger.progress.attempts(run)) == 1
