"""The contract of :class:`errata.ports.consumers.ConsumerSystems`, as far as it is about a cache."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from errata.model.consumer.declaration import Refresh, Verify
from errata.ports.consumers import ConsumerSystems
from errata.testing.consumers import MemoryConsumers

KEY = "bf-1-p1/published/recover/exec-dashboard"


class CacheSubject(Protocol):
    """An empty cache, and the systems that work on it."""

    @property
    def uri(self) -> str:
        """Its address."""

    @property
    def systems(self) -> ConsumerSystems: ...

    def fill(self, values: Mapping[str, str]) -> None:
        """Put keys and values into it, as a reader does."""

    def keys(self) -> set[str]:
        """Its keys."""


@dataclass
class MemoryCacheSubject:
    """A cache in memory."""

    uri: str = "redis://memory"
    systems: MemoryConsumers = field(default_factory=MemoryConsumers)

    def fill(self, values: Mapping[str, str]) -> None:
        """See the protocol."""
        self.systems.cache |= values

    def keys(self) -> set[str]:
        """See the protocol."""
        return set(self.systems.cache)


class CacheContract:
    """Keys of the given partitions are deleted, and no others."""

    def test_only_keys_of_the_partitions_are_deleted(self, cache_subject: CacheSubject) -> None:
        """Keys of other partitions, and keys that only look alike, stay."""
        kept = {"rev:2026-01-05:total", "rev:2026-01-03", "cost:2026-01-03:total", "xrev:2026-01-03:total"}
        gone = {"rev:2026-01-03:total", "rev:2026-01-03:by:region", "rev:2026-01-04:"}
        cache_subject.fill(dict.fromkeys(kept | gone, "1"))
        assert _delete(cache_subject, "rev:{partition}:*", ["2026-01-03", "2026-01-04"]) == 3
        assert cache_subject.keys() == kept
        assert _delete(cache_subject, "rev:{partition}:*", ["2026-01-03"]) == 0

    def test_a_partition_value_matches_only_itself(self, cache_subject: CacheSubject) -> None:
        """A tenant called ``*`` or ``[a-z]`` does not clear the cache of others."""
        names = ["*", "?", "[a-z]", "a\\b", "^", "x", "b"]
        cache_subject.fill({f"t:{name}:v": "1" for name in names})
        for name in ("*", "[a-z]", "?", "a\\b", "^"):
            assert _delete(cache_subject, "t:{partition}:*", [name]) == 1
        assert cache_subject.keys() == {"t:x:v", "t:b:v"}

    def test_patterns_mean_what_redis_means(self, cache_subject: CacheSubject) -> None:
        """Classes, ranges, single characters and escapes work around the partition."""
        keys = {"d:1:a", "d:1:b", "d:1:c", "d:1:*", "d:1:", "d:1:ab", "d:1:\n"}
        wanted = {
            "d:{partition}:[ab]": {"d:1:a", "d:1:b"},
            "d:{partition}:[^ab]": {"d:1:c", "d:1:*", "d:1:\n"},
            "d:{partition}:[b-c]": {"d:1:b", "d:1:c"},
            "d:{partition}:\\*": {"d:1:*"},
            "d:{partition}:?": {"d:1:a", "d:1:b", "d:1:c", "d:1:*", "d:1:\n"},
            "d:{partition}:": {"d:1:"},
            "d:{partition}:*": keys,
            "*{partition}:ab": {"d:1:ab"},
        }
        for template, gone in wanted.items():
            cache_subject.fill(dict.fromkeys(keys, "1"))
            _delete(cache_subject, template, ["1"])
            assert cache_subject.keys() == keys - gone, template

    def test_two_holes_are_one_partition(self, cache_subject: CacheSubject) -> None:
        """The same value is meant in both places."""
        cache_subject.fill({"a:1:1": "x", "a:1:2": "x", "a:2:2": "x"})
        assert _delete(cache_subject, "a:{partition}:{partition}", ["1", "2"]) == 2
        assert cache_subject.keys() == {"a:1:2"}

    def test_values_are_read_back_by_their_exact_key(self, cache_subject: CacheSubject) -> None:
        """A missing key shows nothing."""
        cache_subject.fill({"rev:*:total": "1", "rev:é:total": "2.50"})
        verify = Verify(equals="count(*)", redis=cache_subject.uri, get="rev:{partition}:total")
        found = cache_subject.systems.read_shown(verify, ["*", "é", "x"], KEY)
        assert found == {"*": "1", "é": "2.50", "x": None}


def _delete(cache_subject: CacheSubject, template: str, partitions: Collection[str]) -> int | None:
    step = Refresh(redis=cache_subject.uri, delete=template)
    return cache_subject.systems.refresh(step, tuple(partitions), KEY)


_conforms: type[CacheSubject] = MemoryCacheSubject
