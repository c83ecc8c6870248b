"""What a change of partitions touches: products, models of dbt, exposures and consumers. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from errata.model.partition import Grain, format_ranges
from errata.text.numbers import plural

_SHOWN = 6
"""Maximum number of partition ranges in a sentence."""


@dataclass(frozen=True, slots=True)
class ReadingView:
    """One input through which a product is touched."""

    input: str
    product: str  # whose table it is
    because: str = ""  # why all partitions are touched, or what has to happen first


@dataclass(frozen=True, slots=True)
class TouchedView:
    """A product that reads what was changed, directly or through other products."""

    product: str
    table: str
    owner: str
    grain: str
    partitions: tuple[str, ...]
    since: str | None  # every partition from here on is touched too
    all: bool  # every partition is touched; ``reads`` says why
    reads: tuple[ReadingView, ...]
    consumers: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()  # would be touched, but the table does not have them
    located: bool = False  # whether the table was looked at, so that ``partitions`` are those that it has

    def text(self) -> str:
        """Its partitions that are touched, in a line."""
        unit = "partition" if self.grain == Grain.VALUE else self.grain
        number, told = plural(len(self.partitions), unit), []
        why = " and ".join(dict.fromkeys(one.because for one in self.reads if one.because))
        if self.all:
            told.append(f"all partitions ({number}) because {why}" if self.located else f"all partitions because {why}")
        elif self.partitions:
            told.append(f"{self._fold(self.partitions)} ({number})")
        elif self.since is None:
            told.append("no partition that it has" if self.located else "no partition")
        if self.since is not None and not self.all:
            told.append(f"every {unit} from {self.since} on")
        if self.absent:
            told.append(f"not in the table: {self._fold(self.absent)}")
        return ", ".join(told) + (f"; {why}" if why and not self.all else "")

    def _fold(self, partitions: tuple[str, ...]) -> str:
        return format_ranges(Grain(self.grain), partitions, most=_SHOWN)


@dataclass(frozen=True, slots=True)
class DbtModelView:
    """A model of dbt that reads a touched table, directly or through other models."""

    unique_id: str
    name: str
    reads: tuple[str, ...]  # tables, and unique ids of other models
    event_time: str | None
    materialized: str
    relation: str
    path: str


@dataclass(frozen=True, slots=True)
class ExposureView:
    """An exposure of dbt that uses a touched model or table."""

    unique_id: str
    name: str
    type: str
    owner: str
    email: str
    url: str
    reads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TellView:
    """Events that a consumer gets a message about, and the channel that it comes through."""

    consumer: str
    channel: str
    by: str  # slack, webhook, email, file or command
    on: tuple[str, ...]

    def text(self) -> str:
        """In a line."""
        events = " and ".join([", ".join(self.on[:-1]), self.on[-1]] if len(self.on) > 1 else self.on)
        return f"{self.consumer}: gets a message when {events.replace('_', ' ')} (channel {self.channel}, {self.by})"


@dataclass(frozen=True, slots=True)
class ImpactView:
    """What a change of partitions of a product touches."""

    product: str
    table: str
    grain: str
    partitions: tuple[str, ...]
    products: tuple[TouchedView, ...] = ()
    dbt: tuple[DbtModelView, ...] = ()
    exposures: tuple[ExposureView, ...] = ()
    consumers: tuple[str, ...] = ()  # of the product and of those that are touched
    tells: tuple[TellView, ...] = ()  # consumers of the product that get messages
    notes: tuple[str, ...] = ()  # what could not be looked at

    def lines(self) -> tuple[str, ...]:
        """What is touched, without consumers: a line for each product, one for dbt and one for exposures."""
        told = [f"{one.product}: {one.text()}" for one in self.products]
        told += (
            [f"{plural(len(self.dbt), 'model')} of dbt: {', '.join(one.name for one in self.dbt)}"] if self.dbt else []
        )
        told += [f"exposures: {', '.join(map(_name_exposure, self.exposures))}"] if self.exposures else []
        return tuple(told)


def _name_exposure(one: ExposureView) -> str:
    return f"{one.name} ({one.owner})" if one.owner else one.name
