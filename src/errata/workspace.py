"""The context of every command: the project, the ledger, and engines that start only when they are used."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from errata import logs
from errata.errors import ErrataError, NotFound
from errata.model.waves import narrow_to_partitions, to_run_state

if TYPE_CHECKING:
    from errata.ledger import Ledger, RunRecord, WaveRecord
    from errata.model.audit import Actor
    from errata.model.graph.dbt_graph import DbtManifest
    from errata.model.manifest import Code, Manifest
    from errata.model.product import Product, Project
    from errata.model.product.throttle import Throttle
    from errata.model.recording.declaration import Source
    from errata.ports.change_logs import ChangeLogReader
    from errata.ports.channels import MessageSender
    from errata.ports.checkpoints import CheckpointStore
    from errata.ports.clusters import Cluster
    from errata.ports.compute import ChunkEngine, StagingTable
    from errata.ports.consumers import ConsumerSystems, Watermarks
    from errata.ports.copies import LakeReader, LinkedTables, WarehouseCopies
    from errata.ports.datasets import DatasetReader, DatasetTables
    from errata.ports.erasure import ErasedSubjects, SubjectSearch, Suppressions
    from errata.ports.hooks import AlarmHook, DbtRunner, Probes, ProgressListener
    from errata.ports.lineage import LineageSender
    from errata.ports.measure import Measurer
    from errata.ports.outgoing_rows import EmittedTable, TopicWriter
    from errata.ports.publish import ContentPort, PublishTable, SideTable, SideTableWriter
    from errata.ports.ready import ReadyTables
    from errata.ports.recordings import RecordingStore, ScanReader, WindowReader
    from errata.ports.tables import (
        HistoryReader,
        InputReader,
        OutsideReader,
        QuarantineTable,
        RowReader,
        TableReader,
        TagKeeper,
        TargetReader,
    )


class Engines(Protocol):
    """Adapters by port, grouped by what they start.

    Everything up to :meth:`code` reads metadata without a JVM, except that ``suppressions`` starts Spark when it has to
    scan for erased subjects. ``staging``, ``publishing`` and ``beside`` start a JVM. ``content``, ``writer``,
    ``chunks`` and ``measurer`` start Spark.
    """

    @property
    def targets(self) -> TargetReader: ...

    @property
    def inputs(self) -> InputReader: ...

    @property
    def tables(self) -> TableReader: ...

    @property
    def change_logs(self) -> ChangeLogReader: ...

    @property
    def pins(self) -> TagKeeper: ...

    @property
    def history(self) -> HistoryReader: ...

    @property
    def rows(self) -> RowReader: ...

    @property
    def quarantine(self) -> QuarantineTable: ...

    @property
    def emitted(self) -> EmittedTable: ...

    @property
    def topic_writer(self) -> TopicWriter: ...

    def find_silent_clusters(self, clusters: Iterable[str]) -> Mapping[str, str]:
        """Those of these Kafka clusters that do not answer, with what was found; all are asked at once."""

    @property
    def ready(self) -> ReadyTables: ...

    @property
    def outside(self) -> OutsideReader: ...

    @property
    def checkpoints(self) -> CheckpointStore: ...

    @property
    def recordings(self) -> RecordingStore: ...

    def scans(self, source: Source) -> ScanReader | None:
        """Reads a source by ids or as a whole; None if it has windows of time, or files of others."""

    @property
    def datasets(self) -> DatasetReader: ...

    @property
    def dataset_tables(self) -> DatasetTables: ...

    def windows(self, source: Source) -> WindowReader | None:
        """Reads windows of a source; None if its files come from others."""

    @property
    def suppressions(self) -> Suppressions: ...

    @property
    def erased(self) -> ErasedSubjects: ...

    @property
    def subject_search(self) -> SubjectSearch: ...

    def check_transform(self, product: Product, *, may_leave_out: bool = False) -> None:
        """Raise ``ProjectFileError`` if the product's transform is missing or wrong, as far as its source tells.

        ``may_leave_out`` allows columns that the transform leaves out to be written as NULL.
        """

    def dbt(self) -> DbtManifest | None:
        """The manifest of dbt that the project names; None if it names none. Raises ``NotFound`` or ``UsageError``."""

    @property
    def dbt_runner(self) -> DbtRunner | None:
        """Runs dbt for campaigns; None if errata.yaml names no project of dbt."""

    def code(self, product: Product) -> tuple[Code, bytes]:
        """Description of the project's current code, and the zip that will run."""

    @property
    def available_jars(self) -> Mapping[str, str]:
        """SHA-256 by coordinate of all jars that this installation computes with."""

    @property
    def staging(self) -> StagingTable: ...

    @property
    def publishing(self) -> PublishTable: ...

    @property
    def content(self) -> ContentPort: ...

    @property
    def beside(self) -> SideTable: ...

    @property
    def writer(self) -> SideTableWriter: ...

    def hold_to(self, throttle: Throttle) -> None:
        """Set the cores and the scheduler pool of this run; the cores take effect only before Spark has started."""

    def start_early(self, *, session: bool = True) -> None:
        """Start the JVM, and Spark unless ``session`` is false, in the background, because it will surely be used."""

    @property
    def chunks(self) -> ChunkEngine: ...

    @property
    def measurer(self) -> Measurer: ...

    @property
    def probes(self) -> Probes: ...

    @property
    def alarm(self) -> AlarmHook: ...

    @property
    def channels(self) -> MessageSender: ...

    @property
    def lineage(self) -> LineageSender: ...

    @property
    def consumers(self) -> ConsumerSystems: ...

    @property
    def watermarks(self) -> Watermarks: ...

    def copies(self, warehouse: str) -> WarehouseCopies:
        """Copies in a warehouse of the project."""

    def linked_tables(self, warehouse: str) -> LinkedTables:
        """Tables in a warehouse of the project that read the lake's metadata."""

    @property
    def lake_rows(self) -> LakeReader: ...

    def cluster(self, target: str) -> Cluster:
        """The cluster of this kind that errata.yaml declares."""

    @property
    def log(self) -> Path:
        """Log file of the JVM and Spark."""

    def close(self) -> None:
        """Close connections; safe to repeat."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """One open project: its configuration, ledger, engines, clock and output."""

    project: Project
    ledger: Ledger
    engines: Engines
    now: Callable[[], datetime]
    narrate: Callable[[str], None]
    progress: Callable[[str, int, str], ProgressListener]
    sleep: Callable[[float], None] = time.sleep
    """How commands wait; limits of waiting count the seconds that were asked for."""

    def open_run(self, run_id: str, actor: Actor) -> RunContext:
        """The run as it is now, with its sealed manifest, for this person."""
        run = self.ledger.runs.get(run_id)
        manifest = self.ledger.runs.manifest(run.run_id, actor)
        self.log_about(run.run_id, manifest)
        return RunContext(self, actor, run, manifest)

    def log_about(self, run_id: str, manifest: Manifest | None = None) -> None:
        """Give the log lines that follow the fields of this run; a manifest that cannot be read stops nothing."""
        if logs.is_on():
            from errata.log_fields import describe_run

            with suppress(ErrataError):
                logs.set_fields(describe_run(run_id, manifest or self.ledger.runs.manifest(run_id)))

    def product(self, name: str) -> Product:
        """The product with this name; raises ``NotFound`` if the project has none."""
        found = self.project.products.get(name)
        if found is None:
            near = difflib.get_close_matches(name, self.project.products, 1)
            known = ", ".join(sorted(self.project.products)) or "none"
            raise NotFound(
                f"product {name!r} is not in this project; expected one of {known}",
                hint=f"did you mean {near[0]}?" if near else "errata check",
            )
        return found

    def product_of(self, table: str) -> Product:
        """The product with this target table or name; raises ``NotFound`` if the table is not governed."""
        products = self.project.products.values()
        found = next((one for one in products if table in (one.target.table, one.name)), None)
        if found is None:
            tables = sorted(one.target.table for one in products)
            near = difflib.get_close_matches(table, [*tables, *self.project.products], 1)
            raise NotFound(
                f"{table} is not a governed table of this project; expected one of {', '.join(tables) or 'none'}",
                hint=f"did you mean {near[0]}?" if near else "errata check",
            )
        return found


@dataclass(frozen=True, slots=True)
class RunContext:
    """One run in a workspace, and the person who acts on it."""

    workspace: Workspace
    actor: Actor
    run: RunRecord
    manifest: Manifest
    wave: WaveRecord | None = None  # the run and its manifest are narrowed to this wave; None: the whole run

    @property
    def ledger(self) -> Ledger:
        """The ledger of the workspace."""
        return self.workspace.ledger

    @property
    def engines(self) -> Engines:
        """The engines of the workspace."""
        return self.workspace.engines

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.run.run_id

    def reload(self) -> RunContext:
        """The same with the state that the run, or its wave, has now."""
        fresh = replace(self, run=self.ledger.runs.get(self.run_id), wave=None)
        if self.wave is None:
            return fresh
        return replace(fresh, manifest=self.widen().manifest).narrow(self.wave.n)

    def narrow(self, n: int) -> RunContext:
        """One wave as if it were a run: its partitions, its state, and the rules of each partition.

        A run that is one wave stays as it is.
        """
        waves = self.ledger.waves.list(self.run_id)
        if len(waves) == 1:
            return self
        wave = next(one for one in waves if one.n == n)
        run = replace(self.run, partitions=wave.partitions, state=to_run_state(wave.state), wave=n)
        return replace(self, run=run, manifest=narrow_to_partitions(self.manifest, wave.partitions), wave=wave)

    def widen(self) -> RunContext:
        """The whole run."""
        return self if self.wave is None else self.workspace.open_run(self.run_id, self.actor)
