"""An input pinned again: what live data comes in through, on what the source holds now."""

from __future__ import annotations

from dataclasses import replace

from errata.canonical import sha256
from errata.model.kafka.declaration import RecordValue
from errata.model.manifest import SourceFile
from errata.model.partition import Grain
from errata.planning.repin import input_from_pin, needs_repin, repin_input
from errata.ports.tables import InputState, PartitionSize
from unit.gate.manifests import input_pin

DAY = "2026-01-02"
TABLE = input_pin("raw", "lake.raw.t", "day", "date", snapshot_id="10", table_uuid="u")
FILES = replace(TABLE, kind="files", location="raw/{day}/*.parquet", snapshot_id=None, table_uuid=None)


def facts(**changes: object) -> InputState:
    return replace(
        InputState("raw", "table", "lake.raw.t", "date", {DAY: PartitionSize(7, 70, 1, "f")}, snapshot_id="11",
                   table_uuid="u"),
        **changes,
    )  # fmt: skip


def test_reference_data_and_named_versions_stay_what_was_approved():
    """So does a product's own output; live data comes in through partitioned inputs."""
    assert needs_repin(TABLE)
    assert needs_repin(FILES)
    assert not needs_repin(replace(TABLE, partition=None))
    assert not needs_repin(replace(TABLE, version="v3"))
    assert not needs_repin(replace(TABLE, own=True))


def test_a_table_is_pinned_at_its_snapshot_of_now_for_the_partitions_asked():
    """Everything that the plan decided about the input is kept."""
    made, parts, problems = repin_input(TABLE, facts(), (DAY,), Grain.DAY, "date")
    assert (made.snapshot_id, made.input_partitions, made.rows) == ("11", (DAY,), 7)
    assert replace(made, snapshot_id="10", input_partitions=(), rows=0, bytes=0, file_count=0, fingerprints={}) == TABLE
    assert (parts, problems) == ({}, ())
    assert input_from_pin(TABLE).table == "lake.raw.t"


def test_files_are_pinned_by_a_list_of_their_own():
    """Named by its digest, as the plan names its own."""
    listed = {DAY: (SourceFile("file:///raw/a.parquet", 3, "mtime:1"),)}
    found = facts(kind="files", files=listed, snapshot_id=None, table_uuid=None)
    made, parts, problems = repin_input(FILES, found, (DAY,), Grain.DAY, "date")
    (content,) = parts.values()
    assert made.files_part == sha256(content)
    assert b"a.parquet" in content
    assert (made.counts, problems) == ({DAY: 7}, ())
    assert input_from_pin(FILES).files == FILES.location


def test_a_recording_of_a_topic_keeps_what_its_values_hold():
    """Without it the columns of the records are those of the copy, and windows that miss records count as whole."""
    value = RecordValue("json", {"day": "date"})
    assert input_from_pin(replace(FILES, recording="views", value=value)).value == value


def test_a_source_that_is_another_one_or_cannot_be_read_is_a_problem():
    """The rebase is given up and the conflict stays."""
    _, _, problems = repin_input(TABLE, facts(table_uuid="other", problem="no column day"), (DAY,), Grain.DAY, "date")
    assert problems == ("no column day", "input raw: lake.raw.t was dropped and created again")


def test_a_recording_is_read_again_as_a_recording():
    """Not as files of a pattern, which would find none and report all of them as missing."""
    found = input_from_pin(replace(FILES, location="recording:retry", recording="retry"))
    assert (found.recording, found.files, found.table) == ("retry", None, None)
