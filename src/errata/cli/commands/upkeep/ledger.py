"""`errata ledger roles`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.errors import UsageError


def ledger_roles(
    session: Session,
    owner: Annotated[str, typer.Option("--owner", metavar="ROLE", help="Owns the tables.")] = "errata_owner",
    app: Annotated[str, typer.Option("--app", metavar="ROLE", help="Works, and can lift no rule.")] = "errata_app",
    schema: Annotated[str, typer.Option("--schema", metavar="NAME", help="Where the tables are.")] = "public",
    print_: Annotated[bool, typer.Option("--print", help="Print the SQL; Errata itself creates no role.")] = False,
) -> None:
    """Print the SQL that splits a PostgreSQL ledger between an owner and a role that only adds to the audit.

    Example: errata ledger roles --print | psql -d errata
    """
    from errata.ledger.db.roles import render_roles_sql

    if not print_:
        raise UsageError(
            "roles were not made; expected --print: whoever administers the database runs what it prints",
            hint="errata ledger roles --print | psql -d errata",
        )
    sql = render_roles_sql(owner, app, schema)
    session.answer({"sql": sql}, lambda _: sql.splitlines())
