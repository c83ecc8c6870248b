"""The ``publish`` section: modes, and the keys that each needs or refuses."""

from __future__ import annotations

import pytest

from errata.model.product import Merge, Publish
from errata.project import load_project
from unit.project.conftest import PRODUCT, Write
from unit.project.test_load import problems_of


def publishing(text: str, product: str = PRODUCT) -> str:
    """The product with this section."""
    return f"{product}publish: {text}\n"


@pytest.mark.parametrize(
    "section, expected",
    [
        ("{}", Publish()),
        ("{mode: append}", Publish("append")),
        ("{mode: merge}", Publish("merge", Merge())),
        (
            '{mode: merge, merge: {version: updated_at, delete: "is_deleted"}}',
            Publish("merge", Merge("updated_at", "is_deleted")),
        ),
    ],
)
def test_a_mode_is_read_with_what_belongs_to_it(write: Write, section: str, expected: Publish):
    """What is not said has the default of the mode."""
    found = load_project(write(product=publishing(section))).products["fin.daily_revenue"]
    assert found.publish == expected


@pytest.mark.parametrize(
    "section, said",
    [
        ("{mode: overwrite}", "expected"),
        ("{mode: append, merge: {version: v}}", 'the key "merge" was refused in publish; it is for mode merge, not append'),
        ("{mode: merge, merge: {version: account_id}}", "expected a column outside the key"),
        ("{mode: merge, merge: {newest: v}}", "newest"),
    ],
)
def test_what_does_not_fit_the_mode_is_refused_with_a_sentence(write: Write, section: str, said: str):
    """A key that would do nothing is a mistake that nobody would notice."""
    found = problems_of(write(product=publishing(section)))
    assert any(said in problem for problem in found), found


def test_a_merge_needs_a_key(write: Write):
    """Rows meet by it."""
    keyless = PRODUCT.replace("  key: [business_date, account_id]\n", "")
    found = problems_of(write(product=publishing("{mode: merge}", keyless)))
    assert any("rows are merged by their key: expected target.key" in problem for problem in found), found
