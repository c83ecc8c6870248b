"""Choose the adapter for a cluster that workers are started on."""

from __future__ import annotations

from pathlib import Path

from errata.errors import UsageError
from errata.jars.lane import find_installed_spark
from errata.model.cluster.declaration import EmrCluster, KubernetesCluster, ServerlessCluster, StandaloneCluster
from errata.model.product import Project
from errata.ports.clusters import Cluster


def open_cluster(project: Project, target: str) -> Cluster:
    """The cluster of this kind; nothing is asked or started yet."""
    declared = project.clusters.find(target)
    match declared:
        case ServerlessCluster():
            from errata.engines.clusters.aws import open_client
            from errata.engines.clusters.emr_serverless import EmrServerless

            return EmrServerless(open_client("emr-serverless", declared.region), declared)
        case EmrCluster():
            from errata.engines.clusters.aws import open_client
            from errata.engines.clusters.emr import Emr

            return Emr(open_client("emr", declared.region), declared)
        case KubernetesCluster():
            from errata.engines.clusters.kubernetes import Kubernetes

            return Kubernetes(declared)
        case StandaloneCluster():
            from errata.engines.clusters.standalone import Standalone

            return Standalone(Path(project.root) / ".errata" / "workers", find_installed_spark())
        case None:
            raise UsageError(f"errata.yaml declares no clusters.{target}")
