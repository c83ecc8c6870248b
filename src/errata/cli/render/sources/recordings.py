"""Render recorded files and imports. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.cli.render.layout import flow, format_columns, render_warnings, wrap
from errata.text.numbers import format_exact, format_size, plural

if TYPE_CHECKING:
    from errata.views.recordings import DatasetView, ImportedFile, ImportView, RecordedFileView, RecordingsView

_MIDNIGHT = "T00:00:00Z"


def render_import(view: ImportView, width: int) -> list[str]:
    """What became of each file."""
    counted = [one for one in view.files if one.status != "rejected"]
    new = [one for one in counted if not one.already]
    said = [view.source, f"{plural(len(new), 'file')} recorded"]
    if len(new) < len(counted):
        said.append(f"{len(counted) - len(new)} on record before")
    if view.rejected:
        said.append(f"{len(view.rejected)} rejected")
    lines = flow(said, width)
    for one in view.files:
        lines += _render_imported(one, width)
    return lines + render_warnings(view.notes, width, "  ! ")


def _render_imported(one: ImportedFile, width: int) -> list[str]:
    sign = "✗" if one.status == "rejected" else "=" if one.already else "✓"
    about = _format_range(one.start, one.end)
    pieces = [one.path, plural(one.rows, "row"), format_size(one.bytes), about, one.file_id[:12]]
    lines = flow(pieces, width, f"  {sign} ")
    if one.status == "rejected":
        lines += wrap(f"rejected: {one.why}", width, "      ")
    for note in one.notes:
        lines += wrap(note, width, "      ")
    return lines


def render_dataset(view: DatasetView) -> str:
    """What became of plain Parquet files."""
    what = "was made before of" if view.already else "is made of"
    told = f"{view.table} {what} {plural(view.files, 'file')} with {plural(view.rows, 'row')} in "
    told += f"{plural(view.partitions, 'partition')}, as their footers say; no file was copied"
    if view.only_in_folders:
        told += f"; {', '.join(view.only_in_folders)} comes from the folders"
    return told


def render_recordings(view: RecordingsView, width: int) -> list[str]:
    """One line per file."""
    rows = sum(one.rows for one in view.files if one.status == "accepted")
    lines = flow([view.source or "recordings", plural(len(view.files), "file"), plural(rows, "row")], width)
    if not view.files:
        return [*lines, "  errata import PATH --source NAME records files"]
    return lines + format_columns([_build_line(one) for one in view.files], width, right=(3,))


def _build_line(one: RecordedFileView) -> tuple[str, ...]:
    said = [one.why] if one.why else []
    if one.twin:
        said.append(f"twin of {one.twin[:12]}")
    if one.bad_rows:
        said.append(f"{plural(one.bad_rows, 'bad line')}")
    if one.status == "accepted":
        said.append(f"kept until {one.keep_until[:10]}")
    about = _format_range(one.start, one.end)
    return one.file_id[:12], one.status, about, format_exact(one.rows), one.name, "   ".join(said)


def _format_range(start: str | None, end: str | None) -> str:
    if start is None or end is None:
        return "any time"
    return f"{start.removesuffix(_MIDNIGHT)}..{end.removesuffix(_MIDNIGHT)}"
