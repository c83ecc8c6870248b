"""What is looked at after a publication, and for how long. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from errata.model.file_keys import Key
from errata.model.file_values import Length, Slug, Title, YesNo


@dataclass(frozen=True, slots=True)
class Watch:
    """Looks at what live jobs write next to a publication, and at health signals, until the time is over."""

    for_seconds: Annotated[Length, Key("How long after a publication.", path="for")]
    channel: Annotated[Slug, Key("Where an alarm goes.")]
    every_seconds: Annotated[Length, Key("Time between two looks.", path="every", default="15min")] = 900
    metrics: Annotated[
        tuple[Title, ...], Key("Control rules to judge again on partitions that live jobs write (default: all).")
    ] = ()
    health: Annotated[tuple[Slug, ...], Key("Health signals that must stay below pause_above.")] = ()
    suggest_rollback: Annotated[YesNo, Key("Put the rollback command into the alarm.")] = True
