"""Distribution rules as product files write them."""

from __future__ import annotations

import pytest

from errata.model.product import Distribution
from unit.project.conftest import PRODUCT, Write
from unit.project.test_load import problems_of, product_with


def test_rules_have_names_and_defaults(write: Write):
    """Against the prior output; a rule is named by what it compares."""
    product = product_with(
        write,
        "distribution:\n"
        "  - {column: gross, quantiles: [0.5, 0.95], warn: 5%, block: 20%}\n"
        "  - {column: currency, shares: true, against: control, weeks: 8, least: 5, warn: 5%}\n"
        "  - {name: mix, column: currency, shares: true, block: 30%}\n",
    )
    assert product.distribution == (
        Distribution("quantiles(gross)", "gross", ("0.5", "0.95"), warn="5%", block="20%"),
        Distribution(
            "shares(currency) against control", "currency", shares=True, against="control", reach=8, least=5, warn="5%"
        ),
        Distribution("mix", "currency", shares=True, block="30%"),
    )


@pytest.mark.parametrize(
    "line,said",
    [
        ("{column: a, warn: 5%}", "distribution[0]: expected one of quantiles and shares: true"),
        ("{column: a, quantiles: [0.5], shares: true, warn: 5%}", "expected one of quantiles and shares: true"),
        ("{column: a, quantiles: [], warn: 5%}", "distribution[0].quantiles: expected at least 1 entry"),
        ("{column: a, quantiles: [0.5]}", "distribution[0]: expected warn or block or both"),
        ("{column: a, quantiles: [0.5], warn: 9%, block: 8%}", "expected no more than block, 8%"),
        ("{column: a, quantiles: [50], warn: 5%}", "expected a number between 0 and 1, such as 0.95; found 50"),
        ("{column: a, quantiles: [0.5, 0.50], warn: 5%}", "distribution[0].quantiles[1]: given twice; found 0.50"),
        ("{column: a, quantiles: [p50], warn: 5%}", "expected a decimal number such as 0.5"),
        ("{column: a, shares: true, warn: 0.05}", "shares move by percentage points; expected a percentage such as 5%"),
        ("{column: a, shares: true, warn: 5%, against: live}", "expected one of prior, control"),
        ("{column: a, shares: true, warn: 5%, weeks: 3}", 'the key "weeks" in distribution[0] belongs to against'),
        ("{column: a, shares: true, warn: 5%, least: 3}", 'the key "least" in distribution[0] belongs to against'),
        ("{column: a, shares: true, warn: 5%, against: control, years: 3}", "does not fit a target by day; use weeks"),
        ("{column: a, shares: true, warn: 5%, against: control, weeks: 1}", "expected at most 2"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(write: Write, line: str, said: str):
    """Each with the key at fault."""
    found = problems_of(write(product=PRODUCT + f"distribution:\n  - {line}\n"))
    assert any(said in str(problem) for problem in found), found


def test_a_classified_column_is_not_shown(write: Write):
    """Quantiles and shares are values of rows, which everyone who reads a verdict would see."""
    rules = "distribution:\n  - {column: iban, shares: true, warn: 5%}\n  - {column: pay, quantiles: [0.5], warn: 5%}\n"
    found = [str(one) for one in problems_of(write(product=PRODUCT + rules + "classified: [iban, pay]\n"))]
    assert any("distribution[0].column: shares are named by the values" in one for one in found), found
    assert any("distribution[1].column: a quantile shows a value of a row" in one for one in found), found
