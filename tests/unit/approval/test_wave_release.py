"""Whether the verdict on a wave is like enough to that on the first, and its change small enough, to go by itself."""

from __future__ import annotations

from typing import Any

import pytest

from errata.approval.wave_release import compare_rules, find_excess
from errata.model.product import Publish, Waves
from errata.ports.measure import CANDIDATE, PRIOR, ROW_COUNT, Measurement
from unit.gate.manifests import manifest

DAY = "2026-01-01"


def rule(name: str, level: str = "ok", value: str | None = "1") -> dict[str, Any]:
    return {"name": name, "level": level, "value": value}


def test_the_same_rules_that_found_nothing_are_alike() -> None:
    """Values may differ; rules that only this wave has do not matter."""
    assert compare_rules([rule("a")], [rule("a", value="7"), rule("b")]) == ""


def test_a_rule_that_was_skipped_has_not_judged() -> None:
    """No prior rows, too few controls: nothing was found because nothing was looked at."""
    assert compare_rules([rule("a"), rule("b")], [rule("a"), rule("b", value=None)]) == "the rule b was skipped"


def test_a_rule_that_is_missing_has_not_judged() -> None:
    """It judged the first wave, on which the person decided."""
    assert compare_rules([rule("a"), rule("b")], [rule("a")]) == "the rule b did not judge it"


def test_a_warning_is_a_finding() -> None:
    """Also one that someone accepted."""
    assert compare_rules([rule("a")], [rule("a", level="warn")]) == "its gate found something"


@pytest.mark.parametrize(
    "old, new, said",
    [("100", "105", ""), ("100", "95", ""), ("100", "106", "changes from 100 to 106, more than 5%"),
     ("0", "1", "changes from 0 to 1"), (None, "1", "cannot be compared")],
)  # fmt: skip
def test_a_change_stays_within_the_sealed_limit(old: str | None, new: str, said: str) -> None:
    """Up and down alike; what was not there before is no small change."""
    waves = Waves("1", release="first", within={"rows": "5%"})
    sealed = manifest(partitions=(DAY,), publish=Publish(waves=waves))
    found = [Measurement(CANDIDATE, DAY, ROW_COUNT, new)]
    found += [] if old is None else [Measurement(PRIOR, DAY, ROW_COUNT, old)]
    told = find_excess(sealed, found)
    assert (told == "") == (said == "")
    assert said in told
