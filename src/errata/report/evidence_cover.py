"""Cover page of an evidence bundle: what was wrong, who decided what, what changed, and how to verify it. Pure.

It is built only from the records in the bundle and states nothing beyond them. It proves nothing by itself; its last
section explains how to verify everything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from errata.canonical import from_plain
from errata.evidence.members import Dossier
from errata.model.consumer.outbox import Effect, ItemState
from errata.model.copy.summary import CopyItem, summarize_copies
from errata.model.diff import MetricMoves
from errata.model.partition import Grain, format_ranges
from errata.report.changes import render_metric
from errata.report.copies import render_copies
from errata.report.decision import find_state, render_metric_tile, render_row_tiles, render_rules
from errata.report.html import (
    render_details,
    render_facts,
    render_masthead,
    render_section,
    render_table,
    render_tile,
    to_sentence,
)
from errata.report.page import render_document
from errata.report.timeline import build_timeline, name_verdict
from errata.text.markup import Child, Markup, el
from errata.text.numbers import (
    format_exact,
    format_moment,
    format_percent,
    format_value,
    plural,
)

_EARLY = {
    "planned": "Planned. Nobody has decided yet, nothing was computed.",
    "approved": "Approved. Nothing was computed yet.",
    "declined": "Declined. Nothing was computed or published.",
    "cancelled": "Cancelled. Nothing of it is published.",
    "expired": "Expired before it was published.",
    "failed": "Failed while it was computed. Nothing is published.",
    "staged": "Computed, not judged yet. Nothing is published.",
}


def render_cover(dossier: Dossier, summary: Mapping[str, Any] | None) -> str:
    """One self-contained HTML document."""
    told = _CoverData(dossier, summary)
    title = f"Evidence: {dossier.run['product']}, {dossier.run['run_id']}"
    return render_document(
        title,
        _render_head(told),
        _render_warnings(told),
        _render_reason(told),
        _render_people(told),
        _render_gate(told),
        _render_changes(told),
        _render_snapshots(told),
        _render_copies(told),
        _render_computation(told),
        _render_verification(told),
    )


class _CoverData:
    """The records under short names."""

    def __init__(self, dossier: Dossier, summary: Mapping[str, Any] | None) -> None:
        self.dossier, self.manifest = dossier, json.loads(dossier.manifest)
        self.run, self.plan, self.work = dossier.run, dossier.plan, dossier.work
        self.decisions, self.gate, self.diff = dossier.decisions, dossier.gate, dossier.diff
        self.publications: Sequence[Mapping[str, Any]] = dossier.publications["publications"]
        self.environment, self.summary = dossier.environment, summary
        self.metrics = from_plain(tuple[MetricMoves, ...], (summary or dossier.diff).get("metrics", ()))
        self.verdict: Mapping[str, Any] | None = (dossier.gate["verdicts"] or [None])[-1]

    def folded(self, names: Sequence[str]) -> str:
        return format_ranges(Grain(self.run["grain"]), names, most=12)

    def total(self, name: str) -> int:
        return sum(part[name] for part in (self.summary or {}).get("partitions", ()))


def _render_head(told: _CoverData) -> Markup:
    run, state = told.run, told.run["state"]
    early = ("bad" if state in ("declined", "failed") else "warn", "•", _EARLY.get(state, to_sentence(state)))
    undone = list(run["partitions"].values()).count("rolled_back")
    return render_masthead(
        "Evidence of a correction, run ", run["run_id"], run["product"], run["reason"],
        find_state(state, undone, early), _list_tiles(told),
    )  # fmt: skip


def _list_tiles(told: _CoverData) -> list[Child]:
    names = list(told.run["partitions"])
    tiles = [render_tile("Partitions", format_exact(len(names)), told.folded(names))]
    if told.summary:
        rows = map(told.total, ("before_rows", "after_rows", "added", "removed", "changed", "after_rows"))
        tiles += render_row_tiles(*rows)
    tiles += render_metric_tile(
        next((one for one in told.metrics if one.kind == "compare" and one.before and one.after), None)
    )
    if told.verdict is not None:
        judged = f"{format_exact(len(told.verdict['checks']))} findings judged"
        tiles.append(render_tile("Gate", name_verdict(told.verdict), judged))
    return tiles


def _render_warnings(told: _CoverData) -> list[Child]:
    """Warnings that an auditor must not overlook."""
    said = []
    if told.run["single_user"]:
        said.append("Single-user mode: one person may ask, approve and publish. Nobody else had to agree.")
    for row in (*told.decisions["approvals"], *told.decisions["releases"]):
        if row.get("break_glass"):
            verb = "released" if "kind" in row else "approved"
            said.append(f"Break-glass: {row['person']} {verb} this alone. Reason given: {row['break_glass']}")
    said += [
        f"{one['pub_id']} is open: its outcome is not known yet"
        for one in told.publications
        if one["state"] == "intended"
    ]
    return [el("p", to_sentence(one), class_="note") for one in said]


def _render_reason(told: _CoverData) -> Markup:
    run = told.run
    set_aside = [el("li", el("b", one["rule"]), f": {one['why']}") for one in told.plan["overrides"]]
    judged = [
        [one["rule"], one["level"], one["message"] + (f" (set aside: {one['override']})" if one["override"] else "")]
        for one in told.plan["verdicts"]
    ]
    fine = [row for row in judged if row[1] == "ok"]
    guardrails = [
        _render_guardrails("Guardrails that warned", [row for row in judged if row not in fine]),
        render_details(
            f"{plural(len(fine), 'guardrail')} passed before anything ran", _render_guardrails("Guardrails", fine)
        ),
    ]
    read = [
        el("li", el("b", pin["name"]), f" {pin['location']}", f", snapshot {pin['snapshot_id']}" if pin["snapshot_id"]
           else f", {plural(pin['file_count'], 'file')} pinned")
        for pin in told.manifest["inputs"]
    ]  # fmt: skip
    return render_section(
        "What was wrong, and what was to be corrected",
        render_facts(
            [
                ("Reason", run["reason"]),
                ("Table", run["table"]),
                ("Partitions", f"{format_exact(len(run['partitions']))}: {told.folded(list(run['partitions']))}"),
                ("Read from", el("ul", read) if read else None),
                ("Kind", run["kind"]),
                ("Owner", run["owner"]),
                ("Supersedes", run["supersedes"]),
                ("Rules set aside", el("ul", set_aside) if set_aside else None),
            ]
        ),
        guardrails,
        name="why",
    )  # fmt: skip


def _render_guardrails(caption: str, rows: Sequence[Sequence[Child]]) -> Markup | None:
    return render_table(["Rule", "Verdict", "Found"], rows, caption=caption, classes="stack") if rows else None


def _render_people(told: _CoverData) -> Markup:
    rows = [
        [
            el("span", f"{format_moment(one.at)} UTC", class_="nw"),
            one.who,
            [one.what, el("div", "over ", el("code", one.over), class_="dim") if one.over else None],
        ]
        for one in build_timeline(told.dossier, told.folded)
    ]
    head = ["When", "Who", "What"]
    return render_section(
        "Who decided what, and when",
        render_table(head, rows, caption="Decisions and actions, oldest first", classes="stack"),
        name="people",
    )


def _render_gate(told: _CoverData) -> Markup:
    if told.verdict is None:
        return render_section("Checks and verdict", el("p", "Nothing was judged."), name="gate")
    passed = "passed" if told.verdict["passed"] else "did not pass"
    by = f"judged by {told.verdict['person']}, {format_moment(told.verdict['at'])} UTC"
    lead = f"Candidate {told.verdict['candidate_n']} {passed}, {by}."
    return render_section("Checks and verdict", render_rules(told.verdict["checks"]), name="gate", lead=lead)


def _render_changes(told: _CoverData) -> Markup:
    body: list[Child] = []
    if told.summary is None:
        body.append(el("p", f"Row by row: {told.diff['missing']}.", class_="note" if told.diff["candidate"] else None))
    else:
        common = told.total("changed") + told.total("unchanged")
        rows = [
            [
                name,
                format_exact(one["changed"]),
                format_percent(one["changed"], common),
                *_sum_cells(name, one, told.summary["masked"]),
            ]
            for name, one in sorted(told.summary["columns"].items(), key=lambda item: (-item[1]["changed"], item[0]))
        ]
        head = ["Column", "Rows changed", "Share", "Sum before", "Sum after"]
        caption = "Changes in rows that are on both sides; classified columns have no sums"
        body.append(render_table(head, rows, caption=caption, numbers=range(1, 5)) if rows else None)
        outside = told.summary["outside"]
        if outside is not None:
            where = told.folded(outside["differing"]) if outside["differing"] else "all with identical files"
            body.append(el("p", f"Outside the scope: {plural(outside['partitions'], 'partition')}, {where}."))
        body += [el("p", to_sentence(note), class_="note") for note in told.summary["notes"]]
    body += [render_metric(one) for one in told.metrics]
    return render_section("What changed", *body, name="changes")


def _sum_cells(name: str, one: Mapping[str, Any], masked: Sequence[str]) -> list[Child]:
    if name in masked:
        return ["classified", "classified"]
    return [format_value(one[side]) if one[side] is not None else "–" for side in ("sum_before", "sum_after")]


def _render_snapshots(told: _CoverData) -> Markup:
    rows: list[list[Child]] = []
    for one in told.publications:
        word = "published" if one["kind"] == "publish" else "rolled back"
        written = (
            f"{plural(one['data_files_written'], 'data file')} written" if one["data_files_written"] is not None else ""
        )
        rows.append(
            [el("code", one["pub_id"]), word if one["state"] == "committed" else f"{word}: {one['state']}",
             told.folded(one["partitions"]), el("code", one["base_snapshot_id"] or "none"),
             el("code", one["result_snapshot_id"] or "none"), written, el("code", one["undo_branch"])]
        )  # fmt: skip
    if not rows:
        return render_section(
            "Snapshots", el("p", "Nothing was published: readers never saw this run."), name="snapshots"
        )
    head = ["Publication", "What", "Partitions", "Snapshot before", "Snapshot after", "Cost", "Undo set"]
    note = "The lists of removed and added files are in parts/, under the digests that the audit names."
    waves = told.manifest.get("publish", {}).get("waves")
    if waves:
        note = f"{_describe_waves(waves)} {note}"
    return render_section(
        "Snapshots",
        render_table(head, rows, caption="Commits on the table", classes="stack"),
        el("p", note, class_="dim"),
        name="snapshots",
    )


def _describe_waves(waves: Mapping[str, Any]) -> str:
    size = plural(int(waves["size"]), "partition") if waves["size"].isdigit() else waves["size"]
    return f"Planned in waves of {size} at most, {waves['pause']} apart at least."


def _render_copies(told: _CoverData) -> list[Child]:
    items = [
        CopyItem(
            row["seq"] or 0, row["consumer"], tuple(row["partitions"]), ItemState(row["state"]), row["result"],
            row["ended_at"], row["last_error"], row["waived_by"], row["waived_why"],
        )
        for row in told.dossier.publications.get("owed", ())
        if row["effect"] == Effect.COPY.value
    ]  # fmt: skip
    return render_copies(summarize_copies(items, lambda digest: json.loads(told.dossier.parts[digest])), told.folded)


def _render_computation(told: _CoverData) -> Markup:
    code, attempts = told.environment["code"], told.work["attempts"]
    lost, tried = sum(one["state"] != "adopted" for one in attempts), plural(len(attempts), "attempt")
    commit = (code["git_commit"] or "none") + (", and uncommitted changes" if code["git_dirty"] else "")
    jars = [
        el("li", el("b", name), " ", el("code", digest)) for name, digest in sorted(told.environment["jars"].items())
    ]
    return render_section(
        "How it was computed" if attempts else "How it would have been computed",
        render_facts(
            [
                ("Transform", f"{code['call']} {code['version']}"),
                ("Code", el("code", code["zip_digest"])),
                ("Git commit", commit),
                ("Locked packages", el("code", code["lock_digest"]) if code["lock_digest"] else "no lock file"),
                ("Jars", el("ul", jars) if jars else None),
                ("Chunks", f"{format_exact(len(told.work['chunks']))} in {tried}, {format_exact(lost)} not adopted"),
                ("Errata", f"{told.environment['planned_with']}; this file by {told.environment['exported_with']}"),
            ]
        ),
        name="computed",
    )  # fmt: skip


def _render_verification(told: _CoverData) -> Markup:
    head = told.run["head"]
    name = f"{told.run['run_id']}.errata"
    return el(
        "footer",
        el("h2", "How to verify this", id="verify"),
        el(
            "p",
            "This page proves nothing by itself. Verify the file that it came in, with the project's public key"
            " from someone you trust, not from this file:",
        ),
        el("pre", el("code", f"errata evidence verify {name} --key errata.key.pub")),
        el(
            "p",
            "Or with Python and the package cryptography alone, with verify.py from a release of Errata. The copy"
            " in the bundle could be forged together with the rest:",
        ),
        el("pre", el("code", f"python verify.py {name} --key errata.key.pub")),
        render_facts(
            [
                ("Run manifest", el("code", told.run["manifest_digest"])),
                (
                    "Audit",
                    (
                        f"from this run's first entry to entry {format_exact(head['seq'])}, "
                        f"{format_moment(head['at'])} UTC"
                    ),
                ),
                ("Signed head", el("code", head["hash"])),
                ("Ledger", el("code", told.run["ledger_id"])),
                ("verify.py", el("code", told.environment["verifier_sha256"])),
            ]
        ),
    )
