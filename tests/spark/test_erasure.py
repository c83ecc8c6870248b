"""A real list of erased subjects, keyed hashes in Iceberg: who is on it is neither published nor brought back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import errata
from errata.errors import KeyRefused, StateRefused
from errata.evidence.keys import generate_key_pair
from errata.failpoints import arm
from support.world import PRODUCT_FILE, World

Make = Callable[..., World]
LIST = "lake.privacy.erased"
NAMES_SUBJECTS = PRODUCT_FILE.replace("key: [day, account]\n", "key: [day, account]\n  subjects: [account]\n")


def governed(make: Make, key: Path, **options: object) -> World:
    """A world whose product names subjects, with an empty list."""
    generate_key_pair(key)
    assert NAMES_SUBJECTS != PRODUCT_FILE
    world = make(product=NAMES_SUBJECTS, project=f'erasure: {{table: {LIST}, key: "{key}"}}\n', **options)
    world.client.erase([], reason="the list", as_="bo")
    return world


def ids(world: World) -> list[str]:
    return sorted({str(row[1]) for row in world.rows()})


def test_someone_who_was_erased_is_neither_published_nor_brought_back(make_world: Make, tmp_path: Path) -> None:
    """Judged before, a candidate is judged again and refused; a rollback brings back the rows of the others."""
    world = governed(make_world, tmp_path / "key", days=2)
    run = world.to("published")
    later = world.to("validated", reason="once more")
    head = world.snapshot()
    erased = ids(world)[0]
    listed = world.client.erase([erased], reason="request 114", as_="bo")
    assert (listed.added, listed.already, listed.judge_again) == (1, 0, (later,))
    with pytest.raises(StateRefused, match="assemble and validate again"):
        world.client.publish(later, as_="bo")
    with pytest.raises(StateRefused, match=f"suppressed subjects in {world.days[0]}"):
        world.client.validate(later, as_="ana")
    assert world.snapshot() == head
    back = world.client.rollback(run, reason="undo", as_="bo")
    assert any("rows of erased subjects were left out" in text for text in back.warnings)
    assert world.rows() == [row for row in world.wrong() if row[1] != erased]


@pytest.mark.slow
def test_someone_without_rows_in_the_scope_holds_up_nothing_but_one_look(make_world: Make, tmp_path: Path) -> None:
    """The list grows between the intent and the commit; judged again, the run is published, and its rows go back."""
    world = governed(make_world, tmp_path / "key", days=1)
    run = world.to("validated")

    def grow() -> None:
        world.client.erase(["nobody here"], reason="request 115", as_="bo")

    with arm("publish.after_intent", grow), pytest.raises(StateRefused, match="assemble and validate again"):
        world.client.publish(run, as_="bo")
    world.client.validate(run, as_="ana")
    view = world.client.publish(run, as_="bo")
    assert world.ledger.publications.get(view.publication_id).release["watermark"]
    world.client.rollback(run, reason="undo", as_="bo")
    assert world.rows() == world.wrong()


def test_the_list_tells_nobody_who_is_on_it(make_world: Make, tmp_path: Path) -> None:
    """Neither ids nor hashes that could be tried without the key are in lake or ledger; another key is refused."""
    world = governed(make_world, tmp_path / "key", days=1)
    subject = "person-0815"
    assert world.client.erase([subject, subject], reason="request 116", as_="bo").added == 1
    assert world.client.erase([subject], reason="again", as_="bo").already == 1
    world.client.close()
    tried = [subject, *(getattr(hashlib, kind)(subject.encode()).hexdigest() for kind in ("md5", "sha1", "sha256"))]
    files = [path for path in world.root.rglob("*") if path.is_file()]
    assert files
    for path in files:
        content = path.read_bytes()
        assert not [text for text in tried if text.encode() in content], path
    generate_key_pair(tmp_path / "other")
    project = world.root / "errata.yaml"
    project.write_text(project.read_text().replace(str(tmp_path / "key"), str(tmp_path / "other")))
    with errata.open(str(world.root)) as client, pytest.raises(KeyRefused, match="was made with another key"):
        client.erase([subject], reason="with the wrong key", as_="bo")


@pytest.mark.slow
def test_an_earlier_version_with_someone_who_was_erased_is_not_shown_again(make_world: Make, tmp_path: Path) -> None:
    """Of versions side by side a rollback moves no file, and the view would show the row again."""
    versions = "{mode: version, versions: lake.fin.sales_versions, view: lake.fin.sales_accepted,"
    generate_key_pair(tmp_path / "key")
    world = make_world(
        days=1,
        product=NAMES_SUBJECTS.replace("{mode: replace_partitions,", versions),
        project=f'erasure: {{table: {LIST}, key: "{tmp_path / "key"}"}}\n',
    )
    world.client.erase([], reason="the list", as_="bo")
    world.to("published")
    erased = ids(world)[0]
    place = next((world.root / f"raw/day={world.days[0]}").glob("*.parquet"))
    rows = pq.read_table(place, partitioning=None)
    pq.write_table(rows.filter(pc.not_equal(rows["account"], erased)), place)
    run = world.to("published", reason="without them")
    world.client.erase([erased], reason="request 117", as_="bo")
    with pytest.raises(StateRefused, match=r"which lake\.fin\.sales_versions still holds"):
        world.client.rollback(run, reason="undo", as_="bo")
    assert erased not in {row.account for row in world.sql("SELECT account FROM lake.fin.sales_accepted")}
