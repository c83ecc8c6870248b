"""What is handed to an auditor, and shown to a reviewer, of a run with waves."""

from __future__ import annotations

from collections.abc import Callable

from errata.commands.upkeep.evidence import export_evidence
from errata.evidence.keys import generate_key_pair
from errata.evidence.verifier import verify
from errata.model.audit import Actor
from errata.report.page import render_page
from support.memory_world import MemoryWorld as World
from support.waves import in_waves

Make = Callable[..., World]


def test_the_evidence_of_a_run_with_waves_verifies(make_world: Make) -> None:
    """Three candidates, verdicts, releases and publications, two of them by rule, and a rollback of one wave."""
    world = make_world(days=3, product=in_waves("size: 1, release: first, within: {rows: 10%}"))
    generate_key_pair(world.root / "errata.key")
    world.configure("limits:", "evidence: {key: errata.key}\nlimits:")
    run = world.to("validated")
    world.client.release(run, digest=world.client.status(run).release_digest, as_="bo")
    for _ in world.days:
        world.client.publish(run, by_itself=True, as_="cy")
    world.client.rollback(run, wave=3, reason="the oldest is wrong", as_="bo")
    _, bundle = export_evidence(world.workspace, Actor("bo", "u", "h"), run)
    found = verify(bundle, [(world.root / "errata.key.pub").read_bytes()])
    assert found.problems == []


def test_the_page_of_a_wave_shows_what_would_be_released(make_world: Make) -> None:
    """Its own partitions, its own verdict, and where the other waves are."""
    world = make_world(days=2, product=in_waves("size: 1"))
    run = world.to("validated")
    world.client.publish(run, as_="bo")
    report = world.client.report(run)
    assert [wave.state for wave in report.waves] == ["published", "validated"]
    page = render_page(report)
    assert "Waves of the run" in page
    assert world.days[0] in page
    first = world.client.report(run, wave=1)
    assert first.diff is not None
    assert {part.partition for part in first.diff.diff.partitions} == {world.days[1]}
