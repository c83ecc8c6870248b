"""All engines of a project in memory, so that every command runs on a real ledger without Spark or a JVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from errata.ledger import Ledger
from errata.model.graph.dbt_graph import DbtManifest
from errata.model.graph.read_rule import rule_of_pin
from errata.model.manifest import Code, Manifest
from errata.model.near_miss import NearMiss
from errata.model.partition import Grain
from errata.model.product import Input, Product, Project
from errata.model.product.erasure_place import HeldState
from errata.model.product.throttle import Throttle
from errata.model.recording.declaration import Source
from errata.ports.change_logs import ChangeLogReader
from errata.ports.checkpoints import CheckpointStore
from errata.ports.clusters import Cluster
from errata.ports.copies import LinkedTables, WarehouseCopies
from errata.ports.datasets import DatasetReader, DatasetTables
from errata.ports.hooks import DbtRunner
from errata.ports.recordings import RecordingStore, ScanReader, WindowReader
from errata.ports.tables import InputState, add_announced
from errata.testing.chunks import MemoryChunks, Transform
from errata.testing.copies.lake_rows import MemoryLakeReader
from errata.testing.copies.linked_tables import MemoryLinkedTables
from errata.testing.erasure import MemorySubjectSearch
from errata.testing.history import MemoryHistory
from errata.testing.lake import Lake
from errata.testing.measure import MemoryContent, MemoryMeasurer
from errata.testing.pinned_inputs import PinnedInputs, read_target
from errata.testing.publishing import MemoryPublishing
from errata.testing.quarantine import MemoryQuarantine
from errata.testing.readers import MemoryOutside, MemoryReaders
from errata.testing.refs import MemoryTags
from errata.testing.rows import MemoryRows
from errata.testing.scope import Scope
from errata.testing.side_tables import MemorySideTables, MemorySideTableWriter
from errata.testing.staging import MemoryStaging
from errata.testing.topics.memory_emitted import MemoryEmitted
from errata.testing.user_hooks import Hooks
from errata.wiring.engines import ProjectEngines
from errata.wiring.transform_problems import refuse_broken_transform
from errata.workspace import Engines


class MemoryEngines:
    """The engines of one project on a lake in memory; only its file inputs and its code are read from disk."""

    def __init__(
        self,
        project: Project,
        ledger: Ledger,
        lake: Lake,
        transforms: Mapping[str, Transform] | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        self.lake = lake
        self._ledger = ledger
        self._project = project
        self._real = ProjectEngines(project, ledger)
        self.other_jars: Mapping[str, str] | None = None
        self._root = Path(project.root)
        self._transforms = transforms or {}
        self.targets = self.tables = self._readers = MemoryReaders(lake)
        self.pins = MemoryTags(lake)
        self.history = MemoryHistory(lake)
        self.rows = MemoryRows(lake)
        self.outside = MemoryOutside(lake)
        self.staging = MemoryStaging(lake)
        self.publishing = MemoryPublishing(lake)
        self.beside = MemorySideTables(lake)
        self.writer = MemorySideTableWriter(lake)
        self.quarantine, self.emitted = MemoryQuarantine(), MemoryEmitted()
        self.ready = lake.ready
        self.measurer = MemoryMeasurer(lake, ledger.parts.get)
        self.content = MemoryContent(self.measurer)
        given = hooks or Hooks()
        self.suppressions, self.erased = given.suppressions, given.erased
        lake.erased, self.suppressions.find_used = given.erased, self._find_used
        self.subject_search = MemorySubjectSearch(self._read_states)
        self.alarm, self.probes, self.channels = given.alarm, given.signals, given.channels
        self.consumers, self.watermarks = given.consumers, given.watermarks
        self.topic_writer = given.topics
        self.lineage = self._real.lineage
        self.memory_cluster = given.cluster
        self.warehouses, self.lake_rows = given.copies, MemoryLakeReader(lake)
        self.links = MemoryLinkedTables(self.lake_rows)

    def _read_states(self, name: str) -> Iterator[tuple[HeldState, list[Mapping[str, Any]]]]:
        """The rows of each branch and tag of a table; of one that does not exist, none."""
        if name not in self.lake.tables:
            return
        metadata = self.lake.table(name).metadata
        for ref, held in sorted(metadata.refs.items()):
            rows: list[Mapping[str, Any]] = list(
                Scope(metadata, 0, Grain.VALUE).rows(metadata.snapshots[held.snapshot_id])
            )
            yield HeldState(ref, 0, None if ref == "main" else 0), rows

    def _find_used(self, manifest: Manifest, ids: frozenset[str]) -> tuple[str, ...]:
        """The partitions whose inputs hold rows of these ids."""
        inputs, found = PinnedInputs(self.lake, self._ledger.parts.get), list[str]()
        for pin in manifest.inputs:
            rule = rule_of_pin(pin, manifest.target.grain)
            for name in manifest.partitions if pin.subjects and not pin.own else ():
                rows = inputs.read(replace(pin, masks={}), rule, [name], manifest.target)
                if any(str(row.values[column]) in ids for row in rows for column in pin.subjects):
                    found.append(name)
        if manifest.leaves_out_prior_rows and manifest.erasure is not None:
            target, columns = manifest.target, manifest.erasure.columns
            for name in manifest.partitions:
                prior = read_target(self.lake, target, target.base_snapshot_id, [name])
                found += [name] if any(str(row[column]) in ids for row in prior for column in columns) else []
        return tuple(sorted(set(found)))

    @cached_property
    def chunks(self) -> MemoryChunks:
        """Computation of chunks in Python."""
        cache = self._root / ".errata" / "cache"
        return MemoryChunks(self.lake, self._real.sources, self.quarantine, self.emitted, cache, self._transforms)

    def cluster(self, target: str) -> Cluster:
        """See the port."""
        del target
        return self.memory_cluster

    def copies(self, warehouse: str) -> WarehouseCopies:
        """See the port."""
        del warehouse
        return self.warehouses

    def linked_tables(self, warehouse: str) -> LinkedTables:
        """See the port."""
        del warehouse
        return self.links

    @property
    def checkpoints(self) -> CheckpointStore:
        """Checkpoints of streams, on disk as they always are."""
        return self._real.checkpoints

    @property
    def change_logs(self) -> ChangeLogReader:
        """Change logs, which only Spark reads."""
        return self._real.change_logs

    @property
    def recordings(self) -> RecordingStore:
        """Recorded files, on disk as they always are."""
        return self._real.recordings

    def scans(self, source: Source) -> ScanReader | None:
        """See the port. Servers are real."""
        return self._real.scans(source)

    @property
    def datasets(self) -> DatasetReader:
        """Plain Parquet files, on disk as they always are."""
        return self._real.datasets

    @property
    def dataset_tables(self) -> DatasetTables:
        """Tables of a real catalog."""
        return self._real.dataset_tables

    def windows(self, source: Source) -> WindowReader | None:
        """See the port. Databases are real."""
        return self._real.windows(source)

    @property
    def inputs(self) -> MemoryEngines:
        """Inputs: tables in memory, and files on disk."""
        return self

    def read_input(self, source: Input, grain: Grain, partitions: Sequence[str]) -> InputState:
        """See the port of inputs."""
        reader = self._readers if source.table else self._real.recorded if source.recording else self._real.sources
        state = reader.read_input(source, grain, partitions)
        if source.complete is None or source.complete.rows_from is None:
            return state
        return add_announced(state, self._readers.read_announced(source, grain, partitions))

    def check_transform(self, product: Product, *, may_leave_out: bool = False) -> None:
        """See the port. A function given for the product replaces its code, which then need not exist."""
        if product.name not in self._transforms:
            refuse_broken_transform(self._project, product, self.tables, may_leave_out=may_leave_out)

    def find_near_miss(self, source: Input) -> NearMiss | None:
        """See the port of inputs."""
        return self._real.sources.find_near_miss(source) if source.files else None

    def find_silent_clusters(self, clusters: Iterable[str]) -> Mapping[str, str]:  # noqa: ARG002 - all answer
        """See the port. Topics in memory have no cluster that could be silent."""
        return {}

    def dbt(self) -> DbtManifest | None:
        """See the port."""
        return self._real.dbt()

    @property
    def dbt_runner(self) -> DbtRunner | None:
        """See the port. A real dbt, if the project names one."""
        return self._real.dbt_runner

    def code(self, product: Product) -> tuple[Code, bytes]:
        """The project's current code, as a real plan describes it."""
        return self._real.code(product)

    @property
    def available_jars(self) -> Mapping[str, str]:
        """See the port; what a test set, or those of a real plan."""
        return self._real.available_jars if self.other_jars is None else self.other_jars

    def hold_to(self, throttle: Throttle) -> None:
        """See the port. There is no Spark to hold back."""

    def start_early(self, *, session: bool = True) -> None:
        """See the port. There is no JVM to start."""

    @property
    def log(self) -> Path:
        """Where Spark would write its log."""
        return self._real.log

    def reach(self, _catalog: str) -> int:
        """Number of namespaces, for ``errata doctor``."""
        return len({name.rpartition(".")[0] for name in self.lake.tables})

    def find_missing_file(self, _catalog: str) -> str | None:
        """None: there are no files, for ``errata doctor``."""
        return None

    @property
    def catalogs(self) -> MemoryEngines:
        """The catalogs, for ``errata doctor``."""
        return self

    def close(self) -> None:
        """See the port."""


_conforms: type[Engines] = MemoryEngines
