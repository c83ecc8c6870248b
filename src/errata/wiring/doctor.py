"""`errata doctor`: check everything that a correction needs. Read-only, except for the temporary table of ``deep``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from errata.errors import ErrataError, SetupError
from errata.jars import find_installed_spark, find_required_groups, find_sealed_lane, list_jars, require_jars
from errata.ledger import HazardRecord, Ledger
from errata.model.partition import format_partition_list, format_ranges
from errata.model.product import Catalog, Project
from errata.model.refs import GUARD, PREFIX, describe_unknown_runs
from errata.model.side_tables import find_side_table
from errata.text.secrets import hide_passwords
from errata.views.checks import DoctorCheck
from errata.wiring.copy_check import check_copies
from errata.wiring.lineage_check import check_lineage

if TYPE_CHECKING:
    from errata.wiring.engines import ProjectEngines
    from errata.workspace import Workspace

_CATALOG_HINT = "check catalogs and storage in errata.yaml, and that the catalog can be reached from here"
_LEDGER_HINT = "correct ledger in errata.yaml; if it is right: docs/guides/clean-up-and-retention.md"
_ABSENT_HINT = "the first plan creates it; if you have a ledger, correct ledger in errata.yaml"
_MAX_SHOWN = 3
"""Maximum number of missing files, or of refs of other ledgers, to list."""


_KAFKA_HINT = "check kafka in errata.yaml: bootstrap, conf, and the variables that it uses"


def run_checks(workspace: Workspace, engines: ProjectEngines, *, deep: bool = False) -> tuple[DoctorCheck, ...]:
    """Run every check, even if others failed.

    ``deep`` starts a JVM to reach the catalogs from Java as well, and tries branches and tags on a temporary table.
    """
    project = workspace.project
    with workspace.ledger.or_empty() as ledger:
        checks = [*_check_machine(project), *_check_ledger(project, workspace.ledger)]
        checks += _check_lake(replace(workspace, ledger=ledger), engines, deep=deep)
    # drivers quote addresses, which may contain a password
    return tuple(
        replace(check, found=hide_passwords(project.redact(check.found)), hint=project.redact(check.hint or ""))
        for check in checks
    )


def _check_machine(project: Project) -> Iterator[DoctorCheck]:
    yield _check_java()
    yield _check_spark()
    for group in find_required_groups(project):
        yield _try_check(f"jars {group}", partial(_describe_jars, group), "errata jars fetch")


def _check_ledger(project: Project, ledger: Ledger) -> Iterator[DoctorCheck]:
    if not ledger.exists():
        found = f"there is no ledger yet at {ledger.place}"
        yield DoctorCheck("ledger", ok=True, found=found, hint=_ABSENT_HINT, waiting=True)
        return
    yield _try_check("ledger", lambda: f"{ledger.database()}, {len(ledger.runs.list())} runs, id {ledger.ledger_id}",
                 "check the ledger url")  # fmt: skip
    yield _check_constraints(ledger)
    yield _check_audit(ledger)
    yield _check_heads(project, ledger)


def _check_lake(workspace: Workspace, engines: ProjectEngines, *, deep: bool) -> Iterator[DoctorCheck]:
    project, ledger = workspace.project, workspace.ledger
    absent = _find_absent_catalogs(project, engines)
    is_new = not ledger.runs.list()
    for catalog in project.catalogs.values():
        if catalog.name in absent:
            describe = _describe_absent_catalog if is_new else _describe_lost_catalog
            yield describe(project, catalog, absent[catalog.name])
            continue
        yield _try_check(f"catalog {catalog.name}", partial(_describe_catalog, catalog, engines), _CATALOG_HINT)
        yield from _check_warehouse(project, ledger, catalog.name)
        if deep:
            yield _try_check(
                f"catalog {catalog.name} in Java", partial(_describe_java_catalog, catalog, engines), _CATALOG_HINT
            )
            yield _probe_refs(project, catalog, engines)
    yield from _check_clusters(project, engines)
    for table in (product.target.table for product in project.products.values()):
        if table.partition(".")[0] in absent:
            continue
        yield _try_check(f"table {table}", partial(_describe_table, engines, table), "errata check")
        yield from _check_main(ledger, engines, table)
    yield from check_copies(workspace)
    yield from check_lineage(workspace)
    for table in _list_tables(project):
        if table.partition(".")[0] in absent:
            continue
        yield _check_refs(workspace, table)
    for hazard in ledger.guards.open_hazards():
        if hazard.table.partition(".")[0] not in absent:
            yield from _check_hazard(ledger, engines, hazard)


def _check_clusters(project: Project, engines: ProjectEngines) -> Iterator[DoctorCheck]:
    """Check every Kafka cluster; those that are silent cost one time-out together."""
    silent = engines.find_silent_clusters(project.kafka) if project.kafka else {}
    for name in project.kafka:
        if name in silent:
            yield DoctorCheck(f"kafka {name}", ok=False, found=silent[name], hint=_KAFKA_HINT)
        else:
            yield _try_check(f"kafka {name}", partial(engines.topics.describe_cluster, name), _KAFKA_HINT)


def _check_hazard(ledger: Ledger, engines: ProjectEngines, hazard: HazardRecord) -> Iterator[DoctorCheck]:
    """Check the guard that a rollback's files depend on, and that every file of its partitions exists."""
    try:
        present = GUARD in engines.pins.refs(hazard.table)
    except ErrataError as error:
        found = error.message
        yield DoctorCheck(f"guard {hazard.table}", ok=False, found=found, hint=_choose_hint(error, _CATALOG_HINT))
        return
    yield DoctorCheck(
        f"guard {hazard.table}",
        present,
        "there" if present else f"branch {GUARD} is gone while rolled-back files depend on it",
        "" if present else "errata cleanup puts it back; let no expiry run before",
    )
    rollback = ledger.publications.get(hazard.pub_id)
    manifest = ledger.runs.manifest(rollback.run_id)
    if find_side_table(manifest):
        return
    name, scope = f"files {hazard.pub_id}", format_ranges(manifest.target.grain, rollback.partitions)
    try:
        count, missing = engines.rows.missing_files(manifest.target, rollback.partitions)
    except ErrataError as error:
        yield DoctorCheck(name, ok=False, found=error.message, hint=_CATALOG_HINT)
        return
    listed = format_partition_list(manifest.target.grain, rollback.partitions)
    yield DoctorCheck(
        name,
        not missing,
        f"all {count} of {scope} are there"
        if not missing
        else f"{len(missing)} of {count} of {scope} are gone, and "
        f"readers of them fail: {', '.join(missing[:_MAX_SHOWN])}{' …' if len(missing) > _MAX_SHOWN else ''}",
        "" if not missing else f'errata plan {manifest.product} --partitions {listed} --reason "…" computes them again',
    )


def _check_java() -> DoctorCheck:
    from errata.engines.spark.runtime.jvm import SUPPORTED_JAVA, java_version

    version = java_version()
    ok = version in SUPPORTED_JAVA
    found = "none" if version is None else f"Java {version}"
    return DoctorCheck("java", ok, found, "" if ok else "install openjdk-17-jre-headless or set JAVA_HOME")


def _check_spark() -> DoctorCheck:
    """The installed Spark, and the Iceberg that goes with it."""
    found = find_installed_spark()
    if found is None:
        return DoctorCheck("spark", ok=False, found="none", hint="pip install 'errata[spark]'")
    try:
        lane = find_sealed_lane(jar.coordinate for jar in list_jars("spark"))
    except SetupError as error:
        return DoctorCheck("spark", ok=False, found=f"pyspark {found}", hint=f"{error.message}: {error.hint}")
    return DoctorCheck("spark", ok=True, found=f"pyspark {found}" + (f" with Iceberg {lane[1]}" if lane else ""))


def _describe_jars(group: str) -> str:
    paths = require_jars(jars=list_jars(group))
    return f"{len(paths)} verified in {Path(paths[0]).parent}"


def _describe_catalog(catalog: Catalog, engines: ProjectEngines) -> str:
    return f"{catalog.type}, answers; namespaces: {engines.catalogs.reach(catalog.name)}"


def _find_absent_catalogs(project: Project, engines: ProjectEngines) -> dict[str, str]:
    """Catalogs that have no database file, with its path; their tables are not looked for."""
    paths = {name: engines.catalogs.find_missing_file(name) for name in project.catalogs}
    return {name: path for name, path in paths.items() if path}


def _describe_absent_catalog(project: Project, catalog: Catalog, path: str) -> DoctorCheck:
    from errata.project.starter import MAKE_LAKE, format_lake_command

    creator = "the first Spark job that uses the catalog creates it; otherwise correct its uri in errata.yaml"
    hint = format_lake_command() if (Path(project.root) / MAKE_LAKE).is_file() else creator
    return DoctorCheck(f"catalog {catalog.name}", ok=True, found=f"no {path} yet", hint=hint, waiting=True)


def _describe_lost_catalog(_project: Project, catalog: Catalog, path: str) -> DoctorCheck:
    """Once there is a run, a catalog without its file is lost, or its address is wrong."""
    name, found = f"catalog {catalog.name}", f"not found; expected a SQLite database at {path}"
    return DoctorCheck(name, ok=False, found=found, hint=f"correct catalogs.{catalog.name}.uri in errata.yaml")


def _check_warehouse(project: Project, ledger: Ledger, catalog: str) -> Iterator[DoctorCheck]:
    """Check that a warehouse on this machine exists; before the first run it may not have been created yet."""
    from errata.project.check import describe_missing_warehouse

    if missing := describe_missing_warehouse(project, catalog):
        is_lost = bool(ledger.runs.list())
        hint = f"correct catalogs.{catalog}.warehouse in errata.yaml"
        hint += "" if is_lost else "; if it is right, the first Spark job that writes a table creates it"
        yield DoctorCheck(f"warehouse {catalog}", ok=not is_lost, found=missing, hint=hint, waiting=not is_lost)


def _describe_java_catalog(catalog: Catalog, engines: ProjectEngines) -> str:
    return f"{catalog.type}, answers; namespaces: {engines.java.reach(catalog.name)}"


def _probe_refs(project: Project, catalog: Catalog, engines: ProjectEngines) -> DoctorCheck:
    """Try branches, tags and register_table on a temporary table."""
    from errata.engines.iceberg.catalogs import split_table
    from errata.engines.iceberg.metadata.catalog_probe import probe_catalog

    name = f"refs {catalog.name}"
    targets = [split_table(product.target.table) for product in project.products.values()]
    try:
        of_products = (identifier[:-1] for held, identifier in targets if held == catalog.name)
        namespace = next(of_products, None) or next(iter(engines.catalogs.open(catalog.name).list_namespaces()), None)
        if namespace is None:
            return DoctorCheck(name, ok=True, found="not tried: the catalog has no namespace to make a table in")
        kept = probe_catalog(engines.catalogs, catalog.name, namespace)
    except ErrataError as error:
        return DoctorCheck(name, ok=False, found=error.message, hint="try as someone who may create and drop tables")
    words = {"branches": kept.branch, "tags": kept.tag, "their retention": kept.retention}
    lost = [word for word, is_kept in words.items() if not is_kept]
    registered = "works" if kept.register_table else "does not: new columns and partitions that share files need it"
    found = f"not kept: {', '.join(lost)}" if lost else "branches and tags are kept with their retention"
    told = f"{found}{f' ({kept.refused})' if kept.refused else ''}; register_table {registered}"
    return DoctorCheck(name, not lost, told, "use a catalog that keeps branches and tags" if lost else "")


def _check_constraints(ledger: Ledger) -> DoctorCheck:
    missing = ledger.missing_triggers()
    return DoctorCheck(
        "ledger rules", not missing, _describe_enforcement(ledger) if not missing else f"missing: {', '.join(missing)}",
        "" if not missing else "someone changed the ledger's schema: errata audit verify",
    )  # fmt: skip


def _describe_enforcement(ledger: Ledger) -> str:
    """Describe how the ledger's rules are enforced; on PostgreSQL, warn if this role owns the tables."""
    could = ledger.owns_tables() and ledger.database().startswith("PostgreSQL")
    return "all enforced" + ("; this role owns the tables and could lift them: errata ledger roles" if could else "")


def _check_audit(ledger: Ledger) -> DoctorCheck:
    check = ledger.audit.verify()
    found = f"{check.entries} entries verified" if check.ok else str(check.reason)
    return DoctorCheck("audit chain", check.ok, found, "" if check.ok else "errata audit verify")


def _check_heads(project: Project, ledger: Ledger) -> DoctorCheck:
    from errata.evidence.head_export import measure_lag

    place = project.evidence.heads
    if place is None:
        return DoctorCheck(
            "audit heads",
            ok=True,
            found="not exported; evidence.heads in errata.yaml names the place to export them to",
        )
    lag = measure_lag(project, ledger)
    is_there = Path(place).is_dir()
    found = f"of entry {lag.newest}, {lag.behind} behind" if lag.newest else "none yet"
    if lag.seconds:
        found += f"; a publication has been without one for {lag.seconds} s"
    ok = is_there and not lag.late
    told = found if is_there else f"no directory {place}"
    return DoctorCheck("audit heads", ok, told, "" if ok else "errata audit head")


def _describe_table(engines: ProjectEngines, table: str) -> str:
    facts = engines.tables.describe(table)
    return f"{len(facts.columns)} columns, format v{facts.format_version}"


def _list_tables(project: Project) -> tuple[str, ...]:
    """Tables on which a run of this project may leave refs, targets first."""
    products = project.products.values()
    read = (source.table for product in products for source in product.inputs if source.table)
    return tuple(dict.fromkeys([*(product.target.table for product in products), *read]))


def _check_refs(workspace: Workspace, table: str) -> DoctorCheck:
    """Check that this ledger has every run that writes to the table; otherwise it is probably the wrong ledger."""
    from errata.publishing.sweep import find_unknown_runs

    name = f"refs {table}"
    try:
        found, unknown = _describe_leftover_refs(workspace, table), find_unknown_runs(workspace, table)
    except ErrataError as error:
        return DoctorCheck(name, ok=False, found=error.message, hint=_choose_hint(error, "errata cleanup"))
    told = f"{describe_unknown_runs(unknown)}; {found}" if unknown else found
    return DoctorCheck(name, not unknown, told, _LEDGER_HINT if unknown else "")


def _describe_leftover_refs(workspace: Workspace, table: str) -> str:
    """Describe refs that finished runs left on a table and refs of other ledgers. Removes nothing."""
    from errata.publishing.sweep import find_leftovers, find_unknown_refs

    own = [ref for ref in workspace.engines.pins.refs(table) if ref.startswith(PREFIX)]
    left = find_leftovers(workspace, table).get(table, {})
    unknown = find_unknown_refs(workspace, own)
    told = [f"{len(own)} of Errata"]
    if left:
        told.append(f"{len(left)} of finished runs: the next command that writes to it removes them, or errata cleanup")
    if unknown:
        shown = ", ".join(unknown[:_MAX_SHOWN]) + (" …" if len(unknown) > _MAX_SHOWN else "")
        told.append(f"{len(unknown)} of runs that are not in this ledger, which are left alone: {shown}")
    return "; ".join(told)


def _check_main(ledger: Ledger, engines: ProjectEngines, table: str) -> Iterator[DoctorCheck]:
    """Check that main holds what the ledger has accepted; no check for a table without publications."""
    from errata.publishing.set_back_detection import find_set_backs

    accepted = ledger.partitions.accepted(table)
    if not accepted:
        return
    name = f"main {table}"
    try:
        found = find_set_backs(ledger, engines, table)
    except ErrataError as error:
        yield DoctorCheck(name, ok=False, found=error.message, hint=_choose_hint(error, "errata check"))
        return
    if not found:
        yield DoctorCheck(name, ok=True, found=f"holds what was accepted in {len(accepted)} partitions")
    for one in found:
        yield DoctorCheck(name, ok=False, found=one.told, hint=one.next)


def _try_check(name: str, look: Callable[[], str], hint: str) -> DoctorCheck:
    try:
        return DoctorCheck(name, ok=True, found=look())
    except ErrataError as error:
        return DoctorCheck(name, ok=False, found=error.message, hint=_choose_hint(error, hint))


def _choose_hint(error: ErrataError, own: str) -> str:
    """The hint of the error, unless it leads back here."""
    return error.hint if error.hint and error.hint != "errata doctor" else own
