"""``evidence`` of errata.yaml → as the rest of Errata takes it. Pure.

Keys are not read here: most commands need none, and then the variable that holds one need not be set.
"""

from __future__ import annotations

from pathlib import Path

from errata.model.evidence import EvidenceSettings
from errata.project.files import EvidenceFile
from errata.project.places import absolute, has_scheme
from errata.project.problems import Report

__all__ = ["evidence_of"]


def evidence_of(file: EvidenceFile, root: Path, report: Report) -> EvidenceSettings:
    """Where proof goes and who signs it."""
    if file.heads is not None and file.key is None:
        report.at_key(("evidence", "heads"), 'missing key "key" in evidence, which signs the heads')
    if file.heads is not None and has_scheme(file.heads):
        report.at(("evidence", "heads"), "expected a directory, such as one of a mounted write-once store")
    return EvidenceSettings(
        key=file.key,
        heads=None if file.heads is None else absolute(root, file.heads),
        max_lag_seconds=file.max_lag,
        subject_key=file.subject_key,
    )
