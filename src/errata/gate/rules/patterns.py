"""Check regular expressions in product files, and define those for personal data. Pure.

Patterns run in the JVM over every row, so each is checked beforehand: Java's syntax, at most 500 characters, and no
catastrophic backtracking (:mod:`errata.gate.rules.regex_safety`). Kinds of personal data are patterns of the same
language; a match is a suspicion to look into, not a proof.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from errata.errors import UsageError
from errata.gate.rules.regex_safety import find_regex_flaw

MAX_PATTERN_LENGTH = 500

CARD = "card"
"""Payment cards: a match must also have a valid check digit."""

PII_PATTERNS: Mapping[str, str] = {
    "email": r"\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,4}\.[A-Za-z]{2,24}\b",
    "phone": r"(?<![\w.])(?:\+[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{2,4}(?:[ .-]?\d{2,4}){2,4}|"
    r"\(\d{3}\) ?\d{3}-\d{4}|\d{3}-\d{3}-\d{4})(?!\w)",
    "iban": r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b",
    CARD: r"\b(?:4\d{3}|5[1-5]\d{2}|2[2-7]\d{2}|6011|65\d{2}|3[47]\d{2})[ -]?\d{4,6}[ -]?\d{4,5}(?:[ -]?\d{4})?\b",
    "ssn": r"\b(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}\b",
    "ipv4": r"(?<![\d.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\d.])",
    "ipv6": r"(?<![\w:])(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}(?![\w:])",
}
"""Patterns of ``piiValues``, by kind."""


def refuse_pattern(text: str, where: str, key: str = "pattern") -> None:
    """Raise ``UsageError`` when the pattern may not run."""
    if flaw := find_pattern_flaw(text):
        raise UsageError(
            f"{where}: the pattern {text!r} was refused; expected a safe Java regular expression: {flaw}",
            key=key,
        )


@cache
def find_pattern_flaw(text: str) -> str | None:
    """What is wrong with a pattern; None when it may run."""
    if not text:
        return "it is empty"
    if len(text) > MAX_PATTERN_LENGTH:
        return f"it has {len(text):,} characters; at most {MAX_PATTERN_LENGTH} are judged"
    return find_regex_flaw(text)
