"""Rules of the Iceberg adapter about candidates, publications and tables beside a target, on metadata alone."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from py4j.java_collections import JavaList, JavaSet
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from errata.engines.iceberg.commits.java import JavaIceberg
from errata.engines.iceberg.commits.refs import open_branch
from errata.engines.iceberg.commits.side_tables import IcebergSideTables
from errata.engines.iceberg.commits.staging import IcebergStaging
from errata.errors import EngineError, RunExpired
from errata.model.manifest import NewColumn
from errata.model.refs import DAY_MS, GUARD, pre_tag, pub_tag, run_branch, undo_branch
from errata.ports.publish import Outcome
from support.bare import ACCOUNT, BareTable, publishing

ONE, TWO, THREE = "2026-01-01", "2026-01-02", "2026-01-03"
PUB = "bf-1-p1-0000"


# ----------------------------------------------------------------------------------------------------------- candidates


def staged(table: BareTable) -> tuple[IcebergStaging, list[str]]:
    """A run branch with a file for the first day, and the paths to be adopted."""
    open_branch(table.java, table.name, run_branch("bf-1"), 45)
    file = table.file(ONE, bounds={ACCOUNT: ("a", "b")})
    table.written(run_branch("bf-1"), "bf-1/c0001/1/then", file)
    return IcebergStaging(table.java), [str(file.location())]


def test_a_candidate_is_main_with_the_days_exchanged(table: BareTable) -> None:
    """On a branch that lives for its days, with the statistics of what was staged; made again it is the same one."""
    staging, paths = staged(table)
    old = table.paths()
    made = staging.make_candidate(table.target, "bf-1", "errata_bf-1_c1", (ONE,), paths, 7)
    kept = {file.path for file in table.java.live(table.load(), made.snapshot_id, table.target, (TWO, THREE))}
    assert table.paths("errata_bf-1_c1") == kept | set(paths)
    assert (len(kept), table.paths()) == (2, old)
    assert table.ref("errata_bf-1_c1").maxRefAgeMs() == 7 * DAY_MS
    assert bounds_of(table, made.snapshot_id, paths[0])
    assert staging.make_candidate(table.target, "bf-1", "errata_bf-1_c1", (ONE,), paths, 7) == made


def bounds_of(table: BareTable, snapshot_id: str, path: str) -> Any:
    """The lower bounds that a snapshot knows of a file."""
    (found,) = [file.lowerBounds() for file in table.listed(snapshot_id) if str(file.location()) == path]
    return found


def test_a_candidate_of_what_is_not_staged_is_refused(table: BareTable) -> None:
    """Nothing is committed."""
    staging, paths = staged(table)
    before = table.refs()
    with pytest.raises(EngineError, match="1 of 2 staged files"):
        staging.make_candidate(table.target, "bf-1", "errata_bf-1_c1", (ONE,), [*paths, "file:/no"], 7)
    assert table.refs() == before


def test_a_branch_that_has_a_candidate_s_name_is_not_yet_a_candidate(table: BareTable) -> None:
    """Somebody made it from main."""
    table.load().manageSnapshots().createBranch("errata_bf-1_c1").commit()
    assert IcebergStaging(table.java).find_candidate(table.target, "errata_bf-1_c1") is None


def test_an_attempt_that_left_two_different_appends_is_void(table: BareTable) -> None:
    """Neither is used."""
    staging, _ = staged(table)
    assert staging.find_attempt(table.target, "bf-1/c0001/1/then") is not None
    table.append(table.file(ONE), branch=run_branch("bf-1"), errata_attempt="bf-1/c0001/1/then")
    with pytest.raises(EngineError, match="different files"):
        staging.find_attempt(table.target, "bf-1/c0001/1/then")


# --------------------------------------------------------------------------------------------------------- publications


def candidate(table: BareTable) -> tuple[str, str]:
    """A candidate for the first day and an undo branch for what it takes out: the candidate's snapshot, its file."""
    staging, paths = staged(table)
    made = staging.make_candidate(table.target, "bf-1", "errata_bf-1_c1", (ONE,), paths, 7)
    head = table.refs()["main"]
    old = [file.path for file in table.java.live(table.load(), head, table.target, (ONE,))]
    publishing(table).write_undo(table.target, PUB, head, (ONE,), old, 30)
    return made.snapshot_id, paths[0]


def order(table: BareTable, **options: Any) -> Any:
    """The publication of that candidate."""
    made, path = candidate(table)
    old = [file.path for file in table.java.live(table.load(), table.refs()["main"], table.target, (ONE,))]
    known = {"partitions": (ONE,), "remove": tuple(old), "add": (path,)}
    return table.commit(PUB, made, **{**known, **options})


def test_a_publication_changes_every_ref_that_it_relies_on(table: BareTable) -> None:
    """A catalog asserts only refs that a commit changes; a promise is only ever prolonged."""
    refs = ("errata_bf-1_c1", undo_branch(PUB), GUARD)
    publication = order(table, keep_refs=dict.fromkeys(refs, 1))
    before = {ref: table.ref(ref).maxRefAgeMs() for ref in refs}
    publishing(table).version(table.target).commit(publication)
    assert {ref: table.ref(ref).maxRefAgeMs() for ref in refs} == {ref: age + 1 for ref, age in before.items()}


def test_a_publication_whose_refs_are_gone_is_refused(table: BareTable) -> None:
    """By the version that it was examined on."""
    publication = order(table, keep_refs={"errata_bf-1_c1": 7})
    table.load().manageSnapshots().removeBranch("errata_bf-1_c1").commit()
    before = table.refs()
    with pytest.raises(RunExpired, match="errata_bf-1_c1"):
        publishing(table).version(table.target).commit(publication)
    assert table.refs() == before


def test_a_publication_is_kept_by_two_tags_and_with_statistics(table: BareTable) -> None:
    """Main before, for its days from now on and not from the age of that snapshot; main after; bounds of each file."""
    publication, head = order(table), table.refs()["main"]
    made = publishing(table).version(table.target).commit(publication)
    refs = table.refs()
    assert (refs["main"], refs[pub_tag(PUB)], refs[pre_tag(PUB)]) == (made, made, head)
    age = table.load().snapshot(int(made)).timestampMillis() - table.load().snapshot(int(head)).timestampMillis()
    assert 3 * DAY_MS < table.ref(pre_tag(PUB)).maxRefAgeMs() < 3 * DAY_MS + age + 60_000
    assert bounds_of(table, made, publication.add[0])


def count_held_lists(gateway: Any, table: BareTable, least: int) -> int:
    """Lists of at least this many files of the table that the JVM keeps because Python may still ask for them."""
    held = gateway.java_gateway_server.getGateway().getBindings()
    found = [held[key] for key in list(held)]
    lists = [one for one in found if isinstance(one, JavaList | JavaSet) and len(one) >= least]
    # py4j lets go of things in a thread of its own, so lists of other tests may still be there
    return sum(1 for one in lists if table.name.rpartition(".")[2] in str(next(iter(one))))


def test_a_publication_leaves_no_list_of_files_in_the_jvm(table: BareTable, gateway: Any) -> None:
    """Python frees what py4j handed it only by a full collection, so lists of many files would fill the heap."""
    table.append(*[table.file(ONE, bounds={ACCOUNT: ("a", "b")}) for _ in range(30)])
    publication = order(table)
    version = publishing(table).version(table.target)
    gc.disable()
    try:
        for _ in range(3):
            assert len(version.live((ONE,))) > 30
        version.commit(publication)
        assert count_held_lists(gateway, table, 30) == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("what", ["remove", "add"])
def test_a_publication_that_does_not_balance_is_refused(table: BareTable, what: str) -> None:
    """A path that is not live, or not in the candidate, is not left out in silence."""
    publication = order(table)
    publication = replace(publication, **{what: (*getattr(publication, what), "file:/no")})
    before = table.refs()
    with pytest.raises(EngineError, match=f"1 of 2 files to {what}"):
        publishing(table).version(table.target).commit(publication)
    assert table.refs() == before


def test_a_column_is_added_under_the_id_that_staged_files_carry_or_not_at_all(table: BareTable) -> None:
    """Another id would read the files wrongly."""
    right, wrong = NewColumn("note", "string", 4), NewColumn("note", "string", 9)
    publication = order(table)
    with pytest.raises(EngineError, match="note"):
        publishing(table).version(table.target).commit(replace(publication, add_columns=(wrong,)))
    publishing(table).version(table.target).commit(replace(publication, add_columns=(right,)))
    assert table.load().schema().findField("note").fieldId() == 4


def test_an_undo_branch_holds_the_last_set_alone_for_its_days(table: BareTable) -> None:
    """A second try takes out other files; what the first one kept would come back with a rollback."""
    head, port = table.refs()["main"], publishing(table)
    files = {day: table.java.live(table.load(), head, table.target, (day,))[0].path for day in (ONE, TWO)}
    for path in files.values():
        port.write_undo(table.target, PUB, head, (ONE, TWO), [path], 30)
    assert table.paths(undo_branch(PUB)) == {files[TWO]}
    assert table.ref(undo_branch(PUB)).maxRefAgeMs() == 30 * DAY_MS
    before = table.refs()
    with pytest.raises(EngineError, match="not every file"):
        port.write_undo(table.target, PUB, head, (ONE, TWO), [*files.values(), "file:/no"], 30)
    assert table.refs() == before


def test_behind_its_fence_a_publication_cannot_land(table: BareTable) -> None:
    """Also one that was examined before; it is told apart from one that landed, and from one that never was."""
    port, publication = publishing(table), order(table)
    early = port.version(table.target)
    assert port.find_outcome(table.target, PUB).outcome is Outcome.ABSENT
    port.fence(table.target, PUB)
    head = table.refs()["main"]
    for version in (early, port.version(table.target)):
        # where a Spark session was started, PySpark gives some of Java's errors a type of its own
        with pytest.raises((Py4JJavaError, PySparkException)):
            version.commit(publication)
    assert table.refs()["main"] == head
    assert port.find_outcome(table.target, PUB).outcome is Outcome.FENCED


def test_a_publication_is_found_by_its_tag_and_without_it(table: BareTable) -> None:
    """A tag may have been dropped; the snapshot says whose it is."""
    port, publication = publishing(table), order(table)
    made = port.version(table.target).commit(publication)
    assert port.find_outcome(table.target, PUB).snapshot_id == made
    table.load().manageSnapshots().removeTag(pub_tag(PUB)).commit()
    assert port.find_outcome(table.target, PUB).snapshot_id == made


def test_what_cannot_be_opened_is_not_called_published(table: BareTable) -> None:
    """While main is that snapshot it is an alarm; once main was set to another one the publication is over."""
    port, publication = publishing(table), order(table)
    made = port.version(table.target).commit(publication)
    Path(urlparse(str(table.load().snapshot(int(made)).manifestListLocation())).path).unlink()
    with pytest.raises(EngineError, match="cannot be read"):
        port.find_outcome(table.target, PUB)
    before = int(table.refs()[pre_tag(PUB)])
    table.load().manageSnapshots().setCurrentSnapshot(before).commit()
    assert port.find_outcome(table.target, PUB).outcome is Outcome.FENCED


# ----------------------------------------------------------------------------------------------- tables beside a target


def test_rows_beside_a_target_are_shown_once(table: BareTable) -> None:
    """Who lands them again gets the first one's snapshot; the branch is gone, main has the rows and what it had."""
    beside, old = IcebergSideTables(table.java), table.paths()
    branches = [beside.open_branch(table.name, PUB) for _ in range(2)]
    files = [table.file(ONE) for _ in branches]
    for branch, file in zip(branches, files, strict=True):
        table.append(file, branch=branch, errata_rows=branch)
    made = [beside.land(table.name, PUB, branch, {"errata.publication": PUB}) for branch in branches]
    assert made[0] == made[1]
    assert table.paths() == old | {str(files[0].location())}
    assert branches[0] not in table.refs()


def test_rows_beside_a_target_are_not_shown_behind_a_fence(table: BareTable) -> None:
    """A process that was believed dead finds the tag taken."""
    beside, old = IcebergSideTables(table.java), table.paths()
    branch = beside.open_branch(table.name, PUB)
    publishing(table).fence(table.target, PUB)
    with pytest.raises(EngineError, match="fence"):
        beside.land(table.name, PUB, branch, {"errata.publication": PUB})
    assert table.paths() == old


def test_a_branch_that_came_back_from_main_is_not_taken_for_rows_that_wait(table: BareTable) -> None:
    """Its files are shown already."""
    beside = IcebergSideTables(table.java)
    branch = beside.open_branch(table.name, PUB)
    table.load().manageSnapshots().removeBranch(branch).commit()
    table.load().manageSnapshots().createBranch(branch).commit()
    with pytest.raises(EngineError, match="dropped"):
        beside.land(table.name, PUB, branch, {"errata.publication": PUB})


def test_of_a_shadow_s_files_those_that_the_target_reads_stay(java: JavaIceberg, tmp_path: Path) -> None:
    """Only what nobody reads is deleted."""
    places = [tmp_path / "read.parquet", tmp_path / "unread.parquet"]
    sets = [java.jvm.java.util.HashSet() for _ in range(2)]
    for place in places:
        place.touch()
        sets[0].add(f"file:{place}")
    sets[1].add(f"file:{places[0]}")
    conf = java.jvm.org.apache.hadoop.conf.Configuration()
    io = java.jvm.org.apache.iceberg.hadoop.HadoopFileIO(conf)
    assert java.bulk.deleteUnused(io, *sets) == 1
    assert [place.exists() for place in places] == [True, False]
