"""Products that are published in waves, and what readers see of them."""

from __future__ import annotations

from support.memory_world import MemoryWorld
from support.world import PRODUCT_FILE

ALONE = PRODUCT_FILE.replace("rollback_window: 30d", "rollback_window: 30d, manual: false")
"""A product that publishes without a person."""


def in_waves(settings: str, product: str = PRODUCT_FILE) -> str:
    """The product, published in waves with these settings."""
    old = "{mode: replace_partitions,"
    assert old in product
    return product.replace(old, f"{old} waves: {{{settings}}},")


def seen(world: MemoryWorld, right: tuple[str, ...]) -> bool:
    """Whether readers see these days corrected and all others as they were."""
    wrong = [day for day in world.days if day not in right]
    corrected = world.expected(right) if right else []
    return world.rows() == sorted([*corrected, *(world.wrong(wrong) if wrong else [])])
