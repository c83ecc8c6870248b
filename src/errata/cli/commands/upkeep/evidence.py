"""`errata evidence export` and `verify`. Reads and writes the given files.

``evidence verify`` is the stand-alone verifier and needs neither project nor ledger nor lake.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from errata.canonical import to_plain
from errata.cli.app.options import Run
from errata.cli.app.output_files import write_atomically
from errata.cli.app.session import Session
from errata.cli.render.layout import format_labelled, render_next, wrap
from errata.errors import UsageError
from errata.text.numbers import format_size, plural

PANEL = "Look and tidy up"
_BEGIN = 14
"""Leading bytes that all bundles share: a zip whose first member is stored and has no time."""


def evidence_export(
    session: Session,
    run: Run,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="File to write.")],
    without_diff: Annotated[
        bool, typer.Option("--without-diff", help="Skip the row comparison, which may start Spark.")
    ] = False,
) -> None:
    """Write the evidence of a run to one signed file.

    Contains plan, decisions, attempts, measurements, verdicts, commits, the audit log up to a signed head, a cover
    page and a verifier. Works for a run in any state. Needs evidence.key in errata.yaml.

    Example: errata evidence export bf-20260214-daily-revenue-7f3a21c0 -o revenue.errata
    """
    place = session.directory / output
    with session.client() as client, session.show_spinner(f"gathering evidence of {run}"):
        view, content = client.evidence(run, with_diff=not without_diff, as_=session.person)
    write_atomically(place, content, "a bundle", content[:_BEGIN])
    session.answer({**to_plain(view), "file": output}, lambda width: _render_export(view, place, output, width))


def _render_export(view: Any, place: Path, output: str, width: int) -> list[str]:
    lines = [f"wrote {place}   {plural(len(view.members), 'member')}   {format_size(view.bytes)}"]
    lines += format_labelled("run", [view.run_id, view.product, view.state], width)
    lines += format_labelled("manifest", [view.manifest_digest], width)
    lines += format_labelled("sha256", [view.sha256], width)
    lines += format_labelled("signed by", [view.signed_by], width)
    lines += format_labelled("audit head", [f"{view.head['seq']}", str(view.head["hash"])], width)
    for note in view.notes:
        lines += wrap(note, width, "! ")
    return [*lines, *render_next(f"errata evidence verify {output} --key PUBLIC_KEY")]


def evidence_verify(
    session: Session,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Evidence bundle.")],
    key: Annotated[list[str], typer.Option("--key", metavar="PUB", help="Trusted public key (PEM); repeatable.")],
    head: Annotated[
        list[str] | None,
        typer.Option("--head", metavar="FILE", help="Signed head from another place; repeatable."),
    ] = None,
) -> int:
    """Verify a bundle without access to ledger or tables.

    Exit code 1 when anything is wrong.

    Example: errata evidence verify revenue.errata --key errata.key.pub
    """
    from errata.evidence import verifier

    content = _read_file(session, file, verifier.MAX_BYTES)
    keys = {one: _read_file(session, one, 1 << 16) for one in key}
    heads = {one: _read_file(session, one, 1 << 20) for one in head or ()}
    if problem := verifier.unusable(keys, heads):
        raise UsageError(problem, state="the bundle was not judged")
    report = verifier.verify(content, list(keys.values()), list(heads.values()))
    session.answer(report.data(), lambda _: verifier.lines(report))
    return 0 if report.ok else 1


def _read_file(session: Session, name: str, most: int) -> bytes:
    place = session.directory / name
    try:
        with place.open("rb") as stream:
            return stream.read(most + 1)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "not the name of a file"
        raise UsageError(f"{place} cannot be read: {why}", state="nothing was changed") from problem
