"""Data that came into an input after it was pinned: told, recorded once, and never a refusal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from errata.canonical import canonical_bytes, sha256
from errata.errors import EngineError
from errata.model.manifest import InputPin, SourceFile
from errata.model.partition import Grain
from errata.model.product import Input
from errata.model.table import Commit, History, Touch
from errata.ports.tables import InputState, PartitionSize
from errata.publishing.late_inputs import notice_late_inputs, read_late_inputs
from errata.views import LateInputView
from errata.workspace import RunContext
from support.office import ANA, DAYS, Office, office

EVE = "2025-12-31"
FILE = SourceFile("/raw/day=2026-01-01/a.parquet", 10, "mtime:1")
PIN = InputPin("raw", "table", "lake.raw.events", "day", "date", 0, 0, DAYS, {}, 1, 1, 1, snapshot_id="40")


@dataclass
class Source:
    """A table and a directory, as they are now."""

    head: str = "40"
    commits_made: tuple[Commit, ...] = ()
    complete: bool = True
    prints: dict[str, str] = field(default_factory=dict)
    files: dict[str, tuple[SourceFile, ...]] = field(default_factory=dict)
    asked: list[Sequence[str]] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    broken: str = ""

    def refs(self, _table: str) -> dict[str, str]:
        if self.broken:
            raise EngineError(self.broken)
        return {"main": self.head}

    def commits(self, _t: str, _c: str, _g: Grain, partitions: Sequence[str], *, since: str | None) -> History:
        assert since == "40"
        self.asked.append(tuple(partitions))
        return History(self.commits_made, self.complete)

    def read_input(self, source: Input, _grain: Grain, partitions: Sequence[str]) -> InputState:
        assert not source.needs_schema
        self.asked.append(tuple(partitions))
        self.inputs.append(source)
        sizes = {name: PartitionSize(1, 1, 1, found) for name, found in self.prints.items()}
        return InputState(source.name, "files" if source.files else "table", "x", None, sizes, files=self.files)


@dataclass
class Place:
    house: Office
    source: Source

    def notice(self, pin: InputPin, scope: Sequence[str] = DAYS, seen_by: str = "publish") -> list[str]:
        sealed = replace(self.house.manifest, inputs=(pin,))
        found = notice_late_inputs(RunContext(self.house.workspace, ANA, self.house.run, sealed), scope, seen_by)
        return [one.text("day") for one in found]

    def files_pin(self, **pinned: tuple[SourceFile, ...]) -> InputPin:
        content = canonical_bytes({name.replace("_", "-")[1:]: listed for name, listed in pinned.items()})
        parts = {sha256(content): content}
        self.house.ledger.parts.get = parts.__getitem__  # type: ignore[method-assign,assignment]
        return replace(PIN, kind="files", location="raw/day={day}/*", snapshot_id=None, files_part=sha256(content))

    @property
    def recorded(self) -> list[LateInputView]:
        return list(read_late_inputs(self.house.workspace, self.house.run))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    house, source = office(tmp_path), Source()
    house.workspace.engines.pins = house.workspace.engines.history = house.workspace.engines.inputs = source  # type: ignore[misc,assignment]
    yield Place(house, source)
    house.ledger.close()


def test_a_table_that_did_not_move_is_not_walked(place: Place):
    """One look at its head is all that a publication without late data costs."""
    assert place.notice(PIN) == []
    assert place.source.asked == []


def test_a_commit_into_a_partition_that_the_run_reads_is_named_and_recorded_once(place: Place):
    """Input, partition, who committed which snapshot; publish tells again what validate has recorded."""
    place.source.head = "42"
    place.source.commits_made = (
        Commit("42", "replace", 1_770_000_000_000, "compactor", {DAYS[0]: Touch(5, 5)}),
        Commit("41", "append", 1_770_000_000_000, "ingest", {DAYS[0]: Touch(added_rows=5)}),
    )
    came = "ingest (append, snapshot 41, 2026-02-02 02:40 UTC)"
    told = f"input raw changed for {DAYS[0]} after it was pinned: {came}; the run does not have it"
    assert place.notice(PIN, seen_by="validate") == [told]
    assert place.notice(PIN) == [told]
    assert [(one.input, one.change, one.partitions, one.seen_by) for one in place.recorded] == [
        ("raw", "41", DAYS[:1], "validate")
    ]


def test_only_what_the_published_partitions_read_is_looked_at_with_their_look_back(place: Place):
    """A scope of one day reads its own day and those before it, as the plan widened it."""
    place.source.head = "41"
    place.notice(replace(PIN, lookback=1), scope=DAYS[:1])
    assert place.source.asked == [(EVE, DAYS[0])]


def test_where_the_commits_have_expired_the_fingerprints_tell(place: Place):
    """Partitions whose files are the pinned ones are not told."""
    place.source.head, place.source.complete = "99", False
    place.source.prints = {DAYS[0]: "same", DAYS[1]: "other"}
    (told,) = place.notice(replace(PIN, fingerprints={DAYS[0]: "same", DAYS[1]: "one"}))
    assert told.startswith(f"input raw changed for {DAYS[1]} after it was pinned: other files than at the pinned")


def test_files_that_came_changed_or_went_are_counted_and_named(place: Place):
    """By path, size and version, as they were pinned; files as pinned are silent."""
    place.source.files = {DAYS[0]: (FILE,)}
    pin = place.files_pin(_2026_01_01=(FILE,))
    assert place.notice(pin) == []
    place.source.files = {
        DAYS[0]: (replace(FILE, version="mtime:2"),),
        DAYS[1]: (replace(FILE, path="/raw/day=2026-01-02/b.parquet"),),
    }
    (told,) = place.notice(pin)
    assert told.startswith(f"input raw changed for {DAYS[0]} … {DAYS[1]} after it was pinned: 1 new file, 1 changed ")
    assert told.endswith("such as /raw/day=2026-01-02/b.parquet; the run does not have it")
    place.notice(pin)
    assert len(place.recorded) == 1
    place.source.files = {}
    assert "1 missing file, such as /raw/day=2026-01-01/a.parquet" in place.notice(pin)[0]
    assert len(place.recorded) == 2


def test_a_recording_whose_files_are_as_pinned_is_silent(place: Place):
    """The ledger is asked which files it has now; no place is listed for them."""
    place.source.files = {DAYS[0]: (FILE,)}
    pin = replace(place.files_pin(_2026_01_01=(FILE,)), location="recording:orders", recording="orders")
    assert place.notice(pin) == []
    assert [(one.recording, one.files) for one in place.source.inputs] == [("orders", None)]


@pytest.mark.parametrize("other", [{"partition": None}, {"version": "v7"}, {"own": True}])
def test_reference_data_named_versions_and_the_own_output_are_as_approved(place: Place, other: dict[str, object]):
    """They stay what a person agreed to, however they move on."""
    place.source.head = "41"
    place.source.commits_made = (Commit("41", "append", 0, "ingest", {DAYS[0]: Touch(1)}),)
    assert place.notice(replace(PIN, **other)) == []  # type: ignore[arg-type]


def test_a_source_that_does_not_answer_stops_no_publication(place: Place):
    """That nobody looked is said."""
    place.source.broken = "catalog lake did not answer"
    assert place.notice(PIN) == []
    assert place.house.said == [
        f"the inputs of {place.house.run.run_id} were not looked at again: catalog lake did not answer"
    ]
