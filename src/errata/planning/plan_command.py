"""The command line of a request, for people to paste. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace

from errata.errors import UsageError
from errata.model.partition import FORMS, NULL, Grain, format_partition_list, parse_partition, split_items
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.request import Request

_MAX_LIST = 300
"""Longest list of partitions in a command that a person is asked to paste."""
_HELP = "errata plan --help"


def format_plan_command(
    request: Request, *, partitions: str | None = None, supersede: str | None = None, overrides: Iterable[str] = ()
) -> str:
    """`errata plan` as it was asked for, with other partitions (quoted already), a superseded run or more overrides.

    >>> asked = Request("fin.daily", "FX bug", "ana", "2026-01-01", "2026-02-01")
    >>> print(format_plan_command(asked, supersede="bf-1"))
    errata plan fin.daily --from 2026-01-01 --to 2026-02-01 --reason 'FX bug' --supersede bf-1
    >>> print(format_plan_command(asked, partitions="2026-01-03", overrides=["cost"]))
    errata plan fin.daily --partitions 2026-01-03 --reason 'FX bug' --override cost="WHY"
    """
    words = ["errata plan", shlex.quote(request.product)]
    if partitions is not None:
        words += ["--partitions", partitions]
    elif request.partitions is not None:
        listed = request.partitions if isinstance(request.partitions, str) else ",".join(request.partitions)
        words += ["--partitions", shlex.quote(listed)]
    else:
        words += ["--from", shlex.quote(request.start or "D"), "--to", shlex.quote(request.end or "D")]
    given = {
        "--kind": request.kind if request.kind != "restate" else None,
        "--restore": request.restore,
        "--restore-from": request.restore_from,
        "--order": request.order,
        "--canary": str(request.canary) if request.canary else None,
        "--prove-determinism": str(request.prove_determinism) if request.prove_determinism else None,
        "--expected-rows": request.expected_rows,
        "--reason": request.reason,
        "--supersede": supersede or request.supersede,
    }
    if request.copies is not None:
        given["--kind"] = "repair"
        words += ["--copies", *(f"--copy {shlex.quote(name)}" for name in request.copies)]
    for option, value in given.items():
        words += [option, shlex.quote(value)] if value else []
    for override in request.overrides:
        words += ["--override", shlex.quote(f"{override.rule}={override.why}")]
    return " ".join([*words, *(f'--override {rule}="WHY"' for rule in overrides)])


def format_corrected_plan(request: Request, grain: Grain) -> str:
    """The same request with its ends in order, and the form of a partition in place of what is none.

    Never a smaller scope: what was asked for is not known where an end cannot be read.

    >>> turned = Request("fin.daily", "FX bug", "ana", "2026-02-01", "2026-01-01")
    >>> print(format_corrected_plan(turned, Grain.DAY))
    errata plan fin.daily --from 2026-01-01 --to 2026-02-01 --reason 'FX bug'
    >>> print(format_corrected_plan(replace(turned, end="2026-02-30"), Grain.DAY))
    errata plan fin.daily --from 2026-02-01 --to YYYY-MM-DD --reason 'FX bug'
    """
    if isinstance(request.partitions, str):
        listed = _correct_list(grain, request.partitions) if grain.is_time else request.partitions
        is_other = listed != request.partitions
        return format_plan_command(request, partitions=shlex.quote(listed)) if is_other else _HELP
    if request.start is None or request.end is None or not grain.is_time:
        return _HELP
    start, end = _find_time_partition(grain, request.start), _find_time_partition(grain, request.end)
    if start is None or end is None:
        form = FORMS[grain]
        return format_plan_command(replace(request, start=start or form, end=end or form))
    if start == end:  # who names one partition twice means it
        return format_plan_command(request, partitions=start)
    return format_plan_command(replace(request, start=end, end=start)) if end < start else _HELP


def _correct_list(grain: Grain, text: str) -> str:
    """The list with its spans in order, and the form of a partition in place of what is none."""
    corrected = []
    for item in filter(None, split_items(text)):
        first, dots, last = item.partition("..")
        ends = [_find_time_partition(grain, end) or FORMS[grain] for end in ((first, last) if dots else (first,))]
        corrected.append(item if item == NULL else "..".join(ends if FORMS[grain] in ends else sorted(ends)))
    return ",".join(corrected) or FORMS[grain]


def _find_time_partition(grain: Grain, text: str) -> str | None:
    try:
        found = parse_partition(grain, text)
    except UsageError:
        return None
    return found if found != NULL else None


def format_possible_plan(
    request: Request, grain: Grain, partitions: Sequence[str], most: int, refused: Sequence[GuardrailResult]
) -> str | None:
    """The command that plans what no rule refuses: fewer partitions, or in place of the one run that has them.

    None if some rule refuses any request like this one, or nothing is left.
    """
    if not all(result.can_be_avoided for result in refused):
        return None
    runs = {result.supersede for result in refused if result.supersede}
    superseded = next(iter(runs)) if len(runs) == 1 and request.supersede is None else None
    left_out = {
        name for result in refused if superseded is None or result.supersede != superseded for name in result.leave_out
    }
    rest = [name for name in partitions if name not in left_out][:most]
    if len(rest) == len(partitions):
        return format_plan_command(request, supersede=superseded)
    listed = format_partition_list(grain, rest) if rest else ""
    if not 0 < len(listed) <= _MAX_LIST:
        return None
    return format_plan_command(request, partitions=listed, supersede=superseded)
