"""Escape untrusted text before people see it, and require single lines of user input. Pure.

A row value, a column name or a reason may contain terminal escape sequences, bidirectional controls or line breaks.
Wherever text is shown, such characters are written out: ``\\x1b``, ``\\u202e``. All other characters stay the same.
"""

from __future__ import annotations

import re
import unicodedata

from errata.errors import UsageError
from errata.text.secrets import classify_secret

MAX_LINE = 2_000
"""Most characters of a reason, a note or a why."""

# control, format, surrogate, private use and unassigned characters, line and paragraph separators
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"  # needed by some scripts and by emoji
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ORDINARY = re.compile(r"[ -~]*")


def escape_text(text: str) -> str:
    r"""One line without control sequences or invisible characters.

    >>> escape_text("a\x1b[2Jb\ncaf\u00e9 \u202ef")
    'a\\x1b[2Jb\\ncafé \\u202ef'
    """
    if _ORDINARY.fullmatch(text):
        return text
    return "".join(_escape_character(character) for character in text)


def escape_json(text: str) -> str:
    r"""JSON text with such characters escaped inside its strings; its meaning is unchanged.

    >>> escape_json('{"a": "\u202e\x9b"}')
    '{"a": "\\u202e\\u009b"}'
    """
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(
        _escape_utf16(character) if _is_hidden(character) and character != "\n" else character for character in text
    )


def is_plain(text: str) -> bool:
    """Whether text needs no escaping."""
    return _ORDINARY.fullmatch(text) is not None or not any(map(_is_hidden, text))


_PLACEHOLDERS = frozenset({"…", "...", "WHY", "why it is right"})
"""What suggested commands have in place of a reason."""


def require_reason(what: str, reason: str, command: str) -> None:
    """Refuse what is on record for good without a reason; ``command`` is the one to type with it."""
    if not reason.strip():
        raise UsageError(
            f"{what} without a reason was refused; expected --reason, because it is kept",
            state="nothing was changed",
            hint=f'{command} --reason "…"',
        )


def require_one_line(what: str, text: str, most: int = MAX_LINE) -> str:
    """User input as one line of text in composed form; anything else is refused.

    >>> require_one_line("--reason", " FX inverted ")
    'FX inverted'
    """
    line = unicodedata.normalize("NFC", text.strip()) if not text.isascii() else text.strip()
    bad = next((character for character in line if _is_hidden(character)), None)
    if bad is not None:
        raise UsageError(
            f"{what} was refused; expected one line of plain text, found the character U+{ord(bad):04X}",
            state="nothing was changed",
        )
    if line in _PLACEHOLDERS:
        raise UsageError(
            f"{what} was refused; expected your own words, which every record will show, found the placeholder {line}",
            state="nothing was changed",
            hint=f"type the same command with your own words instead of {line}",
        )
    kind = classify_secret(line)
    if kind and kind != "a random token":
        raise UsageError(
            f"{what} was refused; it contains what looks like {kind}, and every record would have it",
            state="nothing was changed",
        )
    if len(line) > most:
        raise UsageError(
            f"{what} was refused; expected at most {most:,} characters, found {len(line):,}",
            state="nothing was changed",
            hint="put the long story where the work is tracked, and its number here",
        )
    return line


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN and character not in _JOINERS


def _escape_character(character: str) -> str:
    if not _is_hidden(character):
        return character
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else _escape_code(code))


def _escape_code(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escape_utf16(character: str) -> str:
    """Escape as in JSON, by UTF-16 unit."""
    pairs = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{pairs[n : n + 4]}" for n in range(0, len(pairs), 4))
