"""Detect secrets: by the name of a setting, by a password in a URL, or by the look of the text. Pure.

This cannot find every secret; it catches those pasted by mistake into text that is stored and shown.
"""

from __future__ import annotations

import json
import re
from html import escape
from itertools import pairwise
from urllib.parse import quote, quote_plus, unquote

_NAME = re.compile(
    r"secrets?(?![a-z])|passw|pwd|[Tt]oken(?![a-z])|TOKEN|credential|authorization$|(api|access|private|signing)[._-]?key",
)
_HOLDS = re.compile(
    r"(secret|passw(or)?d|pwd|token|credential|authorization|(secret|api|access|private|signing)[._-]?(access[._-]?)?key)$",
    re.IGNORECASE,
)
_USER_INFO = re.compile(r"(://)([^/@\s\"']+)@")
_QUERY = re.compile(r"([?&;](?:password|passwd|pwd|token|secret|sig|signature)=)([^&;#\s\"']+)", re.IGNORECASE)

_SHAPES = (
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    ("an AWS access key", re.compile(r"(?<![A-Z0-9])(AKIA|ASIA)[0-9A-Z]{16}(?![A-Z0-9])")),
    ("a GitHub token", re.compile(r"(?<!\w)(gh[pousr]_\w{30,}|github_pat_\w{20,})")),
    ("a Slack token", re.compile(r"(?<!\w)xox[abeoprs]-[\w-]{10,}|hooks\.slack\.com/services/\w+/\w+/\w+")),
    ("a Google API key", re.compile(r"(?<!\w)AIza[\w-]{35}(?!\w)")),
    ("a signed token", re.compile(r"(?<!\w)eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*")),
    ("a Databricks token", re.compile(r"(?<!\w)dapi[0-9a-f]{32}(?!\w)")),
    ("an API key", re.compile(r"(?<!\w)sk[-_](live|test|proj|ant)?[-_]?[A-Za-z0-9]{20,}")),
    ("an account key", re.compile(r"(?i)accountkey=[A-Za-z0-9+/=]{20,}")),
)
_WORDS = re.compile(r"[A-Za-z0-9+/=_-]{20,}")
_SEPARATORS = re.compile(r"[+/=_-]")
_LEAST = 20
_TOKEN = 16
"""A user name in a URL with at least this many characters is a token."""
_CHANGES = 0.45
"""Random letters and digits switch between upper case, lower case and digits at 6 of 10 places, names at 2 or 3."""


def is_secret_name(key: str) -> bool:
    """Whether a setting of this name holds a credential.

    >>> [is_secret_name(key) for key in ("jdbc.password", "s3.secret-access-key", "header.Authorization", "uri")]
    [True, True, True, False]
    """
    return _NAME.search(key) is not None or _HOLDS.search(key) is not None


def holds_secret(key: str) -> bool:
    """Whether the value itself must be a secret, rather than something about a secret.

    >>> [holds_secret(key) for key in ("db_password", "fs.s3a.secret.key", "aws.credentials.provider", "tokenizer")]
    [True, True, False, False]
    """
    return _HOLDS.search(key) is not None


def find_passwords(text: str) -> tuple[str, ...]:
    """Passwords in a URL, both as written and decoded.

    >>> find_passwords("postgresql://errata:s%40lt@db/x"), find_passwords("sqlite:///ledger.db")
    (('s%40lt', 's@lt'), ())
    """
    found = [user_info.partition(":")[2] for _, user_info in _USER_INFO.findall(text)]
    found += [value for _, value in _QUERY.findall(text)]
    return tuple(dict.fromkeys(spelt for one in found if one for spelt in (one, unquote(one))))


def list_spellings(secret: str) -> tuple[str, ...]:
    """Forms in which a secret may appear: plain, in JSON, in a URL, in HTML.

    >>> list_spellings('a"b'), list_spellings("plain")
    (('a"b', 'a\\\\"b', 'a%22b', 'a&quot;b'), ('plain',))
    """
    told = (json.dumps(secret), json.dumps(secret, ensure_ascii=False))
    found = (secret, *(one[1:-1] for one in told), quote(secret, safe=""), quote_plus(secret), escape(secret))
    return tuple(dict.fromkeys(found))


def hide_passwords(text: str) -> str:
    """Text without passwords and tokens in URLs; a user name alone stays.

    >>> hide_passwords("cannot reach postgresql://errata:pw@db/x?sslmode=require&password=pw")
    'cannot reach postgresql://…@db/x?sslmode=require&password=…'
    >>> hide_passwords("postgresql://errata@db/x")
    'postgresql://errata@db/x'
    """
    return _QUERY.sub(r"\1…", _USER_INFO.sub(_hide_user_info, text))


def _hide_user_info(found: re.Match[str]) -> str:
    is_user = ":" not in found[2] and len(found[2]) < _TOKEN
    return found[0] if is_user else f"{found[1]}…@"


def classify_secret(text: str) -> str | None:
    """The kind of secret that a literal looks like, or None.

    Hexadecimal digests are not secrets, and camel-case names are not random.

    >>> classify_secret("AKIAIOSFODNN7EXAMPLE"), classify_secret("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")
    ('an AWS access key', 'a random token')
    >>> tuple(map(classify_secret, ("postgres://u:hunter2@h/d", "DailyRevenue_2024_v2_final", "9be2c0f1" * 8)))
    ('an address with a password', None, None)
    """
    for kind, shape in _SHAPES:
        if shape.search(text):
            return kind
    if any(user_info.partition(":")[2] for _, user_info in _USER_INFO.findall(text)):
        return "an address with a password"
    return "a random token" if any(_is_random(word) for word in _WORDS.findall(text)) else None


def _is_random(word: str) -> bool:
    letters = _SEPARATORS.sub("", word)
    kinds = [_classify_letter(letter) for letter in letters]
    if len(letters) < _LEAST or len(set(kinds)) < 3:
        return False
    return sum(a != b for a, b in pairwise(kinds)) / (len(kinds) - 1) >= _CHANGES


def _classify_letter(letter: str) -> str:
    return "digit" if letter.isdigit() else "upper" if letter.isupper() else "lower"
