"""Build the ``publish`` section of a product file: which keys a mode takes and which it needs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from errata.errors import UsageError
from errata.model.kafka.declaration import TopicPlace
from errata.model.product import Freeze, Merge, Publish
from errata.model.refs import swap_table
from errata.model.side_tables import CORRECTION_COLUMNS, SIDE_TABLE_MODES, VERSION_COLUMNS
from errata.model.waves import count_wave_size
from errata.project.build.sinks import check_cluster
from errata.project.forms import CorrectionsForm, ProductForm, narrow
from errata.project.problems import ProblemReport
from errata.text.numbers import format_duration

_OF_MODE = {"merge": ("merge",), "versions": ("version",), "view": ("version", "swap_view")}
"""Keys that apply only in some modes."""
_REBASED = ("replace_partitions", "merge")
"""Modes in which a partition can be recomputed on top of a live write."""
_NEEDS = {"version": "versions", "swap_view": "view", "corrections": "corrections"}


def build_publish(
    file: ProductForm, catalogs: Sequence[str] | None, clusters: Sequence[str] | None, report: ProblemReport
) -> Publish:
    """How the product is published."""
    given, (corrections, topic) = file.publish, split_corrections(file)
    if topic is not None:
        check_cluster(topic.cluster, ("publish", "corrections", "cluster"), clusters, report)
    for key, modes in _OF_MODE.items():
        if getattr(given, key) is not None and given.mode not in modes:
            said = f'the key "{key}" was refused in publish; it is for mode {" and ".join(modes)}, not {given.mode}'
            report.at_key(("publish", key), said)
    needed = _NEEDS.get(given.mode)
    if needed and getattr(given, needed) is None:
        report.at(("publish", "mode"), f'this mode needs the key "{needed}"', found=False)
    if given.mode in SIDE_TABLE_MODES and file.target.add_columns:
        report.at(("publish", "mode"), "the target is not touched, so it gets no columns: expected no add_columns")
    _check_tables(file, catalogs, report)
    _check_key_columns(file, report)
    _check_live_wins(file, report)
    _check_waves(file, report)
    return narrow(
        Publish,
        given,
        merge=_build_merge(file, report) if given.mode == "merge" else None,
        versions=swap_table(file.target.table) if given.mode == "swap_view" else given.versions,
        corrections=corrections,
        corrections_topic=topic,
        freeze=_build_freeze(file, report),
    )


def split_corrections(file: ProductForm) -> tuple[str | None, TopicPlace | None]:
    """The table of corrections, and the topic that they go to as well."""
    given = file.publish.corrections
    if not isinstance(given, CorrectionsForm):
        return given, None
    return given.table or f"{file.target.table}_corrections", narrow(TopicPlace, given)


def _check_live_wins(file: ProductForm, report: ProblemReport) -> None:
    """Check that ``live_wins`` can recompute partitions one by one: rows are the target's, none depends on another."""
    if file.publish.on_live_write != "live_wins":
        return
    where = ("publish", "on_live_write")
    if file.publish.mode not in _REBASED:
        said = f"live_wins was refused; it is for mode {' and '.join(_REBASED)}, not {file.publish.mode}"
        report.at(where, said, found=False)
    if any(source.own for source in file.inputs.values()):
        said = "live_wins was refused; a product that reads its own output would have to compute all that follows again"
        report.at(where, said, found=False)


def _check_waves(file: ProductForm, report: ProblemReport) -> None:
    """Check the size of waves against the grain, and who releases them."""
    waves, where = file.publish.waves, ("publish", "waves")
    if waves is None:
        return
    try:
        count_wave_size(waves.size, file.target.grain)
    except UsageError as error:
        report.at((*where, "size"), error.message)
    if waves.release == "none" and file.publish.manual:
        report.at((*where, "release"), "none was refused; a run without a person needs publish.manual: false")
    if waves.release == "first" and not waves.within:
        said = 'first needs the key "within": how much a wave may change that goes without a person'
        report.at((*where, "release"), said, found=False)
    if waves.release != "first" and waves.within:
        report.at_key((*where, "within"), 'the key "within" was refused; it is for release: first')
    metrics = {one.metric for one in file.compare}
    for metric in waves.within:
        if metric != "rows" and metric not in metrics:
            report.at_key(
                (*where, "within", metric), f"{metric} was refused; expected rows, or the metric of a compare rule"
            )
    if waves.order == "newest" and any(source.own for source in file.inputs.values()):
        report.at((*where, "order"), "newest was refused; a product that reads its own output goes oldest first")


def _build_freeze(file: ProductForm, report: ProblemReport) -> Freeze | None:
    given = file.publish.freeze
    if file.publish.on_live_write != "freeze":
        if given is not None:
            report.at_key(("publish", "freeze"), 'the key "freeze" was refused; it is for on_live_write: freeze')
        return None
    found = given or Freeze()
    if not 0 < found.idle <= found.at_most:
        said = "expected idle above zero and no longer than at_most"
        told = f"{said}; found {format_duration(found.idle)} and {format_duration(found.at_most)}"
        report.at(("publish", "freeze"), told, found=False)
    return found


def _check_tables(file: ProductForm, catalogs: Sequence[str] | None, report: ProblemReport) -> None:
    taken = {file.target.table: "target.table"}
    for key in ("versions", "view", "corrections"):
        name = split_corrections(file)[0] if key == "corrections" else getattr(file.publish, key)
        if name is None:
            continue
        if catalogs is not None and name.partition(".")[0] not in catalogs:
            report.at(("publish", key), f"expected a name in a catalog of errata.yaml ({', '.join(catalogs)})")
        if name in taken:
            report.at(("publish", key), f"expected a unique name; {taken[name]} has it")
        taken[name] = f"publish.{key}"


def _check_key_columns(file: ProductForm, report: ProblemReport) -> None:
    key = file.target.key
    if file.publish.corrections and not key:
        report.at(("publish", "corrections"), "corrections are written by key: expected target.key", found=False)
    if file.publish.corrections:
        for n, name in enumerate(key):
            if name.casefold() in CORRECTION_COLUMNS:
                said = f"{name} is a column of its own in publish.corrections; expected another name"
                report.at(("target", "key", n), said, found=False)
    if file.publish.mode in ("version", "swap_view") and file.target.column.casefold() in VERSION_COLUMNS:
        report.at(("target", "partition", "column"), "this name is taken in publish.versions", found=False)


def _build_merge(file: ProductForm, report: ProblemReport) -> Merge:
    given, key = file.publish.merge, file.target.key
    if not key:
        report.at(("publish", "mode"), "rows are merged by their key: expected target.key", found=False)
    if given is None:
        return Merge()
    if given.version is not None and given.version in (*key, file.target.column):
        report.at(
            ("publish", "merge", "version"), "a version tells rows of one key apart; expected a column outside the key"
        )
    return given
