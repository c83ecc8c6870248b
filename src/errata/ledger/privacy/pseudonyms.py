"""Pseudonyms of people, and encryption of what they typed with a key per person.

The audit log is hashed and never changes, so it must not contain anything that may have to be erased. Rows hold
pseudonyms and sealed (encrypted) text; only the table ``subject`` maps a pseudonym to a name and a key. Deleting those
two erases the person, and every hash stays valid. The column types below translate in both directions, inside a
transaction of :class:`~errata.ledger.db.database.Database`, so that the rest of the ledger handles names and plain
text.

Sealing is deterministic (AES-SIV): the same text by the same person always gives the same sealed text, so that rows can
be compared with their audit entries without the key, and after the key is deleted.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Text, text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from errata.canonical import canonical_bytes
from errata.errors import KeyRefused, UsageError

ERASED = "(erased)"
MAX_TEXT = 2_000
"""Longest text a person may type, in characters; longer text is cut."""
_PSEUDONYM = re.compile(r"subject-[0-9a-f]{20}")
_SEALED = re.compile(r"sealed:(subject-[0-9a-f]{20}):([A-Za-z0-9_=-]+)")
_SECRET_BYTES = 64
_PLAIN, _WRAPPED = b"\x00", b"\x01"

_TYPED_KEYS = frozenset({"note", "reason", "stand", "why"})
"""Keys whose values people typed, or whose values are sentences that name people."""
_NAME_KEYS = frozenset({"accepted_by", "approved_by", "counted", "may", "people", "requested_by"})
"""Keys whose values may be names of people; ``person`` always holds a name."""
_MACHINE_ACTIONS = re.compile(
    r"(attempt|candidate|canary|chunk|chunks|cost|determinism|fact|freeze|guard|hazard|outbox|pins|refs|throttle)\.|STALE_FENCE|cleanup"
)
"""Actions whose reasons are codes, not typed text, except for reasons next to a ``person``."""
_ROW_ACTION = "fact."

WrappingKeyLoader = Callable[[], bytes]
"""Loads the project's key that encrypts people's keys; called only when needed."""


@dataclass(slots=True)
class PersonRegistry:
    """Names, pseudonyms and keys of people, for one transaction."""

    conn: Connection
    wrapping: WrappingKeyLoader | None = None
    proposed: dict[str, str] = field(default_factory=dict)  # pseudonyms, by name, that sealed plans already contain
    redact: Callable[[str], str] = str
    _names: dict[str, str | None] | None = None  # by pseudonym
    _pseudonyms: dict[str, str] | None = None  # by name
    _secrets: dict[str, bytes] | None = None
    _author: str = ""
    _entry: tuple[str, int] | None = None  # time and number of the entry being written

    def begin(self, name: str, at: str, seq: int) -> str:
        """Begin an audit entry by this person, the author of text sealed from now on; returns their pseudonym."""
        self._entry = (at, seq)
        self._author = self.pseudonym(name)
        return self._author

    def pseudonym(self, name: str) -> str:
        """The pseudonym of a name; without one, a new pseudonym while an entry is being written, else the name."""
        known = self._load_people()[1]
        if name in known or not name:
            return known.get(name, name)
        if _PSEUDONYM.fullmatch(name):
            if name not in self._load_people()[0]:
                raise UsageError(f"{name!r} was refused; expected a person's name, found what looks like a pseudonym")
            return name
        return name if self._entry is None else self._add_person(name)

    def name(self, stored: str) -> str:
        """The name behind a pseudonym; the pseudonym itself if the person was erased, any other text unchanged."""
        if not _PSEUDONYM.fullmatch(stored):
            return stored
        return self._load_people()[0].get(stored) or stored

    def seal(self, typed: str, author: str = "") -> str:
        """Encrypt text with its author's key; the author is by default the person of the current entry."""
        author = author or self._author
        if not typed or _SEALED.fullmatch(typed):
            return typed
        if author not in self._keys():
            raise UsageError("what a person typed was refused; expected an audit entry by them first")
        # redact and cut before sealing, so that entry and row hold the same sealed text
        typed = self.redact(typed)
        if len(typed) > MAX_TEXT:
            typed = typed[: MAX_TEXT - 1] + "…"
        content = self._build_cipher(author).encrypt(typed.encode(), [author.encode()])
        return f"sealed:{author}:{base64.urlsafe_b64encode(content).decode()}"

    def unseal(self, stored: str) -> str:
        """Decrypt sealed text; :data:`ERASED` if the key was deleted, any other text unchanged."""
        found = _SEALED.fullmatch(stored)
        if not found:
            return stored
        from cryptography.exceptions import InvalidTag

        author = found[1]
        if author not in self._keys():
            return ERASED
        try:
            return str(
                self._build_cipher(author).decrypt(base64.urlsafe_b64decode(found[2]), [author.encode()]), "utf-8"
            )
        except (InvalidTag, ValueError):
            return "(cannot be read: it was changed, or sealed with another key)"
        except KeyRefused as error:
            return f"(sealed: {error.message})"

    def conceal(self, said: Any, action: str = "") -> Any:
        """JSON data as stored: pseudonyms for names, sealed text for what people typed."""
        return self._conceal_value(said, "", "" if _MACHINE_ACTIONS.match(action) else self._author)

    def conceal_for_row(self, said: Any) -> Any:
        """JSON data as stored in a column of type :class:`PersonalJson`."""
        return self.conceal(said, _ROW_ACTION)

    def reveal(self, stored: Any) -> Any:
        """JSON data with names and plain text."""
        match stored:
            case str():
                return self.unseal(self.name(stored))
            case dict():
                return {key: self.reveal(item) for key, item in stored.items()}
            case list():
                return [self.reveal(item) for item in stored]
            case _:
                return stored

    def _conceal_value(self, said: Any, key: str, author: str) -> Any:
        match said:
            case str() if key == "person":
                return self.pseudonym(said)
            case str() if key in _NAME_KEYS:
                return self._load_people()[1].get(said, said)
            case str() if author and key in _TYPED_KEYS:
                return self.seal(said, author)
            case dict():
                # text next to a ``person`` is that person's; deeper keys of the same name may be settings
                person = said.get("person")
                theirs = self.pseudonym(person) if isinstance(person, str) else "" if key else author
                return {name: self._conceal_value(item, name, theirs) for name, item in said.items()}
            case list():
                return [self._conceal_value(item, key, "") for item in said]
            case _:
                return said

    def _add_person(self, name: str) -> str:
        names, pseudonyms = self._load_people()
        assert self._entry is not None  # noqa: S101 (the callers have checked)
        made, secret = self.proposed.get(name) or new_pseudonym(), secrets.token_bytes(_SECRET_BYTES)
        at, seq = self._entry
        row = {"pseudonym": made, "handle": name, "secret": self._wrap_secret(made, secret), "at": at, "seq": seq}
        self.conn.execute(_INSERT_SQL, row)
        names[made], pseudonyms[name] = name, made
        if self._secrets is not None:
            self._secrets[made] = row["secret"]  # type: ignore[assignment]
        return made

    def _load_people(self) -> tuple[dict[str, str | None], dict[str, str]]:
        if self._names is None or self._pseudonyms is None:
            rows = self.conn.execute(_NAMES_SQL).all()
            self._names = {row.pseudonym: row.handle for row in rows}
            self._pseudonyms = {row.handle: row.pseudonym for row in rows if row.handle is not None}
        return self._names, self._pseudonyms

    def _keys(self) -> dict[str, bytes]:
        if self._secrets is None:
            self._secrets = {row.pseudonym: bytes(row.secret) for row in self.conn.execute(_SECRETS_SQL)}
        return self._secrets

    def _build_cipher(self, pseudonym: str) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        stored = self._keys()[pseudonym]
        if stored[:1] == _PLAIN:
            return AESSIV(stored[1:])
        return AESSIV(AESSIV(self._wrapping()).decrypt(stored[1:], [pseudonym.encode()]))

    def _wrap_secret(self, pseudonym: str, secret: bytes) -> bytes:
        if self.wrapping is None:
            return _PLAIN + secret
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        return _WRAPPED + AESSIV(self._wrapping()).encrypt(secret, [pseudonym.encode()])

    def _wrapping(self) -> bytes:
        if self.wrapping is None:
            raise KeyRefused(
                "what people wrote was not read; expected evidence.subject_key, found none", state="nothing was changed"
            )
        return self.wrapping()


_NAMES_SQL = text("SELECT pseudonym, handle FROM subject")
_SECRETS_SQL = text("SELECT pseudonym, secret FROM subject WHERE secret IS NOT NULL")
_INSERT_SQL = text(
    "INSERT INTO subject (pseudonym, handle, secret, at, audit_seq) VALUES (:pseudonym, :handle, :secret, :at, :seq)"
)

_registry: ContextVar[PersonRegistry | None] = ContextVar("errata_people", default=None)
_reads_stored: ContextVar[bool] = ContextVar("errata_stored", default=False)


def new_pseudonym() -> str:
    """A random pseudonym."""
    return f"subject-{secrets.token_hex(10)}"


def is_pseudonym(name: str) -> bool:
    """Whether the text has the form of a pseudonym."""
    return _PSEUDONYM.fullmatch(name) is not None


def current_registry() -> PersonRegistry:
    """The registry of the current transaction."""
    found = _registry.get()
    if found is None:
        raise UsageError("a name was refused; expected a transaction of the ledger")
    return found


@contextmanager
def use_registry(people: PersonRegistry) -> Iterator[None]:
    """Translate names and text with this registry inside the block."""
    token = _registry.set(people)
    try:
        yield
    finally:
        _registry.reset(token)


@contextmanager
def as_stored() -> Iterator[None]:
    """Return values as stored and hashed inside the block: pseudonyms and sealed text."""
    token = _reads_stored.set(True)
    try:
        yield
    finally:
        _reads_stored.reset(token)


def is_as_stored() -> bool:
    """Whether values are currently returned as stored."""
    return _reads_stored.get()


class PersonName(TypeDecorator[str]):
    """A person's name; a pseudonym in the database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else current_registry().pseudonym(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return value if value is None or _reads_stored.get() else current_registry().name(value)


class SealedText(TypeDecorator[str]):
    """Text typed by the author of the latest audit entry of the transaction; sealed in the database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else current_registry().seal(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return value if value is None or _reads_stored.get() else current_registry().unseal(value)


class PersonalJson(TypeDecorator[str]):
    """Canonical JSON text that may contain names and text people typed."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        if value is None:
            return None
        return canonical_bytes(current_registry().conceal_for_row(json.loads(value))).decode()

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        if value is None or _reads_stored.get() or ("subject-" not in value):
            return value
        return canonical_bytes(current_registry().reveal(json.loads(value))).decode()
