"""A diff is computed once per candidate: later looks read what was kept, as long as it is as it was written."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

from errata.errors import ErrataError
from errata.evidence.keys import generate_key_pair
from support.memory_world import MemoryWorld
from support.world import PRODUCT_FILE

Make = Callable[..., MemoryWorld]
MANY_ROWS = 30
SUBJECTS = PRODUCT_FILE.replace("  key: [day, account]\n", "  key: [day, account]\n  subjects: [account]\n")


def _kept(world: MemoryWorld) -> list[Path]:
    return sorted(path for path in (world.root / ".errata/diffs").rglob("*") if path.is_file())


def _forget_candidate(world: MemoryWorld) -> None:
    """Let another tool drop the candidate and the base, so that rows can no longer be compared."""
    world.drop_refs(*(ref for ref in world.refs() if ref != "main"))
    world.compact()
    world.expire()


def _validated(make_world: Make, **options: object) -> tuple[MemoryWorld, str]:
    world = make_world(days=2, **options)
    return world, world.to("validated")


def test_a_kept_diff_answers_after_its_rows_are_gone(make_world: Make) -> None:
    """The second diff, the report and the sample of another size need no row of the tables."""
    world, run = _validated(make_world)
    first = world.client.diff(run)
    _forget_candidate(world)
    assert world.client.diff(run) == first
    assert world.client.diff(run, sample=1).diff.sample == first.diff.sample[:1]
    report = world.client.report(run)
    assert report.diff is not None
    assert report.diff.diff == first.diff


def test_without_a_kept_diff_the_rows_are_needed(make_world: Make) -> None:
    """The test above would otherwise pass without anything being kept."""
    world, run = _validated(make_world)
    _forget_candidate(world)
    with pytest.raises((ErrataError, KeyError)):
        world.client.diff(run)


def test_other_partitions_are_another_diff(make_world: Make) -> None:
    """A diff of one day is not cut out of the diff of both, whose totals are other numbers."""
    world, run = _validated(make_world)
    both, one = world.client.diff(run), world.client.diff(run, partitions=world.days[0])
    assert [part.partition for part in one.diff.partitions] == [world.days[0]]
    assert one.diff.columns["gross"].changed < both.diff.columns["gross"].changed
    assert world.client.diff(run, partitions=world.days[0]) == one
    assert len(_kept(world)) == 2


def test_a_larger_sample_than_was_kept_is_read_again(make_world: Make) -> None:
    """A report's number of rows is kept; whoever asks for more gets more, and the file does not grow."""
    world, run = _validated(make_world, rows=MANY_ROWS)
    world.client.diff(run)
    (place,) = _kept(world)
    before = place.read_bytes()
    assert len(world.client.diff(run, sample=25).diff.sample) == 25
    assert place.read_bytes() == before
    assert before.count(b'"change":') == 20


def test_an_edited_diff_is_not_believed(make_world: Make) -> None:
    """The ledger has the digest of what was written; any other file is computed again, and that is said."""
    world, run = _validated(make_world)
    true = world.client.diff(run)
    (place,) = _kept(world)
    place.write_bytes(place.read_bytes().replace(b'"changed": ', b'"changed": 1'))
    assert world.client.diff(run) == true
    assert "not as it was written" in world.said[-1]
    said = len(world.said)
    assert world.client.diff(run) == true
    assert len(world.said) == said


def test_evidence_of_an_edited_diff_has_the_true_numbers(make_world: Make) -> None:
    """What is signed does not come from a file that someone edited."""
    world, run = _validated(make_world)
    generate_key_pair(world.root / "errata.key")
    world.configure("project: ", "evidence: {key: errata.key}\nproject: ")
    world.client.diff(run)
    (place,) = _kept(world)
    place.write_bytes(place.read_bytes().replace(b'"changed": ', b'"changed": 1'))
    _, content = world.client.evidence(run)
    with ZipFile(BytesIO(content)) as bundle:
        summary = json.loads(bundle.read("records/diff.json"))["summary"]
        parts = json.loads(bundle.read(f"parts/{summary}.json"))["partitions"]
    assert sum(one["changed"] for one in parts) == len(world.expected())


def test_evidence_needs_no_rows_after_a_diff(make_world: Make) -> None:
    """The summary is made from the diff that was kept."""
    world, run = _validated(make_world)
    generate_key_pair(world.root / "errata.key")
    world.configure("project: ", "evidence: {key: errata.key}\nproject: ")
    world.client.diff(run)
    _forget_candidate(world)
    view, _ = world.client.evidence(run)
    assert view.notes == ()


def test_a_kept_diff_is_private(make_world: Make) -> None:
    """It shows rows, so only its owner can read it."""
    world, run = _validated(make_world)
    world.client.diff(run)
    (place,) = _kept(world)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_a_column_classified_later_is_masked_and_its_values_are_removed(make_world: Make) -> None:
    """The kept values of the column go with the next look."""
    world, run = _validated(make_world)
    value = str(world.client.diff(run).diff.sample[0].after["gross"])
    (place,) = _kept(world)
    product = world.root / "products/sales.yaml"
    product.write_text(product.read_text() + "classified: [gross]\n")
    world.client.close()
    world.open()
    assert world.client.diff(run).diff.sample[0].after["gross"] == "•••"
    assert not place.exists()
    assert not any(f'"{value}"'.encode() in one.read_bytes() for one in _kept(world))


def test_nothing_is_kept_where_subjects_can_be_erased(make_world: Make) -> None:
    """A product that names its data subjects has no kept diff; one made before goes with the next look."""
    world, run = _validated(make_world)
    world.client.diff(run)
    assert _kept(world)
    (world.root / "products/sales.yaml").write_text(SUBJECTS)
    world.configure("project: ", "erasure: {table: lake.privacy.erased, key: erasure.key}\nproject: ")
    assert world.client.diff(run).diff.sample
    assert not _kept(world)


def test_cleanup_removes_the_diffs_of_finished_runs_only(make_world: Make) -> None:
    """They go with the candidate's branch, which no longer exists after it."""
    world, run = _validated(make_world)
    world.client.diff(run)
    world.client.cleanup(as_="ana")
    assert _kept(world)
    world.client.publish(run, as_="bo")
    removed = world.client.cleanup(dry_run=True, as_="ana").removed
    assert {"table": "lake.fin.sales", "ref": "the kept diffs", "run_id": run} in removed
    assert _kept(world)
    world.client.cleanup(as_="ana")
    assert not _kept(world)
