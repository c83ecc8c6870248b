"""What a product does about late data. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from errata.model.file_keys import Key, OneOf
from errata.model.file_values import Count, LengthText

REPORT, PROPOSE, RUN = "report", "propose", "run"


@dataclass(frozen=True, slots=True)
class Late:
    """What ``errata late`` does about stale partitions, and when."""

    settle: Annotated[LengthText, Key("A changed input must be quiet for this long before it is acted on.")] = "2h"
    partitions: Annotated[Count, Key("Most partitions in one plan, the oldest first.")] = 7
    latest: Annotated[LengthText, Key("A partition whose input is never quiet is taken after this long.")] = "24h"
    act: Annotated[
        str,
        OneOf(REPORT, PROPOSE, RUN),
        Key("report: say what is stale; propose: also plan it; run: also run it under a standing approval."),
    ] = REPORT
    policy: Annotated[
        Annotated[str, OneOf("partition", "lookback", "corrections")] | None,
        Key(
            "What late rows change: their own partition; also those that look back to it; or nothing in the target, "
            "because corrections are kept beside it."
        ),
    ] = None
