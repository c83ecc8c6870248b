"""Evidence of deliveries to copies: receipts are in the bundle, and the verifier finds what does not agree."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from errata.canonical import canonical_bytes
from errata.cli.render.why import render_why
from errata.commands.upkeep.evidence import export_evidence
from errata.delivery.copies.copy_delivery import deliver_copy
from errata.delivery.handlers import load_handlers
from errata.delivery.payment import pay
from errata.evidence.keys import generate_key_pair, load_signing_key
from errata.evidence.verifier import Report, verify
from errata.failpoints import arm
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.outbox import Effect, ItemState, Paid
from errata.model.copy.delivery import WarehouseColumn
from errata.report.page import render_page
from errata.testing.copies import MemoryCopy
from support.copy_world import build_product
from support.memory_world import MemoryWorld as World
from unit.evidence.forging import resealed, unpacked

Make = Callable[..., World]
BO = Actor("bo", "u", "h")
PROJECT = """
evidence: {key: errata.key}
warehouses:
  pg: {type: postgres, uri: "postgresql://errata@127.0.0.1/bi"}
"""
COLUMNS = {"day": "date", "account": "text", "gross": "numeric(12,2)", "n": "bigint"}


@pytest.fixture
def world(make_world: Make) -> World:
    """A lake with two days, an empty copy in memory, and a key for evidence."""
    made = make_world(days=2, product=build_product(), project=PROJECT)
    made.engines.warehouses.create("pg", "shop.sales", [WarehouseColumn(*one) for one in COLUMNS.items()])
    generate_key_pair(made.root / "errata.key")
    return made


def table(world: World) -> MemoryCopy:
    return world.engines.warehouses.tables["pg", "shop.sales"]


def put(world: World, day: str) -> None:
    """A row by somebody else."""
    table(world).rows.append({"day": date.fromisoformat(day), "account": "foreign", "gross": 1, "n": 1})


def items(world: World) -> list[OutboxItem]:
    return [one for one in world.ledger.outbox.list() if one.effect is Effect.COPY]


def export(world: World, run: str) -> bytes:
    return export_evidence(world.workspace, BO, run)[1]


def check(world: World, bundle: bytes) -> Report:
    return verify(bundle, [(world.root / "errata.key.pub").read_bytes()])


def publish_while_down(world: World, days: str | None = None) -> str:
    """Publish, and leave the delivery owed."""
    world.engines.warehouses.down = "pg cannot be reached"
    run = world.to("published", days) if days else world.to("published")
    world.engines.warehouses.down = ""
    return run


def retry(world: World) -> None:
    world.client.retry_outbox(str(items(world)[-1].item_id), as_="ana")


# --------------------------------------------------------------------------------------------------- what is in it


def test_receipts_of_a_publication_and_a_rollback_verify(world: World) -> None:
    """Each partition has its acceptance and the same checksum in the lake, in staging, in the copy and afterwards."""
    run = world.to("published")
    world.client.rollback(run, partitions=world.days[0], reason="wrong rates", as_="bo")
    first, second = items(world)
    told = first.result
    assert (told["partitions"], told["rows"], told["rows_written"], told["rows_removed"]) == (2, 6, 6, 0)
    assert told["loaded"] == {"rows": 6, "files_as_is": 0, "rows_as_is": 0}
    assert (told["attempts"], told["publication"]) == ([[first.fence, "done"]], first.pub_id)
    for item in (first, second):
        contents = json.loads(world.ledger.parts.get(item.result["contents"]))
        assert sorted(contents) == sorted(item.partitions)
        for one in contents.values():
            lake = {name: one[name] for name in ("rows", "upper", "lower")}
            assert (one["staged"], one["copy"], one["read_back"]) == (lake, lake, lake)
            assert one["publication"] == item.pub_id
    assert json.loads(world.ledger.parts.get(second.result["contents"]))[world.days[0]]["before"] == {
        "rows": 3,
        "publication": first.pub_id,
    }
    bundle = export(world, run)
    found = check(world, bundle)
    assert found.problems == []
    facts = [what for name, what in found.facts if name == "copy pg:shop.sales"]
    assert facts == [f"2 partitions, 6 rows, item {first.item_id}", f"1 partition, 3 rows, item {second.item_id}"]
    assert f"parts/{first.result['contents']}.json" in unpacked(bundle)


def test_a_bundle_without_copies_says_nothing_about_copies(make_world: Make) -> None:
    """No record, no line of the readme and no word of the cover is there for what the run does not have."""
    made = make_world(days=1, project="\nevidence: {key: errata.key}\n")
    generate_key_pair(made.root / "errata.key")
    members = unpacked(export(made, made.to("published")))
    del members["verify.py"]
    assert not [name for name, content in members.items() if b"receipt" in content or b"Copies" in content]


def test_a_fenced_attempt_is_in_the_receipt_of_the_next_one(world: World) -> None:
    """An attempt that died before its swap is void, and the one that delivered is done."""

    def die() -> None:
        raise KeyboardInterrupt

    with arm("copy.after_open", die), pytest.raises(KeyboardInterrupt):
        world.to("published", world.days[0])
    pay(world.workspace, BO, seconds=60)
    [item] = items(world)
    assert item.result["attempts"] == [[1, "void"], [2, "done"]]
    assert check(world, export(world, item.run_id)).problems == []


def test_a_delivery_whose_process_died_after_its_commit_has_a_receipt(world: World) -> None:
    """By the record of the warehouse, and a look at what the copy holds."""

    def die() -> None:
        raise KeyboardInterrupt

    with arm("copy.after_commit", die), pytest.raises(KeyboardInterrupt):
        world.to("published", world.days[0])
    pay(world.workspace, BO, seconds=60)
    [item] = items(world)
    assert (item.result["attempts"], item.result["delivered_by"]) == ([[1, "done"]], [item.pub_id])
    [one] = json.loads(world.ledger.parts.get(item.result["contents"])).values()
    assert (one["delivered_by"], one["read_back"]["rows"]) == ([item.pub_id, 1], 3)
    assert check(world, export(world, item.run_id)).problems == []


def test_a_lost_answer_is_said_in_the_receipt(world: World) -> None:
    """The copy was not measured in the transaction; it was afterwards."""
    world.engines.warehouses.lose_answers = True
    run = world.to("published", world.days[0])
    [item] = items(world)
    assert item.result["answer_lost"] is True
    [one] = json.loads(world.ledger.parts.get(item.result["contents"])).values()
    assert ("copy" in one, one["read_back"]) == (False, one["staged"])
    assert check(world, export(world, run)).problems == []


def test_rows_that_others_write_after_the_swap_are_in_the_receipt(world: World) -> None:
    """The later look finds them; the receipt names the partition, the verifier warns, and the report says so."""
    with arm("copy.after_commit", lambda: put(world, world.days[0])):
        run = world.to("published", world.days[0])
    [item] = items(world)
    assert item.result["written_since"] == [world.days[0]]
    found = check(world, export(world, run))
    assert found.problems == []
    assert f"{world.days[0]} of pg:shop.sales was written by others" in found.warnings
    assert "differs" in find_section(render_page(world.client.report(run)))


def test_a_conflict_and_who_accepted_it_are_in_the_bundle(world: World) -> None:
    """The failed payment names the partitions; the baseline names the person, the reason and what was there."""
    put(world, world.days[0])
    run = world.to("published", world.days[0])
    [failed] = items(world)
    assert (failed.state, failed.result["code"], failed.result["changed"]) == (
        ItemState.FAILED, "copy-changed", [world.days[0]],
    )  # fmt: skip
    assert failed.result["attempts"] == [[1, "void"]]
    assert check(world, export(world, run)).problems == []
    world.client.baseline("fin.sales", partitions=world.days[0], reason="loaded by the old job", as_="bo")
    pay(world.workspace, BO, seconds=60)
    [paid] = items(world)
    [one] = json.loads(world.ledger.parts.get(paid.result["contents"])).values()
    assert one["before"]["rows"] == 1
    assert one["before"]["publication"].startswith("baseline-")
    found = check(world, export(world, run))
    assert found.problems == []
    [accepted] = [what for name, what in found.facts if name == "accepted pg:shop.sales"]
    assert accepted.startswith("bo, ")
    assert accepted.endswith("1 partition: loaded by the old job")


def test_a_copy_that_was_given_up_is_said_loudly(world: World) -> None:
    """With the person and the reason."""
    run = publish_while_down(world, world.days[0])
    world.client.waive_outbox(str(items(world)[0].item_id), reason="the table is retired", as_="bo")
    found = check(world, export(world, run))
    assert found.problems == []
    assert "pg:shop.sales was not delivered: bo gave up 1 partition: the table is retired" in found.warnings


# ------------------------------------------------------------------------------------------------- what is found out


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every value that is not a list or an object."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [leaf for key, one in inner for leaf in leaves(one, (*path, key))]
    yield from found or [path]


def spoil(value: Any, path: tuple[Any, ...]) -> None:
    """Change the value at this path."""
    for key in path[:-1]:
        value = value[key]
    old = value[path[-1]]
    value[path[-1]] = f"{old}1" if isinstance(old, str) else [] if isinstance(old, (list, dict)) else (old or 0) + 1


def test_every_field_of_a_receipt_counts(world: World) -> None:
    """The holder of the key changes one value of a receipt and signs again: the audit says something else."""
    run = world.to("published")
    bundle, key = export(world, run), load_signing_key("errata.key", world.root)
    [item] = items(world)
    record = json.loads(unpacked(bundle)["records/publications.json"])
    [at] = [n for n, row in enumerate(record["owed"]) if row["item_id"] == item.item_id]
    part, contents = item.result["contents"], json.loads(world.ledger.parts.get(item.result["contents"]))
    spoilt = {
        "publications": [("owed", at, "result", *path) for path in leaves(record["owed"][at]["result"])],
        part: list(leaves(contents)),
    }
    assert len(spoilt["publications"]) > 12
    assert len(spoilt[part]) > 20
    for member, paths in spoilt.items():
        for path in paths:
            found = check(world, resealed(bundle, key, **{member: lambda data, path=path: spoil(data, path)}))
            assert found.problems, (member, path)


def change(**fields: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    """Change fields of the receipt itself."""
    return lambda result, _: result.update(fields)


def change_partition(**fields: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    """Change fields of its first partition."""
    return lambda _, contents: contents[min(contents)].update(fields)


def change_step(step: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    """Another checksum at one of the steps."""
    return lambda _, contents: contents[min(contents)].update({step: contents[min(contents)][step] | {"lower": "1"}})


def count_one_more(result: dict[str, Any], contents: dict[str, Any]) -> None:
    """One row more on every side: only the gate knows better."""
    one = contents[min(contents)]
    for place in (one, one["staged"], one["copy"], one["read_back"], result["loaded"]):
        place["rows"] += 1
    result["rows"] += 1
    result["rows_written"] += 1


LIES: dict[str, tuple[Callable[[dict[str, Any], dict[str, Any]], None], str]] = {
    "another copy": (change(table="shop.other"), "is of pg:shop.other, not of pg:shop.sales"),
    "rows": (change(rows=7), "says rows 7, its partitions make it 6"),
    "rows written": (change(rows_written=5), "says rows_written 5"),
    "rows removed": (change(rows_removed=1), "says rows_removed 1"),
    "rows loaded": (change(loaded={"rows": 9, "files_as_is": 0, "rows_as_is": 0}), "says loaded rows 9"),
    "more as they are than all": (
        change(loaded={"rows": 6, "files_as_is": 1, "rows_as_is": 7}), "has numbers that cannot be",
    ),
    "partitions": (change(partitions=3), "says partitions 3"),
    "publication": (change(publication="bf-x-p1"), "says publication bf-x-p1"),
    "snapshots": (change(snapshots=["1"]), "says snapshots ['1']"),
    "before its commit": (change(seconds_since_commit=-1), "has numbers that cannot be"),
    "attempts": (change(attempts=[[1, "open"]]), "says attempts [[1, 'open']]"),
    "nothing lost": (change(written_since=["2026-01-01"]), "is called written since"),
    "staging": (change_step("staged"), "has other rows in the lake than in staged"),
    "the copy": (change_step("copy"), "has other rows in the lake than in copy"),
    "read back": (change_step("read_back"), "has other rows in the lake than in read_back"),
    "not looked at": (lambda _, contents: contents[min(contents)].pop("copy"), "was not measured everywhere"),
    "a partition less": (lambda _, contents: contents.pop(min(contents)), "has other partitions than its item"),
    "another acceptance": (change_partition(snapshot_id="1"), "is of snapshot 1"),
    "no acceptance": (lambda _, contents: contents[min(contents)].update(publication="{run}-p9"), "not in the bundle"),
    "the gate's count": (count_one_more, "has 4 rows, the gate counted 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_a_receipt_that_does_not_agree_with_itself_is_found(world: World, name: str) -> None:
    """Also when it was written like this, so that ledger and audit agree with it."""
    run, (lie, told) = publish_while_down(world), LIES[name]

    def deliver_and_lie(*given: Any) -> Paid:
        paid = deliver_copy(*given)
        assert isinstance(paid, Paid)
        result, contents = dict(paid.result), json.loads(world.ledger.parts.get(paid.result["contents"]))
        lie(result, contents)
        text = canonical_bytes(contents).replace(b"{run}", run.encode())
        return replace(paid, result={**result, "contents": world.ledger.parts.put(text)})

    retry(world)
    pay(world.workspace, BO, seconds=60, handlers={**load_handlers(), Effect.COPY: deliver_and_lie})
    problems = [one.problem for one in check(world, export(world, run)).problems]
    assert any(told in one for one in problems), problems


def test_the_evidence_of_a_repair_follows_from_its_plan(world: World) -> None:
    """The receipt removed what the plan found and brought what is accepted, without a publication."""
    world.to("published")
    day = world.days[1]
    next(row for row in table(world).rows if row["day"] == date.fromisoformat(day))["account"] = "edited"
    view = world.client.plan("fin.sales", partitions=day, reason="edited", kind="repair", copies=(), as_="ana")
    world.client.approve(view.run_id, digest=view.digest, as_="bo")
    world.client.run(view.run_id, as_="ana")
    bundle, key = export(world, view.run_id), load_signing_key("errata.key", world.root)
    found = check(world, bundle)
    assert found.problems == []
    assert [what for name, what in found.facts if name == "copy pg:shop.sales"]

    def claim_all(data: Any) -> Any:
        [row] = [one for one in data["owed"] if one["effect"] == "copy"]
        row["partitions"] = list(world.days)
        return data

    assert check(world, resealed(bundle, key, publications=claim_all)).problems


# -------------------------------------------------------------------------------------------------------- the report


def test_the_report_has_a_row_for_each_copy(world: World) -> None:
    """Its state, partitions, rows, whether it equals the lake, and when; no value of a row."""
    run = world.to("published")
    report = world.client.report(run)
    [one] = report.copies
    assert (one.copy, one.state, one.partitions, one.delivered, one.rows, one.is_same) == (
        "pg:shop.sales", "yes", 2, 2, 6, True,
    )  # fmt: skip
    assert (one.delivered_at, one.seconds is not None) == (items(world)[0].ended_at, True)
    section = find_section(render_page(report))
    assert "pg:shop.sales" in section
    assert "delivered" in section
    assert "equal" in section
    assert not [account for _, account, _, _ in world.rows() if account in section]


def test_the_report_says_what_is_not_there_and_who_gave_it_up(world: World) -> None:
    """Pending, failed and given up are different words, with the error or the person."""
    run = publish_while_down(world, world.days[0])
    assert "pending" in find_section(render_page(world.client.report(run)))
    put(world, world.days[0])
    retry(world)
    pay(world.workspace, BO, seconds=60)
    failed = find_section(render_page(world.client.report(run)))
    assert "failed" in failed
    assert f"errata deliver fin.sales --baseline --partitions {world.days[0]}" in failed
    assert "not compared" in failed
    world.client.waive_outbox(str(items(world)[0].item_id), reason="the table is retired", as_="bo")
    waived = find_section(render_page(world.client.report(run)))
    assert f"bo gave up {world.days[0]}: the table is retired" in waived
    assert "0 of 1 partition" in waived


def test_the_cover_of_a_bundle_has_the_same_rows(world: World) -> None:
    """What is on the cover is what the report shows."""
    run = world.to("published")
    cover = unpacked(export(world, run))["cover.html"].decode()
    assert find_section(cover) == find_section(render_page(world.client.report(run)))


def test_why_and_runbook_say_whether_the_copy_got_it(world: World) -> None:
    """Pending, failed, given up and delivered: each is said as it is, with a command that helps."""

    def ask() -> tuple[str, str]:
        told = world.client.why("fin.sales", world.days[0])
        lines = [line for line in render_why(told, 200) if line.startswith("copy ")]
        step = world.client.runbook(run).steps[16]
        return lines[0], f"{step.state} {step.what}{step.next}"

    run = publish_while_down(world, world.days[0])
    [item] = items(world)
    name = "copy pg:shop.sales"
    line, step = ask()
    assert line == f"{name} has yet to get what {run} left: pg cannot be reached"
    assert step == f"open errata deliver {run}"
    put(world, world.days[0])
    retry(world)
    pay(world.workspace, BO, seconds=60)
    line, step = ask()
    assert line.startswith(f"{name} did not get what {run} left: failed: pg:shop.sales has rows that Errata did not")
    assert step == f"open errata outbox {run}"
    world.client.waive_outbox(str(item.item_id), reason="retired", as_="bo")
    line, step = ask()
    assert line.startswith(f"{name} did not get what {run} left: given up by bo, ")
    assert line.endswith(": retired")
    assert step == "done given up: pg:shop.sales"
    table(world).rows.clear()
    world.client.rollback(run, reason="wrong", as_="bo")
    line, step = ask()
    assert line.startswith(f"{name} got what {run} left, ")
    assert step == "done pg:shop.sales"


def find_section(page: str) -> str:
    """The section on copies."""
    return page.partition('<h2 id="copies">')[2].partition("</section>")[0]
