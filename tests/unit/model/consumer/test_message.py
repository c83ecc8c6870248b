"""Messages that people like to read: what happened, to what, why, how much, and what to do."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from errata.model.consumer.declaration import EVENTS
from errata.model.consumer.message import Message, Metric, write_message
from errata.model.consumer.message_formats import list_rows, to_html, to_json, to_slack, to_text
from errata.model.diff import Movement
from errata.model.partition import Grain
from unit.model.consumer.message_samples import EVERYTHING, PUBLISHED, build_sample


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_has_a_message_of_a_few_sentences(event: str):
    """With the product in the title, and the run, the message's number and its id below."""
    message = build_sample(event)
    assert "fin.daily_revenue, " in message.title
    assert 1 <= len(message.sentences) <= 5
    assert all(sentence[-1] in ".!?" for sentence in message.sentences)
    text = to_text(message)
    assert message.occasion.run_id in text
    assert f"{message.sequence} to exec-dashboard, {message.id}" in text
    assert all(len(line) <= 120 for line in text.splitlines())


def test_one_partition_is_spoken_of_in_the_singular():
    """No message says 1 days, or were of one day."""
    for event in EVENTS:
        sample = build_sample(event)
        occasion = replace(sample.occasion, partitions=("2026-01-17",), reason="rounding")
        text = write_message(occasion, "exec-dashboard", "id", 1, EVERYTHING).text
        assert not re.search(r"\b1 days\b|\bthem\b|\bwere\b|\bthey\b", text, re.IGNORECASE), text


def test_partitions_without_a_calendar_are_partitions():
    """Values are not days."""
    occasion = replace(PUBLISHED, grain=Grain.VALUE, partitions=("EU", "US"), wave=(2, 5))
    message = write_message(occasion, "x", "id", 1)
    assert message.title == "Corrected: fin.daily_revenue, 2 partitions, wave 2 of 5"
    assert "2 partitions of fin.daily_revenue (EU, US) were replaced" in message.text


def test_what_follows_is_promised_only_to_those_who_get_it():
    """A consumer that hears only of plans is not promised another message."""
    planned = build_sample("planned").occasion
    assert "You get a message when it is published" in write_message(planned, "x", "id", 1, ("published",)).text
    assert "You get a message" not in write_message(planned, "x", "id", 1, ("planned",)).text


def test_the_table_has_totals_partitions_and_a_count_of_the_rest():
    """A metric of one partition is one row; one that does not add up has no total; a masked one has no number."""
    metrics = (
        Metric("rows", "10", "10", "0.00", has_total=True, partitions=(Movement("2026-01-17", "10", "10"),)),
        Metric(
            "avg(x)", partitions=(Movement("2026-01-17", "1.5", "3", None, "100"), Movement("2026-01-18", None, "2"))
        ),
        Metric(
            "sum(y)",
            "1",
            "3",
            "200.00",
            has_total=True,
            partitions=(Movement("2026-01-17", "1", "3", None, "200"),),
            more=4,
        ),
        Metric("sum(salary)", masked=True),
    )
    message = write_message(replace(PUBLISHED, metrics=metrics), "x", "id", 1)
    assert list(list_rows(message)) == [
        ("rows", "10", "10", "same"),
        ("avg(x)", "", "", ""),
        ("  2026-01-17", "1.5", "3", "+100.0 %"),
        ("  2026-01-18", "none", "2", "–"),
        ("sum(y)", "1", "3", "+200.0 %"),
        ("  2026-01-17", "1", "3", "+200.0 %"),
        ("  and 4 others", "", "", ""),
        ("sum(salary) (classified, not shown)", "", "", ""),
    ]


HOSTILE = '<script>alert(1)</script> <!channel> *bold* ``` \x1b[31m\u202e & "quoted"'


def make_hostile() -> Message:
    occasion = replace(
        PUBLISHED,
        reason=HOSTILE,
        requested_by=HOSTILE,
        grain=Grain.VALUE,
        partitions=(HOSTILE,),
        metrics=(Metric(HOSTILE, partitions=(Movement(HOSTILE, HOSTILE, HOSTILE),)),),
    )
    return write_message(occasion, "x", "id", 1)


def test_text_from_people_and_data_stays_text():
    """No markup, no mention, no control character, no second code block."""
    message = make_hostile()
    seen: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            seen.append(tag)

    Reader().feed(to_html(message))
    assert "script" not in seen
    slack = to_slack(message)
    texts = [slack["text"], *(block["text"]["text"] for block in slack["blocks"] if "text" in block)]
    assert not any("<" in text for text in texts[:1] + texts[2:])
    assert slack["blocks"][2]["text"]["text"].count("```") == 2
    for text in (to_text(message), to_html(message), json.dumps(slack, ensure_ascii=False)):
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_long_messages_fit_into_slack():
    """Slack refuses longer blocks as a whole."""
    long = replace(PUBLISHED, reason="x" * 10_000, product="p" * 400, metrics=PUBLISHED.metrics * 200)
    blocks = to_slack(write_message(long, "x", "id", 1))["blocks"]
    assert len(blocks[0]["text"]["text"]) <= 150
    assert all(len(block["text"]["text"]) <= 3000 for block in blocks[1:-1])
    assert len(blocks[-1]["elements"][0]["text"]) <= 3000
    assert blocks[2]["text"]["text"].endswith("\n```")


def test_the_json_form_has_every_partition_as_ranges():
    """Nothing is cut short in it."""
    occasion = replace(PUBLISHED, partitions=("2026-01-01", "2026-01-02", "2026-01-05"))
    document = to_json(write_message(occasion, "x", "id", 3))
    assert document["partitions"] == {
        "count": 3,
        "ranges": [["2026-01-01", "2026-01-02"], ["2026-01-05", "2026-01-05"]],
    }
    assert (document["version"], document["sequence"], document["event"]) == (1, 3, "published")
    assert json.loads(json.dumps(document)) == document
