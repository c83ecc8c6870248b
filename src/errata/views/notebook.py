"""What a notebook shows for a plan, a status, a diff and a verdict: small HTML without script or network. Pure.

Every value is escaped. Values of classified columns are masked before a view has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from errata.model.partition import Grain, format_ranges
from errata.text.markup import Child, Markup, el, nowrap_dates, raw
from errata.text.numbers import (
    format_count,
    format_duration,
    format_exact,
    format_moment,
    format_money,
    format_size,
    format_totals,
    format_value,
    format_verbatim,
    plural,
)

if TYPE_CHECKING:
    from errata.model.diff import Diff, SampleRow
    from errata.views.diff import DiffView
    from errata.views.plan import InputView, PlanView
    from errata.views.run import TryView, ValidateView
    from errata.views.status import RunLine, StatusView

MOST_RANGES, MOST_FINDINGS, MOST_ROWS = 6, 3, 20
_GOOD = frozenset({"approved", "staged", "validated", "published", "attested", "would pass"})
_BAD = frozenset({"refused", "declined", "rejected", "differs", "failed", "expired"})
_IN_PROGRESS = frozenset({"planned", "dry-run", "running", "publishing"})
_GATE = {
    "checks": "check",
    "reconciliations": "reconciliation",
    "comparisons": "comparison",
    "distributions": "distribution",
    "controls": "control",
}
_SIGNS = {"ok": ("good", "✓"), "warn": ("warn", "!"), "refuse": ("bad", "✗"), "block": ("bad", "✗")}

# colours that can be read on the light and the dark page of a notebook; its own styles apply otherwise
_CSS = """
.errata{font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;max-width:960px;
font-variant-numeric:tabular-nums;border:1px solid #8885;border-radius:8px;padding:12px 16px;margin:4px 0}
.errata p{margin:0 0 8px}.errata .head{display:flex;flex-wrap:wrap;gap:4px 12px;align-items:baseline}
.errata .head b{font-size:16px}.errata .dim{opacity:.72}.errata .nw{white-space:nowrap}
.errata .badge{color:#fff;background:#4a5870;border-radius:5px;padding:1px 9px;font-weight:600;white-space:nowrap}
.errata .badge.good{background:#15683a}.errata .badge.bad{background:#a81f18}.errata .badge.warn{background:#7a4b00}
.errata table{border-collapse:collapse;margin:8px 0;font-size:13px;width:auto}
.errata th,.errata td{text-align:left;vertical-align:top;padding:3px 14px 3px 0;border:0;
border-bottom:1px solid #8883;background:none;max-width:none;white-space:normal}
.errata thead th{opacity:.72;font-weight:400;white-space:nowrap}
.errata td.n,.errata th.n{text-align:right;white-space:nowrap}.errata td b{white-space:nowrap}
.errata .sign{font-weight:700;width:1.2em}.errata .sign.good{color:#2c9b5c}.errata .sign.warn{color:#c07a10}
.errata .sign.bad{color:#d8483f}.errata .new{font-weight:600}.errata .old{opacity:.72}
.errata code{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere;background:none}
.errata .bar{display:inline-block;width:120px;height:8px;border:1px solid #8888;border-radius:4px;overflow:hidden}
.errata .bar i{display:block;height:100%;background:#2c9b5c}.errata .wide{overflow-x:auto}
"""


def render_plan(view: PlanView) -> str:
    """A plan: scope, inputs, estimate, guardrails with a finding, digest."""
    facts: list[tuple[str, Child]] = [
        ("replaces", _describe_scope(view)),
        *((f"reads {source.name}", _describe_input(source, source.grain or view.grain)) for source in view.inputs),
        ("chunks", _describe_work(view)),
        ("gate", ", ".join(plural(number, noun) for kind, noun in _GATE.items() if (number := view.gate.get(kind)))),
        *(("! rule", change.text()) for change in view.rules_changed),
        *(("touches", line) for line in (view.touches.lines() if view.touches else ())),
        ("asked by", f"{view.requested_by}{', single-user project' if view.single_user else ''}"),
        *(("decided", f"{one.decision} by {one.person}, {format_moment(one.at)} UTC") for one in view.approvals),
        ("manifest", el("code", view.manifest_digest) if view.manifest_digest else None),
    ]
    fine = [verdict for verdict in view.verdicts if verdict.level == "ok"]
    rows: list[list[Child]] = [
        [_sign(verdict.level), el("b", verdict.rule), verdict.message]
        for verdict in view.verdicts
        if verdict.level != "ok"
    ]
    if fine:
        rows.append([_sign("ok"), plural(len(fine), "guardrail"), "without a finding"])
    head = _render_head("Plan", view.run_id or "refused", view.product, view.state)
    return _frame(head, el("p", view.reason), _render_facts(facts), _render_table((), rows))


def _describe_scope(view: PlanView) -> str:
    told = f"{plural(len(view.partitions), 'partition')}: {_format_ranges(view.grain, view.partitions)}"
    if view.new_partitions:
        told += f"; {format_exact(len(view.new_partitions))} of them new"
    if view.untouched_partitions:
        told += f"; {plural(view.untouched_partitions, 'other keeps its rows', 'others keep their rows')}"
    return told


def _describe_input(source: InputView, grain: str) -> list[Child]:
    what = f"{source.location}{f' at {source.version}' if source.version else ''}"
    told = [_format_ranges(grain, source.partitions)] if source.partitions else ["whole"]
    if source.kafka:
        told += [f"about {plural(source.rows, 'record')}", f"{format_size(source.bytes)} assumed"]
    else:
        told += [plural(source.file_count, "file"), format_size(source.bytes)]
    return [el("code", what), f"  {', '.join(told)}"]


def _describe_work(view: PlanView) -> str:
    found = view.estimate
    low, high = format_duration(found.seconds_low), format_duration(found.seconds_high)
    span = low if low == high else f"{low} … {high}"
    return f"{format_exact(len(view.chunks))}, {format_size(found.bytes)}, about {span}, {format_money(found.usd)}"


def render_status(view: StatusView) -> str:
    """One run: progress, partitions by state, publications, warnings, next command; otherwise the list of runs."""
    if view.run_id is None:
        return render_runs(view.runs)
    states = Counter(part.state.replace("_", " ") for part in view.partitions)
    facts: list[tuple[str, Child]] = [
        ("chunks", _render_progress(view)),
        ("partitions", ", ".join(f"{format_exact(number)} {word}" for word, number in states.items())),
        *(("published" if one.get("kind") == "publish" else "rolled back", _describe_publication(one, view.grain))
          for one in view.publications if one.get("state") == "committed"),
        *(("failed", f"{one.get('chunk_id', '')}: {one.get('error') or ''}") for one in view.failures),
        ("waits", view.held),
        *(("warning", text) for text in (*view.warnings, *view.noticed)),
        ("next", [[el("code", line), el("br")] for line in view.next.splitlines()] if view.next else None),
    ]  # fmt: skip
    return _frame(_render_head("Run", view.run_id, view.product or "", view.state or ""), _render_facts(facts))


def _render_progress(view: StatusView) -> list[Child] | None:
    if view.chunks is None or not view.chunks.total:
        return None
    share = 100 * view.chunks.done / view.chunks.total
    rows = f", {format_count(view.rows)} rows" if view.rows else ""
    told = f" {view.chunks.done} of {view.chunks.total} done{rows}"
    return [el("span", el("i", style=f"width:{share:.0f}%"), class_="bar", aria_hidden="true"), told]


def _describe_publication(one: Mapping[str, Any], grain: str) -> str:
    days = list(one.get("partitions") or ())
    who = f"by {one.get('person')}, {format_moment(str(one.get('at')))} UTC"
    return f"{plural(len(days), 'partition')}: {_format_ranges(grain, days)}, {who}"


def render_runs(runs: Sequence[RunLine]) -> str:
    """Runs, one row each."""
    if not runs:
        return _frame(el("p", "No runs."))
    rows: list[list[Child]] = [
        [
            el("code", run.run_id), _render_badge(run.state), run.product,
            el("span", run.first if run.first == run.last else f"{run.first} … {run.last}", class_="nw"),
            format_exact(run.partitions), run.requested_by, run.reason,
        ]
        for run in runs
    ]  # fmt: skip
    head = ("run", "state", "product", "scope", "partitions", "asked by", "reason")
    return _frame(_render_table(head, rows, numbers={4}))


def render_diff(view: DiffView) -> str:
    """Old against new: rows, columns, sample rows."""
    head = _render_head("Diff", view.run_id, view.product, "")
    return _frame(head, *_render_changes(view.diff, view.grain))


def _render_changes(diff: Diff, grain: str) -> list[Child]:
    parts = diff.partitions
    touched = [part.partition for part in parts if part.touched]
    counts: list[Child] = [
        format_exact(sum(getattr(part, name) for part in parts))
        for name in ("before_rows", "after_rows", "added", "removed", "changed", "unchanged")
    ]
    rows = _render_table(("before", "after", "added", "removed", "changed", "same"), [counts], numbers=set(range(6)))
    verb = "differs" if len(touched) == 1 else "differ"
    where = f"{format_exact(len(touched))} of {plural(len(parts), 'partition')} {verb}"
    where += f": {_format_ranges(grain, touched)}" if touched else ""
    columns: list[list[Child]] = []
    for name, change in diff.columns.items():
        if not change.changed:
            continue
        has_sums = change.sum_before is not None and change.sum_after is not None
        sums = format_totals(str(change.sum_before), str(change.sum_after)) if has_sums else ("", "")
        columns.append([el("b", name), format_exact(change.changed), *sums])
    hidden = f"{', '.join(diff.masked)}: classified, values are not shown" if diff.masked else ""
    notes = [el("p", note, class_="dim") for note in (hidden, *diff.notes) if note]
    table = _render_table(("column", "rows changed", "sum before", "sum after"), columns, numbers={1, 2, 3})
    return [el("p", nowrap_dates(where)), rows, table, _render_sample(diff.sample), notes]


def _render_sample(sample: Sequence[SampleRow]) -> Markup | None:
    keys = list(dict.fromkeys(name for row in sample for name in row.key))
    names = list(dict.fromkeys(name for row in sample for name in (*row.before, *row.after) if name not in keys))
    rows: list[list[Child]] = [
        [
            {"added": "+", "removed": "−", "changed": "~"}.get(row.change, row.change),
            *(format_verbatim(row.key[key]) if key in row.key else "" for key in keys),
            *(_render_pair(row, name) for name in names),
        ]
        for row in sample[:MOST_ROWS]
    ]
    return _render_table(("", *keys, *names), rows)


def _render_pair(row: SampleRow, name: str) -> Child:
    old = el("span", format_value(row.before[name]), class_="old") if name in row.before else None
    new = el("span", format_value(row.after[name]), class_="new") if name in row.after else None
    return [old, " → ", new] if old and new else [old, new]


def render_verdict(view: ValidateView) -> str:
    """The verdict on a candidate: one row per rule, with its first findings."""
    head = _render_head("Verdict", view.run_id, f"candidate {view.snapshot_id}", view.state)
    live = f"Written by others since planning: {', '.join(view.conflicts)}" if view.conflicts else None
    signed = [("release digest", el("code", view.release_digest))] if view.release_digest else []
    return _frame(head, _render_rules(view.checks), el("p", live) if live else None, _render_facts(signed))


def render_trial(view: TryView) -> str:
    """What a run of these partitions would publish."""
    state = "would pass" if view.passed else "rejected"
    head = _render_head("Try", ", ".join(view.partitions), f"{view.product}, {view.transform}", state)
    checks = [{"name": c.name, "partition": c.partition, "level": c.level, "message": c.message} for c in view.checks]
    return _frame(head, _render_rules(checks), *_render_changes(view.diff.diff, view.diff.grain))


def _render_rules(checks: Iterable[Mapping[str, Any]]) -> Markup | None:
    rules: dict[str, list[Mapping[str, Any]]] = {}
    for check in checks:
        rules.setdefault(str(check.get("name")), []).append(check)
    rows: list[list[Child]] = []
    for name, results in rules.items():
        found = [one for one in results if one.get("level") != "ok"]
        level = "block" if any(one.get("level") == "block" for one in found) else "warn" if found else "ok"
        people = sorted({str(one["accepted_by"]) for one in found if one.get("accepted_by")})
        told: list[Child] = [el("div", f"accepted by {', '.join(people)}")] if people else []
        told += [
            el("div", " ".join(str(text) for text in (one.get("partition"), one.get("message")) if text))
            for one in found[:MOST_FINDINGS]
        ]
        told += [el("div", f"and {len(found) - MOST_FINDINGS} more", class_="dim")] if found[MOST_FINDINGS:] else []
        rows.append(
            [
                _sign(level),
                el("b", name),
                el("span", f"{len(results) - len(found)} of {len(results)} ok", class_="nw"),
                told,
            ]
        )
    return _render_table(("", "rule", "results", "findings"), rows)


def _frame(*children: Child) -> str:
    return str(el("div", el("style", raw(_CSS)), *children, class_="errata"))


def _render_head(kind: str, name: str, what: str, state: str) -> Markup:
    words = [el("span", kind, class_="dim"), el("b", name), el("span", what, class_="dim")]
    return el("p", words, _render_badge(state) if state else None, class_="head")


def _render_badge(state: str) -> Markup:
    kinds = {"good": _GOOD, "bad": _BAD, "": _IN_PROGRESS}
    kind = next((kind for kind, states in kinds.items() if state in states), "warn")
    return el("span", state.replace("_", " "), class_=f"badge {kind}".strip())


def _sign(level: str) -> Markup:
    kind, sign = _SIGNS.get(level, ("warn", "?"))
    return el("span", sign, class_=f"sign {kind}", title=level)


def _render_facts(pairs: Iterable[tuple[str, Child]]) -> Markup | None:
    rows = [[el("b", name), nowrap_dates(what) if type(what) is str else what] for name, what in pairs if what]
    return _render_table((), rows)


def _render_table(
    head: Sequence[str], rows: Sequence[Sequence[Child]], numbers: set[int] | frozenset[int] = frozenset()
) -> Markup | None:
    if not rows:
        return None

    def cells(tag: str, row: Sequence[Child]) -> Markup:
        return el("tr", [el(tag, one, class_="n" if n in numbers else None) for n, one in enumerate(row)])

    top = el("thead", cells("th", head)) if head else None
    return el("div", el("table", top, el("tbody", [cells("td", row) for row in rows])), class_="wide")


def _format_ranges(grain: str, partitions: Sequence[str]) -> str:
    return format_ranges(Grain(grain), partitions, MOST_RANGES)
