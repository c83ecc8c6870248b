"""A plan that brings columns says so, and when readers will see them."""

from __future__ import annotations

from errata.cli.render.plan import render_plan
from unit.cli import samples


def test_a_plan_shows_the_columns_that_readers_will_see():
    """Name and type; a plan without any has no such line."""
    lines = render_plan(samples.plan(new_columns={"margin_rate": "decimal(9, 4)"}), 100)
    (first,) = [n for n, line in enumerate(lines) if line.strip().startswith("columns")]
    said = " ".join(line.strip() for line in lines[first : first + 2])
    assert "margin_rate decimal(9, 4)" in said
    assert "1 new column, which readers see with the publication and not before" in said
    assert not any(line.strip().startswith("columns") for line in render_plan(samples.plan(), 100))
