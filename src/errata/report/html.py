"""The parts that every section of a page uses: tables, facts, tiles. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from errata.text.markup import Child, Markup, el, nowrap_dates


def render_section(title: str, *children: Child, name: str, lead: str = "") -> Markup:
    """A part of the page under its heading."""
    told = el("p", nowrap_dates(lead), class_="lead") if lead else None
    return el("section", el("h2", title, id=name), told, *children, aria_labelledby=name)


def render_table(
    head: Sequence[Child],
    rows: Iterable[Sequence[Child]],
    *,
    caption: str,
    numbers: Iterable[int] = (),
    classes: str = "",
) -> Markup:
    """A table whose first column holds row headers; it scrolls on narrow screens."""
    right = set(numbers)

    def cell(n: int, child: Child) -> Markup:
        kind = "n" if n in right else None
        return el("th", child, scope="row", class_=kind) if n == 0 else el("td", child, class_=kind)

    top = el("tr", [el("th", one, scope="col", class_="n" if n in right else None) for n, one in enumerate(head)])
    body = [el("tr", [cell(n, one) for n, one in enumerate(row)]) for row in rows]
    inner = el("table", el("caption", caption), el("thead", top), el("tbody", body), class_=classes or None)
    return let_scroll(inner, caption)


def let_scroll(child: Child, label: str) -> Markup:
    """Content that scrolls sideways on narrow screens."""
    return el("div", child, class_="scroll", role="region", aria_label=label, tabindex=0)


def render_masthead(
    over: str, run_id: str, product: str, reason: str, state: tuple[str, str, str], tiles: Iterable[Child]
) -> Markup:
    """The head of a page about a run; ``state`` is its kind, its sign and its words."""
    kind, sign, words = state
    return el(
        "header",
        el("p", over, el("span", run_id, class_="nw"), class_="over"),
        el("h1", product),
        el("p", reason, class_="reason"),
        el("p", el("span", sign, class_="sign", aria_hidden="true"), " ", words, class_=f"state {kind}"),
        el("ul", [el("li", tile) for tile in tiles], class_="tiles"),
    )


def render_tile(name: str, big: str, small: str = "") -> Child:
    """One number of the masthead."""
    return [el("span", name, class_="name"), el("strong", big), el("span", nowrap_dates(small), class_="small")]


def render_facts(pairs: Iterable[tuple[str, Child]]) -> Markup:
    """A list of names with their values."""
    told = [(name, nowrap_dates(what) if type(what) is str else what) for name, what in pairs if what]
    return el("dl", [[el("dt", name), el("dd", what)] for name, what in told], class_="facts")


def render_details(summary: str, *children: Child) -> Markup:
    """Folded content that opens without a script and prints as shown on the screen."""
    return el("details", el("summary", summary), *children)


def to_sentence(text: str) -> str:
    """A message as a sentence; its words stay unchanged."""
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "!", "?")) else ".")


def render_share_bar(share: float) -> Markup:
    """A share as a bar; the caller shows the number next to it."""
    width = max(0.0, min(100.0, share * 100))
    return el("span", el("span", style=f"width:{width:.1f}%"), class_="bar", aria_hidden="true")
