"""What differs between the rules of two plans."""

from __future__ import annotations

from errata.gate.rule_changes import list_rule_changes
from errata.model.product import Check, Comparison, Reconciliation
from errata.model.product.rules import Metric, Threshold
from unit.gate.manifests import manifest

NONE_NULL = Check("no nulls", Metric.NULL_VALUES, Threshold("mustBe", "0"), ("account",))
STRICT = Comparison("sum(net)", "sum(net)", "10%", "60%")


def _told(before: dict, after: dict) -> list[str]:
    return [one.text() for one in list_rule_changes(manifest(**before), manifest(**after), "bf-1")]


def test_the_same_rules_give_no_change():
    """Also when their order differs."""
    other = Comparison("count(*)", "count(*)", block="5%")
    assert _told({"compare": (STRICT, other)}, {"compare": (other, STRICT)}) == []


def test_a_changed_limit_is_told_with_both_values_and_nothing_else():
    """Only what differs is named; a limit that is gone is none."""
    loose = Comparison("sum(net)", "sum(net)", "10%", "95%")
    assert _told({"compare": (STRICT,)}, {"compare": (loose,)}) == [
        "compare sum(net): block 60% → block 95% (since bf-1)"
    ]
    assert _told({"compare": (STRICT,)}, {"compare": (Comparison("sum(net)", "sum(net)", "10%"),)}) == [
        "compare sum(net): block 60% → block none (since bf-1)"
    ]


def test_a_changed_threshold_or_condition_of_a_check_is_told():
    """A rule can be loosened by its threshold, its severity or the rows that it looks at."""
    loose = Check("no nulls", Metric.NULL_VALUES, Threshold("mustBeLessThan", "5"), ("account",), severity="warn")
    (told,) = _told({"checks": (NONE_NULL,)}, {"checks": (loose,)})
    assert "threshold mustBe 0, severity block → threshold mustBeLessThan 5, severity warn" in told
    exact = Reconciliation("net", "raw", "sum(a)", "sum(b)")
    some = Reconciliation("net", "raw", "sum(a)", "sum(b)", where="a > 0")
    (told,) = _told({"reconcile": (exact,)}, {"reconcile": (some,)})
    assert told == "reconcile net: where none → where a > 0 (since bf-1)"


def test_a_rule_that_is_gone_or_new_is_told_with_what_it_says():
    """A removed rule is the loosest of all."""
    (gone,) = _told({"checks": (NONE_NULL,)}, {"checks": ()})
    assert gone.startswith("check no nulls: removed, was metric nullValues, threshold mustBe 0, columns account")
    (new,) = _told({"compare": ()}, {"compare": (STRICT,)})
    assert new == "compare sum(net): new, metric sum(net), warn 10%, block 60% (since bf-1)"
