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
