"""Guardrail on privacy: what an input may be used for, how old its rows may be, and who may see them. Pure.

Nothing here can be set aside by an override: the terms are in the product file, where a change of them is reviewed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from errata.model.duration import subtract_duration
from errata.model.graph.read_rule import rule_of_input
from errata.model.partition import NULL, end_of
from errata.model.product import Input
from errata.model.product.erasure import SUBJECT_TYPES
from errata.model.product.input_policy import HASH, InputPolicy, is_as_secret
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.plan_context import PlanContext
from errata.text.numbers import plural

PRIVACY = "privacy"


def check_privacy(world: PlanContext) -> Iterator[GuardrailResult]:
    """Refuse what the policies of the inputs do not allow, each by its name; silent where there are none."""
    sources = [one for one in world.product.inputs if one.policy != InputPolicy() or one.subjects]
    found = [
        replace(result, final=True)
        for source in sources
        for check in (_check_purpose, _check_age, _check_classification, _check_columns)
        for result in check(world, source)
    ]
    yield from found
    if sources and not found:
        yield GuardrailResult(PRIVACY, "ok", "; ".join(_describe_terms(world, source) for source in sources))


def _check_purpose(world: PlanContext, source: Input) -> Iterator[GuardrailResult]:
    allowed, purpose = source.policy.purpose, world.product.purpose
    if not allowed or purpose in allowed:
        return
    named = f"its purpose is {purpose}" if purpose else "it names no purpose"
    text = f"{source.name} may be used for {' or '.join(allowed)} (policy.purpose); {world.product.name}: {named}"
    look = (f"ask who answers for {source.location}; what the product is for is the key purpose of its file",)
    yield GuardrailResult(PRIVACY, "refuse", text, look=look)


def _check_age(world: PlanContext, source: Input) -> Iterator[GuardrailResult]:
    kept, rule = source.policy.retain_until, rule_of_input(source, world.product.target.grain)
    if kept is None or source.partition is None or not rule.input_grain.is_time:
        return
    limit = subtract_duration(kept, world.now)
    reads = rule.list_reads(world.partitions)
    old = [name for name in reads if name != NULL and end_of(rule.input_grain, name) <= limit]
    if not old:
        return
    text = (
        f"{source.name}: {world.folded(old, rule.input_grain)} ended more than {kept} ago, which is how long it may be "
        "used (policy.retain_until)"
    )
    touched = frozenset(rule.list_touched(old)) & set(world.partitions)
    yield GuardrailResult(PRIVACY, "refuse", text, look=("plan the partitions that are not as old",), leave_out=touched)


def _check_classification(world: PlanContext, source: Input) -> Iterator[GuardrailResult]:
    target = world.product.target
    if is_as_secret(target.classification, source.policy.classification):
        return
    found = f"is classified {target.classification}" if target.classification else "is not classified"
    text = f"{source.name} is {source.policy.classification} (policy.classification); {target.table} {found}"
    look = (
        f"target.classification: {source.policy.classification}, if its readers may see such rows",
        "or mask what they may not see, and classify the input by what is left",
    )
    yield GuardrailResult(PRIVACY, "refuse", text, look=look)


def _check_columns(world: PlanContext, source: Input) -> Iterator[GuardrailResult]:
    """Refuse columns of subjects or masks that the source lacks: rows without them could be anyone's."""
    facts = world.inputs.get(source.name)
    known = dict(source.columns) or ({} if facts is None or not facts.schemas else dict(facts.schemas[0]))
    if not known or source.own:
        return
    named = {**dict.fromkeys(source.subjects, "subjects"), **dict.fromkeys(source.policy.mask, "policy.mask")}
    for name, key in named.items():
        if name not in known and name != source.partition:
            text = f"{source.name} has no column {name}, which inputs.{source.name}.{key} names"
            yield GuardrailResult(PRIVACY, "refuse", text, look=("correct the name there, and plan again",))
    for name in source.subjects:
        if name in known and known[name] not in SUBJECT_TYPES:
            text = f"{source.name}: {name} is {known[name]}; expected ids of type {', '.join(SUBJECT_TYPES)}"
            yield GuardrailResult(
                PRIVACY, "refuse", text, look=(f"name another column in inputs.{source.name}.subjects",)
            )


def _describe_terms(world: PlanContext, source: Input) -> str:
    policy, told = source.policy, []
    if policy.purpose:
        told.append(f"for {world.product.purpose}")
    if policy.retain_until:
        told.append(f"no row older than {policy.retain_until}")
    if policy.classification:
        told.append(policy.classification)
    if policy.mask:
        hashed = [name for name, how in policy.mask.items() if how == HASH]
        told.append(
            f"{plural(len(policy.mask), 'column')} masked" + (f", {', '.join(hashed)} hashed" if hashed else "")
        )
    if source.subjects:
        told.append(f"without erased subjects ({', '.join(source.subjects)})")
    return f"{source.name}: {', '.join(told)}"
