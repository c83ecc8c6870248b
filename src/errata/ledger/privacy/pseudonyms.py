"""People in the ledger: a pseudonym each, and what they wrote sealed with a key of their own.

The audit is hashed and never changed, so what must be forgotten one day may not stand in it. Rows hold pseudonyms and
sealed text; the table ``subject`` alone knows which name and which key belong to a pseudonym. Deleting those two
forgets the person, and every hash stays what it was. The column types below translate in both directions, inside a
transaction of :class:`~errata.ledger.db.database.Database`, so that the rest of the ledger deals with names and plain
text.

Sealing is deterministic (AES-SIV): the same text by the same person is the same sealed text, so that rows can be
compared with their audit entries, also by someone who has no key and after the key is gone.
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
"""Characters of what a person typed."""
_PSEUDONYM = re.compile(r"subject-[0-9a-f]{20}")
_SEALED = re.compile(r"sealed:(subject-[0-9a-f]{20}):([A-Za-z0-9_=-]+)")
_SECRET_BYTES = 64
_PLAIN, _WRAPPED = b"\x00", b"\x01"

_TYPED = frozenset({"note", "reason", "stand", "why"})
"""Keys under which people's own words stand, and sentences that name people."""
_NAMED = frozenset({"accepted_by", "approved_by", "counted", "may", "people", "requested_by"})
"""Keys under which names of people may stand; ``person`` always holds one."""
_MACHINES = re.compile(
    r"(attempt|candidate|canary|chunk|chunks|cost|determinism|fact|freeze|guard|hazard|pins|refs|throttle)\.|STALE_FENCE|cleanup"
)
"""Actions whose reasons are codes that nobody typed, but for those that stand beside a ``person``."""
_ROWS = "fact."

Wrapping = Callable[[], bytes]
"""The project's key for the keys of people; called only where one is needed."""


@dataclass(slots=True)
class Book:
    """Who is who in one transaction."""

    conn: Connection
    wrapping: Wrapping | None = None
    proposed: dict[str, str] = field(default_factory=dict)  # pseudonyms that sealed plans name already
    redact: Callable[[str], str] = str
    _names: dict[str, str | None] | None = None  # by pseudonym
    _pseudonyms: dict[str, str] | None = None  # by name
    _secrets: dict[str, bytes] | None = None
    _author: str = ""
    _entry: tuple[str, int] | None = None  # time and number of the entry that is being written

    def begin(self, name: str, at: str, seq: int) -> str:
        """An entry by this person is being written; what is typed from here on is theirs. Returns their pseudonym."""
        self._entry = (at, seq)
        self._author = self.pseudonym(name)
        return self._author

    def pseudonym(self, name: str) -> str:
        """The pseudonym of a name; a new one where an entry is being written, else the name where it has none."""
        known = self._people()[1]
        if name in known or not name:
            return known.get(name, name)
        if _PSEUDONYM.fullmatch(name):
            if name not in self._people()[0]:
                raise UsageError(f"{name!r} was refused; expected a person's name, found what looks like a pseudonym")
            return name
        return name if self._entry is None else self._introduce(name)

    def name(self, stored: str) -> str:
        """The name behind a pseudonym; the pseudonym when it was erased, and anything else as it is."""
        if not _PSEUDONYM.fullmatch(stored):
            return stored
        return self._people()[0].get(stored) or stored

    def seal(self, typed: str, author: str = "") -> str:
        """What a person typed, the one at work by default, readable with their key only."""
        author = author or self._author
        if not typed or _SEALED.fullmatch(typed):
            return typed
        if author not in self._keys():
            raise UsageError("what a person typed was refused; expected an audit entry by them first")
        # entry and row seal the same words
        typed = self.redact(typed)
        if len(typed) > MAX_TEXT:
            typed = typed[: MAX_TEXT - 1] + "…"
        content = self._cipher(author).encrypt(typed.encode(), [author.encode()])
        return f"sealed:{author}:{base64.urlsafe_b64encode(content).decode()}"

    def unseal(self, stored: str) -> str:
        """What was typed; :data:`ERASED` when the key is gone, and anything else as it is."""
        found = _SEALED.fullmatch(stored)
        if not found:
            return stored
        from cryptography.exceptions import InvalidTag

        author = found[1]
        if author not in self._keys():
            return ERASED
        try:
            return str(self._cipher(author).decrypt(base64.urlsafe_b64decode(found[2]), [author.encode()]), "utf-8")
        except (InvalidTag, ValueError):
            return "(cannot be read: it was changed, or sealed with another key)"
        except KeyRefused as error:
            return f"(sealed: {error.message})"

    def conceal(self, said: Any, action: str = "") -> Any:
        """JSON data as it is stored: pseudonyms for names, sealed text for what people typed."""
        return self._concealed(said, "", "" if _MACHINES.match(action) else self._author)

    def in_row(self, said: Any) -> Any:
        """JSON data as a column of type :class:`Told` has it."""
        return self.conceal(said, _ROWS)

    def reveal(self, stored: Any) -> Any:
        """JSON data as people read it."""
        match stored:
            case str():
                return self.unseal(self.name(stored))
            case dict():
                return {key: self.reveal(item) for key, item in stored.items()}
            case list():
                return [self.reveal(item) for item in stored]
            case _:
                return stored

    def _concealed(self, said: Any, key: str, author: str) -> Any:
        match said:
            case str() if key == "person":
                return self.pseudonym(said)
            case str() if key in _NAMED:
                return self._people()[1].get(said, said)
            case str() if author and key in _TYPED:
                return self.seal(said, author)
            case dict():
                # words that stand beside a person are that person's; deeper ones may be settings of the same name
                person = said.get("person")
                theirs = self.pseudonym(person) if isinstance(person, str) else "" if key else author
                return {name: self._concealed(item, name, theirs) for name, item in said.items()}
            case list():
                return [self._concealed(item, key, "") for item in said]
            case _:
                return said

    def _introduce(self, name: str) -> str:
        names, pseudonyms = self._people()
        assert self._entry is not None  # noqa: S101 (whoever calls has looked)
        made, secret = self.proposed.get(name) or new_pseudonym(), secrets.token_bytes(_SECRET_BYTES)
        at, seq = self._entry
        row = {"pseudonym": made, "handle": name, "secret": self._wrapped(made, secret), "at": at, "seq": seq}
        self.conn.execute(_INSERT, row)
        names[made], pseudonyms[name] = name, made
        if self._secrets is not None:
            self._secrets[made] = row["secret"]  # type: ignore[assignment]
        return made

    def _people(self) -> tuple[dict[str, str | None], dict[str, str]]:
        if self._names is None or self._pseudonyms is None:
            rows = self.conn.execute(_NAMES).all()
            self._names = {row.pseudonym: row.handle for row in rows}
            self._pseudonyms = {row.handle: row.pseudonym for row in rows if row.handle is not None}
        return self._names, self._pseudonyms

    def _keys(self) -> dict[str, bytes]:
        if self._secrets is None:
            self._secrets = {row.pseudonym: bytes(row.secret) for row in self.conn.execute(_SECRETS)}
        return self._secrets

    def _cipher(self, pseudonym: str) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        stored = self._keys()[pseudonym]
        if stored[:1] == _PLAIN:
            return AESSIV(stored[1:])
        return AESSIV(AESSIV(self._wrapping()).decrypt(stored[1:], [pseudonym.encode()]))

    def _wrapped(self, pseudonym: str, secret: bytes) -> bytes:
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


_NAMES = text("SELECT pseudonym, handle FROM subject")
_SECRETS = text("SELECT pseudonym, secret FROM subject WHERE secret IS NOT NULL")
_INSERT = text(
    "INSERT INTO subject (pseudonym, handle, secret, at, audit_seq) VALUES (:pseudonym, :handle, :secret, :at, :seq)"
)

_book: ContextVar[Book | None] = ContextVar("errata_people", default=None)
_stored: ContextVar[bool] = ContextVar("errata_stored", default=False)


def new_pseudonym() -> str:
    """A pseudonym that says nothing about its name."""
    return f"subject-{secrets.token_hex(10)}"


def is_pseudonym(name: str) -> bool:
    """Whether this is the form of a pseudonym."""
    return _PSEUDONYM.fullmatch(name) is not None


def book() -> Book:
    """The people of the transaction at hand."""
    found = _book.get()
    if found is None:
        raise UsageError("a name was refused; expected a transaction of the ledger")
    return found


@contextmanager
def reading(people: Book) -> Iterator[None]:
    """One transaction, in which names and text are translated."""
    token = _book.set(people)
    try:
        yield
    finally:
        _book.reset(token)


@contextmanager
def as_stored() -> Iterator[None]:
    """Everything as it is stored and hashed: pseudonyms, sealed text."""
    token = _stored.set(True)
    try:
        yield
    finally:
        _stored.reset(token)


def is_as_stored() -> bool:
    """Whether the caller wants what is stored."""
    return _stored.get()


class Name(TypeDecorator[str]):
    """A person's name; a pseudonym in the database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else book().pseudonym(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return value if value is None or _stored.get() else book().name(value)


class Typed(TypeDecorator[str]):
    """What the person typed whose audit entry was written last; sealed in the database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else book().seal(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return value if value is None or _stored.get() else book().unseal(value)


class Told(TypeDecorator[str]):
    """Canonical JSON text that may name people and hold what they typed."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        if value is None:
            return None
        return canonical_bytes(book().in_row(json.loads(value))).decode()

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        if value is None or _stored.get() or ("subject-" not in value):
            return value
        return canonical_bytes(book().reveal(json.loads(value))).decode()
