"""Render what a change touches as a tree, or as a graph for Graphviz. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from errata.cli.render.layout import Branch, draw_tree, render_warnings, wrap
from errata.cli.render.throttle import format_partitions, format_units
from errata.text.escape import escape_text

if TYPE_CHECKING:
    from errata.views import DbtModelView, ExposureView, ImpactView, TouchedView


def render_impact(view: ImpactView, width: int) -> list[str]:
    """The product, and below each node what reads it; a node that reads several is written out below the first."""
    return [*render_tree(view, width), *([""] if view.notes else []), *render_warnings(view.notes, width)]


def render_tree(view: ImpactView, width: int) -> list[str]:
    """The tree alone."""
    scope = f"{format_partitions(view.grain, view.partitions)}  ({format_units(len(view.partitions), view.grain)})"
    tree = Branch(f"{view.product}  {scope}")
    _Branches(view).add_readers(tree, view.product, view.table)
    if not tree.below:
        return [*draw_tree(tree, width), *wrap("nothing that reads it is known", width, "  ")]
    return draw_tree(tree, width)


class _Branches:
    """Adds to a node of the tree what reads it, each reader in full only once."""

    def __init__(self, view: ImpactView) -> None:
        self.view = view
        self.written: set[str] = set()

    def add_readers(self, tree: Branch, product: str, table: str) -> None:
        """Products, models of dbt, exposures and consumers of one product."""
        for one in self.view.products:
            if product in (reading.product for reading in one.reads):
                self._add_product(tree, one)
        self._add_dbt(tree, table)
        if product == self.view.product:
            below = {name for one in self.view.products for name in one.consumers}
            names: tuple[str, ...] = tuple(name for name in self.view.consumers if name not in below)
        else:
            names = next((one.consumers for one in self.view.products if one.product == product), ())
        for name in names:
            tree.add(f"{name}  (consumer)")

    def _add_product(self, tree: Branch, one: TouchedView) -> None:
        is_new = one.product not in self.written
        self.written.add(one.product)
        branch = tree.add(f"{one.product}  {one.text() if is_new else '(see above)'}")
        if is_new and one.product != self.view.product:
            self.add_readers(branch, one.product, one.table)

    def _add_dbt(self, tree: Branch, key: str) -> None:
        for model in self.view.dbt:
            if key in model.reads:
                is_new = model.unique_id not in self.written
                self.written.add(model.unique_id)
                branch = tree.add(_describe_model(model) if is_new else f"{model.name}  (see above)")
                if is_new:
                    self._add_dbt(branch, model.unique_id)
        for exposure in self.view.exposures:
            if key in exposure.reads:
                tree.add(_describe_exposure(exposure))


def _describe_model(model: DbtModelView) -> str:
    about = ["dbt", *([model.materialized] if model.materialized else [])]
    about += [f"event_time {model.event_time}"] if model.event_time else []
    return f"{model.name}  ({', '.join(about)})"


def _describe_exposure(exposure: ExposureView) -> str:
    who = f", owner {exposure.owner}" if exposure.owner else ""
    mail = f" <{exposure.email}>" if exposure.email and exposure.email != exposure.owner else ""
    return f"{exposure.name}  ({exposure.type or 'exposure'}{who}{mail})"


def render_dot(view: ImpactView) -> list[str]:
    """A graph for ``dot -Tsvg``: products as boxes, models of dbt as ellipses, exposures and consumers as notes."""
    scope = format_partitions(view.grain, view.partitions)
    lines = ["digraph impact {", "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];']
    lines.append(f"  {_quote(view.product)} [label={_quote(view.product, scope)}, style=bold];")
    names = {view.table: view.product} | {one.table: one.product for one in view.products}
    for one in view.products:
        if one.product != view.product:
            lines.append(f"  {_quote(one.product)} [label={_quote(one.product, one.text())}];")
        lines += [
            f"  {_quote(reading.product)} -> {_quote(one.product)} [label={_quote(reading.input)}];"
            for reading in one.reads
        ]
    for model in view.dbt:
        lines += _draw_reader(model.unique_id, model.name, "ellipse", [names.get(read, read) for read in model.reads])
    for exposure in view.exposures:
        reads = [names.get(read, read) for read in exposure.reads]
        lines += _draw_reader(exposure.unique_id, exposure.name, "note", reads)
    told = {name for one in view.products for name in one.consumers}
    own = [(view.product, name) for name in view.consumers if name not in told]
    for product, name in [*own, *((one.product, name) for one in view.products for name in one.consumers)]:
        lines += _draw_reader(f"consumer {name}", name, "note", [product])
    return [*lines, "}"]


def _draw_reader(key: str, name: str, shape: str, reads: Sequence[str]) -> list[str]:
    edges = [f"  {_quote(read)} -> {_quote(key)};" for read in reads]
    return [f"  {_quote(key)} [label={_quote(name)}, shape={shape}];", *edges]


def _quote(*parts: str) -> str:
    """Lines of text in quotes; JSON's escapes of quotes, backslashes and line breaks mean the same in Graphviz."""
    return json.dumps("\n".join(map(escape_text, parts)), ensure_ascii=False)
