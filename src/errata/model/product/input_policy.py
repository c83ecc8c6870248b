"""What an input may be used for, for how long, how secret it is, and which values nobody sees. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from errata.model.file_keys import Key, OneOf
from errata.model.file_values import Column, Duration, Slug

CLASSIFICATIONS = ("public", "internal", "confidential", "restricted")
"""From the least to the most secret."""
HASH, REDACT, LAST4, BLANK = "hash", "redact", "last4", "blank"
TEXT_MASKS = (HASH, REDACT, LAST4)
"""Masks that turn a value into text."""
REDACTED = "***"
"""What mask redact puts in place of every value."""

Classification = Annotated[str, OneOf(*CLASSIFICATIONS)]


@dataclass(frozen=True, slots=True)
class InputPolicy:
    """Terms on which an input may be read. A plan that does not keep them is refused."""

    purpose: Annotated[tuple[Slug, ...], Key("Purposes that it may be used for; the product names its own.")] = ()
    retain_until: Annotated[
        Duration | None, Key("Partitions whose end is longer ago than this are not read, whatever the source has.")
    ] = None
    classification: Annotated[
        Classification | None,
        Key("How secret the rows are that the transform sees. The target must be classified as high, or higher."),
    ] = None
    mask: Annotated[
        Mapping[Column, Annotated[str, OneOf(HASH, REDACT, LAST4, BLANK)]],
        Key(
            "Columns whose values are replaced when they are read. hash: a keyed hash; redact: ***; last4: all but the "
            "last four characters become *; blank: NULL."
        ),
    ] = field(default_factory=dict)


def mask_text(value: Any, how: str, hashed: Callable[[str], str]) -> str | None:
    """A value after masking; NULL stays NULL.

    >>> [mask_text("4111111111111234", how, str.upper) for how in (LAST4, REDACT, BLANK)]
    ['************1234', '***', None]
    >>> mask_text("abc", LAST4, str.upper), mask_text(None, HASH, str.upper)
    ('***', None)
    """
    if value is None or how == BLANK:
        return None
    text = str(value)
    if how == LAST4:
        # a text of at most four characters would be shown whole
        return "*" * len(text) if len(text) <= 4 else "*" * (len(text) - 4) + text[-4:]
    return hashed(text) if how == HASH else REDACTED


def is_as_secret(target: str | None, source: str | None) -> bool:
    """Whether rows of a source may be in a target; one without a classification is taken as the lowest.

    >>> is_as_secret("restricted", "internal"), is_as_secret(None, "internal"), is_as_secret(None, None)
    (True, False, True)
    """
    return CLASSIFICATIONS.index(target or "public") >= CLASSIFICATIONS.index(source or "public")
