"""One version of a rule means one thing, and the table has the columns that tell where events come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from errata.model.manifest import Estimate
from errata.model.product.reconstruction import Match, RebuildRule, Reconstruction
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.inputs.rebuild_rules import check_rule_versions, find_origin_problems
from errata.planning.plan_context import PlanContext, SealedRules
from unit.planning.test_references import CODE, INPUTS, NOW, PRODUCT, PROJECT, TARGET, ask

NEAR = RebuildRule("api", "1", "api", match=Match(("user_id",), 5))
RULES = Reconstruction("event_id", "ts", (RebuildRule("retry", "1", "retry", identity=("event_id",)), NEAR))
ORIGINS = {"origin": "string", "rule": "string", "rule_version": "string", "confidence": "decimal(3, 2)"}


def _check(rules: Reconstruction | None, sealed: Sequence[SealedRules]) -> list[GuardrailResult]:
    product = replace(PRODUCT, reconstruct=rules)
    world = PlanContext(
        ask(), product, PROJECT.limits, ("2026-01-01",), TARGET, INPUTS, CODE, Estimate(0, 0, 0, 0, "0", ""), NOW,
        sealed_rules=sealed,
    )  # fmt: skip
    return list(check_rule_versions(world))


def _sealed(
    rules: Reconstruction = RULES, zip_digest: str = CODE.zip_digest, version: str = CODE.version
) -> SealedRules:
    return SealedRules("bf-1", rules, version, zip_digest)


def _with(rule: RebuildRule) -> Reconstruction:
    return replace(RULES, rules=(RULES.rules[0], rule))


def test_a_rule_that_changed_under_its_version_is_refused() -> None:
    """The message has both meanings and the run; a person may override it on the record."""
    (result,) = _check(_with(replace(NEAR, match=Match(("user_id",), 60))), [_sealed()])
    assert (result.level, result.final) == ("refuse", False)
    assert result.message == ("rule api 1 was match on user_id within 5 in bf-1, and is match on user_id within 60 now")


@pytest.mark.parametrize(
    "rules, sealed, level",
    [
        (_with(replace(NEAR, version="2", confidence="0.5")), [_sealed()], "ok"),
        (RULES, [_sealed()], "ok"),
        (RULES, [], "ok"),
        (RULES, [_sealed(zip_digest="other")], "warn"),
        (RULES, [_sealed(zip_digest="other", version="0.1")], "ok"),
    ],
    ids=["new-version", "unchanged", "first", "other-code", "other-code-and-version"],
)
def test_other_rules_and_code(rules: Reconstruction, sealed: Sequence[SealedRules], level: str) -> None:
    """A new version may mean anything; other code under the same versions is named."""
    (result,) = _check(rules, sealed)
    assert result.level == level


def test_products_without_such_rules_have_no_such_guardrail() -> None:
    """Plans of before have the guardrails of before."""
    assert not _check(None, [_sealed()])


def test_a_table_needs_the_columns_that_tell_the_origin() -> None:
    """Each missing or wrong column is one sentence, with what to add."""
    product = replace(PRODUCT, reconstruct=RULES)
    types = {"event_id": "string", "ts": "timestamp", "user_id": "string", **ORIGINS}
    assert not find_origin_problems(product, "lake.events", types)
    del types["origin"], types["user_id"]
    types["confidence"] = "double"
    assert find_origin_problems(product, "lake.events", types) == (
        "lake.events has no column user_id, which reconstruct compares",
        (
            "lake.events has no column origin, which tells how an event got there; add it under target.add_columns: "
            "origin: string"
        ),
        "confidence of lake.events is double; reconstruct needs decimal(3,2)",
    )
