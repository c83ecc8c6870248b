"""What cleanup takes away, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from errata.canonical import canonical_bytes, sha256, to_plain
from errata.model.manifest import Chunk, InputPin
from errata.model.run import RunState
from errata.publishing.leftovers import find_side_branches
from support.office import ANA, DAYS, office

PAID, OWED = "errata_bf-1-p1_rows1_0a1b2c3d", "errata_bf-1-r2_rows1_4e5f6a7b"
RAW = InputPin("raw", "table", "lake.raw.sales", None, None, 0, 0, (), {}, 0, 0, 0, snapshot_id="12")


def test_rows_of_a_debt_that_someone_may_be_paying_are_left_alone():
    """Whoever pays writes to such a branch at this moment; an append to a dropped one brings it back from main."""
    ledger = SimpleNamespace(
        outbox=SimpleNamespace(list_open=lambda **_: (SimpleNamespace(pub_id="bf-1-r2"),)),
        publications=SimpleNamespace(
            list=lambda _run: (SimpleNamespace(pub_id="bf-1-p1"), SimpleNamespace(pub_id="bf-1-r2"))
        ),
    )
    pins = SimpleNamespace(refs=lambda _table: {"main": "1", PAID: "2", OWED: "3", "errata_bf-2-p1_rows1_00": "4"})
    workspace = SimpleNamespace(ledger=ledger, engines=SimpleNamespace(pins=pins))
    publish = SimpleNamespace(corrections="lake.c", versions=None)
    run, manifest = SimpleNamespace(run_id="bf-1", table="lake.t"), SimpleNamespace(publish=publish)
    assert find_side_branches(workspace, run, manifest) == [("lake.c", PAID)]  # type: ignore[arg-type]


def test_cleanup_drops_the_tags_of_a_rebase_with_the_rest_of_a_finished_run(tmp_path: Path):
    """A run that computed partitions again leaves tags of its own, on the target and on its inputs."""
    workspace = office(tmp_path)
    run_id, table = workspace.run.run_id, workspace.run.table
    workspace.judged()
    expected, pins = b"{}", canonical_bytes([to_plain(RAW)])
    rebase = {
        "partitions": [DAYS[1]], "written": [DAYS[1]], "snapshots": ["9"], "base_snapshot_id": "9",
        "expected_part": sha256(expected), "pins_part": sha256(pins),
    }  # fmt: skip
    parts = {sha256(part): part for part in (expected, pins)}
    workspace.ledger.rebases.record(run_id, 1, rebase, [Chunk("", (DAYS[1],), 1, 1)], parts, ANA)
    workspace.ledger.runs.move(run_id, RunState.CANCELLED, actor=ANA)
    tags = {table: f"errata_{run_id}_r1_base", "lake.raw.sales": f"errata_{run_id}_r1_in"}
    dropped: dict[str, list[str]] = {}
    engines: Any = workspace.workspace.engines
    engines.pins = SimpleNamespace(refs=lambda of: {tags[of]: "9"} if of in tags else None)
    engines.staging = SimpleNamespace(drop_refs=lambda of, refs: dropped.update({of: list(refs)}))
    workspace.client.cleanup(as_="ana")
    assert dropped == {of: [tag] for of, tag in tags.items()}
