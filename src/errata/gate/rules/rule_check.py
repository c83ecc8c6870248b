"""Check that the rules of a product can be measured, before anything is computed. Pure.

Every rule is compiled alone, so that all flaws are found, each with its place in the product file. The SQL parser takes
half a second to import, so only rules with an expression wait for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from errata.errors import UsageError
from errata.gate.measure.names import RESERVED
from errata.gate.rules.fit import find_input_types, refuse_distribution, refuse_misfit
from errata.model.manifest import FORMAT, Code, Estimate, InputPin, Manifest, TargetPin
from errata.model.product import Check, Distribution, Limits, Metric, Product, Reconciliation

SECTIONS = ("checks", "reconcile", "compare", "control", "distribution")
"""Sections of a product file whose rules are measured."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why a rule cannot be measured, and where it is: the section, the position in it, and the key of the rule."""

    section: str
    position: int
    key: str
    message: str

    def find_key(self, lines: Collection[str]) -> str:
        """Where it is in the product file: the key within the rule if that has a line of its own, else the rule."""
        rule = f"{self.section}[{self.position}]"
        return f"{rule}.{self.key}" if f"{rule}.{self.key}" in lines else rule


def find_flaws(manifest: Manifest) -> tuple[Flaw, ...]:
    """Flaws in the rules of a manifest; columns of inputs that it does not list are not checked."""
    return tuple(
        Flaw(section, position, str(error.fields.get("key", "")), _format_message(error))
        for section in SECTIONS
        for position, rule in enumerate(getattr(manifest, section))
        for error in _iterate_refusals(section, rule, manifest)
    )


def list_rule_inputs(manifest: Manifest) -> set[str]:
    """Inputs that rules refer to."""
    looked_up = {check.references.input for check in manifest.checks if check.references is not None}
    return looked_up | {rule.input for rule in manifest.reconcile}


def build_bare_manifest(product: Product, columns: Mapping[str, str], column_type: str) -> Manifest:
    """Manifest with only what the rules of a product refer to, to check a file without a plan."""
    target = product.target
    pin = TargetPin(
        target.table, "", None, 0, 0, target.column, column_type, "", target.grain, columns, target.key, "", {}, 0
    )
    rules: dict[str, Any] = {section: getattr(product, section) for section in SECTIONS}
    return Manifest(
        format=FORMAT,
        ledger_id="",
        project="",
        product=product.name,
        owner=product.owner,
        kind="",
        reason="",
        requested_by="",
        single_user=False,
        as_of="1970-01-01T00:00:00Z",
        partitions=(),
        order="",
        target=pin,
        inputs=tuple(
            # columns of an input with eras are those of the era, not of the table
            InputPin(
                source.name,
                "table" if source.table and not source.eras else "",
                source.table or "",
                source.partition,
                None,
                0,
                0,
                (),
                {},
                0,
                0,
                0,
                own=source.own,
            )
            for source in product.inputs
        ),
        code=Code("", "", {}, "", "", None, {}, None, git_dirty=False, errata_version=""),
        chunks=(),
        estimate=Estimate(0, 0, 0, 0, "0", ""),
        limits=Limits(),
        lineage_columns=product.lineage_columns,
        **rules,
    )


def _iterate_refusals(section: str, rule: Any, manifest: Manifest) -> Iterator[UsageError]:
    try:
        _check_rule(section, rule, manifest)
    except UsageError as error:
        yield error


def _check_rule(section: str, rule: Any, manifest: Manifest) -> None:
    if isinstance(rule, Check) and rule.metric is not Metric.EXPRESSION and rule.name not in RESERVED:
        refuse_misfit(rule, manifest)
        return
    if isinstance(rule, Distribution) and rule.name not in RESERVED:
        refuse_distribution(rule, manifest.target.columns)
        return
    from errata.gate.measure.scan_plan import compile_plan

    alone: dict[str, Any] = dict.fromkeys(SECTIONS, ()) | {section: (rule,)}
    compile_plan(replace(manifest, **alone))
    if isinstance(rule, Reconciliation):
        _check_source(rule, manifest)


def _check_source(rule: Reconciliation, manifest: Manifest) -> None:
    """Check the source side of a reconciliation, if the manifest has the input's columns."""
    from errata.gate.measure.reconcile import build_grouped_totals, build_partition_totals

    pin = next((pin for pin in manifest.inputs if pin.name == rule.input), None)
    types = find_input_types(pin) if pin is not None else None
    if types is not None:
        build_partition_totals((rule,), "source", types)
        build_grouped_totals((rule,), "source", types)


def _format_message(error: UsageError) -> str:
    """Message of a flaw, with the available columns when the error lists them."""
    return f"{error.message} ({error.hint})" if error.hint and "columns are" in error.hint else error.message
