"""The page: its head and the order of its sections. Pure."""

from __future__ import annotations

from errata.report import changes, decision, formatting
from errata.report.html import Child, el, raw, sentence
from errata.report.style import CSS
from errata.views.report import ReportView

# nothing may be fetched and no script may run, whatever a value holds
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(view: ReportView) -> str:
    """One self-contained HTML document."""
    title = f"{view.plan.product}: {view.run_id}"
    return document(title, decision.masthead(view), _sections(view), decision.digests(view))


def document(title: str, *children: Child) -> str:
    """A page of ours: light, dark and print, without network or script."""
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


def _sections(view: ReportView) -> list[Child]:
    found = view.diff
    notes: list[Child] = [el("p", sentence(note), class_="note") for note in view.notes]
    changed: list[Child] = []
    if found is not None:
        changed = [
            changes.calendar(view, found),
            changes.metrics(found),
            changes.movements(found),
            changes.columns(found),
            formatting.distributions(found),
            formatting.rows(found),
        ]
    return [*notes, decision.scope(view), decision.verdict(view), *changed, decision.next_step(view)]
