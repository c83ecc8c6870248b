"""A restore is a plan like any other, with the older target as its only input and nothing to compute."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from errata.canonical import sha256
from errata.errors import UsageError
from errata.model.manifest import Override
from errata.model.product import Merge, Publish, Reconciliation
from errata.model.refs import input_tags
from errata.model.table import Commit, History, Touch
from errata.planning.build import Plan
from errata.planning.restore import INPUT, NOTHING_RUNS, build_restore_input, strip_code, to_restore_product
from errata.ports.tables import PartitionSize, PastTarget
from unit.planning.worlds import CODE, PRODUCT, TARGET, ask, levels, message, plan

DAYS = ("2026-01-02", "2026-01-03")
AT = 1_767_000_000_000


def commit(snapshot: str, *days: str, operation: str = "overwrite", **summary: str) -> Commit:
    return Commit(snapshot, operation, AT + 60_000, "nightly-fix", {day: Touch(1, 1) for day in days}, summary=summary)


def held(
    *commits: Commit, complete: bool = True, problems: tuple[str, ...] = (), days: tuple[str, ...] = DAYS
) -> PastTarget:
    sizes = {day: PartitionSize(5, 500, 1, f"f-{day}") for day in days}
    return PastTarget(
        "7000", AT, sizes, {"business_date": "business_date"}, problems, History(commits, complete=complete)
    )


def restore(found: PastTarget, product: Any = PRODUCT, **more: Any) -> Plan:
    request = ask(partitions=",".join(DAYS), start=None, end=None, kind="restore", restore="7000", **more)
    return plan(
        request,
        product=to_restore_product(product, found.columns),
        inputs={INPUT: build_restore_input(found, product, TARGET)},
        code=strip_code(CODE),
        held=found,
    )


def test_nothing_is_computed_and_the_manifest_says_so():
    """One input, the target at that snapshot; no code of the project; no reconciliation with inputs."""
    product = replace(PRODUCT, reconcile=(Reconciliation("gross", "transactions", "sum(a)", "sum(a)"),))
    made = restore(held(commit("7100", *DAYS)), product)
    sealed = made.manifest
    assert sealed is not None
    assert (sealed.kind, sealed.reconcile, sealed.prove_determinism) == ("restore", (), 0)
    assert [(pin.name, pin.location, pin.snapshot_id) for pin in sealed.inputs] == [(INPUT, TARGET.table, "7000")]
    assert (sealed.code.call, sealed.code.zip_digest) == (NOTHING_RUNS, sha256(b""))
    assert sealed.restored is not None
    assert (sealed.restored.snapshot_id, sealed.restored.asked) == ("7000", "7000")
    assert list(input_tags(made.run_id, sealed.inputs).values()) == ["7000"]


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_modes_that_make_content_from_content_become_a_replacement(mode: str):
    """What is put back is whole; it is neither added to what is there nor merged with it."""
    made = restore(held(commit("7100", *DAYS)), replace(PRODUCT, publish=Publish(mode, merge=Merge())))
    assert made.manifest is not None
    assert (made.manifest.publish.mode, made.manifest.publish.merge) == ("replace_partitions", None)


def test_every_commit_that_is_taken_out_is_named():
    """Others by application, ours by run; compaction is no write."""
    ours = commit("7050", DAYS[0], **{"errata.run": "bf-1", "errata.publication": "bf-1-p1"})
    made = restore(held(commit("7100", *DAYS), commit("7070", *DAYS, operation="replace"), ours))
    assert levels(made, "restore") == ["ok", "warn", "warn"]
    told = message(made, "restore")
    assert "nightly-fix wrote to 2026-01-02 … 2026-01-03: snapshot 7100 (overwrite" in told
    assert "publication of bf-1 in 2026-01-02: snapshot 7050" in told
    assert "7070" not in told


def test_what_nobody_touched_has_nothing_to_put_back():
    """All untouched: refused; some: a warning; unknown history: no claim."""
    assert levels(restore(held()), "restore") == ["refuse"]
    assert levels(restore(held(commit("7100", DAYS[0]))), "restore") == ["warn", "ok", "warn"]
    assert levels(restore(held(complete=False)), "restore") == ["ok", "warn"]


def test_rows_of_then_that_cannot_be_rows_of_now_refuse_for_good():
    """No override puts back a column that is gone."""
    made = restore(held(problems=("column x (int) was removed since",)), overrides=(Override("restore", "please"),))
    assert made.is_refused
    assert "an override cannot set this aside" in message(made, "restore")


def test_a_partition_that_was_not_there_then_is_missing():
    """It would be emptied, so somebody has to say that it may."""
    made = restore(held(commit("7100", *DAYS), days=DAYS[:1]))
    assert levels(made, "source-missing") == ["refuse"]
    assert "2026-01-03" in message(made, "source-missing")


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "restore"},
        {"kind": "repair", "restore": "7"},
    ],
)
def test_kind_and_snapshot_belong_together(options: dict[str, Any]):
    """A restore names what it puts back, and nothing else does."""
    with pytest.raises(UsageError, match="--restore"):
        ask(**options)


def test_a_restore_leaves_out_the_subjects_of_the_target_by_the_names_of_then():
    """Renamed since, the column is looked for under its old name; one that was not there refuses the plan for good."""
    product = replace(PRODUCT, target=replace(PRODUCT.target, subjects=("account_id",)))
    found = replace(held(), columns={"account_id": "customer"})
    assert to_restore_product(product, found.columns).inputs[0].subjects == ("customer",)
    (refused,) = [one for one in restore(held(), product).verdicts if "identify" in one.message]
    assert "lacks account_id, which identify subjects" in refused.message
    assert refused.final
