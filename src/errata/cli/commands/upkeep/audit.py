"""`errata audit verify`, `log`, `head`, `keygen`, `erase-person`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.cli.commands.compute.control import DECLINED
from errata.cli.commands.look.status import SomeRun
from errata.cli.render.audit import render_audit, render_erased_person, render_head, render_key, render_log
from errata.views import KeyView


def audit_verify(
    session: Session,
    head: Annotated[
        list[str] | None,
        typer.Option("--head", metavar="FILE|DIR", help="Heads that were kept outside; repeatable."),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", metavar="PUB", help="Whose signature a head needs, as public key file; repeatable."),
    ] = None,
) -> int:
    """Check every link of the audit chain. Exit code 1 when one is wrong.

    Held against the heads in evidence.heads, or those given: a cut tail and a log that was rebuilt show there only.

    Example: errata audit verify --head /mnt/worm/errata-heads --key signing.key.pub --json
    """
    with session.client() as client:
        view = client.audit_verify(heads=[_resolve_path(session, one) for one in head or ()],
                                   keys=[_resolve_path(session, one) for one in key or ()])  # fmt: skip
    session.answer(view, lambda width: render_audit(view, width))
    return 0 if view.ok else 1


def audit_log(
    session: Session,
    run: SomeRun = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="Only the newest N.")] = None,
) -> None:
    """List the audit entries.

    Example: errata audit log --run bf-20260214-daily-revenue-7f3a21c0
    """
    with session.client() as client:
        entries = client.audit_log(run, limit)
    session.answer(entries, lambda width: render_log(entries, width))


def audit_head(
    session: Session,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Write it to a new file as well.")
    ] = None,
) -> None:
    """Sign where the audit chain stands, and keep that outside the ledger.

    Goes to evidence.heads of errata.yaml; without it, and without -o, the signed head is printed.

    Example: errata audit head -o head-2026-02.json
    """
    with session.client() as client:
        view = client.audit_head(None if output is None else _resolve_path(session, output))
    session.answer(view, lambda width: render_head(view, width) if view.files else [view.envelope])


def audit_keygen(
    session: Session,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="The private key; FILE.pub beside it.")],
) -> None:
    """Make an Ed25519 key pair that signs heads and evidence.

    The private key is readable by you alone and belongs neither into the project nor beside the ledger.

    Example: errata audit keygen -o ~/.config/errata/signing.key
    """
    from errata.evidence.keys import generate_key_pair, public_path

    private = _resolve_path(session, output)
    public = generate_key_pair(private)
    view = KeyView(public.keyid, str(private), str(public_path(private)))
    session.answer(view, lambda width: render_key(view, width))


def audit_erase_person(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name in the audit, of a person or an account.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")],
) -> int:
    """Forget who a person is; their entries stay, under a pseudonym, and verify.

    Deletes the name and the key to the notes and reasons they typed, for good. Asks first on a terminal.

    Example: errata audit erase-person bo --reason "request 2026-114" --as dana
    """
    asked = [f"the name {name} and everything they typed in this ledger become unreadable for good"]
    if not session.confirm(asked, f"Erase {name}?"):
        return DECLINED
    with session.client() as client:
        view = client.erase_person(name, reason=reason, as_=session.person)
    session.answer(view, lambda width: render_erased_person(view, width))
    return 0


def _resolve_path(session: Session, given: str) -> Path:
    return session.directory / Path(given).expanduser()
