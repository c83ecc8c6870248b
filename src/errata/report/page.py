"""The report page: its head and the order of its sections. Pure."""

from __future__ import annotations

from errata.report import changes, copies, decision, formatting, origins
from errata.report.html import to_sentence
from errata.report.style import CSS
from errata.text.markup import Child, el, raw
from errata.views.report import ReportView

# nothing may be fetched and no script may run, whatever a value contains
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def render_page(view: ReportView) -> str:
    """One self-contained HTML document."""
    title = f"{view.plan.product}: {view.run_id}"
    return render_document(title, decision.render_head(view), _render_sections(view), decision.render_digests(view))


def render_document(title: str, *children: Child) -> str:
    """An Errata page: light, dark and print, without network or script."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="robots", content="noindex"),
        el("title", title),
        el("style", raw(CSS)),
    )
    body = el("body", el("main", *children))
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def _render_sections(view: ReportView) -> list[Child]:
    found = view.diff
    notes: list[Child] = [el("p", to_sentence(note), class_="note") for note in view.notes]
    changed: list[Child] = []
    if found is not None:
        changed = [
            changes.render_calendar(view, found),
            changes.render_metrics(found),
            changes.render_movements(found),
            changes.render_columns(found),
            formatting.render_distributions(found),
            formatting.render_rows(found),
        ]
    return [
        *notes,
        decision.render_scope(view),
        decision.render_verdict(view),
        *origins.render_origins(view.origins),
        *changed,
        *copies.render_copies(view.copies, lambda names: decision.format_partitions(view, names)),
        decision.render_next_step(view),
        *decision.render_kept_notes(view),
    ]
