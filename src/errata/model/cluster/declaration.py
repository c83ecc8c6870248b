"""Clusters as ``errata.yaml`` declares them for ``errata submit --start``. Pure.

The release and the image decide which code computes a run, so a plan seals them. So does the queue, because it decides
whether live jobs come first. Everything else may change between plan and start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from errata.model.file_keys import Key
from errata.model.file_values import Count, Identifier, Length, Line, YesNo

_AT = Key("Where application.py, the archives and jars/ are: s3://bucket/path.")
_ARNS = Key("ARN in Secrets Manager of the secret of each variable that errata.yaml takes from the environment.")
_SECRETS = Key("Secrets Manager secret of each variable that errata.yaml takes from the environment.")


@dataclass(frozen=True, slots=True)
class ServerlessCluster:
    """An application of EMR Serverless; one for backfills alone keeps live jobs out of their way."""

    application_id: Line
    role_arn: Annotated[Line, Key("Execution role of the job runs.")]
    region: Line
    at: Annotated[Line, _AT]
    release: Annotated[Line, Key("Release of the application, such as emr-8.1.0; sealed by a plan.")]
    image: Annotated[Line | None, Key("Image of the application, by digest; sealed by a plan.")] = None
    secrets: Annotated[Mapping[Identifier, Line], _SECRETS] = field(default_factory=dict)

    @property
    def queue(self) -> str:
        """What keeps backfills apart from live jobs."""
        return f"application {self.application_id}"


@dataclass(frozen=True, slots=True)
class EmrCluster:
    """Clusters of EMR that are started for a run and end with it."""

    region: Line
    at: Annotated[Line, _AT]
    release: Annotated[Line, Key("Release of the cluster, such as emr-8.1.0; sealed by a plan.")]
    service_role: Annotated[Line, Key("Role of EMR itself.")]
    instance_profile: Annotated[Line, Key("Role of the machines.")]
    instance_type: Annotated[Line, Key("Type of every machine, such as m7g.xlarge.")]
    instance_cores: Annotated[Count, Key("Cores of a machine that executors may use.")]
    subnet: Annotated[Line | None, Key("Subnet of the machines.")] = None
    logs: Annotated[Line | None, Key("Where EMR copies the logs: s3://bucket/path.")] = None
    yarn_queue: Annotated[Line | None, Key("YARN queue; sealed by a plan.", path="queue")] = None
    idle_seconds: Annotated[
        Length, Key("The cluster ends when it was idle this long.", path="idle_timeout", default="10min")
    ] = 600
    secrets: Annotated[Mapping[Identifier, Line], _ARNS] = field(default_factory=dict)
    image = None

    @property
    def queue(self) -> str:
        """What keeps backfills apart from live jobs."""
        return f"queue {self.yarn_queue}" if self.yarn_queue else "a cluster of its own"


@dataclass(frozen=True, slots=True)
class KubernetesCluster:
    """A namespace of a Kubernetes cluster, in which every driver is a Job."""

    image: Annotated[Line, Key("Container image, by digest; sealed by a plan.")]
    namespace: Line
    service_account: Annotated[Line, Key("One that may create pods.")]
    priority_class: Annotated[Line | None, Key("Priority class below that of live jobs; sealed by a plan.")] = None
    context: Annotated[Line | None, Key("Context of kubectl (default: its current one).")] = None
    secrets: Annotated[YesNo, Key("The Kubernetes secret `errata` has the variables of errata.yaml.")] = True
    release = None

    @property
    def queue(self) -> str:
        """What keeps backfills apart from live jobs."""
        return f"priority class {self.priority_class}" if self.priority_class else f"namespace {self.namespace}"


@dataclass(frozen=True, slots=True)
class StandaloneCluster:
    """A standalone cluster of Spark; drivers run on the machine that starts them."""

    master: Annotated[Line, Key("Address of the master, spark://host:7077; sealed by a plan.")]
    release: Annotated[Line, Key("Version of Spark, such as 4.1; sealed by a plan.")]
    image = None

    @property
    def queue(self) -> str:
        """What keeps backfills apart from live jobs."""
        return f"master {self.master}"


AnyCluster = ServerlessCluster | EmrCluster | KubernetesCluster | StandaloneCluster


@dataclass(frozen=True, slots=True)
class Clusters:
    """Clusters on which workers may be started, one of each kind."""

    emr_serverless: Annotated[ServerlessCluster | None, Key(path="emr-serverless")] = None
    emr: EmrCluster | None = None
    kubernetes: KubernetesCluster | None = None
    standalone: StandaloneCluster | None = None

    def find(self, target: str) -> AnyCluster | None:
        """The cluster of this kind, by the name that ``--start`` takes."""
        found: AnyCluster | None = getattr(self, target.replace("-", "_"), None)
        return found


STARTABLE = ("emr-serverless", "emr", "kubernetes", "standalone")
"""Kinds of clusters on which workers can be started, as ``--start`` names them."""
