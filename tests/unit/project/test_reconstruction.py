"""Rules for events that were never recorded, as product files write them."""

from __future__ import annotations

import pytest

from errata.model.product.reconstruction import Match, RebuildRule, Reconstruction
from errata.project import load_project
from unit.project.conftest import PRODUCT, Write
from unit.project.test_load import problems_of

HEAD = "reconstruct:\n  id: event_id\n  time: ts\n  rules:\n"
EXACT = "{name: retry, version: 1, source: transactions, identity: [event_id]}"
NEAR = "{name: api, version: 2.10, source: transactions, match: {on: [user_id], within: 5s}, confidence: 0.8}"
WIDE = PRODUCT + "    lookback: 1d\n    lookahead: 1d\n"


def test_rules_are_read_in_order(write: Write) -> None:
    """Versions keep their text, lengths become seconds."""
    loaded = load_project(write(product=WIDE, extra=HEAD + f"    - {EXACT}\n    - {NEAR}\n"))
    assert loaded.products["fin.daily_revenue"].reconstruct == Reconstruction(
        "event_id",
        "ts",
        (
            RebuildRule("retry", "1", "transactions", identity=("event_id",)),
            RebuildRule("api", "2.10", "transactions", match=Match(("user_id",), 5), confidence="0.8"),
        ),
    )


@pytest.mark.parametrize(
    "product, lines, said",
    [
        (WIDE, [NEAR, EXACT], "retry goes by identity and comes after api"),
        (WIDE, [EXACT, EXACT], "expected a unique name; rule 1 has it"),
        (WIDE, [NEAR.replace("match: {on: [user_id], within: 5s}, ", "")], "expected one of identity and match"),
        (WIDE, [EXACT.replace("identity", "key: [a], identity")], "the key belongs to match"),
        (WIDE, [NEAR.replace("0.8", "1.2")], "expected a number from 0 to 1"),
        (WIDE, [NEAR.replace("0.8", "0.805")], "at most two digits after the point"),
        (WIDE, [NEAR.replace("source: transactions", "source: api")], "expected one of the inputs transactions"),
        (PRODUCT, [NEAR], "expected lookback of at least 1 day in inputs.transactions"),
        (WIDE, [NEAR.replace("5s", "2d")], "expected lookahead of at least 2 days in inputs.transactions"),
        (WIDE.replace("transform:", "publish: {mode: append}\ntransform:"), [EXACT], "expected publish.mode replace"),
    ],
)
def test_a_rule_that_could_count_twice_or_cannot_be_meant_is_refused(
    write: Write, product: str, lines: list[str], said: str
) -> None:
    """Each with the key at fault."""
    found = problems_of(write(product=product, extra=HEAD + "".join(f"    - {line}\n" for line in lines)))
    assert any(said in problem for problem in found), found
