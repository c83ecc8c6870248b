"""`errata ledger create` and `errata ledger roles`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.errors import UsageError


def ledger_create(session: Session) -> None:
    """Create the ledger that errata.yaml names.

    The first plan does so as well. Commands that only read never create one: a wrong path is an error.

    Example: errata ledger create
    """
    with session.client() as client:
        view = client.create_ledger()
    told = "there was a ledger already" if view.already else "created a ledger"
    session.answer(view, lambda _: [f"{told} at {view.place}, id {view.ledger}"])


def ledger_roles(
    session: Session,
    owner: Annotated[str, typer.Option("--owner", metavar="ROLE", help="Role that owns the tables.")] = "errata_owner",
    app: Annotated[str, typer.Option("--app", metavar="ROLE", help="Role that Errata works as.")] = "errata_app",
    schema: Annotated[str, typer.Option("--schema", metavar="NAME", help="Schema of the tables.")] = "public",
    print_: Annotated[bool, typer.Option("--print", help="Print the SQL; required, Errata creates no roles.")] = False,
) -> None:
    """Print SQL for separate owner and application roles in PostgreSQL.

    The application role can add to the audit log, but cannot change entries or drop triggers.

    Example: errata ledger roles --print | psql -d errata
    """
    from errata.ledger.db.roles import render_roles_sql

    if not print_:
        raise UsageError(
            "Errata creates no roles itself; use --print and let a database administrator run the SQL",
            hint="errata ledger roles --print | psql -d errata",
        )
    sql = render_roles_sql(owner, app, schema)
    session.answer({"sql": sql}, lambda _: sql.splitlines())
