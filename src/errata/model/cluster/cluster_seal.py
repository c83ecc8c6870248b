"""What a plan seals of each cluster, and whether it is still the same when workers start. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from errata.errors import Refused
from errata.model.cluster.declaration import STARTABLE, AnyCluster, Clusters

_STATE = "nothing was started; main is unchanged"


@dataclass(frozen=True, slots=True)
class SealedCluster:
    """What must not differ between plan and start."""

    target: str
    queue: str  # what keeps live jobs first: a queue, a pool, a priority class, or a cluster of its own
    release: str | None = None
    image: str | None = None

    @property
    def text(self) -> str:
        """What is sealed, for people.

        >>> SealedCluster("standalone", "master spark://spark.example.com:7077", "4.1").text
        'release 4.1, master spark://spark.example.com:7077'
        """
        known = (("release", self.release), ("image", self.image))
        return ", ".join([*(f"{name} {value}" for name, value in known if value), self.queue])


def seal_clusters(clusters: Clusters) -> tuple[SealedCluster, ...]:
    """What a plan seals of the declared clusters."""
    declared = ((target, clusters.find(target)) for target in STARTABLE)
    return tuple(seal_cluster(target, one) for target, one in declared if one is not None)


def seal_cluster(target: str, one: AnyCluster) -> SealedCluster:
    """What a plan seals of one cluster."""
    return SealedCluster(target, one.queue, one.release, one.image)


def require_sealed(target: str, run_id: str, sealed: Sequence[SealedCluster], declared: Clusters) -> AnyCluster:
    """The declared cluster of this kind; refuses one that is not declared, not sealed, or not what was sealed."""
    one = declared.find(target)
    if one is None:
        raise Refused(
            f"--start {target} was refused; expected clusters.{target} in errata.yaml, found none",
            state=_STATE,
            hint=f"declare it and plan again; errata submit {run_id} --print {target} prints a command instead",
        )
    now = seal_cluster(target, one)
    then = next((known for known in sealed if known.target == target), None)
    if then is None:
        raise Refused(
            f"--start {target} was refused; the plan of {run_id} seals no cluster of this kind, because "
            "errata.yaml had none when it was planned",
            state=_STATE,
            hint=f'errata plan … --supersede {run_id} --reason "…"',
        )
    for name in ("release", "image", "queue"):
        if getattr(now, name) != getattr(then, name):
            raise Refused(
                f"--start {target} was refused; the plan seals {name} {getattr(then, name) or 'none'}, "
                f"errata.yaml has {getattr(now, name) or 'none'}",
                state=_STATE,
                hint=f'set it back in errata.yaml, or: errata plan … --supersede {run_id} --reason "…"',
            )
    return one
