"""Eras, row rules and limits of an input: what a product file may say, and what no source could mend."""

from __future__ import annotations

from errata.model.product.eras import Era, RowLimits, RowRule
from errata.project import load_project
from unit.project.conftest import PRODUCT, Write
from unit.project.test_load import problems_of

FULL = """\
    columns: {account: string, amount: "decimal(12,2)", tags: "array<struct<k:string,n:bigint>>"}
    eras:
      - {name: text, from: 2024-01-01, until: 2024-06-30, rename: {Acct No: account}, cast: {amount: "decimal(12,2)"},
         default: {tags: null}, drop: [account]}
      - {has: [tags], lacks: [amt]}
    rows:
      - {name: test accounts, expression: "account like 'test%'", action: suppress}
    quarantine: {warn: 0.1%, block: 1%}
"""


def test_every_key_of_an_input_has_its_value(write: Write):
    """Types are written in one way, eras without a name are counted, a default may be NULL if it says so."""
    product = load_project(write(extra=FULL)).products["fin.daily_revenue"]
    (source,) = product.inputs
    assert source.columns == {
        "account": "string",
        "amount": "decimal(12, 2)",
        "tags": "array<struct<k:string,n:long>>",
    }
    assert source.eras == (
        Era(
            "text",
            "2024-01-01",
            "2024-06-30",
            rename={"Acct No": "account"},
            cast={"amount": "decimal(12, 2)"},
            default={"tags": None},
            drop=("account",),
        ),
        Era("era-2", has=("tags",), lacks=("amt",)),
    )
    assert source.rows == (RowRule("test accounts", "account like 'test%'", "suppress"),)
    assert product.row_limits == (RowLimits("transactions", "0.1%", "1%"),)


def _said(write: Write, text: str) -> list[str]:
    return [problem.partition(": ")[2] for problem in problems_of(write(extra=text))]


def test_eras_agree_with_the_columns(write: Write):
    """Only declared columns are made, in their declared types, in one way each."""
    columns = '    columns: {account: string, amount: "decimal(12,2)"}\n    eras:\n'
    place = "inputs.transactions.eras[0]"
    assert _said(write, "    eras: [{name: v}]\n") == ['missing key "columns" in inputs.transactions, which eras need']
    assert _said(write, columns + "      - {rename: {acct: acount}}\n") == [
        f'{place}.rename: expected a column of columns, found acount (nearest: "account")'
    ]
    assert _said(write, columns + "      - {cast: {amount: long}}\n") == [
        f'{place}.cast.amount: expected decimal(12, 2), the type in columns; found "long"'
    ]
    assert _said(write, columns + "      - {default: {amount: 1.005}}\n") == [
        f"{place}.default.amount: expected a value of type decimal(12, 2), or null; found 1.005"
    ]
    assert _said(write, columns + "      - {default: {business_date: 2024-01-01}}\n") == [
        f"{place}.default.business_date: business_date is the partition column, which is read as it is"
    ]
    (said,) = _said(write, columns + "      - {cast: {amount: money}}\n")
    assert said.startswith(f"{place}.cast.amount: expected one of boolean, int, long, float, ")
    assert said.endswith('array<…>, map<…,…> or struct<name:…>; found "money"')


def test_spans_are_partitions_and_do_not_overlap(write: Write):
    """Eras that look at no column must be apart; with has and lacks only real files can tell."""
    head = "    columns: {account: string}\n    eras:\n"
    assert _said(write, head + "      - {from: 2024-07}\n") == [
        'inputs.transactions.eras[0].from: expected a partition of grain day; found "2024-07"'
    ]
    assert _said(write, head + "      - {from: 2024-02-01, until: 2024-01-01}\n") == [
        'inputs.transactions.eras[0].until: expected 2024-02-01 or later; found "2024-01-01"'
    ]
    assert _said(write, head + "      - {until: 2024-02-01}\n      - {from: 2024-02-01}\n") == [
        "inputs.transactions.eras[1]: era-2 and era-1 cover the same partitions; expected spans apart, or has and lacks"
    ]
    assert load_project(write(extra=head + "      - {until: 2024-02-01}\n      - {from: 2024-02-01, has: [x]}\n"))
    whole = PRODUCT.replace("    partition: business_date\n", "").replace("business_date={business_date}/", "")
    found = problems_of(write(product=whole, extra=head + "      - {from: 2024-02-01}\n"))
    assert [text.partition(": ")[2] for text in found] == [
        'inputs.transactions.eras[0].from: a span of partitions needs the key partition beside it; found "2024-02-01"'
    ]


def test_row_rules_have_names_of_their_own_and_limits_an_order(write: Write):
    """Reasons are names, so none may read like Errata's own; a warning comes before a refusal."""
    rule = '{name: NAME, expression: "a > 1", action: suppress}'
    twice = f"    rows: [{rule}, {rule}]\n".replace("NAME", "big")
    assert _said(write, twice) == ['inputs.transactions.rows[1]: expected a unique name; "big" is taken']
    assert _said(write, f"    rows: [{rule}]\n".replace("NAME", '"cast a"')) == [
        'inputs.transactions.rows[0].name: names that begin with "cast ", "text " or "line " are taken; found "cast a"'
    ]
    assert _said(write, "    quarantine: {warn: 2%, block: 1%}\n") == [
        'inputs.transactions.quarantine.warn: expected no more than block; found "2%"'
    ]
    assert _said(write, "    quarantine: {}\n") == ["inputs.transactions.quarantine: expected warn or block or both"]


def test_own_output_has_no_eras(write: Write):
    """What the run itself writes has the target's columns."""
    own = "  previous: {own: true, lookback: 1d, columns: {a: string}}\n"
    assert _said(write, own) == ['the key "columns" was refused in inputs.previous; own output is the target']
