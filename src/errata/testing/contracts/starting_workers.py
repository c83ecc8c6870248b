"""The contract of :class:`errata.ports.clusters.Cluster`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from errata.ports.clusters import Cluster, JobState, WorkerOrder
from errata.testing.clusters.memory_cluster import MemoryCluster


class ClusterSubject(Protocol):
    """A cluster, and orders that it takes; what is started runs until it is stopped."""

    @property
    def cluster(self) -> Cluster: ...

    def order(self, n: int) -> WorkerOrder:
        """An order; equal numbers give equal orders."""

    def count_started(self) -> int:
        """How many jobs the cluster was ever given, asked without the adapter."""


@dataclass
class MemoryClusterSubject:
    """A cluster in memory."""

    cluster: MemoryCluster = field(default_factory=MemoryCluster)

    def order(self, n: int) -> WorkerOrder:
        """See the protocol."""
        return WorkerOrder(f"errata-run-1-{n}", f"token{n}", datetime.now(UTC).isoformat(), {})

    def count_started(self) -> int:
        """See the protocol."""
        return len(self.cluster.orders)


class ClusterContract:
    """What every cluster must do; needs the fixture ``cluster_subject``."""

    def test_nothing_is_found_before_it_is_started(self, cluster_subject: ClusterSubject) -> None:
        """And a search starts nothing."""
        assert cluster_subject.cluster.find(cluster_subject.order(1)) is None
        assert cluster_subject.count_started() == 0

    def test_a_start_is_found_again_by_its_order(self, cluster_subject: ClusterSubject) -> None:
        """The same job by search and by id, and no other order's."""
        cluster = cluster_subject.cluster
        started = cluster.start(cluster_subject.order(1))
        found = cluster.find(cluster_subject.order(1))
        assert found is not None
        assert found.job_id == started.job_id == cluster.read(started.job_id).job_id
        assert not found.has_ended
        assert cluster.find(cluster_subject.order(2)) is None

    def test_a_repeated_start_starts_nothing(self, cluster_subject: ClusterSubject) -> None:
        """While it runs, and after it has ended."""
        cluster = cluster_subject.cluster
        first = cluster.start(cluster_subject.order(1))
        assert cluster.start(cluster_subject.order(1)).job_id == first.job_id
        cluster.stop(first.job_id)
        again = cluster.start(cluster_subject.order(1))
        assert (again.job_id, again.has_ended) == (first.job_id, True)
        assert cluster_subject.count_started() == 1

    def test_a_stop_ends_one_job_and_can_be_repeated(self, cluster_subject: ClusterSubject) -> None:
        """The other continues."""
        cluster = cluster_subject.cluster
        one, other = (cluster.start(cluster_subject.order(n)) for n in (1, 2))
        cluster.stop(one.job_id)
        cluster.stop(one.job_id)
        assert cluster.read(one.job_id).state is JobState.STOPPED
        assert not cluster.read(other.job_id).has_ended
        cluster.stop(other.job_id)
        assert cluster.read(other.job_id).has_ended
