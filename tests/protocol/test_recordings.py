"""Plans of products that read recorded files: which files they pin, and what retention leaves alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from errata.commands.sources.redaction import redact_recordings
from errata.errors import PlanRefused, UsageError
from errata.model.audit import Actor
from errata.model.recording.subject_names import SubjectNames
from errata.model.refs import DAY_MS, base_tag
from support.clock import later
from support.memory_world import MemoryWorld
from support.world import PRODUCT_FILE

Make = Callable[..., MemoryWorld]
INPUT = """\
inputs:
  raw: {recording: orders, partition: day, columns: {account: string, amount: "decimal(12,2)", day: date}}
"""
PRODUCT = PRODUCT_FILE.replace(PRODUCT_FILE[PRODUCT_FILE.index("inputs:") : PRODUCT_FILE.index("publish:")], INPUT)
SOURCE = (
    'sources: {orders: {format: json, duplicates: correction, range: {name: "orders_{%Y-%m-%d}*"}, keep: 30d}}\n'
    "retention: {pins: 90d, candidates: 3d}\n"
)
DAYS = ("2026-01-01", "2026-01-02")


def drop(world: MemoryWorld, day: str, amount: str = "1.10", at: int = 1_767_500_000) -> str:
    place = world.root / "landing" / f"orders_{day}.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text(f'{{"day": "{day}", "account": "a", "amount": {amount}}}\n')
    os.utime(place, (at, at))
    return str(place)


@pytest.fixture
def world(make_world: Make) -> MemoryWorld:
    """Two days with a recorded file each."""
    world = make_world(days=2, product=PRODUCT, project=SOURCE)
    for day in DAYS:
        world.client.import_files(drop(world, day), "orders", as_="ana")
    return world


def test_a_plan_pins_the_files_of_its_partitions_by_their_hash(world: MemoryWorld):
    """And no others; the same request on the same recordings is the same run."""
    plan = world.client.plan("fin.sales", partitions=DAYS[0], reason="r", as_="ana")
    (pin,) = world.ledger.runs.manifest(plan.run_id).inputs
    (listed,) = json.loads(world.ledger.parts.get(str(pin.files_part))).values()
    held = {one.content_sha256: one for one in world.client.recordings().files}
    assert [held[file["version"].removeprefix("sha256:")].start for file in listed] == ["2026-01-01T00:00:00Z"]
    assert pin.counts == {"2026-01-01": 1}
    assert world.client.plan("fin.sales", partitions=DAYS[0], reason="r", as_="ana").already


def test_a_file_that_an_open_run_needs_is_kept(world: MemoryWorld):
    """After its time it is kept for the run, by name; the other one goes, and the plan that needs it is refused."""
    run = world.client.plan("fin.sales", partitions=DAYS[0], reason="r", as_="ana").run_id
    with later(days=31):
        view = world.client.cleanup(as_="ana")
        assert [(one["ref"], one["why"]) for one in view.removed] == [
            ("orders_2026-01-02.json", "sources.orders.keep: 30d")
        ]
        assert [(one["ref"], one["why"]) for one in view.kept if "json" in one["ref"]] == [
            ("orders_2026-01-01.json", f"{run} needs it")
        ]
    with pytest.raises(PlanRefused, match=r"01-02\.json.* it was removed on .* \(sources\.orders\.keep: 30d\)"):
        world.client.plan("fin.sales", partitions=DAYS[1], reason="r", as_="ana")


def test_open_runs_on_a_redacted_recording_expire(world: MemoryWorld):
    """The run that was to read it expires and says why; one that reads another file goes on; a new plan is possible."""
    hit, other = (world.client.plan("fin.sales", partitions=day, reason="r", as_="ana").run_id for day in DAYS)
    ana = Actor("ana", "ana", "test")
    paths = {one.name: one.file_id for one in world.client.recordings().files}
    done = redact_recordings(
        world.workspace, ana, {"orders": SubjectNames(("day",))}, {DAYS[0]}.__contains__, "request 114"
    )
    assert (done.files[0].file_id, done.expired_runs) == (paths["orders_2026-01-01.json"], (hit,))
    states = {run: world.ledger.runs.get(run).state.value for run in (hit, other)}
    assert states == {hit: "expired", other: "planned"}
    again = world.client.plan("fin.sales", partitions=DAYS[0], reason="r", as_="ana", overrides={"empty": "erased"})
    assert again.run_id != hit


def test_a_day_without_a_file_is_refused_by_name(make_world: Make):
    """A recording that does not reach a day says so before anything is computed."""
    world = make_world(days=2, product=PRODUCT, project=SOURCE)
    world.client.import_files(drop(world, DAYS[0]), "orders", as_="ana")
    with pytest.raises(PlanRefused, match="source-missing"):
        world.client.plan("fin.sales", partitions=",".join(DAYS), reason="r", as_="ana")


def test_pins_live_as_long_as_the_project_says(world: MemoryWorld):
    """Tags of the run carry the configured time, not the default."""
    run = world.client.plan("fin.sales", partitions=DAYS[0], reason="r", as_="ana").run_id
    age = world.table.metadata.refs[base_tag(run)].age_ms
    assert age is not None
    assert 90 * DAY_MS <= age < 91 * DAY_MS


@pytest.mark.parametrize("is_named", [False, True])
def test_recordings_whose_subjects_no_input_names_are_listed_as_places(make_world: Make, is_named: bool):
    """Nobody can look there, so that they must not be passed over in silence when erasure is proven."""
    product = PRODUCT.replace("partition: day,", "partition: day, subjects: [account],") if is_named else PRODUCT
    erasure = 'erasure: {table: lake.privacy.erased, key: "${NONE}"}\n'
    world = make_world(days=2, product=product, project=SOURCE + erasure)
    world.client.import_files(drop(world, DAYS[0]), "orders", as_="ana")
    found = {place.label: place.state for place in world.client.erase_where(["someone"], as_="bo").places}
    assert ("recordings:orders" in found) != is_named
    assert found.get("recordings:orders", "unknown") == "unknown"


def test_the_reason_of_a_redaction_names_nobody_on_the_list(make_world: Make):
    """Reasons are kept for good; the same reason without the id is taken."""
    product = PRODUCT.replace("partition: day,", "partition: day, subjects: [account],")
    world = make_world(
        days=2, product=product, project=SOURCE + 'erasure: {table: lake.privacy.erased, key: "${NONE}"}\n'
    )
    world.client.import_files(drop(world, DAYS[0]), "orders", as_="ana")
    world.client.erase(["a"], reason="request 1", as_="bo")
    with pytest.raises(UsageError, match="the reason names one of the ids"):
        world.client.erase_redact(reason="rows of (a), as asked", as_="bo")
    assert len(world.client.erase_redact(reason="request 1", as_="bo").files) == 1


ERASURE = 'erasure: {table: lake.privacy.erased, key: "${NONE}"}\n'
TOPICS = """\
kafka: {events: {bootstrap: "127.0.0.1:1"}}
sources:
  views: {format: json, kafka: {cluster: events, topic: views}}
  changes: {format: json}
"""
READ_AS = {
    "views": "recording: views, partition: day, "
    'value: {columns: {account: string, amount: "decimal(12,2)", day: date}}',
    "changes": "recording: changes, partition: day, cdc: {as: state, key: [id], transactions: changes}, "
    'columns: {id: long, account: string, amount: "decimal(12,2)", day: date}',
}
VALUES = {
    "views": '{"account": "WHO", "amount": 1, "day": "2026-01-01"}',
    "changes": '{"op": "c", "before": null, "after": {"id": 1, "account": "WHO"}}',
}


@pytest.mark.parametrize("source", ["views", "changes"])
def test_subjects_inside_the_messages_of_a_recording_are_found(make_world: Make, source: str):
    """The list of places says whether a command ends it, and that command says the same."""
    reads = f"inputs:\n  raw: {{{READ_AS[source]}, subjects: [account]}}\n"
    product = PRODUCT.replace(PRODUCT[PRODUCT.index("inputs:") : PRODUCT.index("publish:")], reads)
    world = make_world(days=2, product=product, project=TOPICS + ERASURE)
    place = world.root / "landing/messages.json"
    place.parent.mkdir()
    lines = [{"topic": "t", "partition": 0, "offset": n, "value": VALUES[source].replace("WHO", who)}
             for n, who in enumerate(("planted-1", "bo"))]  # fmt: skip
    place.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    world.client.import_files(str(place), source, start=DAYS[0], end=DAYS[1], as_="ana")

    def find(who: str) -> list[tuple[str, str, str]]:
        found = world.client.erase_where([who], as_="bo").places
        return [(place.kind, place.state, place.ends) for place in found if place.kind == "recording"]

    assert find("nobody") == []
    ((_, state, ends),) = find("planted-1")
    assert state == "holds"
    world.client.erase(["planted-1"], reason="request 1", as_="bo")
    done = world.client.erase_redact(reason="request 1", as_="bo")
    held = [path for path in (world.root / "recordings").rglob("*") if path.is_file()]
    is_there = any(b"planted-1" in path.read_bytes() for path in held)
    if source == "views":
        assert ends == "errata erase redact takes the rows out"
        assert ([one.rows for one in done.files], done.unproven, is_there) == (["<5"], {}, False)
        assert find("planted-1") == []
    else:
        assert ends.startswith("its keep ends, or a correction supersedes it")
        assert (done.files, is_there) == ((), True)
        assert [why.partition(",")[0] for why in done.unproven.values()] == ["it has changes of erased subjects"]


def test_a_csv_file_with_another_header_is_refused_by_file_and_column(make_world: Make):
    """Before anything is computed, and never as a column of NULLs."""
    source = SOURCE.replace("format: json", "format: csv")
    world = make_world(days=2, product=PRODUCT, project=source)
    for day, header in zip(DAYS, ("day,account,amount", "day,account,price"), strict=True):
        place = world.root / f"landing/orders_{day}.csv"
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"{header}\n{day},a,1.10\n")
        world.client.import_files(str(place), "orders", as_="ana")
    with pytest.raises(PlanRefused) as refused:
        world.client.plan("fin.sales", partitions=",".join(DAYS), reason="r", as_="ana")
    told = f"{refused.value} {refused.value.fields}"
    assert f"orders_{DAYS[1]}.csv" in told
    assert "column amount is not there" in told
    assert f"orders_{DAYS[0]}.csv" not in told


def test_subjects_inside_the_messages_of_a_table_are_found(make_world: Make):
    """A table of change messages has no column of subjects; what it holds is in their values."""
    reads = (
        "inputs:\n  raw: {table: lake.raw.messages, partition: day, subjects: [account], "
        "cdc: {as: state, key: [id], transactions: lake.raw.messages}, "
        'columns: {id: long, account: string, amount: "decimal(12,2)", day: date}}\n'
    )
    product = PRODUCT.replace(PRODUCT[PRODUCT.index("inputs:") : PRODUCT.index("publish:")], reads)
    world = make_world(days=1, product=product, project=ERASURE)
    columns = {"topic": "string", "partition": "int", "offset": "long", "value": "string"}
    world.lake.create("lake.raw.messages", columns)
    value = VALUES["changes"].replace("WHO", "planted-1")
    world.lake.table("lake.raw.messages").append([{"topic": "t", "partition": 0, "offset": 0, "value": value}])
    for who, is_held in (("planted-1", True), ("nobody", False)):
        found = {place.label for place in world.client.erase_where([who], as_="bo").places}
        assert ("source:lake.raw.messages" in found) is is_held
