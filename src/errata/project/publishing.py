"""The ``publish`` section of a product file: which keys a mode takes and which it needs. Pure."""

from __future__ import annotations

from errata.model.product import Merge, Publish
from errata.project.files import ProductFile
from errata.project.problems import Report

__all__ = ["publish_of"]


def publish_of(file: ProductFile, report: Report) -> Publish:
    """How the product is published."""
    given, path = file.publish, ("publish",)
    if given.merge is not None and given.mode != "merge":
        report.at_key((*path, "merge"), f'the key "merge" was refused in publish; mode {given.mode} merges nothing')
    return Publish(mode=given.mode, merge=_merge(file, report) if given.mode == "merge" else None)


def _merge(file: ProductFile, report: Report) -> Merge:
    given, key = file.publish.merge, file.target.key
    if not key:
        report.at(("publish", "mode"), "rows are merged by their key: expected target.key", found=False)
    if given is None:
        return Merge()
    if given.version is not None and given.version in (*key, file.target.partition.column):
        report.at(
            ("publish", "merge", "version"), "a version tells rows of one key apart; expected a column outside the key"
        )
    return Merge(given.version, given.delete)
