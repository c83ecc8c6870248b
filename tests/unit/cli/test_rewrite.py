"""A plan that writes rows anew says so, why, and how much."""

from __future__ import annotations

from errata.cli.render.plan import render_plan
from unit.cli import samples

WHY = "lake.fin.daily is partitioned by nothing, not by day of day"


def test_a_plan_in_mode_rewrite_says_why_and_how_much():
    """And that others keep their rows, because they do not keep their files."""
    rewrite = {"why": WHY, "files": 3, "rows": 1_200_000, "bytes": 9_000_000}
    text = " ".join(" ".join(render_plan(samples.plan(rewrite=rewrite), 100)).split())
    assert f"rewrites up to 3 files, 1.2 M rows, 9.0 MB {WHY}" in text
    assert "others keep their rows; shared files are rewritten" in text
    assert "files untouched" not in text


def test_a_plan_without_shared_files_says_that_nothing_is_written_anew():
    """Bounds prove that each file is of one partition."""
    text = " ".join(render_plan(samples.plan(rewrite={"why": WHY, "files": 0, "rows": 0, "bytes": 0}), 100))
    assert "no file is shared" in text
    assert "rewrites" not in " ".join(render_plan(samples.plan(), 100))
