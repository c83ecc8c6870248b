"""The context of a daily job: the same as that of a run, without one."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import errata
from errata.errors import TransformFailed
from unit.testing.test_guide import PRODUCT, PROJECT


def test_the_hint_about_quarantine_names_a_parameter_that_there_is(tmp_path: Path) -> None:
    """A daily job that has nowhere to put rows is told what to pass."""
    for place, text in {"errata.yaml": PROJECT, "products/daily_revenue.yaml": PRODUCT}.items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text)
    context = errata.live_context(str(tmp_path), "fin.daily_revenue", ("2026-01-01", "2026-01-02"))
    with pytest.raises(TransformFailed) as refused:
        context.quarantine(None, "amount < 0", "negative")
    assert refused.value.hint == "errata.live_context(…, quarantine=function of rows and reason)"
    assert "quarantine" in inspect.signature(errata.live_context).parameters
    given = errata.live_context(str(tmp_path), "fin.daily_revenue", ("2026-01-01", "2026-01-02"), lambda *_: None)
    assert given.partitions == ("2026-01-01",)
