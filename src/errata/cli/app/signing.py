"""Let a person sign a digest on a terminal: show what it covers, and take the beginning of it as typed."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any, TypeVar

from errata.canonical import parse_digest
from errata.cli.app.session import Session
from errata.errors import ApprovalRefused, UsageError

View = TypeVar("View")

TYPED = 8
"""How many characters of a digest a person types; programs pass all of them."""
_WHOLE = 64


def require_whole_digest(session: Session, digest: str | None, command: str) -> None:
    """Refuse the beginning of a digest as ``--digest``: it is what a terminal asks for, not what a program passes."""
    if digest is None:
        return
    found = len(parse_digest(digest))
    # the project is not open yet, so nothing else completes the command
    as_person = f" --as {shlex.quote(session.world.person)}" if session.world.person else ""
    if found != _WHOLE:
        raise UsageError(
            f"{command} was refused; --digest needs all {_WHOLE} characters, found {found}",
            state="nothing was changed",
            hint=f"without --digest a terminal shows what is signed and asks for the first {TYPED}: "
            f"errata {command}{as_person}",
        )


def sign_on_terminal(
    session: Session,
    decide: Callable[[str | None], View],
    what: str,
    deed: str,
    cover: Callable[[Any, int], tuple[list[str], str]],
) -> View | None:
    """Decide on what is shown, by the first characters of its digest; None if the person types nothing.

    ``decide`` makes the decision on a digest; called without one, it refuses, with what would be signed as the field
    ``what`` of the error. ``cover`` turns that into lines of text and the digest.
    """
    try:
        # first without a digest: anyone who may not decide is refused before reading and typing
        return decide(None)
    except ApprovalRefused as refused:
        if what not in refused.fields:
            raise
        lines, digest = cover(refused.fields[what], session.width)
    typed = session.ask(lines, f"to {deed}, type the first {TYPED} characters of the digest:").lower()
    typed = typed.removeprefix("sha256:")
    if not typed:
        session.tell("nothing was changed")
        return None
    # what does not fit is passed on as it is, so that it is refused and audited like any other digest
    return decide(digest if len(typed) >= TYPED and digest.startswith(typed) else typed)
