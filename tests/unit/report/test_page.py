"""The page: readable without script, network or colour, true to its JSON, and safe whatever a value holds."""

from __future__ import annotations

import dataclasses
import doctest
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest

from errata.model.diff import MASK, Distribution, PartitionDiff, Profile, SampleRow, SchemaDiff, TopValue
from errata.report.calendar import Cell, draw_calendar
from errata.report.charts import draw_line_chart
from errata.report.page import render_page
from errata.report.style import CSS
from errata.text import markup
from errata.text.numbers import format_exact, format_signed_percent, format_value
from errata.views.report import ReportedPublication, ReportView
from unit.cli import samples
from unit.report.reports import diff, report

EVIL = '<script>alert("1")</script><img src=x onerror=alert(2)>\'&'


class Page(HTMLParser):
    """Elements, attributes and text of a page, and whether every element is closed where it was opened."""

    VOID = frozenset({"meta", "br", "hr", "col", "link"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.headings: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, given or "") for name, given in attrs]
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        self.text += " "

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "style":
            return
        self.text += data
        if self._open and re.fullmatch("h[1-6]", self._open[-1]):
            self.headings.append(data)


def words(view: ReportView) -> str:
    return re.sub(r"\s+", " ", Page(render_page(view)).text)


def test_the_page_asks_nothing_of_the_world():
    """No script, no address, no file beside it; a policy forbids the rest."""
    text = render_page(report())
    found = Page(text)
    assert not {"script", "link", "iframe", "img", "form", "object"} & set(found.tags)
    assert not [one for one in found.attributes if one[1] in ("src", "href", "action") or one[1].startswith("on")]
    assert "http:" not in text
    assert "https:" not in text
    assert "url(" not in text
    assert any(given.startswith("default-src 'none'") for _, name, given in found.attributes if name == "content")


def test_a_reader_finds_every_part_in_its_order():
    """Decision first, then evidence, then what to do, then the digests."""
    wanted = [
        "fin.daily_revenue", "Scope and reason", "Verdicts", "Accepted warnings", "Calendar", "Declared metrics",
        "Top movements", "Columns", "Changed together", "Change matrix", "Distribution", "Sampled rows",
        "What happens next", "Digests",
    ]  # fmt: skip
    found = [heading for heading in Page(render_page(report())).headings if heading in wanted]
    assert found == wanted


def test_headings_and_tables_say_what_they_are():
    """One h1, no level is skipped, every table has a caption and scoped headers, every picture a text."""
    found = Page(render_page(report()))
    levels = [int(tag[1]) for tag in found.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert found.tags.count("caption") == found.tags.count("table")
    scoped = sum(tag == "th" and name == "scope" for tag, name, _ in found.attributes)
    assert scoped == found.tags.count("th")
    pictures = sum(tag == "svg" and name == "aria-label" and bool(given) for tag, name, given in found.attributes)
    assert pictures == found.tags.count("svg") >= 3


def _evil(data: Any) -> Any:
    """The same value with every text replaced."""
    if isinstance(data, str):
        return EVIL
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        return replace(data, **{f.name: _evil(getattr(data, f.name)) for f in dataclasses.fields(data)})
    if isinstance(data, dict):
        return {key: _evil(item) for key, item in data.items()}
    if isinstance(data, tuple):
        return tuple(_evil(item) for item in data)
    return data


def test_values_stay_text_whatever_they_hold():
    """A value, a column name, a reason or a person that looks like HTML is shown, never obeyed."""
    base = report()
    found = base.diff
    assert found is not None
    row = SampleRow(EVIL, EVIL, {EVIL: EVIL}, {EVIL: EVIL, "x": EVIL}, {EVIL: EVIL + "2", "x": 1})
    some = found.diff.columns["booked_by"]
    inner = replace(
        found.diff, sample=(row,), columns={EVIL: some}, notes=(EVIL,), masked=(EVIL,),
        together=_evil(found.diff.together), distributions={EVIL: _evil(_text()), "y": _evil(_number())},
        partitions=(PartitionDiff(EVIL, 1, 1, 0, 0, 1, 0, columns={EVIL: some}),),
        schema=SchemaDiff({EVIL: EVIL}, {EVIL: EVIL}, {EVIL: (EVIL, EVIL)}),
    )  # fmt: skip
    view = replace(
        base,
        plan=replace(_evil(samples.plan(approvals=(samples.APPROVAL,))), grain="value"),
        verdict=replace(base.verdict, checks=_evil(base.verdict.checks[:3])),
        judged_by=EVIL,
        accepted=_evil(base.accepted),
        releases=(ReportedPublication(EVIL, (EVIL,), EVIL, EVIL, EVIL, EVIL),),
        diff=replace(found, diff=inner, grain="value", metrics=_evil(found.metrics[:1])),
        next=(EVIL,),
        undo=EVIL,
        digests={EVIL: EVIL},
        notes=(EVIL,),
        state=EVIL,
        partitions=(EVIL,),
    )
    text = render_page(view)
    read = Page(text)
    assert not {"script", "img"} & set(read.tags)
    assert not [one for one in read.attributes if one[1].startswith("on")]
    assert "<script" not in text
    assert EVIL in read.text


def test_numbers_on_the_page_are_those_of_the_json():
    """Rows, columns, movements and samples: whatever the JSON says, the page says."""
    view = report()
    data, told = view.data(), words(view)
    found = data["diff"]
    for name in ("changed", "after_rows", "before_rows"):
        assert format_exact(sum(part[name] for part in found["partitions"])) in told
    for name, change in found["columns"].items():
        assert name in told
        assert format_exact(change["changed"]) in told
        assert change["sum_before"] is None or format_value(change["sum_before"]) in told
    for metric in found["metrics"]:
        for one in metric["partitions"]:
            assert format_value(one["before"]) in told
            assert format_value(one["after"]) in told
    moved_most = {one["partition"]: one for one in found["metrics"][0]["partitions"]}
    for name in (*found["metrics"][0]["largest"], *found["metrics"][0]["smallest"]):
        assert format_signed_percent(moved_most[name]["percent"]) in told
    for row in found["sample"]:
        assert all(format_value(item) in told for side in ("before", "after") for item in row[side].values())
    for together in found["together"]:
        assert format_exact(together["rows"]) in told
    assert all(digest in told for digest in data["digests"].values())


def test_people_and_reasons_are_named():
    """Who asked, approved, judged and accepted, with their reasons and the digest that was signed."""
    told = words(report())
    for expected in (
        "ana, 2026-02-14 08:55 UTC", "bo approved it, 2026-02-14 09:12 UTC", "checked against the bank file",
        "rates of EUR and GBP were inverted", "judged by bo", "books closed early", samples.DIGEST,
    ):  # fmt: skip
        assert expected in told


def test_change_is_said_in_words_not_by_colour_alone():
    """Every cell of the calendar has its number or sign, and a sentence; proven partitions say so."""
    text = render_page(report())
    assert 'title="2026-01-01: unchanged, checksums agree' in text
    month = text[text.index("<caption>2026-01</caption>") : text.index("<caption>2026-02</caption>")]
    shaded = re.findall(
        r'<td class="l([0-4])" title="([^"]+)"><small>\d+</small><b>([^<]+)</b><i class="fill"><i style="width:\d+%">',
        month,
    )
    assert len(shaded) == 31
    assert all(number for _, _, number in shaded)
    assert "15 untouched" in words(report())


@pytest.mark.parametrize(
    "state, said",
    [("validated", "Passed the gate. Not published yet."), ("rejected", "Nothing is published."),
     ("published", "can be rolled back")],
)  # fmt: skip
def test_the_state_decides_what_is_said(state: str, said: str):
    """A rejected run never reads as one that may be published."""
    view = report(state=state, verdict=replace(report().verdict, passed=state != "rejected"))
    told = words(view)
    assert said in told
    assert ("did not pass" in told) == (state == "rejected")


def test_what_was_taken_back_is_said_on_top():
    """A published run of which days were rolled back does not read as if all of it stood."""
    releases = (
        ReportedPublication("publish", samples.SCOPE, "bo", samples.REASON, "2026-02-15T09:41:07+00:00", "77"),
        ReportedPublication(
            "rollback", samples.SCOPE[2:5], "bo", "the bank asks to wait", "2026-02-16T09:41:07+00:00", "78"
        ),
    )
    told = words(report(state="published", releases=releases))
    assert "Published. 3 partitions rolled back since." in told
    assert "Rolled back by bo, 2026-02-16 09:41 UTC: 2026-01-03 … 2026-01-05" in told
    assert "the bank asks to wait" in told


def test_a_run_that_goes_in_waves_says_which_are_out_and_which_is_next():
    """A reviewer of a part sees that it is a part, and when readers get the rest."""
    told = words(report(state="part_published", waves=samples.waves(), turn=samples.turn()))
    assert "The run is published in 4 waves, newest first, with 1h between two waves" in told
    assert "The next wave may go at 2026-02-15 11:41 UTC." in told
    assert "in one commit" not in told
    stopped = words(report(state="part_published", waves=samples.waves(), turn=samples.turn(stopped="paused by ana")))
    assert "No wave is published: paused by ana." in stopped
    assert "Waves" not in words(report())


def test_rules_that_are_not_fine_come_first_and_are_folded():
    """What blocks stands on top; five partitions are listed, the others counted."""
    checks = [dict(check) for check in report().verdict.checks]
    for check in checks:
        if check["name"] == "rowCount":
            check.update(level="block", message=f"rowCount is 0 in {check['partition']}")
    told = words(report(verdict=replace(report().verdict, passed=False, checks=tuple(checks))))
    assert told.index("rowCount ✗ blocks 0 of 45 partitions ok") < told.index("schema ✓ ok")
    assert "and 40 more, in the JSON of this report" in told


def test_classified_values_are_masked_and_said_to_be():
    """The mask stands for them, sums are not shown, and the page says which columns."""
    told = words(report())
    assert f"{MASK} replaces a value of a classified column (account_id)" in told
    assert "Classified: values are not shown." in words(
        report(diff=diff(distributions={"account_id": replace(_text(), kind="other")}))
    )


def test_how_far_a_classified_column_moved_is_not_shown():
    """The median movement of few rows tells their values, as the sums do."""
    moved = {"revenue_usd": replace(diff().diff.columns["revenue_usd"], median_percent="-77.77")}
    assert "77.8 %" in words(report(diff=diff(columns=moved)))
    assert "77.8 %" not in words(report(diff=diff(columns=moved, masked=("revenue_usd",))))


def _text() -> Distribution:
    return diff().diff.distributions["booked_by"]


def _number() -> Distribution:
    return diff().diff.distributions["revenue_usd"]


def test_a_value_that_left_is_not_called_absent_without_proof():
    """A value missing from a short list of frequent ones is fewer, not zero; missing from a whole list it is zero."""
    few = Distribution("text", Profile(10, 0, distinct=1, top=(TopValue("a", 10),)),
                       Profile(10, 0, distinct=40, top=(TopValue("b", 6),)))  # fmt: skip
    told = words(report(diff=diff(distributions={"c": few})))
    assert "a 10 (100.0 %) fewer than 6" in told
    assert "b 0 6 (60.0 %)" in told


def test_a_run_whose_snapshots_are_gone_still_has_a_page():
    """Verdicts, people and digests are in the ledger for good."""
    told = words(report(diff=None, notes=("rows can no longer be compared: snapshot 1 is gone",)))
    assert "Rows can no longer be compared" in told
    assert "Verdicts" in told
    assert "Calendar" not in told


GRAINS = {
    "hour": [f"2026-01-0{day}T{hour:02d}" for day in (1, 2) for hour in range(24)],
    "day": list(samples.days("2021-01-01", 1825)),
    "month": [f"202{year}-{month:02d}" for year in (4, 5) for month in range(1, 13)],
    "year": ["2023", "2024"],
    "value": ["EU", "US", "null", '"null"'],
}


@pytest.mark.parametrize("grain", GRAINS)
def test_every_partition_has_its_place_in_the_calendar(grain: str):
    """One cell each, five years of days and rows without a partition included."""
    names = GRAINS[grain]
    text = draw_calendar(grain, {name: Cell(n % 5, f"{n}", f"told-{n};") for n, name in enumerate(names)})
    assert all(text.count(f"told-{n};") == 1 for n in range(len(names)))


def test_charts_leave_gaps_and_survive_flat_and_single_values():
    """A missing number interrupts the line, and neither one point nor equal ones divide by zero."""
    drawn = draw_line_chart(["a", "b", "c", "d", "e"], [1.0, 2.0, None, 3.0, 4.0], [5.0] * 5, "m", ("before", "after"))
    assert drawn.count('class="line before"') == 2
    assert drawn.count('class="line after"') == 1
    assert "<svg" in draw_line_chart(["a"], [0.0], [0.0], "m", ("before", "after"))
    assert "no numbers" in draw_line_chart(["a"], [None], [None], "m", ("before", "after"))


PAIRS = [
    ("ink", "card"), ("ink", "bg"), ("dim", "card"), ("dim", "head"), ("ink", "head"), ("accent", "card"),
    ("old", "card"), ("good", "goodbg"), ("warn", "warnbg"), ("bad", "badbg"), ("good", "card"), ("warn", "card"),
    ("bad", "card"), ("ink", "warnbg"), ("ink", "l1"), ("ink", "l2"), ("ink", "l3"), ("l4ink", "l4"),
]  # fmt: skip


@pytest.mark.parametrize("theme", [0, 1, 2], ids=["light", "dark", "print"])
def test_words_stand_out_from_what_is_behind_them(theme: int):
    """Contrast of every pair of colours in use is at least 4.5, as accessibility guidelines ask of text."""
    sheet = re.findall(r":root\{(.*?)\}", CSS, re.DOTALL)[theme]
    colours = dict(re.findall(r"--(\w+):(#[0-9a-f]{3,6})\b", sheet))
    for front, back in PAIRS:
        light, dark = sorted((_luminance(colours[front]), _luminance(colours[back])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (front, back)


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_markup_escapes_as_its_example_says():
    """The example in the docstring is true."""
    found = doctest.testmod(markup)
    assert (found.failed, found.attempted > 0) == (0, True)
