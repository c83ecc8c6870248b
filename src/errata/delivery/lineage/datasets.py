"""Names and versions of datasets in lineage, as OpenLineage names them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from errata.model.kafka.outgoing import identify_input
from errata.model.lineage.event import DatasetUse
from errata.model.manifest import InputPin, Manifest
from errata.model.product import Project


def name_table(project: Project, table: str) -> tuple[str, str]:
    """Namespace and name of a table; the namespace is that of its catalog."""
    catalog, _, name = table.partition(".")
    declared = project.lineage.datasets if project.lineage else {}
    return declared.get(catalog, catalog), name


def build_output(project: Project, manifest: Manifest, table: str, partitions: Sequence[str] = ()) -> DatasetUse:
    """A table that a run writes to, with its columns."""
    target = manifest.target
    namespace, name = name_table(project, table)
    is_target = table in (target.table, target.staging.table)
    return DatasetUse(
        namespace,
        name,
        column=target.column,
        partitions=tuple(partitions),
        columns=target.columns if is_target else {},
        made_from=_resolve_columns(project, manifest) if is_target else {},
    )


def _resolve_columns(project: Project, manifest: Manifest) -> dict[str, tuple[tuple[str, str, str], ...]]:
    """The declared origin of columns, with the names of the datasets."""
    names = {pin.name: _name_input(project, pin) for pin in manifest.inputs}
    found: dict[str, tuple[tuple[str, str, str], ...]] = {}
    for column, places in manifest.made_from.items():
        split = (place.partition(".") for place in places)
        found[column] = tuple((*names[name], origin) for name, _, origin in split if name in names)
    return found


def build_input(project: Project, pin: InputPin) -> DatasetUse:
    """An input at the exact state that the plan sealed."""
    namespace, name = _name_input(project, pin)
    partitions = pin.input_partitions if pin.partition else ()
    return DatasetUse(
        namespace, name, version=identify_input(pin), column=pin.partition or "", partitions=tuple(partitions)
    )


def _name_input(project: Project, pin: InputPin) -> tuple[str, str]:
    if pin.recording is not None:
        return project.name, f"recording.{pin.recording}"
    if pin.kind == "table":
        return name_table(project, pin.location)
    scheme, found, rest = pin.location.partition("://")
    host, _, path = rest.partition("/")
    if pin.kind == "kafka" and found:
        cluster = project.kafka.get(host)
        return f"kafka://{cluster.bootstrap.split(',')[0].strip() if cluster else host}", path
    if found:
        return f"{scheme}://{host}", path
    # a pattern of files has paths of this machine in it
    return project.name, f"files.{pin.name}"
