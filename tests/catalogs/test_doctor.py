"""The doctor asks a catalog from both sides, because both sides commit to it."""

from __future__ import annotations

from collections.abc import Callable

from support.world import World


def test_the_doctor_asks_every_catalog_from_python_and_from_java(make_world: Callable[..., World]):
    """With ``deep`` both must answer with the same namespaces."""
    world = make_world(days=1)
    checks = {check.name: check for check in world.client.doctor(deep=True)}
    assert [check.found for check in checks.values() if not check.ok] == []
    assert checks["catalog lake"].found == checks["catalog lake in Java"].found
    assert checks["catalog lake"].found.endswith("namespaces: 1")
