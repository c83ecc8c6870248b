"""Decide which jar groups a project needs, from its settings alone. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from errata.model.product import Catalog, Project

_S3 = ("s3://", "s3a://", "s3n://")


def find_required_groups(project: Project) -> tuple[str, ...]:
    """``spark`` always; ``postgres`` for a catalog in PostgreSQL; ``s3`` for anything on S3 and for Glue; ``kafka``.

    The settings of a REST catalog do not tell where its tables are. If they are on S3, the project must say so with
    ``storage.s3`` or with ``s3.*`` properties of the catalog.
    """
    catalogs = tuple(project.catalogs.values())
    found = ["spark"]
    if any(_is_in_postgres(catalog) for catalog in catalogs):
        found.append("postgres")
    if (
        project.s3 is not None
        or any(catalog.type == "glue" or _has_s3_properties(catalog) for catalog in catalogs)
        or any(place.startswith(_S3) for place in _list_locations(project))
    ):
        found.append("s3")
    if any(source.kafka for product in project.products.values() for source in product.inputs):
        found.append("kafka")
    return tuple(found)


def _is_in_postgres(catalog: Catalog) -> bool:
    return catalog.type == "jdbc" and (catalog.uri or "").removeprefix("jdbc:").startswith("postgresql")


def _has_s3_properties(catalog: Catalog) -> bool:
    return any(key.startswith("s3.") for key in catalog.properties)


def _list_locations(project: Project) -> Iterator[str]:
    """All data locations named in the project."""
    for catalog in project.catalogs.values():
        yield catalog.warehouse or ""
    for product in project.products.values():
        yield from (source.files or "" for source in product.inputs)
