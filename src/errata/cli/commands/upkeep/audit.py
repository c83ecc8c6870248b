"""`errata audit verify`, `gaps`, `log`, `head`, `keygen`, `erase-person`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from errata.cli.app.options import DECLINED
from errata.cli.app.session import Session
from errata.cli.commands.look.status import SomeRun
from errata.cli.render.audit import (
    render_audit,
    render_erased_person,
    render_gaps,
    render_head,
    render_key,
    render_log,
)


def audit_verify(
    session: Session,
    head: Annotated[
        list[str] | None,
        typer.Option("--head", metavar="FILE|DIR", help="Signed heads from another place; repeatable."),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", metavar="PUB", help="Public key that must have signed them; repeatable."),
    ] = None,
) -> int:
    """Verify the audit log against its hash chain.

    Exit code 1 when anything is wrong. Also compares the log with the signed heads in evidence.heads, or with those
    given: only they reveal a log that was rebuilt, or truncated together with all tables.

    Example: errata audit verify --head /mnt/worm/errata-heads --key signing.key.pub --json
    """
    with session.client() as client:
        view = client.audit_verify(heads=[_resolve_path(session, one) for one in head or ()],
                                   keys=[_resolve_path(session, one) for one in key or ()])  # fmt: skip
    session.answer(view, lambda width: render_audit(view, width))
    return 0 if view.ok else 1


def audit_gaps(
    session: Session,
    product: Annotated[str | None, typer.Argument(metavar="[PRODUCT]", help="Product (default: all).")] = None,
) -> int:
    """List commits that no run or registered job made.

    Looks at main of each governed table since the first plan of its product. Exit code 1 when a gap is open: an attest
    run over its partitions closes it. Compaction is listed as maintenance.

    Example: errata audit gaps fin.daily_revenue --json
    """
    with session.client() as client:
        view = client.audit_gaps(product)
        steps = [client.complete_commands(one.next, as_=session.person) for one in view.products if one.next]
    session.answer(view, lambda width: render_gaps(view, steps, width))
    return 0 if view.ok else 1


def audit_log(
    session: Session,
    run: SomeRun = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Show only the newest N entries (default: all).")
    ] = None,
) -> None:
    """List the entries of the audit log.

    Example: errata audit log --run bf-20260214-daily-revenue-7f3a21c0
    """
    with session.client() as client:
        entries = client.audit_log(run, limit)
    session.answer(entries, lambda width: render_log(entries, width))


def audit_head(
    session: Session,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Also write it to this new file.")
    ] = None,
) -> None:
    """Sign the audit head and store it outside the ledger.

    Writes to evidence.heads of errata.yaml. Without that setting and without -o, prints the signed head.

    Example: errata audit head -o head-2026-02.json
    """
    with session.client() as client:
        view = client.audit_head(None if output is None else _resolve_path(session, output))
    session.answer(view, lambda width: render_head(view, width) if view.files else [view.envelope])


def audit_keygen(
    session: Session,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Private key file; the public key is FILE.pub.")
    ],
) -> None:
    """Create an Ed25519 key pair for heads and evidence.

    Only you can read the private key. Keep it out of the project and away from the ledger.

    Example: errata audit keygen -o ~/.config/errata/signing.key
    """
    from errata.evidence.keys import generate_key_pair, public_path
    from errata.views import KeyView

    private = _resolve_path(session, output)
    public = generate_key_pair(private)
    view = KeyView(public.keyid, str(private), str(public_path(private)))
    session.answer(view, lambda width: render_key(view, width))


def audit_erase_person(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Person or account, as the audit log names it.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Reason, recorded in the audit log.")],
) -> int:
    """Replace a person's name with a pseudonym for good.

    Deletes the name and the key to the notes and reasons that the person typed. Their entries stay and still verify.
    Asks first on a terminal.

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
