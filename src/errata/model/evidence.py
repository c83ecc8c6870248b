"""Where proof of the audit is kept, and by whom it is signed, as a project declares it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["EvidenceSettings"]


@dataclass(frozen=True, slots=True)
class EvidenceSettings:
    """``evidence`` of errata.yaml."""

    key: str | None = field(default=None, repr=False)
    """A path from the project, or the private key itself; ``${NAME}`` while that variable is not set."""
    heads: str | None = None
    """An absolute directory that the ledger's owner cannot write to again what was written once."""
    max_lag_seconds: int = 86_400
    """How long a publication may stand without a signed head that covers it before the next one is refused."""
    subject_key: str | None = field(default=None, repr=False)
    """What the keys of people are wrapped with in the ledger, in the same form as ``key``."""
