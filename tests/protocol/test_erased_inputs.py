"""Erased subjects are left out when inputs are read, and chunks that used them are computed again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import ErasedSince, PlanRefused, StateRefused
from errata.testing import arm
from support.memory_world import MemoryWorld as World
from support.world import PRODUCT_FILE, write_raw

Make = Callable[..., World]
ERASURE = 'erasure: {table: lake.privacy.erased, key: "${NOT_NEEDED}"}\n'
SUBJECTS = PRODUCT_FILE.replace("    partition: day\n", "    partition: day\n    subjects: [account]\n").replace(
    "key: [day, account]\n", "key: [day, account]\n  subjects: [account]\n"
)


def policed(terms: str, *, beside: str = "") -> str:
    """The product file with these terms of its input."""
    return PRODUCT_FILE.replace("    partition: day\n", f"    partition: day\n    policy: {terms}\n") + beside


@pytest.fixture
def world(make_world: Make) -> World:
    """A product whose input names subjects, in two chunks of one day."""
    return make_world(days=2, product=SUBJECTS, project=ERASURE, chunk_bytes="1")


def accounts(world: World, day: str) -> set[str]:
    return {row[1] for row in world.rows() if str(row[0]) == day}


def test_an_erased_subject_is_left_out_and_counted(world: World) -> None:
    """Rows in = used + quarantined + suppressed holds exactly, and the attempt names the snapshot of the list."""
    day = world.days[0]
    erased = min(accounts(world, day))
    world.client.erase([erased], reason="request 1", as_="bo")
    run = world.to("published")
    assert erased not in accounts(world, day)
    assert len(accounts(world, day)) == 2
    attempts = world.ledger.progress.attempts(run)
    assert {one.erasure_snapshot_id for one in attempts} == {"1"}
    counted = next(one.cost for one in attempts if day in one.partitions)
    assert counted["rows_in:raw"] == counted["rows_used:raw"] + counted["rows_suppressed:raw"]
    assert counted["rows_suppressed:raw"] > 0
    sealed = world.ledger.runs.manifest(run).erasure
    assert sealed is not None
    assert (sealed.table_uuid, sealed.key_id, sealed.columns) == ("the list", "the key", ("account",))


def test_only_chunks_that_used_someone_erased_since_are_computed_again(world: World) -> None:
    """Under the same approval: the other chunk keeps its output, and the list that it read."""
    world.client.erase(["nobody"], reason="request 1", as_="bo")
    day, erased = world.days[0], "a3"
    write_raw(world.root, day, 4)  # a3 is in this day only
    run = world.to("validated")
    world.client.erase([erased], reason="request 2", as_="bo")
    before = {one.chunk_id: one.snapshot_id for one in world.ledger.progress.chunks(run)}
    with pytest.raises(StateRefused, match="validate"):
        world.client.publish(run, as_="bo")
    with pytest.raises(ErasedSince, match="computed again without them") as raised:
        world.client.validate(run, as_="ana")
    assert raised.value.fields["partitions"] == [day]
    approvals = world.ledger.approvals.list(run)
    world.client.run(run, as_="ana")
    world.client.validate(run, as_="ana")
    assert world.ledger.approvals.list(run) == approvals
    chunks = {one.chunk_id: one for one in world.ledger.progress.chunks(run)}
    assert {name: chunks[name].snapshot_id for name in before} == before
    new = [one for name, one in chunks.items() if name not in before]
    assert [one.partitions for one in new] == [(day,)]
    read = {one.chunk_id: one.erasure_snapshot_id for one in world.ledger.progress.attempts(run)}
    assert [read[name] for name in before] == ["1", "1"]
    assert read[new[0].chunk_id] == "2"
    world.client.publish(run, as_="bo")
    assert erased not in accounts(world, day)
    assert world.client.audit_verify().ok


def test_a_list_that_grew_by_someone_who_was_not_used_needs_no_computation(world: World) -> None:
    """The chunks are looked at once, which is on record, and the run is published."""
    run = world.to("validated")
    world.client.erase(["someone else"], reason="request 1", as_="bo")
    chunks = world.ledger.progress.chunks(run)
    world.client.validate(run, as_="ana")
    assert world.ledger.progress.chunks(run) == chunks
    notes = [name for name in world.ledger.facts.list(run) if name.startswith("unused.")]
    assert len(notes) == 2
    world.client.publish(run, as_="bo")


def test_a_chunk_that_was_computed_again_reads_the_newest_list(world: World) -> None:
    """A kill between the record and the report loses nothing: the run continues with the chunks that were added."""
    run = world.to("validated")
    erased = min(accounts(world, world.days[0]))
    world.client.erase([erased], reason="request 1", as_="bo")

    class Killed(BaseException):
        pass

    def kill() -> None:
        raise Killed

    with arm("erasure.after_requeue", kill), pytest.raises(Killed):
        world.client.validate(run, as_="ana")
    world.client.run(run, as_="ana")
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert erased not in {row[1] for row in world.rows()}


def test_a_list_that_lost_subjects_or_changed_its_key_is_refused(world: World) -> None:
    """The snapshot at planning is a lower bound; another list, or another key, would find nobody."""
    world.client.erase(["ann", "ben"], reason="request 1", as_="bo")
    run = world.to("approved")
    listed = world.engines.erased
    for change, why in (
        ({"subjects": {"ann": None}}, "set back"),
        ({"table_uuid": "another"}, "created again"),
        ({"key_id": "another"}, "another key"),
    ):
        before = {name: getattr(listed, name) for name in change}
        for name, value in change.items():
            setattr(listed, name, value)
        with pytest.raises(StateRefused, match=why):
            world.client.run(run, as_="ana")
        for name, value in before.items():
            setattr(listed, name, value)
    assert world.client.run(run, as_="ana").state == "staged"


def test_small_counts_of_erased_rows_are_not_shown(world: World) -> None:
    """Below five, neither the count nor what it follows from is in status, verdict or quarantine."""
    erased = min(accounts(world, world.days[0]))
    world.client.erase([erased], reason="request 1", as_="bo")
    run = world.to("validated")
    shown = world.client.status(run).input_rows["raw"]
    assert shown["rows_suppressed"] == "<5"
    assert "rows_used" not in shown
    view = world.client.validate(run, as_="ana")
    told = [check["message"] for check in view.checks if check["name"] == "accounting" and check["partition"]]
    assert any("<5 are of erased subjects" in text for text in told)
    assert not any(" used + " in text and "<5" in text for text in told)


def test_a_restore_leaves_erased_subjects_out(world: World) -> None:
    """The rows of the old snapshot come back without them, counted like those of any input."""
    before = world.snapshot()
    world.to("published")
    erased = min(accounts(world, world.days[0]))
    world.client.erase([erased], reason="request 1", as_="bo")
    run = world.client.plan(
        "fin.sales", partitions=world.days[0], kind="restore", restore=str(before), reason="as it was", as_="ana"
    ).run_id
    assert run is not None
    world.client.approve(run, digest=world.ledger.runs.get(run).manifest_digest, as_="bo")
    world.client.run(run, as_="ana")
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert erased not in accounts(world, world.days[0])
    assert world.client.status(run).input_rows["restored"]["rows_suppressed"] == "<5"


@pytest.mark.parametrize(
    "product, why",
    [
        (policed("{purpose: [billing]}"), "may be used for billing"),
        (policed("{purpose: [billing]}", beside="purpose: marketing\n"), "its purpose is marketing"),
        (policed("{retain_until: 1d}"), "ended more than 1d ago"),
        (policed("{classification: restricted}"), "is not classified"),
        (policed("{mask: {nothing: blank}}"), "has no column nothing"),
    ],
)
def test_a_plan_that_breaks_the_policy_of_an_input_is_refused_by_name(make_world: Make, product: str, why: str) -> None:
    """Purpose, age and classification are terms that no override sets aside."""
    world = make_world(days=1, product=product)
    for overrides in ({}, {"privacy": "in a hurry"}):
        with pytest.raises(PlanRefused) as refused:
            world.client.plan("fin.sales", partitions=world.days[0], reason="try", overrides=overrides, as_="ana")
        assert why in str(refused.value.fields)


def test_a_plan_that_keeps_the_policy_goes(make_world: Make) -> None:
    """The plan says what the terms are."""
    product = policed("{purpose: [billing], retain_until: 99y, classification: internal}", beside="purpose: billing\n")
    world = make_world(days=1, product=product.replace("  key: [day", "  classification: restricted\n  key: [day"))
    view = world.client.plan("fin.sales", partitions=world.days[0], reason="try", as_="ana")
    told = [one.message for one in view.verdicts if one.rule == "privacy"]
    assert told == ["raw: for billing, no row older than 99y, internal"]


def test_a_masked_value_reaches_neither_transform_nor_quarantine(make_world: Make) -> None:
    """Masks are sealed in the manifest and applied when rows are read."""
    rule = "    rows: [{name: dear, expression: amount > 0, action: quarantine}]\n    quarantine: {warn: 99}\n"
    seen: list[str] = []

    def build(ctx: object, raw: object) -> list[dict[str, object]]:
        del ctx
        seen.extend(row["account"] for row in raw.to_pylist())  # type: ignore[attr-defined]
        return []

    product = policed("{mask: {account: redact}}").replace("    policy:", f"{rule}    policy:")
    world = make_world(days=1, product=product, transform=build)
    raw = accounts(world, world.days[0])
    run = world.to("staged")
    assert world.ledger.runs.manifest(run).inputs[0].masks == {"account": "redact"}
    shown = [str(row.row) for row in world.client.quarantine(run, sample=50).rows]
    assert shown
    assert not [text for text in shown + seen if any(name in text for name in raw)]


MERGED = SUBJECTS.replace("{mode: replace_partitions,", "{mode: merge, merge: {version: n},")
MERGED = MERGED.replace("reconcile:" + MERGED.partition("reconcile:")[2].partition("lineage_columns:")[0], "")


def test_a_merge_does_not_carry_over_prior_rows_of_an_erased_subject(make_world: Make) -> None:
    """They are counted under the name of the target; who is erased while it runs is left out by computing again."""
    world = make_world(days=2, product=MERGED, project=ERASURE, chunk_bytes="1")
    world.client.erase(["a0"], reason="request 1", as_="bo")
    run = world.to("validated")
    cost = world.ledger.progress.attempts(run)[0].cost
    assert cost["rows_suppressed:lake.fin.sales"] == 1
    assert cost["rows_in:lake.fin.sales"] == cost["rows_used:lake.fin.sales"] + 1
    assert world.client.quarantine(run).inputs["lake.fin.sales"]["rows_suppressed"] == "<5"
    world.client.erase(["a1"], reason="request 2", as_="bo")
    with pytest.raises(ErasedSince):
        world.client.validate(run, as_="ana")
    world.client.run(run, as_="ana")
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert {row[1] for row in world.rows()} == {"a2"}


def test_a_merge_computes_again_for_prior_rows_alone(make_world: Make) -> None:
    """Someone erased since whom only the prior rows have is left out too, although no input names subjects."""
    product = MERGED.replace("    subjects: [account]\n", "", 1)
    world = make_world(days=1, product=product, project=ERASURE)
    world.client.erase(["nobody"], reason="request 1", as_="bo")
    write_raw(world.root, world.days[0], 2)  # a2 is in the prior rows only
    run = world.to("validated")
    world.client.erase(["a2"], reason="request 2", as_="bo")
    with pytest.raises(ErasedSince):
        world.client.validate(run, as_="ana")
    world.client.run(run, as_="ana")
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert accounts(world, world.days[0]) == {"a0", "a1"}
