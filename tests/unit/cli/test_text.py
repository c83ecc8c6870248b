"""Text for people: 80 columns, readable without colour, nothing cut."""

from __future__ import annotations

import doctest
import os
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.cli.app import helptext, progress
from errata.cli.render import layout
from errata.cli.render.gate import render_rules
from errata.cli.render.plan import render_plan
from errata.cli.render.try_partition import suggest_after_trial
from errata.commands.plan.explain import add_stages
from errata.errors import ApprovalRefused, ErrataError, PlanRefused, PublishConflict, RunFailed, ValidationRejected
from errata.model.diff import OutsideScope
from errata.model.waves import build_pause_error
from errata.text import numbers as human
from errata.views import ImpactView, LateInputView, LiveWriteView, PartitionView, RunsView
from errata.views.audit import ErasureWhereView
from errata.views.checks import DoctorCheck
from errata.views.outbox import OutboxView
from errata.views.readiness import ReadyView
from unit.cli import samples
from unit.cli.sample_client import FakeClient, errata

GOLDENS = Path(__file__).parent / "goldens"
RUN, DIGEST = samples.RUN, samples.DIGEST


def refused() -> ErrataError:
    return PlanRefused(
        "2 of 3 rules refused", state="nothing was planned", hint="--override", plan=samples.refused_plan()
    )


def failed() -> ErrataError:
    return RunFailed(
        "1 of 3 chunks failed", state="2 chunks are staged", hint=f"errata retry {RUN}", run=samples.failed_run()
    )


def rejected() -> ErrataError:
    view = samples.validation(warn=3, block=1)
    return ValidationRejected("4 checks failed", state="main is unchanged", validation=view)


def unsigned() -> ErrataError:
    return ApprovalRefused(
        f"release of {RUN} was refused; expected the digest of what is signed, found none",
        state="nothing was changed; above is what would be signed",
        hint=f"look at it, then on a terminal: errata release {RUN}; a program passes --digest",
        release=samples.released(release=None),
    )


def conflict() -> ErrataError:
    return PublishConflict(
        "2 of 45 partitions were written by someone else after planning\n"
        "  2026-02-13  appended by snapshot 8130 (spark-app daily-0042, 03:12)\n"
        "  2026-02-14  appended by snapshot 8131 (spark-app daily-0042, 03:14)",
        state="main is unchanged; the staged output is kept",
        hint=f"errata publish {RUN} --partitions 2026-01-01..2026-02-12\nthen correct the written ones: "
        f'errata plan fin.daily_revenue --partitions 2026-02-13,2026-02-14 --supersede {RUN} --reason "…"',
    )


def held() -> ErrataError:
    until = datetime(2026, 2, 15, 11, 41, 7, tzinfo=UTC)
    return build_pause_error(RUN, "1h", until, until - timedelta(minutes=12, seconds=5))


def spread(grain: str, names: tuple[str, ...]) -> Callable[[], object]:
    words = ("published", "staged", "running", "waiting", "failed", "rolled_back", "superseded")
    parts = tuple(PartitionView(name, words[n * len(words) // len(names)]) for n, name in enumerate(names))
    return lambda: samples.status(grain=grain, partitions=parts, attempts=(), failures=(), approvals=())


HOURS = tuple(f"{day}T{hour:02d}" for day in samples.days("2026-01-30", 3) for hour in range(24))
MONTHS = tuple(f"{year}-{month:02d}" for year in (2024, 2025) for month in range(1, 13))

PAGES: dict[str, tuple[tuple[str, ...], dict[str, object]]] = {
    "try": (("try", "fin.daily_revenue", "2026-01-01"), {}),
    "plan": (("plan", "fin.daily_revenue", "--from", "2026-01-01", "--to", "2026-02-15", "--reason", "x"), {}),
    "plan-again": (
        ("plan", "p", "--partitions", "a", "--reason", "x"),
        {"plan": samples.plan(already=True, single_user=True, new_partitions=("2026-02-14",))},
    ),
    "plan-long": (
        ("plan", "p", "--from", "2021-01-01", "--to", "2026-01-01", "--reason", "x"),
        {"plan": samples.long_plan()},
    ),
    "plan-deadline-missed": (
        ("plan", "p", "--from", "2021-01-01", "--to", "2026-01-01", "--reason", "x"),
        {"plan": samples.long_plan(deadline=samples.deadline(meets=False))},
    ),
    "plan-deadline-guessed": (
        ("plan", "p", "--from", "2021-01-01", "--to", "2026-01-01", "--reason", "x"),
        {"plan": samples.long_plan(deadline=samples.deadline(measured=False))},
    ),
    "plan-deadline-impossible": (
        ("plan", "p", "--from", "2021-01-01", "--to", "2026-01-01", "--reason", "x"),
        {"plan": samples.long_plan(deadline=samples.deadline(meets=False, cores_needed=None))},
    ),
    "plan-controls": (
        ("plan", "p", "--partitions", "a", "--reason", "x"),
        {
            "plan": samples.plan(
                gate={"checks": 6, "comparisons": 1, "controls": 2, "control_partitions": 48, "short_of_controls": 5}
            )
        },
    ),
    "plan-rules-changed": (("plan", "p", "--partitions", "a", "--reason", "x"), {"plan": samples.LOOSENED}),
    "plan-refused": (("plan", "p", "--partitions", "a", "--reason", "x"), {"plan": refused()}),
    "plan-dry-run": (("plan", "p", "--partitions", "a", "--reason", "x"), {"plan": samples.plan(state="dry-run")}),
    "show": (("show", RUN), {"show": samples.plan(state="approved", already=True, approvals=(samples.APPROVAL,))}),
    "show-scattered": (
        ("show", RUN),
        {"show": samples.plan(partitions=(*samples.SCOPE[:3], *samples.SCOPE[9:12], "2026-02-14"), supersedes="bf-1")},
    ),
    "approve": (("approve", RUN, "--digest", DIGEST), {}),
    "approve-rules-changed": (("approve", RUN, "--digest", DIGEST), {"show": samples.LOOSENED}),
    "approve-one-of-two": (
        ("approve", RUN, "--digest", DIGEST),
        {"approve": replace(samples.decision("planned"), quorum=samples.HALF)},
    ),
    "approve-break-glass": (
        ("approve", RUN, "--digest", DIGEST, "--break-glass", "market opens in 10 minutes"),
        {"approve": samples.alone()},
    ),
    "approve-single-user": (
        ("approve", RUN, "--digest", DIGEST),
        {"approve": replace(samples.decision(), single_user=True)},
    ),
    "show-one-of-two": (("show", RUN), {"show": samples.plan(quorum=samples.HALF, approvals=(samples.APPROVAL,))}),
    "show-released": (
        ("show", RUN),
        {
            "show": samples.plan(
                state="validated",
                approvals=(samples.APPROVAL,),
                release_digest=samples.R,
                release=samples.VOID,
                break_glass=samples.BROKEN,
                quorum=samples.OLD,
                manual=False,
            )
        },
    ),
    "release": (("release", RUN, "--digest", samples.R, "--note", "checked with treasury"), {}),
    "release-again": (
        ("release", RUN, "--digest", samples.R),
        {"release": samples.released(already=True, single_user=True)},
    ),
    "release-shown": (("release", RUN), {"release": unsigned()}),
    "validate-released": (
        ("validate", RUN),
        {"validate": replace(samples.validation(), release_digest=samples.R, single_user=True)},
    ),
    "run-publish": (("run", RUN, "--publish"), {}),
    "publish-by-service": (("publish", RUN), {"publish": samples.publication(release=samples.RELEASED)}),
    "publish-break-glass": (
        ("publish", RUN, "--break-glass", "market opens in 10 minutes"),
        {
            "publish": samples.publication(
                break_glass=replace(samples.BROKEN, deed="publish", alarm="failed: the alarm command ended with 1"),
                release=replace(samples.RELEASED, person="dana", kind="publish", note="", published_by="dana"),
                single_user=True,
            )
        },
    ),
    "rollback-single-user": (
        ("rollback", RUN, "--reason", "wait"),
        {"rollback": replace(samples.rollback(), single_user=True)},
    ),
    "status-released": (
        ("status", RUN),
        {
            "status": replace(
                samples.published_status(),
                release=samples.RELEASED,
                break_glass=samples.BROKEN,
                single_user=True,
                publications=({**samples.PUBLICATION, "break_glass": "market opens"},),
            )
        },
    ),
    "status-one-of-two": (("status", RUN), {"status": samples.status(quorum=samples.HALF)}),
    "status-all-single-user": (("status",), {"status": replace(samples.runs(), single_user=True)}),
    "why-break-glass": (("why", "lake.fin.daily_revenue", "2026-01-17"), {"why": samples.why_alone()}),
    "decline": (("decline", RUN, "--note", "books are closed"), {}),
    "run": (("run", RUN), {}),
    "run-failed": (("run", RUN), {"run": failed()}),
    "pause": (("pause", RUN), {}),
    "cancel-again": (("cancel", RUN, "--reason", "wait"), {"cancel": samples.state("cancelled", already=True)}),
    "validate": (("validate", RUN), {}),
    "validate-rejected": (("validate", RUN), {"validate": rejected()}),
    "validate-many": (("validate", RUN), {"validate": samples.validation(warn=30)}),
    "validate-thresholds": (("validate", RUN), {"validate": samples.rethresholded()}),
    "validate-groups": (("validate", RUN), {"validate": samples.grouped_validation()}),
    "diff": (("diff", RUN), {"status": samples.status(state="validated", next=f"errata publish {RUN}")}),
    "diff-touched": (
        ("diff", RUN),
        {"diff": replace(samples.diff(), outside=OutsideScope(15, ("2026-02-15", "2026-02-16")), metrics=())},
    ),
    "diff-rejected": (("diff", RUN), {"status": samples.status(state="rejected", next=f"errata diff {RUN}")}),
    "publish": (("publish", RUN), {}),
    "plan-waves": (
        ("plan", "p", "--partitions", "a", "--reason", "x"),
        {"plan": samples.plan(publish={"mode": "replace_partitions", "waves": samples.planned_waves()})},
    ),
    "plan-waves-limited": (
        ("plan", "p", "--partitions", "a", "--reason", "x"),
        {
            "plan": samples.plan(
                publish={
                    "mode": "replace_partitions",
                    "waves": samples.planned_waves(
                        release="first",
                        within={"rows": "5%", "sum(revenue_usd)": "25%"},
                        pause="0s",
                        with_last=["unique invoices"],
                        new_columns=["margin"],
                    ),
                }
            )
        },
    ),
    "publish-wave": (("publish", RUN), {"publish": samples.first_wave()}),
    "publish-last-wave": (
        ("publish", RUN, "--wait"),
        {"publish": samples.publication(partitions=samples.SCOPE[:3], waves=samples.waves(4), turn=samples.turn(4))},
    ),
    "publish-held": (("publish", RUN), {"publish": held()}),
    "publish-dark": (("publish", RUN, "--dark"), {}),
    "publish-dark-compared": (
        ("publish", RUN, "--dark", "--compare"),
        {"dark": samples.dark(already=True, view="lake.fin.errata_compare_x", single_user=True)},
    ),
    "publish-dark-rejected": (
        ("publish", RUN, "--dark", "--rejected"),
        {
            "dark": samples.dark(
                state="rejected", rejected=True, comparison=None, warnings=("the view was not made (no views here)",)
            )
        },
    ),
    "status-waves": (("status", RUN), {"status": samples.waved_status(dark=samples.named())}),
    "status-waves-stopped": (
        ("status", RUN),
        {
            "status": samples.waved_status(
                turn=samples.turn(stopped="paused by ana, 2026-02-15 10:50 UTC"), next=f"errata resume {RUN}"
            )
        },
    ),
    "pause-waves": (
        ("pause", RUN),
        {
            "pause": replace(
                samples.state("part_published"), note=f"no further wave is published until: errata resume {RUN}"
            ),
            "next_steps": (f"errata resume {RUN}",),
        },
    ),
    "publish-conflict": (("publish", RUN), {"publish": conflict()}),
    "rollback": (("rollback", RUN, "--reason", "wait"), {}),
    "rollback-hazard": (
        ("rollback", RUN, "--reason", "wait"),
        {"rollback": replace(samples.rollback(), hazard=samples.HAZARD)},
    ),
    "rollback-again": (
        ("rollback", RUN, "--reason", "wait"),
        {"rollback": replace(samples.rollback(), already=True, later={"bf-20260301-fx-1a2b3c4d": ("2026-01-03",)})},
    ),
    "status": (("status", RUN), {}),
    "status-published": (("status", RUN), {"status": samples.published_status()}),
    "status-hours": (("status", RUN), {"status": spread("hour", HOURS)()}),
    "status-five-years": (("status", RUN), {"status": spread("day", samples.days("2021-01-01", 1825))()}),
    "status-months": (("status", RUN), {"status": spread("month", MONTHS)()}),
    "status-values": (("status", RUN), {"status": spread("value", ("APAC", "EU", "LATAM", "US", "null"))()}),
    "status-all": (("status",), {"status": samples.runs()}),
    "status-all-owed": (("status",), {"status": replace(samples.runs(), owed_items=3, failed_items=1)}),
    "status-rows-out": (("status", RUN), {"status": samples.status(input_rows=samples.quarantined().inputs)}),
    "quarantine": (("quarantine", RUN), {}),
    "quarantine-none": (("quarantine", RUN), {"quarantine": samples.nothing_set_aside()}),
    "runs-accepted-at": (("runs", "--accepted-at", "2026-02-20T18:30Z"), {}),
    "runs-none": (("runs", "--state", "failed"), {"runs": RunsView()}),
    "history": (("history", "lake.fin.daily_revenue", "2026-01-17"), {}),
    "impact": (("impact", "fin.daily_revenue", "--from", "2026-01-01", "--to", "2026-01-03"), {}),
    "stale": (("stale",), {}),
    "late": (("late",), {}),
    "standing": (("standing", "show"), {}),
    "runbook": (("runbook", RUN), {}),
    "note": (("note", RUN, "rates of January came late"), {}),
    "consumers-check": (("consumers", "check", "fin.daily_revenue"), {}),
    "consumers-none": (
        ("consumers", "check", "fin.daily_revenue"),
        {"check_consumers": replace(samples.consumers(), consumers=())},
    ),
    "consumers-confirm": (("consumers", "confirm", RUN, "fraud-stream"), {}),
    "consumers-confirm-done": (
        ("consumers", "confirm", RUN, "fraud-stream"),
        {"confirm_consumer": samples.confirmed(is_done=True)},
    ),
    "outbox": (("outbox",), {}),
    "outbox-none": (("outbox", RUN), {"outbox": OutboxView((), RUN)}),
    "outbox-all": (("outbox", RUN, "--all"), {"outbox": samples.outbox(all_items=True)}),
    "outbox-retry": (("outbox", "retry", "17"), {}),
    "outbox-waive": (("outbox", "waive", "17", "--reason", "switched off"), {}),
    "ready": (("ready", "fin.daily_revenue"), {}),
    "ready-all": (("ready", "fin.daily_revenue"), {"ready": samples.ready(ok=True)}),
    "ready-none": (
        ("ready", "fin.daily_revenue"),
        {"ready": ReadyView("lake.fin.daily_revenue", "day", ready=True, partitions=())},
    ),
    "ack": (("ack", RUN, "exec-dashboard"), {}),
    "status-holds": (("status", RUN), {"status": samples.holding_status()}),
    "deliver": (("deliver",), {}),
    "deliver-paid": (("deliver",), {"deliver": samples.delivery(ok=True)}),
    "copies-check": (("copies", "check", "fin.daily_revenue"), {}),
    "deliver-baseline": (("deliver", "fin.daily_revenue", "--baseline"), {}),
    "deliver-baseline-accepted": (
        ("deliver", "fin.daily_revenue", "--baseline", "--reason", "loaded by the old job"),
        {"baseline": samples.baseline(is_accepted=True)},
    ),
    "status-copies": (
        ("status", RUN),
        {"status": replace(samples.published_status(), delivered="failed", copies=samples.copy_lines())},
    ),
    "publish-copies": (("publish", RUN), {"publish": replace(samples.publication(), copies=samples.copy_lines())}),
    "deliver-backlog": (("deliver",), {"deliver": samples.backlog()}),
    "status-owed": (("status", RUN), {"status": samples.owing_status()}),
    "impact-none": (
        ("impact", "fin.daily_revenue", "--partitions", "2026-01-01"),
        {"impact": ImpactView("fin.daily_revenue", "lake.fin.daily_revenue", "day", ("2026-01-01",))},
    ),
    "plan-touches": (
        ("plan", "p", "--partitions", "a", "--reason", "x"),
        {"plan": samples.plan(touches=samples.impact(notes=("the catalog of fin.monthly did not answer",)))},
    ),
    "plan-copies": (
        ("plan", "p", "--partitions", "a", "--reason", "x"),
        {"plan": samples.plan(copies=("pg:fin.daily_revenue (required)", "snow:DAILY_REVENUE"))},
    ),
    "plan-explain": (
        ("plan", "p", "--partitions", "a", "--explain", "--reason", "x"),
        {"plan": add_stages(samples.plan())},
    ),
    "plan-restore": (
        ("plan", "p", "--partitions", "a", "--restore", "month_end", "--reason", "x"),
        {"plan": samples.restoring()},
    ),
    "why-set-back": (("why", "lake.fin.daily_revenue", "2026-01-17"), {"why": samples.why_set_back()}),
    "why-rows": (
        ("why", "lake.fin.daily_revenue", "2026-01-17", "--key", "account_id=A-10033"),
        {"why": samples.why_rows()},
    ),
    "why-restored": (("why", "lake.fin.daily_revenue", "2026-01-17"), {"why": samples.why_restored()}),
    "why": (("why", "lake.fin.daily_revenue", "2026-01-17", "--key", "account_id=A-10033"), {}),
    "audit-verify": (("audit", "verify"), {}),
    "audit-broken": (("audit", "verify"), {"audit_verify": samples.audit(ok=False)}),
    "audit-gaps": (("audit", "gaps"), {}),
    "audit-gaps-closed": (("audit", "gaps"), {"audit_gaps": samples.gaps(ok=True)}),
    "audit-log": (("audit", "log"), {}),
    "audit-witnessed": (("audit", "verify"), {"audit_verify": samples.witnessed()}),
    "audit-late": (("audit", "verify"), {"audit_verify": samples.witnessed(signatures="not checked", lag=90_000)}),
    "audit-head": (("audit", "head"), {}),
    "audit-erase-person": (("audit", "erase-person", "bo", "--reason", "asked"), {}),
    "erase-add": (("erase", "add", "--from", os.devnull, "--reason", "asked"), {}),
    "erase-where": (("erase", "where", "--from", os.devnull), {}),
    "erase-where-nowhere": (
        ("erase", "where", "--from", os.devnull),
        {"erase_where": ErasureWhereView(2, 2, (), "2026-04-02")},
    ),
    "erase-prove": (("erase", "prove", "--from", os.devnull, "--reason", "asked"), {}),
    "erase-prove-left": (
        ("erase", "prove", "--from", os.devnull, "--reason", "asked"),
        {"erase_prove": samples.erasure_proof({"time travel:snow:FIN.DAILY_REVENUE": "the provider ends it"})},
    ),
    "erase-redact": (("erase", "redact", "--reason", "asked"), {}),
    "erase-redact-none": (("erase", "redact", "--reason", "asked"), {"erase_redact": samples.redaction(found=False)}),
    "cleanup": (("cleanup",), {}),
    "cleanup-dry-run": (("cleanup", "--dry-run"), {"cleanup": samples.cleanup(dry_run=True)}),
    "check": (("check",), {}),
    "check-warning": (("check",), {"check": (samples.KEY_WARNING,)}),
    "doctor": (("doctor",), {}),
    "doctor-new-project": (
        ("doctor",),
        {
            "doctor": (
                DoctorCheck("java", ok=True, found="Java 17"),
                DoctorCheck(
                    "catalog lake",
                    ok=True,
                    found="no /shop/lake/catalog.db yet",
                    hint="python make_lake.py",
                    waiting=True,
                ),
            )
        },
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_page_is_as_agreed(name: str):
    """Each view has one page of text; ERRATA_GOLDENS=write writes it anew for review."""
    arguments, given = PAGES[name]
    result = errata(*arguments, client=FakeClient(dict(given)))
    page = f"$ errata {' '.join(arguments)}\n{result.out}"
    page += f"--- stderr, exit {result.code}\n{result.err}" if result.err or result.code else ""
    path = GOLDENS / f"{name}.txt"
    if os.environ.get("ERRATA_GOLDENS") == "write":
        path.write_text(page, encoding="utf-8")
    assert page == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_lines_fit_80_columns_unless_a_word_or_a_command_does_not(name: str):
    """Only lines that must stay whole may be longer: commands and statements to copy, single words such as digests."""
    arguments, given = PAGES[name]
    for line in errata(*arguments, client=FakeClient(dict(given))).out.splitlines():
        words = line.split()
        is_command = "errata " in line and re.match(r"\s*(next:|undo until|errata )", line)
        is_statement = line.startswith(("    SELECT ", "    table.scan", "    CALL "))
        assert len(line) <= 80 or is_command or is_statement or len(words) <= 2, line


@pytest.mark.parametrize("name", PAGES)
def test_pages_have_no_escape_codes_when_nobody_looks(name: str):
    """A pipe gets plain text."""
    arguments, given = PAGES[name]
    result = errata(*arguments, client=FakeClient(dict(given)))
    assert "\x1b" not in result.out + result.err


def test_digest_is_printed_whole_and_not_in_the_next_command():
    """What is approved is named in full; whoever approves takes it from the plan, not from a line to paste."""
    lines = errata("plan", "p", "--partitions", "a", "--reason", "x").out.splitlines()
    assert f"manifest {DIGEST}" in lines
    assert f"next: errata approve {RUN}" in lines


def test_next_command_works_from_where_the_user_is():
    """A project picked with -C stays in the command that is offered for copying."""
    result = errata("-C", "my lake", "run", RUN)
    assert f"next: errata -C 'my lake' validate {RUN}" in result.out.splitlines()


def test_hints_work_from_where_the_user_is():
    """So does the hint of an error."""
    error = PublishConflict("no", hint=f"errata show {RUN}")
    result = errata("publish", RUN, "-C", "lake", client=FakeClient({"publish": error}))
    assert f"hint: errata -C lake show {RUN}" in result.err


def test_refused_plan_shows_every_verdict_and_offers_no_approval():
    """A plan that is refused names all rules, not only the first that said no."""
    result = errata("plan", "p", "--partitions", "a", "--reason", "x", client=FakeClient({"plan": refused()}))
    assert result.code == 3
    assert "✓ range" in result.out
    assert result.out.count("✗") == 2
    assert "errata approve" not in result.out


def test_calendar_puts_each_day_under_its_weekday():
    """2026-01-01 is a Thursday: three blank cells come before it."""
    lines = errata("status", RUN, client=FakeClient({"status": samples.published_status()})).out.splitlines()
    first = next(n for n, line in enumerate(lines) if "2026-01" in line and "2026-02" in line)
    assert lines[first + 2][:21] == "           ✓  ✓  ↺  ✓"


def test_calendar_of_five_years_has_one_sign_a_day():
    """Nothing is hidden: 1,825 partitions are 1,825 signs."""
    names = samples.days("2021-01-01", 1825)
    view = samples.status(partitions=tuple(PartitionView(name, "staged") for name in names), attempts=(), failures=())
    page = errata("status", RUN, client=FakeClient({"status": view})).out
    assert page.count("▣") == 1825 + 1


def test_many_warnings_are_folded_and_none_is_hidden():
    """Beyond the first five, the count and the range of the other partitions are shown."""
    page = errata("validate", RUN, client=FakeClient({"validate": samples.validation(warn=30)})).out
    assert all(day in page for day in samples.SCOPE[:5])
    assert f"and 25 more: {samples.SCOPE[5]} … {samples.SCOPE[29]}" in page


@pytest.mark.parametrize("module", [helptext, human, progress], ids=lambda module: module.__name__)
def test_numbers_read_as_their_examples_say(module: ModuleType):
    """The examples in the docstrings are true, such as: a cent in forty million is not rounded away."""
    found = doctest.testmod(module)
    assert (found.failed, found.attempted > 0) == (0, True)


@pytest.mark.parametrize(
    "number, text",
    [(9_999, "9,999"), (10_000, "10 k"), (999_499, "999 k"), (999_500, "1.0 M"), (9_000_000, "9.0 M")],
)
def test_counts_grow_without_a_gap(number: int, text: str):
    """Nothing reads as 1000 k."""
    assert human.format_count(number) == text


@pytest.mark.parametrize("number, text", [(999, "999 B"), (1_000, "1.0 kB"), (999_960, "1.0 MB"), (10**16, "10000 TB")])
def test_sizes_grow_without_a_gap(number: int, text: str):
    """Nothing reads as 1000.0 kB."""
    assert human.format_size(number) == text


@given(st.lists(st.text("abc … %→-", min_size=1, max_size=90), max_size=8), st.integers(40, 110))
def test_wrapping_keeps_every_word(pieces: list[str], width: int):
    """Nothing is cut, whatever the width."""
    lines = layout.flow(pieces, width, "  label ")
    assert " ".join(lines).split() == ["label", *" ".join(pieces).split()]


WRITTEN = LiveWriteView("8130", "2026-02-14T03:12:00+00:00", "daily-load", "append", ("2026-02-13",))
LATE = LateInputView("raw", "lake.raw.events", ("2026-02-13",), "77", "2026-02-14T03:12:00+00:00", "ingest", "append")


def test_what_others_did_since_planning_is_shown_where_people_decide():
    """Approve and status name the live write, status and validate the late input, each as a warning."""
    told = " ".join(f"! {one.text('day')}" for one in (WRITTEN, LATE))
    noticed = samples.status(live_writes=(WRITTEN,), late_inputs=(LATE,))
    shown = " ".join(errata("status", RUN, client=FakeClient({"status": noticed})).out.split())
    assert told in shown
    decision = replace(samples.decision(), live_writes=(WRITTEN,))
    approved = errata("approve", RUN, "--digest", DIGEST, client=FakeClient({"approve": decision})).out
    assert f"! {WRITTEN.text('day')}" in " ".join(approved.split())
    judged = replace(samples.validation(), late_inputs=(LATE,))
    validated = errata("validate", RUN, client=FakeClient({"validate": judged})).out
    assert f"! {LATE.text('day')}" in " ".join(validated.split())


@pytest.mark.parametrize("level, next_", [("ok", "errata plan"), ("warn", "errata plan"), ("block", "errata try")])
def test_a_trial_that_the_gate_would_reject_leads_to_another_trial(level: str, next_: str) -> None:
    """A plan of it would be computed in vain; a warning can be accepted."""
    trial = samples.trial()
    (check, *_) = trial.checks
    view = replace(trial, checks=(replace(check, level=level),))
    assert suggest_after_trial(view).startswith(f"{next_} {trial.product} ")


def test_a_rule_counts_partitions_once_and_the_run_apart() -> None:
    """A row account is judged for each day and for the run: two days are two partitions, not three."""
    days = [{"name": "accounting", "partition": f"2026-01-0{n}", "level": "ok", "message": "fine"} for n in (1, 2)]
    whole = {"name": "accounting", "partition": None, "level": "ok", "message": "2 chunks counted the same"}
    assert render_rules([*days, whole], 100) == ["  ✓ accounting   2 of 2 partitions ok   run as a whole ok"]
    # two inputs say something about each day, and one of them warns
    twice = [{**one, "level": level} for one in days for level in ("ok", "warn")]
    first, *_ = render_rules([*twice, whole], 100)
    assert first == "  ! accounting   0 of 2 partitions ok   2 warn   run as a whole ok"


def test_sizes_of_a_topic_are_called_assumed() -> None:
    """Brokers do not tell the size of records, so nothing of a plan shows it as known."""
    topic = replace(samples.INPUTS[0], files=None, kafka="kafka://events/views", rows=9_600, bytes=3_840_000)
    told = " ".join(" ".join(render_plan(samples.plan(inputs=(topic,)), 100)).split())
    assert "about 9,600 records 3.8 MB assumed, at 400 bytes a record" in told
    assert "about 640 MB each by assumed sizes" in told
    assert "about 9.0 M rows 1.9 GB assumed" in told
    assert "assumed" not in " ".join(render_plan(samples.plan(), 100))


def test_a_topic_that_grew_may_have_changed_an_input() -> None:
    """Offsets do not tell to which partition a record belongs, and a topic has neither files nor commits."""
    late = LateInputView("raw", "kafka://events/t", ("2026-01-01",), "d1", topic="kafka://events/t", records=3)
    told = late.text("day")
    assert told.startswith(
        "input raw may have changed for 2026-01-01 after it was pinned: at least 3 records came that"
    )
    assert "files" not in told
