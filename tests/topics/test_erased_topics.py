"""Erased subjects in a topic: their records are left out, and what cannot be read or has to be masked is not kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from errata.evidence.keys import generate_key_pair
from support.world import World
from topics.records import START, record

pytestmark = pytest.mark.spark

Make = Callable[..., tuple[World, str]]
WHO = "planted-subject-7f3a"


@pytest.mark.slow
@pytest.mark.parametrize("mask", ["", "    policy: {mask: {account: redact, kafka_key: blank}}\n"])
def test_records_of_an_erased_subject_are_suppressed_and_no_raw_value_is_kept(
    topic_world: Make, tmp_path: Path, mask: str
) -> None:
    """Rows in = used + quarantined + suppressed; a value that is no JSON could be anyone's and is not kept."""
    key = tmp_path / "key"
    generate_key_pair(key)
    broken = {"value": f"{WHO} is no JSON", "partition": 0, "timestamp": int(START.timestamp() * 1000), "key": WHO}
    wrong = record(2, "a1", "no number")
    world, _ = topic_world(
        [record(1, "a1", "1.25"), record(1, WHO, "2.25"), broken, wrong],
        quarantine=f"    subjects: [account]\n{mask}    quarantine: {{warn: 99%}}\n",
        project=f'erasure: {{table: lake.privacy.erased, key: "{key}"}}\n',
    )
    world.client.erase([WHO], reason="request 1", as_="bo")
    run = world.to("staged", world.days[0])
    counted = world.ledger.progress.attempts(run)[0].cost
    found = {name: counted[f"rows_{name}:raw"] for name in ("in", "used", "quarantined", "suppressed")}
    assert found == {"in": 4, "used": 1, "quarantined": 2, "suppressed": 1}
    kept = [dict(row.row) for row in world.client.quarantine(run, sample=9).rows]
    assert [row.get("value") for row in kept if row["kafka_offset"] == 2] == [None]
    shown = str(kept)
    assert (WHO not in shown) if mask else all("no JSON" not in str(row.get("value")) for row in kept)
    assert ("'a1'" in shown or '"a1"' in shown) is not bool(mask)


RECORDED = """\
inputs:
  raw:
    recording: views
    value: {columns: {account: string, amount: "decimal(12,2)", at: timestamptz}}
    partition: at
    subjects: [account]
    quarantine: {warn: 99%}
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "json"])
def test_records_of_an_erased_subject_are_taken_out_of_a_recorded_topic(
    topic_world: Make, tmp_path: Path, form: str
) -> None:
    """A run reads the redacted recording in place of the first one: the rows of all others, and none to suppress."""
    key = tmp_path / "key"
    generate_key_pair(key)
    broken = {"value": f"{WHO} is no JSON", "partition": 0, "timestamp": int(START.timestamp() * 1000), "key": WHO}
    world, topic = topic_world(
        [record(1, "a1", "1.25"), record(1, WHO, "2.25"), broken, record(2, "a2", "3.25", partition=1)],
        project=f'erasure: {{table: lake.privacy.erased, key: "{key}"}}\n',
    )
    settings, product = world.root / "errata.yaml", world.root / "products/sales.yaml"
    source = f"sources:\n  views: {{format: {form}, kafka: {{cluster: events, topic: {topic}}}}}\n"
    settings.write_text(settings.read_text() + source)
    text = product.read_text()
    product.write_text(text.replace(text[text.index("inputs:") : text.index("publish:")], RECORDED))
    world.client.close()
    world.open()
    window = {"start": "2026-01-01", "end": "2026-01-02", "as_": "ana"}
    (first,) = world.client.record("views", **window).files
    world.client.erase([WHO], reason="request 1", as_="bo")
    assert "recording" in {place.kind for place in world.client.erase_where([WHO], as_="bo").places}
    done = world.client.erase_redact(reason="request 1", as_="bo")
    assert [(one.file_id, one.rows, bool(one.redacted_as)) for one in done.files] == [(first.file_id, "<5", True)]
    assert "recording" not in {place.kind for place in world.client.erase_where([WHO], as_="bo").places}
    kept = [path for path in (world.root / "recordings").rglob("*") if path.is_file()]
    assert kept
    assert not any(WHO.encode() in path.read_bytes() for path in kept)
    (again,) = world.client.record("views", **window).files
    assert again.already
    run = world.to("published", world.days[0])
    cost = world.ledger.progress.attempts(run)[0].cost
    found = {name: cost[f"rows_{name}:raw"] for name in ("in", "used", "quarantined", "suppressed")}
    assert found == {"in": 2, "used": 2, "quarantined": 0, "suppressed": 0}
    assert [(row[1], str(row[2])) for row in world.rows() if row[0] == world.days[0]] == [
        ("a1", "1.25"),
        ("a2", "3.25"),
    ]
