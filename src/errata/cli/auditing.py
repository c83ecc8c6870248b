"""Commands of the audit: verify, log, head, keygen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from errata.cli.command import command
from errata.cli.reading import PANEL, SomeRun
from errata.cli.render_audit import audit_lines, head_lines, key_lines, log_lines
from errata.cli.session import Session
from errata.model.views import KeyView

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    audit = typer.Typer(help="The audit chain: who did what, tamper-evident.", rich_markup_mode=None)
    command(audit, "verify")(audit_verify)
    command(audit, "log")(audit_log)
    command(audit, "head")(audit_head)
    command(audit, "keygen")(audit_keygen)
    app.add_typer(audit, name="audit", rich_help_panel=PANEL)


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
        view = client.audit_verify(heads=[_place(session, one) for one in head or ()],
                                   keys=[_place(session, one) for one in key or ()])  # fmt: skip
    session.answer(view, lambda width: audit_lines(view, width))
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
    session.answer(entries, lambda width: log_lines(entries, width))


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
        view = client.audit_head(None if output is None else _place(session, output))
    session.answer(view, lambda width: head_lines(view, width) if view.files else [view.envelope])


def audit_keygen(
    session: Session,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="The private key; FILE.pub beside it.")],
) -> None:
    """Make an Ed25519 key pair that signs heads and evidence.

    The private key is readable by you alone and belongs neither into the project nor beside the ledger.

    Example: errata audit keygen -o ~/.config/errata/signing.key
    """
    from errata.evidence.keys import generate, public_path

    private = _place(session, output)
    public = generate(private)
    view = KeyView(public.keyid, str(private), str(public_path(private)))
    session.answer(view, lambda width: key_lines(view, width))


def _place(session: Session, given: str) -> Path:
    return session.directory / Path(given).expanduser()
