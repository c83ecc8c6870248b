"""What a plan and a question before a deed say about modes other than the plain replacement."""

from __future__ import annotations

import pytest

from errata.cli.render.publish import render_publish
from errata.cli.render.publish_settings import describe_action, describe_publish
from errata.commands.plan.show import publish_view
from errata.model.kafka.declaration import TopicPlace
from errata.model.product.product import Publish
from unit.cli import samples

TARGET = "lake.fin.daily"
MODES = {
    "append": {"mode": "append"},
    "merge": {"mode": "merge", "key_version": "updated_at", "delete": "op = 'd'"},
    "swap_view": {"mode": "swap_view", "view": "lake.fin.now", "versions": "lake.fin.errata_swap_daily"},
    "version": {"mode": "version", "view": "lake.fin.ok", "versions": "lake.fin.v", "creates": ["CREATE TABLE v"]},
    "corrections": {"mode": "corrections", "corrections": "lake.fin.c"},
}


def test_the_default_needs_no_words():
    """The plan's line on partitions has said it."""
    assert describe_publish({"mode": "replace_partitions"}) == describe_publish({}) == []
    assert describe_action("publish", TARGET, {}) == "publish replaces in lake.fin.daily"
    assert describe_action("rollback", TARGET, MODES["merge"]) == "rollback restores in lake.fin.daily"
    assert describe_action("cancel", TARGET, MODES["append"]) == "cancel ends the run on lake.fin.daily"


@pytest.mark.parametrize("name", MODES)
def test_every_other_mode_is_told_in_the_plan_and_before_the_deed(name: str):
    """With the tables that it concerns, and whether the target is among them."""
    told = " ".join(describe_publish(MODES[name]))
    tables = [value for key, value in MODES[name].items() if key in ("view", "versions", "corrections")]
    assert told
    assert all(str(table) in told for table in tables)
    untouched = f"{TARGET} is not touched"
    for deed in ("publish", "rollback"):
        said = describe_action(deed, TARGET, MODES[name])
        assert said.startswith(deed)
        assert (untouched in said) == (name in ("swap_view", "version", "corrections"))


def test_a_plan_names_the_topic_that_gets_corrections():
    """Whoever approves the plan approves that events go out."""
    publish = Publish(corrections="lake.fin.c", corrections_topic=TopicPlace("events", "fixes"))
    told = describe_publish(publish_view(publish))
    assert told == ["old and new values by key in lake.fin.c", "sends them to kafka://events/fixes as well"]


def test_a_merge_says_what_rows_go_by():
    """Version and deletion are what a reviewer asks first."""
    told = " ".join(describe_publish(MODES["merge"]))
    assert "a row with an older updated_at changes nothing" in told
    assert "takes keys out where op = 'd'" in told


def test_a_table_that_will_be_made_is_shown_with_its_statement():
    """Word for word, because it is run word for word."""
    assert "first: CREATE TABLE v" in describe_publish(MODES["version"])


@pytest.mark.parametrize("width", [60, 120])
def test_a_refused_delivery_is_shown_once(width: int):
    """Its error is below the copy, so the warning with the same error is left out, and others stay."""
    refused = next(copy for copy in samples.copy_lines() if copy.error)
    warnings = (f"item 7 (copy to {refused.warehouse}:{refused.table}): {refused.error}", "the index is missing")
    text = " ".join(" ".join(render_publish(samples.publication(copies=(refused,), warnings=warnings), width)).split())
    assert text.count(str(refused.error)) == 1
    assert "the index is missing" in text
