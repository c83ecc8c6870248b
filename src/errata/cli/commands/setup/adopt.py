"""`errata adopt`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from errata.canonical import to_plain
from errata.cli.app.session import Session
from errata.cli.render.sources.recordings import render_dataset
from errata.errors import UsageError


def adopt(
    session: Session,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Table: catalog.namespace.table.")],
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="New file to write (default: stdout).")
    ] = None,
    parquet: Annotated[
        str | None, typer.Option("--parquet", metavar="PATH", help="Make the table of these Parquet files first.")
    ] = None,
) -> None:
    """Draft a product file from an existing Iceberg table.

    With --parquet, TABLE is made of plain Parquet files in folders such as day=2026-01-03, where they are. No file is
    copied; from then on they belong to the table. Repeating the command changes nothing.

    Example: errata adopt lake.fin.daily_revenue -o products/daily_revenue.yaml
    """
    with session.client() as client:
        dataset = None if parquet is None else client.adopt_parquet(table, parquet, as_=session.person)
        if dataset is not None:
            session.narrate(render_dataset(dataset))
        text: str = client.adopt(table)
    if output is not None:
        _write_new_file(session.directory / output, text)
        session.narrate(f"wrote {session.directory / output}; go through every CHANGE_ME, then: errata check")
    if session.json:
        session.write_json(
            {"table": table, "file": output, "product_file": text, "dataset": to_plain(dataset) if dataset else None}
        )
    elif output is None:
        session.world.out.write(text)


def _write_new_file(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(exist_ok=True)  # products/, in a project that has no product yet
        with path.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except FileExistsError:
        raise UsageError(
            f"{path} was refused; expected a file that does not exist yet", state="nothing was written"
        ) from None
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "not the name of a file"
        raise UsageError(f"{path} cannot be written: {why}", state="nothing was written") from problem
