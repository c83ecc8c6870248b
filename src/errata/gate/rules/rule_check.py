"""Check that the rules of a product can be measured, before anything is computed. Pure.

Every rule is compiled alone, so that all flaws are found, each with its place in the product file. The SQL parser takes
half a second to import, a good part of a plan, so rules that do not need it (columns, ranges, patterns,
``sum(amount)``, ``count(*)``, ``cost < 0 or cost > revenue``) are checked without it. The parser handles all other
expressions, including every expression that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from errata.errors import UsageError
from errata.gate.measure.names import RESERVED
from errata.gate.rules.fit import find_input_types, refuse_misfit
from errata.gate.rules.functions import ALLOWED, REFUSED
from errata.gate.rules.literals import find_comparison_flaw, is_current_time, is_number
from errata.model.manifest import FORMAT, Code, Estimate, InputPin, Manifest, TargetPin
from errata.model.product import Check, Limits, Metric, Product, Reconciliation

SECTIONS = ("checks", "reconcile", "compare", "control")
"""Sections of a product file whose rules are measured."""

_PLAIN = re.compile(r"(sum|avg|min|max|count)\(\s*(\*|[A-Za-z_]\w*)\s*\)", re.ASCII | re.IGNORECASE)
_NAME = r"[A-Za-z_]\w*"
_VALUE = rf"(?:(?P<number>-?\d{{1,18}}(?:\.\d{{1,18}})?)|'(?P<text>[\w .:-]*)'|(?P<other>{_NAME}))"
_TERM = re.compile(
    rf"(?P<column>{_NAME})\s*(?:(?:<|<=|>|>=|=|<>|!=)\s*{_VALUE}|\s+is(?:\s+not)?\s+null)", re.ASCII | re.IGNORECASE
)
_WORDS = frozenset({"and", "or", "not", "null", "true", "false", "case", "end", "interval", "between", "exists", "is"})


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
            InputPin(source.name, "", "", source.partition, None, 0, 0, (), {}, 0, 0, 0, own=source.own)
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
    if rule.name not in RESERVED and _is_surely_valid(rule, manifest):
        return
    from errata.gate.measure.scan_plan import compile_plan

    alone: dict[str, Any] = dict.fromkeys(SECTIONS, ()) | {section: (rule,)}
    compile_plan(replace(manifest, **alone))
    if isinstance(rule, Reconciliation):
        _check_source(rule, manifest)


def _is_surely_valid(rule: Any, manifest: Manifest) -> bool:
    """Whether a rule is certainly valid; raises ``UsageError`` for one that is certainly wrong."""
    types = manifest.target.columns
    if isinstance(rule, Check):
        refuse_misfit(rule, manifest)
        return rule.metric is not Metric.EXPRESSION or _is_plain_condition(rule.expression or "", types)
    if isinstance(rule, Reconciliation):
        return _is_plain_reconciliation(rule, manifest)
    return _is_plain_aggregate(rule.metric, types)


def _check_source(rule: Reconciliation, manifest: Manifest) -> None:
    """Check the source side of a reconciliation, if the manifest has the input's columns."""
    from errata.gate.measure.reconcile import build_grouped_totals, build_partition_totals

    types = _source_types(rule, manifest)
    if types is not None:
        build_partition_totals((rule,), "source", types)
        build_grouped_totals((rule,), "source", types)


def _is_plain_reconciliation(rule: Reconciliation, manifest: Manifest) -> bool:
    usual = {"name", "input", "source", "target", "tolerance"}
    pins = {pin.name: pin for pin in manifest.inputs}
    return (
        all(getattr(rule, one.name) == one.default for one in fields(rule) if one.name not in usual)
        and rule.input in pins
        and pins[rule.input].partition is not None
        and _is_plain_aggregate(rule.target, manifest.target.columns)
        and _is_plain_aggregate(rule.source, _source_types(rule, manifest))
    )


def _source_types(rule: Reconciliation, manifest: Manifest) -> Mapping[str, str] | None:
    pin = next((pin for pin in manifest.inputs if pin.name == rule.input), None)
    return find_input_types(pin) if pin is not None else None


def _is_plain_aggregate(text: str, types: Mapping[str, str] | None) -> bool:
    found = _PLAIN.fullmatch(text.strip())
    if found is None:
        return False
    function, column = found[1].lower(), found[2]
    if column == "*":
        return function == "count"
    if types is None:
        return True
    kind = next((kind for name, kind in types.items() if name.lower() == column.lower()), None)
    return kind is not None and (is_number(kind) or function == "count")


def _is_plain_condition(text: str, types: Mapping[str, str]) -> bool:
    """Whether a condition is only comparisons of columns with numbers, text and each other, joined by AND and OR."""
    special = ALLOWED | set(REFUSED) | _WORDS
    columns = {name.lower(): kind for name, kind in types.items() if name.lower() not in special}
    for term in re.split(r"\s+(?:and|or)\s+", text.strip(), flags=re.IGNORECASE):
        found = _TERM.fullmatch(term)
        if found is None or any(found[name] and found[name].lower() not in columns for name in ("column", "other")):
            return False
        kind, text = columns[found["column"].lower()], found["text"]
        if text is not None and (is_current_time(text) or find_comparison_flaw(text, "text", kind)):
            return False
        if found["number"] is not None and find_comparison_flaw(found["number"], "number", kind):
            return False
    return True


def _format_message(error: UsageError) -> str:
    """Message of a flaw, with the available columns when the error lists them."""
    return f"{error.message} ({error.hint})" if error.hint and "columns are" in error.hint else error.message
