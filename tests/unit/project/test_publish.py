"""The ``publish`` section: modes, and the keys that each needs or refuses."""

from __future__ import annotations

import pytest

from errata.model.product import Freeze, Merge, Publish, Waves
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
        ("{corrections: lake.fin.c}", Publish(corrections="lake.fin.c")),
        ("{waves: {size: 7}}", Publish(waves=Waves("7"))),
        ("{waves: {size: 7, pause: 30min}}", Publish(waves=Waves("7", "30min"))),
        ("{waves: {size: 30d, pause: 30min, order: oldest}}", Publish(waves=Waves("30d", "30min", "oldest"))),
        ("{on_live_write: freeze}", Publish(on_live_write="freeze", freeze=Freeze(3600, 28_800))),
        (
            "{on_live_write: freeze, freeze: {idle: 10min, at_most: 2h}}",
            Publish(on_live_write="freeze", freeze=Freeze(600, 7200)),
        ),
        ("{on_live_write: live_wins}", Publish(on_live_write="live_wins")),
        ("{mode: corrections, corrections: lake.fin.c}", Publish("corrections", corrections="lake.fin.c")),
        ("{mode: version, versions: lake.fin.v}", Publish("version", versions="lake.fin.v")),
        (
            "{mode: swap_view, view: lake.fin.now}",
            Publish("swap_view", view="lake.fin.now", versions="lake.fin.errata_swap_daily_revenue"),
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
        ("{waves: {size: 7, pause: 30m}}", "expected a whole number and s, min, h or d, such as 30min"),
        (
            "{mode: append, merge: {version: v}}",
            'the key "merge" was refused in publish; it is for mode merge, not append',
        ),
        ("{mode: merge, merge: {version: account_id}}", "expected a column outside the key"),
        ("{mode: merge, merge: {newest: v}}", "newest"),
        ("{waves: {pause: 1h}}", "size"),
        ("{waves: {size: 0}}", "expected a number of partitions, at least 1, or a whole number and h, d, w, mo or y"),
        ("{waves: {size: 6h}}", "duration '6h' was refused; expected whole days"),
        ("{waves: {size: 7, release: none}}", "none was refused; a run without a person needs publish.manual: false"),
        ("{waves: {size: 7, release: first}}", 'first needs the key "within"'),
        ("{waves: {size: 7, within: {rows: 5%}}}", "it is for release: first"),
        (
            "{waves: {size: 7, release: first, within: {sum(nothing): 5%}}}",
            "sum(nothing) was refused; expected rows, or the metric of a compare rule",
        ),
        ("{groups: {size: 7, hold: 1h}}", "groups"),
        ("{waves: {size: 7, pause: 31d}}", "at most 30d"),
        ("{waves: {size: 7, pause: 1mo}}", "such as 30min"),
        ("{waves: {size: 7, order: random}}", "order"),
        ("{on_live_write: overwrite}", "expected one of conflict, freeze, live_wins"),
        ("{freeze: {idle: 1h}}", "it is for on_live_write: freeze"),
        (
            "{on_live_write: freeze, freeze: {idle: 2h, at_most: 1h}}",
            "at_most; found 2 h 00 m and 1 h 00 m",
        ),
        ("{on_live_write: freeze, freeze: {idle: 0s}}", "expected"),
        ("{mode: append, on_live_write: live_wins}", "it is for mode replace_partitions and merge, not append"),
        ("{mode: corrections}", 'this mode needs the key "corrections"'),
        ("{mode: version}", 'this mode needs the key "versions"'),
        ("{mode: swap_view}", 'this mode needs the key "view"'),
        ("{view: lake.fin.now}", "it is for mode version and swap_view, not replace_partitions"),
        ("{corrections: other.fin.c}", "expected a name in a catalog of errata.yaml (lake)"),
        ("{corrections: lake.fin.daily_revenue}", "expected a unique name; target.table has it"),
        ("{mode: version, versions: lake.fin.v, view: lake.fin.v}", "publish.versions has it"),
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


def test_corrections_need_a_key_whose_names_are_free(write: Write):
    """The key stands beside what a correction says."""
    keyless = PRODUCT.replace("  key: [business_date, account_id]\n", "")
    found = problems_of(write(product=publishing("{corrections: lake.fin.c}", keyless)))
    assert any("corrections are written by key: expected target.key" in problem for problem in found), found
    taken = PRODUCT.replace("account_id]", "reason]")
    found = problems_of(write(product=publishing("{corrections: lake.fin.c}", taken)))
    assert any("reason is a column of its own in publish.corrections" in problem for problem in found), found


def test_a_target_that_is_not_touched_gets_no_columns(write: Write):
    """They would never be there."""
    adding = PRODUCT.replace("  key:", "  add_columns: {margin: long}\n  key:")
    found = problems_of(write(product=publishing("{mode: version, versions: lake.fin.v}", adding)))
    assert any("expected no add_columns" in problem for problem in found), found


def test_live_cannot_win_where_partitions_rest_on_each_other(write: Write):
    """All that follows would have to be computed again."""
    own = PRODUCT.replace("inputs:\n", "inputs:\n  before: {own: true, lookback: 1d}\n")
    found = problems_of(write(product=publishing("{on_live_write: live_wins}", own)))
    assert any("reads its own output" in problem for problem in found), found
