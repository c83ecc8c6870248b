"""Check how a product file says that an input is complete: exactly one way, and one that the input has. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from errata.model.partition import Grain
from errata.project.forms import InputForm
from errata.project.problems import ProblemReport

WAYS = ("marker", "rows_from", "watermark")


def check_completeness(
    file: InputForm, grain: Grain, path: tuple[str, ...], catalogs: Sequence[str] | None, report: ProblemReport
) -> None:
    """Report a key ``complete`` that could never be true, or not be seen."""
    if file.complete is None:
        return
    here, rule = (*path, "complete"), file.complete
    given = [way for way in WAYS if getattr(rule, way)]
    if len(given) != 1:
        report.at(here, f"expected exactly one of {', '.join(WAYS)}", found=False)
        return
    if "after" in report.keys_at(here) and rule.watermark is None:
        report.at_key((*here, "after"), f'the key "after" was refused in {".".join(here)}; it belongs to watermark')
    if file.has_own_snapshots:
        report.at(here, f"{file.reference} reads the table as it was; expected no completeness", found=False)
    elif rule.marker is not None:
        _check_marker(file, rule.marker, (*here, "marker"), report)
    elif rule.rows_from is not None:
        catalog = rule.rows_from.partition(".")[0]
        if file.partition is None:
            report.at((*here, "rows_from"), "rows are counted by partition; expected the key partition in the input")
        if catalogs is not None and catalog not in catalogs:
            report.at((*here, "rows_from"), f"expected a table of a catalog in errata.yaml ({', '.join(catalogs)})")
    elif file.table is None:
        report.at((*here, "watermark"), "files have no watermark; expected marker or rows_from, or a table")
    elif not grain.is_time:
        report.at((*here, "watermark"), "values have no end in time; expected a target by hour, day, month or year")


def _check_marker(file: InputForm, marker: str, path: tuple[str, ...], report: ProblemReport) -> None:
    if file.files is None:
        report.at(path, "tables have no marker files; expected watermark or rows_from, or files")
    elif file.partition is None:
        report.at(path, "a marker belongs to a partition; expected the key partition in the input")
    holes = set(re.findall(r"\{([^{}:]*)(?::[^{}]*)?\}", marker))
    if "/" in marker or not holes <= {file.partition}:
        report.at(path, "expected the name of a file beside the data files, such as _SUCCESS or {partition}.done")
