"""All engines of a project in memory, so that every command runs on a real ledger without Spark or a JVM."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from errata.errors import EngineError
from errata.ledger import Ledger
from errata.model.manifest import Code
from errata.model.partition import Grain
from errata.model.product import Input, Product, Project
from errata.model.product.throttle import Signal, Throttle
from errata.ports.tables import InputState
from errata.testing.chunks import MemoryChunks, Transform
from errata.testing.erasure import FakeSuppressions
from errata.testing.history import MemoryHistory
from errata.testing.lake import Lake
from errata.testing.measure import MemoryContent, MemoryMeasurer
from errata.testing.publishing import MemoryPublishing
from errata.testing.quarantine import MemoryQuarantine
from errata.testing.readers import MemoryOutside, MemoryReaders
from errata.testing.refs import MemoryTags
from errata.testing.rows import MemoryRows
from errata.testing.side_tables import MemorySideTables, MemorySideTableWriter
from errata.testing.staging import MemoryStaging
from errata.wiring.engines import ProjectEngines
from errata.workspace import Engines


@dataclass
class Alarm:
    """An alarm that records what it was sent; ``broken`` is the error of one that does not work."""

    is_there: bool = True
    broken: str = ""
    sent: list[Mapping[str, Any]] = field(default_factory=list)

    def send_alarm(self, told: Mapping[str, Any]) -> None:
        """See the port."""
        if self.broken:
            raise EngineError(self.broken)
        self.sent.append(told)


@dataclass
class Signals:
    """Health signals with the values that a test gives them, by name; others are 0."""

    values: dict[str, Decimal] = field(default_factory=dict)

    def read(self, signal: Signal) -> Decimal:
        """See the port."""
        return self.values.get(signal.name, Decimal(0))


@dataclass
class ErasedInMemory:
    """The list of erased subjects, without a key: hashes are the ids themselves."""

    table: str = "lake.privacy.erased"
    subjects: dict[str, None] = field(default_factory=dict)

    def watermark(self) -> str:
        """See the port."""
        return str(len(self.subjects)) if self.subjects else ""

    def hasher(self) -> Callable[[str], str]:
        """See the port."""
        return str

    def add(self, subjects: Collection[str]) -> int:
        """See the port."""
        new = [one for one in dict.fromkeys(subjects) if one not in self.subjects]
        self.subjects |= dict.fromkeys(new)
        return len(new)


class MemoryEngines:
    """The engines of one project on a lake in memory; only its file inputs and its code are read from disk."""

    def __init__(
        self, project: Project, ledger: Ledger, lake: Lake, transforms: Mapping[str, Transform] | None = None
    ) -> None:
        self.lake = lake
        self._ledger = ledger
        self._real = ProjectEngines(project, ledger)
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
        self.quarantine = MemoryQuarantine()
        self.measurer = MemoryMeasurer(lake, ledger.parts.get)
        self.content = MemoryContent(self.measurer)
        self.suppressions = FakeSuppressions()
        self.erased = ErasedInMemory()
        self.alarm = Alarm()
        self.probes = Signals()

    @cached_property
    def chunks(self) -> MemoryChunks:
        """Computation of chunks in Python."""
        cache = self._root / ".errata" / "cache"
        return MemoryChunks(self.lake, self._real.sources, self.quarantine, cache, self._transforms)

    @property
    def inputs(self) -> MemoryEngines:
        """Inputs: tables in memory, and files on disk."""
        return self

    def read_input(self, source: Input, grain: Grain, partitions: Sequence[str]) -> InputState:
        """See the port of inputs."""
        reader = self._readers if source.table else self._real.sources
        return reader.read_input(source, grain, partitions)

    def code(self, product: Product) -> tuple[Code, bytes]:
        """The project's current code, as a real plan describes it."""
        return self._real.code(product)

    def hold_to(self, throttle: Throttle) -> None:
        """See the port. There is no Spark to hold back."""

    @property
    def log(self) -> Path:
        """Where Spark would write its log."""
        return self._real.log

    def reach(self, _catalog: str) -> int:
        """Number of namespaces, for ``errata doctor``."""
        return len({name.rpartition(".")[0] for name in self.lake.tables})

    @property
    def catalogs(self) -> MemoryEngines:
        """The catalogs, for ``errata doctor``."""
        return self

    def close(self) -> None:
        """See the port."""


_conforms: type[Engines] = MemoryEngines
