"""What to change in a transform whose output does not match the table. Pure; the command adds what comes next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from errata.model.types import to_spark_scalar


def advise_on_output(misfits: Mapping[str, str], left_out: Sequence[str] = (), unknown: Sequence[str] = ()) -> str:
    """Name every cast (``misfits`` are the table's types by column), and how to treat missing and unknown columns.

    >>> advise_on_output({"load_seconds": "decimal(9, 3)"})
    'cast load_seconds to decimal(9, 3) at the end of the transform: types are never cast for you'
    """
    lines = []
    if misfits:
        casts = ", ".join(f"{name} to {to_spark_scalar(kind) or kind}" for name, kind in misfits.items())
        lines.append(f"cast {casts} at the end of the transform: types are never cast for you")
    if left_out or unknown:
        lines.append("select exactly the target's columns at the end of the transform")
    if left_out:
        lines[-1] += '; a column that is gone for good is written as NULL by a plan with --override schema="WHY"'
    return "\n".join(lines)
