"""Doctor: is everything there that a correction will need? Looks, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from errata.client import DoctorCheck
from errata.errors import ErrataError
from errata.ledger import Ledger
from errata.model.product import Project
from errata.model.refs import GUARD

if TYPE_CHECKING:
    from errata.wiring.engines import ProjectEngines

__all__ = ["examine"]


def examine(project: Project, ledger: Ledger, engines: ProjectEngines) -> tuple[DoctorCheck, ...]:
    """Every check, whatever the others found."""
    return tuple(_checks(project, ledger, engines))


def _checks(project: Project, ledger: Ledger, engines: ProjectEngines) -> Iterator[DoctorCheck]:
    yield _java()
    yield _spark()
    yield _tried("jars", _jars, "errata jars fetch")
    yield _tried("ledger", lambda: f"{len(ledger.runs())} runs, id {ledger.ledger_id}", "check the ledger url")
    yield _rules(ledger)
    yield _audit(ledger)
    for product in project.products.values():
        yield _tried(f"table {product.target.table}", lambda p=product: _table(engines, p.target.table), "errata check")  # type: ignore[misc]
    for hazard in ledger.open_hazards():
        present = GUARD in engines.pins.refs(hazard.table)
        yield DoctorCheck(
            f"guard {hazard.table}",
            present,
            "there" if present else f"branch {GUARD} is gone while rolled-back files depend on it",
            "" if present else "errata cleanup puts it back; let no expiry run before",
        )


def _java() -> DoctorCheck:
    from errata.engines.spark.jvm import SUPPORTED_JAVA, java_version

    version = java_version()
    ok = version in SUPPORTED_JAVA
    found = "none" if version is None else f"Java {version}"
    return DoctorCheck("java", ok, found, "" if ok else "install openjdk-17-jre-headless or set JAVA_HOME")


def _spark() -> DoctorCheck:
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("pyspark")
    except PackageNotFoundError:
        return DoctorCheck("spark", ok=False, found="none", hint="pip install 'errata[spark]'")
    ok = found.startswith("4.1.")
    hint = "" if ok else "expected pyspark 4.1: the pinned Iceberg jar is built for it"
    return DoctorCheck("spark", ok, f"pyspark {found}", hint)


def _jars() -> str:
    from errata.jars import require

    paths = require()
    return f"{len(paths)} verified in {Path(paths[0]).parent}"


def _rules(ledger: Ledger) -> DoctorCheck:
    missing = ledger.missing_triggers()
    return DoctorCheck(
        "ledger rules", not missing, "all enforced" if not missing else f"missing: {', '.join(missing)}",
        "" if not missing else "someone changed the ledger's schema: errata audit verify",
    )  # fmt: skip


def _audit(ledger: Ledger) -> DoctorCheck:
    check = ledger.verify_audit()
    found = f"{check.entries} entries verified" if check.ok else str(check.reason)
    return DoctorCheck("audit chain", check.ok, found, "" if check.ok else "errata audit verify")


def _table(engines: ProjectEngines, table: str) -> str:
    facts = engines.tables.describe(table)
    own = [ref for ref in engines.pins.refs(table) if ref.startswith("errata_")]
    return f"{len(facts.columns)} columns, format v{facts.format_version}, {len(own)} errata refs"


def _tried(name: str, look: Callable[[], str], hint: str) -> DoctorCheck:
    try:
        return DoctorCheck(name, ok=True, found=look())
    except ErrataError as error:
        return DoctorCheck(name, ok=False, found=error.message, hint=error.hint or hint)
