"""Cache of snapshot contents: a snapshot never changes, and every try of a publication asks again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from errata.model.manifest import TargetPin
from errata.ports.publish import ContentPort


class CachedContent:
    """Caches the answers of another content port for the duration of one publication."""

    def __init__(self, content: ContentPort) -> None:
        self._content = content
        self._known: dict[tuple[str, str, tuple[str, ...], tuple[str, ...]], Mapping[str, str]] = {}
        self._filled: dict[tuple[str, str, tuple[str, ...], tuple[str, ...]], Mapping[str, tuple[str, ...]]] = {}

    def content(
        self, target: TargetPin, snapshot_id: str, partitions: Sequence[str], columns: Sequence[str]
    ) -> Mapping[str, str]:
        """See the port."""
        asked = (target.table, snapshot_id, tuple(partitions), tuple(columns))
        if asked not in self._known:
            self._known[asked] = self._content.content(target, snapshot_id, partitions, columns)
        return self._known[asked]

    def filled(
        self, target: TargetPin, snapshot_id: str, partitions: Sequence[str], columns: Mapping[str, str | None]
    ) -> Mapping[str, tuple[str, ...]]:
        """See the port."""
        asked = (target.table, snapshot_id, tuple(partitions), tuple(columns))
        if asked not in self._filled:
            self._filled[asked] = self._content.filled(target, snapshot_id, partitions, columns)
        return self._filled[asked]


_conforms: type[ContentPort] = CachedContent
