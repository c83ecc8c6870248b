"""`errata report`: write the page that a reviewer signs."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.options import Partitions, Run
from errata.cli.app.output_files import write_atomically
from errata.cli.app.session import Session
from errata.text.numbers import format_size

_BEGIN = b"<!doctype html>"


def report(
    session: Session,
    run: Run,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="File to write (default: stdout).")
    ] = None,
    partitions: Partitions = None,
    sample: Annotated[int, typer.Option("--sample", metavar="N", min=0, help="Number of sample rows to show.")] = 20,
) -> None:
    """Write an HTML report for the owner of the numbers.

    One page with scope, people, verdicts, calendar, charts, changed columns, moved metrics and sample rows. It loads
    nothing from the network.

    Example: errata report bf-20260214-daily-revenue-7f3a21c0 -o report.html
    """
    with session.show_spinner(f"reporting {run}"), session.client() as client:
        view = client.report(run, partitions=partitions, sample=sample)
    if output is None and session.json:
        session.write_json(view.data())
        return
    from errata.report.page import render_page

    text = render_page(view)
    if output is None:
        session.world.out.write(text)
        return
    place = session.directory / output
    write_atomically(place, text.encode(), "a report", _BEGIN)
    if session.json:
        session.write_json({**view.data(), "file": output})
    else:
        session.page([f"wrote {place}   {format_size(len(text.encode()))}"])
