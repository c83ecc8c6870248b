"""Thresholds that change after a run was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from errata.errors import UsageError
from errata.gate.threshold_changes import apply_thresholds, list_threshold_changes
from errata.model.product import Check, Comparison, Distribution, Metric, Product, Reconciliation, Threshold
from unit.gate.manifests import manifest

NULLS = Check("no nulls", Metric.NULL_VALUES, Threshold("mustBe", "0"), columns=("currency",))
GROSS = Reconciliation("gross", "transactions", "sum(amount)", "sum(gross)")
MOVED = Comparison("moved", "sum(gross)", warn="5%", block="60%")
MIX = Distribution("mix", "currency", shares=True, warn="5%")
SEALED = manifest(checks=(NULLS,), reconcile=(GROSS,), compare=(MOVED,), distribution=(MIX,))


def product(**sections: Any) -> Product:
    """Only the rules of a product file."""
    rules = {
        "checks": (NULLS,), "reconcile": (GROSS,), "compare": (MOVED,), "control": (), "row_limits": (),
        "distribution": (MIX,),
    }  # fmt: skip
    rules |= sections
    return cast("Product", type("Rules", (), rules)())


def test_thresholds_of_every_kind_of_rule_may_change_and_each_change_is_named() -> None:
    """What decides about a number is replaced; the record says from what to what."""
    nulls = replace(NULLS, threshold=Threshold("mustBeLessThan", "3"), severity="warn")
    after = apply_thresholds(
        SEALED,
        product(
            checks=(nulls,),
            reconcile=(replace(GROSS, tolerance="1%"),),
            compare=(replace(MOVED, warn="10%", block=None),),
            distribution=(replace(MIX, block="30%"),),
        ),
    )
    assert after == replace(
        SEALED, checks=(nulls,), reconcile=after.reconcile, compare=after.compare, distribution=after.distribution
    )
    changed = {change.name: (change.before, change.after) for change in list_threshold_changes(SEALED, after)}
    assert changed["gross"] == ({"tolerance": "0"}, {"tolerance": "1%"})
    assert changed["moved"] == ({"block": "60%", "warn": "5%"}, {"block": None, "warn": "10%"})
    assert changed["mix"] == ({"block": None}, {"block": "30%"})
    assert set(changed["no nulls"][0]) == {"severity", "threshold"}


def test_the_same_thresholds_are_no_change() -> None:
    """A product file that was not touched changes nothing."""
    assert apply_thresholds(SEALED, product()) == SEALED
    assert list_threshold_changes(SEALED, SEALED) == ()


@pytest.mark.parametrize(
    "sections, found",
    [
        ({"checks": (replace(NULLS, columns=("account_id",)),)}, "no nulls has another columns"),
        ({"reconcile": (replace(GROSS, source="count(*)"),)}, "gross has another source"),
        ({"compare": (replace(MOVED, metric="max(gross)"),)}, "moved has another metric"),
        ({"distribution": (replace(MIX, column="account_id"),)}, "mix has another column"),
        ({"distribution": (replace(MIX, against="control"),)}, "mix has another against"),
        ({"checks": ()}, "no nulls is gone"),
        ({"compare": (MOVED, replace(MOVED, name="again"))}, "again is new"),
    ],
)
def test_a_rule_that_would_need_another_number_is_refused(sections: dict[str, Any], found: str) -> None:
    """Rules neither come nor go nor measure something else after the scan."""
    with pytest.raises(UsageError) as refused:
        apply_thresholds(SEALED, product(**sections))
    assert found in refused.value.message
