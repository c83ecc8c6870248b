"""What an attacker or an accident puts where a name, a value or a reason belongs; how to see that it did nothing."""

from __future__ import annotations

import os
import re
import unicodedata
import zlib
from pathlib import Path

PWNED = "errata-was-here"
"""A file of this name appears when a payload was executed, wherever a shell might have been."""

QUOTES = (
    "a'b",
    'a"b',
    "a`b",
    "a\\b",
    "'; DROP TABLE run; --",
    '" OR ""="',
    "`; DELETE FROM t; `",
    "x -- y",
    "x /* y */ z",
)
SHELL = (
    f"$(touch {PWNED})",
    f"`touch {PWNED}`",
    f"; touch {PWNED}",
    f"| touch {PWNED}",
    f"&& touch {PWNED}",
    "-rf",
    "--help",
)
TEMPLATES = (
    "${HOME}",
    "$HOME",
    "{0}",
    "{task.description}",
    "{__class__.__mro__}",
    "%s%n",
    "[bold]x[/bold]",
    "[/]",
    "{{7*7}}",
)
PATHS = (
    "..",
    "../../../../etc/passwd",
    "/etc/passwd",
    "%2e%2e%2f%2e%2e",
    "..\\..\\windows",
    "CON",
    "file:///etc/passwd",
    "~root",
    "a/../../b",
)
CONTROLS = (
    "a\nerror[internal]: forged",
    "a\r\nnext: forged",
    "a\tb",
    "a\x00b",
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31m",
    "a\x7fb\x08\x08",
    "a\u2028b\u2029c",
    "user\u202egnp.exe",
    "\u2066a\u2069",
    "a\u200bb\ufeff",
)
LOOKALIKES = ("fin.sаles", "ｆｉｎ．ｓａｌｅｓ", "cafe\u0301", "ﬁn.sales", "١٢٣", "２０２６-０１-０１")
BROKEN = ("\ud800", "a\udfffb")
YAML_TAGS = ("!!python/object/apply:os.system [id]", "&a [*a]", "<<: *x", "? {}", "%YAML 1.1")
LONG = ("A" * 10_000, "é" * 5_000, "9" * 5_000)
EMPTY = ("", " ", "\u00a0")

CORPUS = (*QUOTES, *SHELL, *TEMPLATES, *PATHS, *CONTROLS, *LOOKALIKES, *BROKEN, *YAML_TAGS, *LONG, *EMPTY)

FORMULAS = (
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(1+1)",
    "\t=1+1",
    "\r=1+1",
    "\x00=1",
    '=HYPERLINK("http://evil.example","click")',
)
MARKUP = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' x='",
    "</td></table><iframe src=//evil.example>",
    "</style><script>1</script>",
    "<!--",
    "]]>",
    "javascript:alert(1)",
    "&#x3c;script&#x3e;",
    "<svg/onload=alert(1)>",
)

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def some(place: str) -> tuple[str, ...]:
    """A seventh of the corpus, another one for each place, so that every payload goes through many; all if asked for.

    ``ERRATA_CORPUS=all`` sends everything everywhere, which takes seven times as long.
    """
    if os.environ.get("ERRATA_CORPUS") == "all":
        return CORPUS
    return CORPUS[zlib.crc32(place.encode()) % 7 :: 7]


def label(payload: str) -> str:
    """A short name for test ids."""
    shown = payload if len(payload) <= 24 else f"{payload[:12]}…{len(payload)}"
    return ascii(shown)


def hidden_in(text: str) -> list[str]:
    """Characters that a terminal obeys or a reader cannot see, apart from the ends of lines."""
    return [f"U+{ord(c):04X}" for c in text if c not in "\n\u200c\u200d" and unicodedata.category(c) in _HIDDEN]


def assert_harmless(*texts: str) -> None:
    """Nothing to obey, nothing invisible, no trace of where in the program it happened."""
    for text in texts:
        assert not hidden_in(text), text[:500]
        assert "Traceback" not in text, text[:2000]
        assert not re.search(r'File ".*", line \d+', text), text[:2000]


def files_under(*places: Path) -> set[str]:
    """Every file and directory below these places."""
    return {str(path) for place in places for path in place.rglob("*")}
