"""Whether the jars that a run was sealed with are the jars here. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from errata.errors import SetupError
from errata.jars.lane import find_sealed_lane, format_requirement


def require_sealed_jars(run_id: str, sealed: Mapping[str, str], here: Mapping[str, str], plan_again: str) -> None:
    """Raise ``SetupError`` unless every sealed jar is among those of this installation (coordinate to SHA-256).

    Its manifest tells what a run was computed and judged with; another Iceberg or another Spark would make that untrue.
    """
    other = sorted(coordinate for coordinate, digest in sealed.items() if here.get(coordinate) != digest)
    if not other:
        return
    was, now = find_sealed_lane(sealed), find_sealed_lane(here)
    if was and now and was[0] != now[0]:
        what = (
            f"run {run_id} was sealed for Spark {was[0]} with Iceberg {was[1]}; here are Spark {now[0]} and "
            f"Iceberg {now[1]}"
        )
        elsewhere = f"run it where Spark {was[0]} is installed (pip install {format_requirement(was[0])})"
    else:
        what = f"run {run_id} was sealed with jars that this version of Errata does not have: {', '.join(other)}"
        elsewhere = "run it with the version of Errata that planned it"
    raise SetupError(
        what,
        hint=f"{elsewhere}, or plan it again here: {plan_again}",
        state="nothing was computed, and the run stays as it was",
        sealed=other,
    )
