"""Find every place that can still show given data subjects: tables, refs, recordings, copies. Only reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from errata.delivery.copies.declared_copies import open_copy
from errata.model.copy.declaration import REFRESH
from errata.model.product import Input, Product
from errata.model.product.erasure_place import HOLDS, UNKNOWN, Place, describe_deleted_copies, describe_state, is_over
from errata.model.recording.declaration import Source
from errata.model.recording.recorded_file import FileStatus
from errata.model.recording.subject_names import list_subject_names
from errata.model.refs import emitted_table, quarantine_table
from errata.model.side_tables import CORRECTION_COLUMNS
from errata.workspace import Workspace

_JSON, _EMITTED, _MESSAGE = ("row",), ("key", "value"), ("value",)
_REDACTED = "errata erase redact takes the rows out"
_LOG_ENDS = "its keep ends, or a correction supersedes it and errata erase redact removes it: a log keeps its messages"


@dataclass(frozen=True, slots=True)
class Search:
    """Subjects to look for: their ids, and what masked columns have in place of them."""

    workspace: Workspace
    ids: frozenset[str]

    def find_places(self) -> tuple[Place, ...]:
        """Every place, in the order in which a row takes: sources, table, what Errata keeps, copies."""
        found: dict[str, Place] = {}
        for product in self.workspace.project.products.values():
            for place in self._search_product(product):
                found.setdefault(place.label, place)
        for place in self._list_unsearched_recordings():
            found.setdefault(place.label, place)
        today = self.workspace.now().date().isoformat()
        return tuple(place for place in found.values() if not is_over(place, today))

    def _search_product(self, product: Product) -> Iterator[Place]:
        for source in product.inputs:
            if source.subjects and not source.own:
                yield from self._search_input(source)
        if product.names_subjects:
            yield from self._search_quarantine(product)
        columns = product.target.subjects
        if columns:
            yield from self._search_table(product.target.table, columns)
            yield from self._search_side_tables(product)
            yield from self._search_copies(product)
            for name, sink in sorted(product.sinks.items()):
                yield Place(
                    "sink", f"{product.name}.{name}", UNKNOWN, None, f"retention of this {sink.kind.replace('_', ' ')}"
                )

    def _search_table(self, table: str, columns: Collection[str]) -> Iterator[Place]:
        for held in self.workspace.engines.subject_search.find_states(table, tuple(columns), self.ids):
            yield describe_state(table, held)

    def _search_input(self, source: Input) -> Iterator[Place]:
        if source.table is not None:
            search = self.workspace.engines.subject_search
            if source.cdc is not None:  # rows are inside the messages
                is_held = search.find_in_json(source.table, _MESSAGE, self.ids)
            else:
                states = search.find_states(source.table, source.subjects, self.ids)
                is_held = any(held.ref == "main" for held in states)
            if is_held:
                yield Place("source", source.table, HOLDS, None, "its owner deletes the rows; runs leave them out")
        elif source.recording is not None:
            yield from self._search_recordings(source)
        elif source.kafka is not None:
            yield Place("topic", source.location, UNKNOWN, None, "retention of the topic")
        else:
            yield Place("files", source.location, UNKNOWN, None, "their owner deletes the rows; runs leave them out")

    def _search_recordings(self, given: Input) -> Iterator[Place]:
        names = list_subject_names(given)
        store, declared = self.workspace.engines.recordings, self.workspace.project.sources
        for file in self.workspace.ledger.recordings.list(str(given.recording)):
            source = declared.get(file.source) or Source(file.source, file.format)
            if file.status is FileStatus.EXPIRED:
                continue
            known, counts = names.find_in(tuple(file.columns)), file.status is FileStatus.ACCEPTED
            found = store.redact(file, source, known or names, self.ids.__contains__)
            name, until = f"{file.source}/{file.name} ({file.file_id[:8]})", file.keep_until[:10] or None
            if found.erased:
                stays = counts and names.is_log
                yield Place("recording", name, HOLDS, until, _LOG_ENDS if stays else _REDACTED)
            elif found.bad or found.flaw or (found.rows and known is None):  # it could be about anyone
                goes = not counts and (found.bad or found.flaw)
                yield Place("recording", name, UNKNOWN, until, _REDACTED if goes else "its keep ends")

    def _list_unsearched_recordings(self) -> Iterator[Place]:
        """Sources with files in which nobody can look, because no input says which columns name subjects."""
        inputs = [given for product in self.workspace.project.products.values() for given in product.inputs]
        searched = {given.recording for given in inputs if given.subjects}
        until: dict[str, str] = {}
        for file in self.workspace.ledger.recordings.list():
            if file.source not in searched and file.status is not FileStatus.EXPIRED:
                until[file.source] = max(until.get(file.source, ""), file.keep_until[:10])
        for source, day in until.items():
            yield Place("recordings", source, UNKNOWN, day or None, "an input that names their subjects, or retention")

    def _search_quarantine(self, product: Product) -> Iterator[Place]:
        search = self.workspace.engines.subject_search
        for run in self.workspace.ledger.runs.list():
            if run.product != product.name:
                continue
            table = quarantine_table(run.table, run.run_id)
            if search.find_in_json(table, _JSON, self.ids):
                yield Place("quarantine", table, HOLDS, None, f"errata cleanup {run.run_id}, once the run is over")
            emitted = emitted_table(run.table, run.run_id)
            if search.find_in_json(emitted, _EMITTED, self.ids):
                yield Place("emitted rows", emitted, HOLDS, None, f"errata cleanup {run.run_id}, once they are sent")
            shadow = self.workspace.ledger.runs.manifest(run.run_id).target.shadow
            if shadow and product.target.subjects:
                yield from self._search_table(shadow, product.target.subjects)

    def _search_side_tables(self, product: Product) -> Iterator[Place]:
        publish, search = product.publish, self.workspace.engines.subject_search
        columns = product.target.subjects
        if publish.versions:
            yield from self._search_table(publish.versions, columns)
        if publish.corrections:
            by_key = search.find_states(publish.corrections, columns, self.ids)
            texts = tuple(name for name in ("old", "new") if name in CORRECTION_COLUMNS)
            if by_key or search.find_in_json(publish.corrections, texts, self.ids):
                ends = "its owner deletes the rows, and expires its snapshots"
                yield Place("corrections", publish.corrections, HOLDS, None, ends)

    def _search_copies(self, product: Product) -> Iterator[Place]:
        for declared in product.target.copies:
            warehouse = self.workspace.project.warehouses[declared.warehouse]
            if declared.mode == REFRESH:
                continue  # it shows the lake's own files
            copy = open_copy(self.workspace, product, declared)
            engine = self.workspace.engines.copies(declared.warehouse)
            if engine.count_subjects(copy, product.target.subjects, self.ids):
                yield Place("copy", declared.name, HOLDS, None, "errata deliver, once the lake has no such row")
            if warehouse.type == "snowflake":
                yield describe_deleted_copies(declared.name, self._find_last_delivery(declared.name))

    def _find_last_delivery(self, name: str) -> datetime:
        """When rows of a copy were last replaced, which is when Snowflake began to keep the old ones."""
        items = [item for item in self.workspace.ledger.outbox.list() if item.consumer == name]
        newest = max((item.ended_at for item in items if item.ended_at), default="")
        return datetime.fromisoformat(newest) if newest else self.workspace.now()
