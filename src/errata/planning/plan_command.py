"""The command line of a request, for people to paste. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from errata.planning.request import Request


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
        "--order": request.order,
        "--canary": str(request.canary) if request.canary else None,
        "--prove-determinism": str(request.prove_determinism) if request.prove_determinism else None,
        "--reason": request.reason,
        "--supersede": supersede or request.supersede,
    }
    for option, value in given.items():
        words += [option, shlex.quote(value)] if value else []
    for override in request.overrides:
        words += ["--override", shlex.quote(f"{override.rule}={override.why}")]
    return " ".join([*words, *(f'--override {rule}="WHY"' for rule in overrides)])
