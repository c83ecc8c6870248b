"""Check the keys of an input about erased subjects and masked values. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from errata.model.product import Project
from errata.model.product.erasure import SUBJECT_TYPES
from errata.model.product.input_policy import HASH, TEXT_MASKS
from errata.project.forms import InputForm
from errata.project.problems import Path, ProblemReport

_LIST = 'missing key "erasure" in errata.yaml, which names the list of erased subjects and its key'


def check_input_privacy(
    file: InputForm, columns: Mapping[str, str], project: Project | None, place: Path, report: ProblemReport
) -> None:
    """Report columns that cannot be looked at or masked; ``columns`` are those that the input declares, if any."""
    report.refuse_repeats(file.subjects, (*place, "subjects"))
    has_list = project is None or project.erasure is not None
    if file.subjects and not has_list:
        report.at_key((*place, "subjects"), _LIST)
    for n, name in enumerate(file.subjects):
        at = (*place, "subjects", n)
        if name == file.partition:
            said = f"{name} is the partition column, and manifests name partitions; expected another column"
            report.at(at, said, found=False)
        elif columns and name not in columns:
            report.at(at, f"expected a column of {'.'.join(map(str, place))}.columns")
        elif columns and columns[name] not in SUBJECT_TYPES:
            report.at(
                at, f"expected a column of type {', '.join(SUBJECT_TYPES)}; {name} is {columns[name]}", found=False
            )
    _check_masks(file, columns, (*place, "policy", "mask"), report, has_list=has_list)


def _check_masks(
    file: InputForm, columns: Mapping[str, str], place: Path, report: ProblemReport, *, has_list: bool
) -> None:
    if HASH in file.policy.mask.values() and not has_list:
        report.at_key(place, _LIST)
    for name, how in file.policy.mask.items():
        at = (*place, name)
        if name == file.partition:
            report.at(at, "partitions are named everywhere by this column; it cannot be masked", found=False)
        elif columns and name not in columns:
            report.at_key(at, f"expected a column of {'.'.join(map(str, place[:2]))}.columns, found {name}")
        elif columns and how in TEXT_MASKS and columns[name] != "string":
            report.at(at, f"{how} gives text, and {name} is {columns[name]} in columns; expected string, or blank")
