"""What a release is over, and whether one still counts. Pure.

The subject of a release is everything a person looked at: the plan, the candidate, its verdict, the warnings that
someone answers for, the partitions. Its digest is what is signed. Any other candidate, verdict or acceptance is
another subject, so an older release is void, and can say why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from errata.canonical import digest_of
from errata.model.approval import is_over
from errata.model.codec import plain

__all__ = ["AUTOMATIC", "FORMAT", "Accepted", "Holders", "Subject", "is_clean", "void"]

FORMAT = "errata.release/1"
AUTOMATIC = "automatic"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A warning that a person answers for; ``findings`` is the digest of what was found."""

    check: str
    findings: str
    why: str
    person: str


@dataclass(frozen=True, slots=True)
class Subject:
    """What is signed."""

    manifest_digest: str
    candidate: int
    candidate_digest: str
    verdict: int  # the audit entry that recorded it
    verdict_digest: str  # of its findings and the thresholds they were judged by
    accepted: tuple[Accepted, ...]
    partitions: tuple[str, ...]
    format: str = FORMAT

    @property
    def content(self) -> Mapping[str, Any]:
        """As it is kept."""
        found: Mapping[str, Any] = plain(self)
        return found

    @property
    def digest(self) -> str:
        """What a release names."""
        return digest_of(self.content)


@dataclass(frozen=True, slots=True)
class Holders:
    """Who may release, by the project file as it is now; services never do."""

    publishers: frozenset[str]
    breakers: frozenset[str]
    services: frozenset[str]
    requester: str
    single_user: bool = False


def is_clean(checks: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the gate found nothing: no warning, accepted or not."""
    return all(check.get("level") == "ok" for check in checks)


def void(
    release: Mapping[str, Any],
    subject: Subject,
    holders: Holders,
    *,
    valid: str,
    now: datetime,
    automatic: bool,
) -> str:
    """Why a release no longer counts; empty when it does. ``automatic``: the product publishes by itself, now."""
    signed, person = release["subject"], str(release["person"])
    for told, names in _CHANGES:
        if any(signed.get(name) != subject.content[name] for name in names):
            return told
    if is_over(release["at"], valid, now):
        return f"it is of {release['at'][:10]} and counts for {valid}"
    if release["kind"] == AUTOMATIC:
        return "" if automatic else "it was released by a clean gate, and the product now wants a person"
    return _holder(person, holders, broke_glass=bool(release["break_glass"]))


_CHANGES = (
    ("the plan is another one", ("manifest_digest", "partitions")),
    ("there is a new candidate", ("candidate", "candidate_digest")),
    ("the accepted warnings are others", ("accepted",)),
    ("the candidate was judged again", ("verdict", "verdict_digest")),
    ("it is in another form", ("format",)),
)


def _holder(person: str, holders: Holders, *, broke_glass: bool) -> str:
    if holders.single_user:
        return ""
    if person in holders.services:
        return f"{person} is a service account"
    if broke_glass:
        return "" if person in holders.breakers else f"{person} no longer has the role break_glass"
    if person.casefold() == holders.requester.casefold():
        return f"{person} is the requester"
    return "" if person in holders.publishers else f"{person} no longer has the role publisher"
