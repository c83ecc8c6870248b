"""What a notebook shows for the values that the client returns."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from errata.model.diff import MASK
from unit.cli import samples


def shown(view: Any) -> str:
    """The text that a reader of the notebook sees."""
    html = re.sub(r"<style>.*?</style>", "", view._repr_html_(), flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", html).replace("&lt;", "<").replace("&gt;", ">").split())


def test_a_plan_shows_scope_inputs_findings_and_digest():
    """A reviewer sees what is replaced and read, each guardrail with a finding, and the digest to approve."""
    text = shown(samples.plan())
    assert "45 partitions: 2026-01-01 … 2026-02-14" in text
    assert samples.DIGEST in text
    for verdict in samples.VERDICTS:
        assert (verdict.message in text) == (verdict.level != "ok")
    for source in samples.INPUTS:
        assert (source.files or source.table) in text


def test_a_status_shows_progress_failures_and_the_next_command():
    """States are counted, a failed chunk comes with its error, and the next command can be copied."""
    text = shown(samples.status())
    assert "1 of 4 done" in text
    assert "9 waiting, 6 failed, 15 running, 15 staged" in text
    assert "c0003: division by zero" in text
    assert f"errata run {samples.RUN}" in text
    assert "2026-01-03" in shown(samples.published_status())


def test_the_status_of_a_project_lists_its_runs():
    """One row per run, or a sentence where there is none."""
    text = shown(samples.runs())
    assert samples.RUN in text
    assert "part published" in text
    assert shown(replace(samples.runs(), runs=())) == "No runs."


def test_a_diff_shows_counts_sums_and_old_beside_new():
    """Rows are counted, only changed columns are listed, and a sample row shows both values."""
    text = shown(samples.diff())
    assert "45 of 45 partitions differ" in text
    assert "41.20 M 38.87 M" in text
    assert "event_count" not in text
    assert re.search(r"1,204\.11 → 1,021\.76", text)


def test_classified_columns_stay_masked():
    """The mask is shown in place of the value, and the column is named as classified."""
    text = shown(samples.diff())
    assert MASK in text
    assert "account_id: classified, values are not shown" in text


@pytest.mark.parametrize("warn, block, state", [(0, 0, "validated"), (5, 0, "rejected"), (0, 1, "rejected")])
def test_a_verdict_shows_every_rule_and_its_first_findings(warn: int, block: int, state: str):
    """A rule without findings is one row; of many findings the first three are shown, the others counted."""
    text = shown(samples.validation(warn=warn, block=block))
    assert state in text
    assert f"{45 - warn - block} of 45 ok" in text
    assert ("and 2 more" in text) == (warn == 5)


def test_a_trial_shows_verdict_and_diff():
    """What `try_out` returns shows both."""
    text = shown(samples.trial())
    assert "rejected" in text
    assert "1 of 1 partition differs" in text


@pytest.mark.parametrize("view", [samples.plan, samples.status, samples.diff, samples.validation, samples.trial])
def test_a_notebook_loads_nothing(view: Any):
    """The HTML has its style with it, no script and no address."""
    html = view()._repr_html_()
    assert "<style>" in html
    assert not re.search(r"<script|<link|<img|src=|href=|@import|url\(", html)
