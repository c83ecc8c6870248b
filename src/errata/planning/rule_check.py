"""Find rules that cannot be measured, with their lines in the product file. Reads table schemas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from errata.errors import ErrataError, ProjectFileError
from errata.gate.rules.fit import find_input_types
from errata.gate.rules.rule_check import find_flaws, list_rule_inputs
from errata.model.manifest import InputPin, Manifest
from errata.model.product import Product, Project
from errata.ports.tables import TableReader
from errata.text.numbers import plural
from errata.workspace import Workspace


def find_flawed_rules(
    project: Project, product: Product, manifest: Manifest, tables: TableReader
) -> list[dict[str, Any]]:
    """Rules that cannot be measured, as problems of the product file."""
    spoken_of = list_rule_inputs(manifest)
    known = tuple(_with_columns(tables, pin) if pin.name in spoken_of else pin for pin in manifest.inputs)
    found = []
    for flaw in find_flaws(replace(manifest, inputs=known)):
        key = flaw.find_key(product.lines)
        message = project.redact(f"{key}: {flaw.message}")
        found.append(
            {"file": product.path, "line": product.lines.get(key), "column": None, "message": message, "key": key}
        )
    return found


def refuse_flawed_rules(workspace: Workspace, product: Product, manifest: Manifest) -> None:
    """Raise a ``ProjectFileError`` with all flawed rules, before hours go into a candidate the gate cannot judge."""
    problems = find_flawed_rules(workspace.project, product, manifest, workspace.engines.tables)
    if not problems:
        return
    raise ProjectFileError(
        f"the plan was refused: {plural(len(problems), 'rule')} of {product.name} cannot be measured"
        + "".join(
            f"\n  {p['file']}{'' if p['line'] is None else ':' + str(p['line'])}: {p['message']}" for p in problems
        ),
        state="nothing was planned; no table was touched",
        hint="correct the lines above, then: errata check",
        problems=problems,
    )


def _with_columns(tables: TableReader, pin: InputPin) -> InputPin:
    """The input with its table's columns added if they are unknown; source files are not opened for this."""
    if find_input_types(pin) is not None or pin.kind != "table" or pin.own:
        return pin
    try:
        facts = tables.describe(pin.location)
    except ErrataError:
        return pin  # reported where the table is actually read
    return replace(pin, columns={column.name: column.type for column in facts.columns})
