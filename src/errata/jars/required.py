"""Which groups of the jar list a project needs. Pure: it is read off the project's files, nothing is asked."""

from __future__ import annotations

from collections.abc import Iterator

from errata.model.product import Catalog, Project

_S3 = ("s3://", "s3a://", "s3n://")


def find_required_groups(project: Project) -> tuple[str, ...]:
    """``spark`` always; ``postgres`` for a catalog in PostgreSQL; ``s3`` for anything on S3 and for Glue.

    A REST catalog does not say where its tables lie. If they lie on S3, the project says so by ``storage.s3`` or by
    ``s3.*`` properties of the catalog.
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
    return tuple(found)


def _is_in_postgres(catalog: Catalog) -> bool:
    return catalog.type == "jdbc" and (catalog.uri or "").removeprefix("jdbc:").startswith("postgresql")


def _has_s3_properties(catalog: Catalog) -> bool:
    return any(key.startswith("s3.") for key in catalog.properties)


def _list_locations(project: Project) -> Iterator[str]:
    """Everywhere that the project says data lies."""
    for catalog in project.catalogs.values():
        yield catalog.warehouse or ""
    for product in project.products.values():
        yield from (source.files or "" for source in product.inputs)
