"""Checks on the way of a whole correction: refused when planned, measured at the gate, judged from the ledger."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import ProjectFileError, ValidationRejected
from support.world import PRODUCT_FILE, TRANSFORM, World
from support.worlds import WorldAt

Make = Callable[..., World]

GOOD = """\
  - {metric: invalidValues, column: gross, minimum: 0, maximum: 100000, mustBe: 0}
  - {metric: invalidValues, column: account, minLength: 1, maxLength: 20, mustBe: 0}
  - {metric: freshness, column: day, unit: days, mustBe: 1}
  - {metric: timestampBounds, column: day, mustBe: 0}
  - {metric: missingReferences, column: account, references: {input: raw, columns: [account]}, mustBe: 0}
  - {metric: piiValues, mustBe: 0}
  - {metric: rowCount, per: run, mustBeGreaterThan: 0}
  - {metric: duplicateValues, column: account, per: run, mustBeGreaterThan: 0}
  - {metric: duplicateValues, columns: [day, account], per: run, mustBe: 0}
reconcile:
"""
BAD = """\
  - {metric: invalidValues, column: account, pattern: "(a+)+$", mustBe: 0}
  - name: odd
    expression: |
      gross > 0
      and java_method('java.lang.System', 'exit', 1) is null
    mustBe: 0
  - {metric: invalidValues, column: gross, minimum: much, mustBe: 0}
reconcile:
"""


def test_rules_that_cannot_be_measured_stop_the_plan_and_the_check(make_world: Make) -> None:
    """Both name every rule by file and line; nothing is recorded and no table is touched."""
    world = make_world(days=1, product=PRODUCT_FILE.replace("reconcile:\n", BAD))
    before = world.snapshot()
    with pytest.raises(ProjectFileError) as refusal:
        world.plan()
    lines = [f"products/sales.yaml:{line}: " for line in (17, 19, 23)]
    told = refusal.value.message.splitlines()[1:]
    assert [line for line, text in zip(lines, told, strict=True) if not text.strip().startswith(line)] == []
    assert [str(problem) for problem in world.client.check()] == [text.strip() for text in told]
    assert world.client.status().runs == ()
    assert world.snapshot() == before


def test_every_kind_of_check_passes_the_gate_and_is_judged_again_from_the_ledger(world_at: WorldAt) -> None:
    """Numbers of the run as a whole are kept beside those of partitions; judging again measures nothing."""
    world, run = world_at("validated", days=2, product=PRODUCT_FILE.replace("reconcile:\n", GOOD))
    first = world.client.validate(run, as_="ana")
    checks = {(check["name"], check["partition"]): check for check in first.checks}
    assert first.passed
    assert checks["rowCount per run", None]["message"].startswith("rowCount is ")
    assert int(checks["duplicateValues(account) per run", None]["value"]) > 0
    assert checks["freshness(day)", world.days[0]]["value"] == "1.00"
    assert world.client.validate(run, as_="ana").checks == first.checks


@pytest.mark.slow
def test_a_key_that_the_input_lacks_is_found(make_world: Make) -> None:
    """A transform that renames an account loses it from its own source."""
    renamed = TRANSFORM.replace(
        'groupBy("day", "account")', 'withColumn("account", F.lit("new")).groupBy("day", "account")'
    )
    lookup = PRODUCT_FILE.replace("reconcile:\n", GOOD.splitlines()[4] + "\nreconcile:\n")
    world = make_world(days=1, transform=renamed, product=lookup)
    with pytest.raises(ValidationRejected) as refusal:
        world.to("validated")
    failed = {c["name"] for c in refusal.value.fields["validation"].checks if c["level"] == "block"}
    assert failed == {"missingReferences(account)"}
