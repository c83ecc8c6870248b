"""Rules for events that were never recorded, in a plan: the columns they need, and one meaning for each version. Pure.

A version of a rule means the same in every run that computed something with it, because every event that it added says
so. The rule itself is compared with the sealed ones; the code that makes events of a source is part of what a rule
does, so other code under the same versions is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from errata.canonical import to_plain
from errata.model.product import Product
from errata.model.product.reconstruction import CONFIDENCE, ORIGIN_COLUMNS, RebuildRule, Reconstruction
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.plan_context import PlanContext, SealedRules

RULE_VERSIONS = "rule-versions"
"""Name of the guardrail."""


def find_origin_problems(product: Product, table: str, types: Mapping[str, str]) -> tuple[str, ...]:
    """Columns that the rules need and the table lacks, or has with another type; ``types`` includes new columns."""
    rules = product.reconstruct
    if rules is None:
        return ()
    compared = (rules.id, rules.time, *(name for rule in rules.rules for name in _list_compared(rule)))
    problems = [
        f"{table} has no column {name}, which reconstruct compares"
        for name in dict.fromkeys(compared)
        if name not in types
    ]
    for name in ORIGIN_COLUMNS:
        wanted = "decimal(3,2)" if name == CONFIDENCE else "string"
        if name not in types:
            problems.append(
                f"{table} has no column {name}, which tells how an event got there; add it under target.add_columns: "
                f"{name}: {wanted}"
            )
        elif types[name].replace(" ", "") != wanted:
            problems.append(f"{name} of {table} is {types[name]}; reconstruct needs {wanted}")
    return tuple(problems)


def _list_compared(rule: RebuildRule) -> tuple[str, ...]:
    return (*rule.identity, *(rule.match.on if rule.match else ()))


@dataclass(frozen=True, slots=True)
class _Meaning:
    """A version of a rule, and the run that sealed it."""

    rule: RebuildRule
    run_id: str


def check_rule_versions(world: PlanContext) -> Iterator[GuardrailResult]:
    """Refuse a rule that means something else than the same version did in a run before; newest run first."""
    rules = world.product.reconstruct
    if rules is None or not world.kind.runs_transform:
        return
    changed = list(_iterate_changed(rules, world.sealed_rules))
    for rule, meaning in changed:
        text = (
            f"rule {rule.name} {rule.version} was {_describe(meaning.rule, rule)} in {meaning.run_id}, and is "
            f"{_describe(rule, meaning.rule)} now"
        )
        look = (f"give rule {rule.name} another version in {world.product.path or 'the product file'}",)
        yield GuardrailResult(RULE_VERSIONS, "refuse", text, look=look)
    if changed:
        return
    names = ", ".join(f"{rule.name} {rule.version}" for rule in rules.rules)
    other = next((one for one in world.sealed_rules if _names_the_same(one, rules, world)), None)
    if other is not None:
        text = (
            f"the code differs from that of {other.run_id}, and neither transform.version ({world.code.version}) nor a "
            f"rule has another version ({names}); events do not tell which code made them"
        )
        yield GuardrailResult(RULE_VERSIONS, "warn", text)
        return
    yield GuardrailResult(RULE_VERSIONS, "ok", f"{names}: as in every run before")


def _iterate_changed(rules: Reconstruction, sealed: Sequence[SealedRules]) -> Iterator[tuple[RebuildRule, _Meaning]]:
    meanings: dict[tuple[str, str], _Meaning] = {}
    for one in sealed:
        for rule in one.rules.rules:
            meanings.setdefault((rule.name, rule.version), _Meaning(rule, one.run_id))
    for rule in rules.rules:
        known = meanings.get((rule.name, rule.version))
        if known is not None and known.rule != rule:
            yield rule, known


def _names_the_same(one: SealedRules, rules: Reconstruction, world: PlanContext) -> bool:
    """Whether a run has the same versions of everything, and other code."""
    return one.rules == rules and one.version == world.code.version and one.zip_digest != world.code.zip_digest


def _describe(rule: RebuildRule, other: RebuildRule) -> str:
    """What a rule has that the other has not."""
    names = [field.name for field in fields(rule) if getattr(rule, field.name) != getattr(other, field.name)]
    return ", ".join(f"{name} {_format(to_plain(getattr(rule, name)))}" for name in names)


def _format(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_format(item)}" for name, item in value.items())
    if isinstance(value, list):
        return "+".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
