"""A subject is erased: runs leave them out, a real copy in PostgreSQL follows, and the proof needs every place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import StateRefused, UsageError
from support.copy_world import CopyWorld
from support.world import TABLE

Make = Callable[..., CopyWorld]
WHO = "a0"


def with_subjects(product: str) -> str:
    """The product file with subjects in table and input."""
    named = product.replace("key: [day, account]\n", "key: [day, account]\n  subjects: [account]\n")
    return named.replace("    partition: day\n", "    partition: day\n    subjects: [account]\n")


@pytest.fixture
def world(make_world: Make) -> CopyWorld:
    """A lake and its copy, both with rows of the subject."""
    made = make_world(
        days=2, history=False, edit=with_subjects, project='erasure: {table: lake.privacy.erased, key: "${NONE}"}\n'
    )
    made.lake.to("published")
    return made


def kinds(world: CopyWorld) -> set[str]:
    return {place.kind for place in world.lake.client.erase_where([WHO], as_="bo").places}


def test_a_subject_is_in_no_table_and_no_copy_after_the_next_run(world: CopyWorld) -> None:
    """The copy is read for real; what a rollback could still bring back stays listed until cleanup ends it."""
    lake = world.lake
    assert {"live table", "copy", "files"} <= kinds(world)
    assert any(row[1] == WHO for row in world.rows())
    lake.client.erase([WHO], reason="request 1", as_="bo")
    lake.to("published", reason="without them")
    assert not any(row[1] == WHO for row in (*world.rows(), *lake.rows()))
    left = kinds(world)
    assert not left & {"live table", "copy"}
    assert "undo set" in left
    lake.engines.pins.drop(TABLE, [name for name in lake.table.metadata.refs if name != "main"])
    assert kinds(world) == {"files"}


def test_a_proof_names_what_is_left_and_is_recorded_without_an_id(world: CopyWorld) -> None:
    """Refused with the list first; a place that nobody can look at stays only with a reason."""
    lake = world.lake
    with pytest.raises(StateRefused, match="the list has 0 of 1 subject"):
        lake.client.erase_prove([WHO], reason="request 1", as_="bo")
    lake.client.erase([WHO], reason="request 1", as_="bo")
    with pytest.raises(StateRefused, match="can still show the subjects") as refused:
        lake.client.erase_prove([WHO], reason="request 1", as_="bo")
    told = {place["kind"] for place in refused.value.fields["places"]}
    assert {"live table", "copy"} <= told
    lake.to("published", reason="without them")
    lake.engines.pins.drop(TABLE, [name for name in lake.table.metadata.refs if name != "main"])
    (files,) = lake.client.erase_where([WHO], as_="bo").places
    with pytest.raises(UsageError, match="expected KIND:PLACE"):
        lake.client.erase_prove([WHO], reason="request 1", leave={"copy:x": "why"}, as_="bo")
    done = lake.client.erase_prove([WHO], reason="request 1", leave={files.label: "the law keeps it"}, as_="bo")
    entry = lake.client.audit_log()[-1]
    assert (entry.action, entry.seq, entry.body["subjects"]) == ("erasure.proven", done.audit_seq, 1)
    assert entry.body["left"] == {files.label: "the law keeps it"}
    assert WHO not in str(entry.body)
