"""What reading inputs needs beside the manifest: clusters of Kafka, and the key of the list of erased subjects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from errata.model.kafka.declaration import KafkaCluster
from errata.model.product.erasure import ErasurePin

Clusters = Mapping[str, KafkaCluster]
"""Clusters of the project by name; connections are not part of a manifest."""
Hasher = Callable[[str], str]


def _refuse_hashing() -> Hasher:
    raise AssertionError("only a project with a list of erased subjects has a key")


@dataclass(frozen=True, slots=True)
class InputAccess:
    """How inputs are reached; ``hasher`` reads the key only when it is called."""

    clusters: Clusters = field(default_factory=dict)
    hasher: Callable[[], Hasher] = _refuse_hashing
    erasure: ErasurePin | None = None
    since: str | None = None  # only subjects that came onto the list after this snapshot count

    def for_list(self, erasure: ErasurePin | None, since: str | None = None) -> InputAccess:
        """The same access, for a reading of the list of erased subjects at the snapshot of this pin."""
        return replace(self, erasure=erasure, since=since)


NO_ACCESS = InputAccess()
"""For inputs that are tables and files without subjects."""
