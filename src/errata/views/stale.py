"""Which partitions no longer follow from their inputs, and why. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StaleReasonView:
    """Why a partition is stale or waits; ``input`` is None if it concerns none, such as changed code."""

    input: str | None
    basis: str  # recorded | reported | time
    what: str
    event: str  # the same without the partitions of the input
    partitions: tuple[str, ...] = ()  # of the input
    parent: str | None = None  # the product that is stale itself
    grain: str = "value"  # of these partitions


@dataclass(frozen=True, slots=True)
class StalePartitionView:
    """One partition of a product, and what the answer rests on."""

    product: str
    partition: str
    state: str  # current | stale | waiting
    basis: str  # recorded | reported | time
    reasons: tuple[StaleReasonView, ...] = ()


@dataclass(frozen=True, slots=True)
class StaleProductView:
    """A product with the number of its partitions by state; ``problem`` says why it could not be looked at."""

    product: str
    table: str
    grain: str
    partitions: int
    stale: int
    waiting: int
    problem: str = ""
    next: str = ""  # the command that plans what is stale and in no active run, or that shows the run


@dataclass(frozen=True, slots=True)
class StaleView:
    """Partitions of one or all products; ``ok`` if none is stale and every product could be looked at."""

    ok: bool
    products: tuple[StaleProductView, ...]
    partitions: tuple[StalePartitionView, ...]
