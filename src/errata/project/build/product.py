"""Build the project and its products from the parsed files, with the checks that involve several keys. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from errata.errors import UsageError
from errata.model.approval import ApprovalRules
from errata.model.partition import Grain, parse_list
from errata.model.product import (
    LINEAGE_BY_DEFAULT,
    LINEAGE_COLUMNS,
    S3,
    Catalog,
    Check,
    Comparison,
    Live,
    Product,
    Project,
    Target,
    Transform,
)
from errata.model.product.rules import EXPECTED_ROWS, build_expected_rows, with_expected_rows
from errata.project.build.checks import build_checks
from errata.project.build.consumers import build_channels, build_consumers, build_warehouses
from errata.project.build.copies import check_copies
from errata.project.build.distribution import build_distributions
from errata.project.build.eras import build_row_limits
from errata.project.build.inputs import build_inputs, build_own_input, check_single_own, check_table
from errata.project.build.late import check_late
from errata.project.build.limits import check_limits
from errata.project.build.lineage import build_lineage, check_column_lineage
from errata.project.build.masking import refuse_exposing_rules
from errata.project.build.people import build_approval, build_people, refuse_unreachable_quorum
from errata.project.build.publish import build_publish
from errata.project.build.reconcile import build_controls, build_reconciliations
from errata.project.build.reconstruction import check_reconstruction
from errata.project.build.settings import build_dbt, build_evidence, build_logging, to_absolute, to_absolute_url
from errata.project.build.sinks import check_sinks
from errata.project.build.sources.recordings import build_sources, check_retention
from errata.project.build.throttle import build_signals, build_throttle
from errata.project.build.watch import check_watch
from errata.project.forms import ProductForm, ProjectForm, TransformForm, narrow
from errata.project.problems import ProblemReport
from errata.text.secrets import holds_secret

_NEEDS = {"jdbc": ("uri", "warehouse"), "rest": ("uri",), "glue": ("warehouse",), "hive": ("uri",)}


def build_project(file: ProjectForm, root: Path, report: ProblemReport) -> Project:
    """The project without its products."""
    if not re.match(r"(sqlite|postgresql)(\+[a-z0-9_]+)?://", file.ledger):
        report.at(("ledger",), "expected sqlite:///path or postgresql+psycopg://…")
    people = build_people(file, report)
    approval = build_approval(file.approval, report)
    refuse_unreachable_quorum(approval.quorum, people, report)
    if file.top_chunk_bytes is not None and file.chunk_bytes is not None:
        report.at_key(("chunk_bytes",), "chunk_bytes and chunks.bytes were both given; expected chunks.bytes alone")
    _check_s3(file.s3, report)
    if file.erasure is not None:
        check_table(file.erasure.table, ("erasure", "table"), tuple(file.catalogs), report)
    if file.ready is not None:
        check_table(file.ready.table, ("ready", "table"), tuple(file.catalogs), report)
    _check_java_options(file, report)
    check_retention(file, report)
    return narrow(
        Project,
        file,
        root=str(root),
        ledger=to_absolute_url(root, file.ledger),
        kafka={name: replace(given, name=name) for name, given in file.kafka.items()},
        catalogs={name: _build_catalog(name, given, root, file.s3, report) for name, given in file.catalogs.items()},
        products={},
        people=people,
        single_user=file.people == "single-user",
        chunk_bytes=file.chunk_bytes or file.top_chunk_bytes,
        throttle=build_throttle(file.throttle, report),
        health=build_signals(file.health, report),
        evidence=build_evidence(file.evidence, root, report),
        approval=approval,
        logging=None if file.logging is None else build_logging(file.logging, root, report),
        lineage=build_lineage(file, root, report),
        dbt=None if file.dbt is None else build_dbt(file.dbt, root, report),
        channels=build_channels(file, root, report),
        warehouses=build_warehouses(file, report),
        consumers=build_consumers(file, people, report),
        sources=build_sources(file, report),
        recordings=replace(file.recordings, location=to_absolute(root, file.recordings.location)),
    )


def _check_java_options(file: ProjectForm, report: ProblemReport) -> None:
    for key, options in file.spark_conf.items():
        named = [name for name in re.findall(r"-D([^\s=]+)=", options) if holds_secret(name)]
        if key.endswith("JavaOptions") and named:
            said = f"-D{named[0]} was refused, because everyone on the machine can read the command line of Java"
            report.at(("spark", "conf", key), said, found=False)


def _check_s3(s3: S3 | None, report: ProblemReport) -> None:
    if s3 is not None and (s3.access_key_id is None) != (s3.secret_access_key is None):
        report.at_key(("storage", "s3"), "expected access_key_id and secret_access_key together, or neither")


def _build_catalog(name: str, given: Catalog, root: Path, s3: S3 | None, report: ProblemReport) -> Catalog:
    for key in _NEEDS[given.type]:
        if getattr(given, key) is None:
            said = f'missing key "{key}" in catalogs.{name}, which type {given.type} needs'
            report.at_key(("catalogs", name, key), said)
    return replace(
        given,
        name=name,
        uri=None if given.uri is None else to_absolute_url(root, given.uri),
        warehouse=None if given.warehouse is None else to_absolute(root, given.warehouse),
        s3=s3,
    )


def build_product(file: ProductForm, root: Path, project: Project | None, report: ProblemReport) -> Product:
    """One product; ``project`` is None if errata.yaml has errors."""
    grain = file.target.grain
    catalogs = None if project is None else tuple(project.catalogs)
    clusters = None if project is None else tuple(project.kafka)
    check_table(file.target.table, ("target", "table"), catalogs, report)
    check_sinks(file, clusters, report)
    report.refuse_repeats(file.target.key, ("target", "key"))
    inputs = tuple(
        made
        for name, given in file.inputs.items()
        for made in (
            (build_own_input(name, given, file.target, report),)
            if given.own
            else build_inputs(name, given, grain, root, project, tuple(file.inputs), report)
        )
    )
    check_single_own(file, report)
    _check_locked(file, grain, report)
    _check_diff_columns(file, report)
    check_column_lineage(file, report)
    check_late(file, report)
    check_reconstruction(file, report)
    checks = build_checks(file.checks, file.inputs, grain, report)
    if any(check.name == EXPECTED_ROWS for check in checks):
        report.at(("checks",), f"the name {EXPECTED_ROWS} belongs to policy.expected_rows", found=False)
    checks = with_expected_rows(checks, _build_policy_check(file, report))
    _check_target(file.target, project, report)
    check_copies(file, project, report)
    throttle = build_throttle(file.throttle, report, project.throttle if project else None) if file.throttle else None
    product = narrow(
        Product,
        file,
        transform=_build_transform(file.transform, report),
        inputs=inputs,
        publish=build_publish(file, catalogs, clusters, report),
        rollback_window=file.publish.rollback_window,
        manual=file.publish.manual,
        checks=checks,
        reconcile=build_reconciliations(file, report),
        compare=tuple(_build_comparison(n, given, report) for n, given in enumerate(file.compare)),
        control=build_controls(file, report),
        distribution=build_distributions(file, report),
        row_limits=build_row_limits(file.inputs, report),
        lineage_columns=_build_lineage(file.lineage_columns, report),
        approval=_build_product_approval(file, project, report),
        throttle=throttle,
        live=file.live if isinstance(file.live, Live) else Live(jobs=file.live),
        health=build_signals(file.health, report, [signal.name for signal in project.health] if project else ()),
        path=report.file,
        lines=report.lines(("checks", "reconcile", "compare", "control", "distribution", "publish")),
    )
    if product.watch is not None:
        signals = (*product.health, *(project.health if project else ()))
        check_watch(product.watch, product.control, signals, project, report)
    if len(checks) == len(file.checks):  # otherwise positions have shifted, and the reason is reported already
        _check_unique_names(product, report)
        refuse_exposing_rules(product, report)
    return product


def _build_transform(file: TransformForm, report: ProblemReport) -> Transform:
    if bool(file.call) == bool(file.sql):
        report.at(("transform",), "expected one of call and sql", found=False)
    return narrow(Transform, file, call=file.call or file.sql or "")


def _build_product_approval(file: ProductForm, project: Project | None, report: ProblemReport) -> ApprovalRules:
    found = build_approval(file.approval, report, project.approval if project else None)
    if project is not None and "quorum" in report.keys_at(("approval",)):
        refuse_unreachable_quorum(found.quorum, project.people, report)
    return found


def _check_target(target: Target, project: Project | None, report: ProblemReport) -> None:
    path = ("target", "add_columns")
    report.refuse_repeats(target.subjects, ("target", "subjects"))
    if target.column in target.subjects:
        said = f"{target.column} is the partition column, and manifests name partitions; expected another column"
        report.at(("target", "subjects", target.subjects.index(target.column)), said, found=False)
    if target.subjects and project is not None and project.erasure is None:
        report.at_key(("target", "subjects"), 'missing key "erasure" in errata.yaml, which names the list they are on')
    spelt: dict[str, str] = {target.column.casefold(): target.column}
    for name in target.add_columns:
        if name.casefold() in spelt:
            report.at_key((*path, name), f"expected a unique name; {spelt[name.casefold()]} is taken")
        if name in target.key:
            report.at_key((*path, name), f"{name} is in the key; a key column cannot be new, rows of before have none")
        spelt[name.casefold()] = name


def _check_locked(file: ProductForm, grain: Grain, report: ProblemReport) -> None:
    for n, locked in enumerate(file.protect.locked):
        try:
            parse_list(grain, locked)
        except UsageError:
            spans = " or an inclusive span such as 2026-01-10..2026-01-14" if grain is Grain.DAY else ""
            report.at(("protect", "locked", n), f"expected a partition of grain {grain}{spans}")


def _build_policy_check(file: ProductForm, report: ProblemReport) -> Check | None:
    report.refuse_repeats(file.policy.require, ("policy", "require"))
    if file.policy.expected_rows is None:
        return None
    check = build_expected_rows(file.policy.expected_rows)
    if check is None:
        report.at(("policy", "expected_rows"), "expected a number of rows: 5000, 1000..5000, 1000.. or ..5000")
    return check


def _check_diff_columns(file: ProductForm, report: ProblemReport) -> None:
    """Refuse a tolerance on columns that pair rows in a diff, and masking of the partition column."""
    partition = file.target.column
    for column in file.tolerance:
        if column in (partition, *file.target.key):
            report.at(("diff", "tolerance", column), "this column identifies rows; expected another", found=False)
    if file.prove_determinism and not file.repeatable:
        report.at(("determinism", "prove"), "expected no proof of a transform that is declared as not repeatable")
    report.refuse_repeats(file.classified, ("classified",))
    if partition in file.classified:
        n = file.classified.index(partition)
        report.at(("classified", n), "partitions are named everywhere by this column; it cannot be masked")


def _build_comparison(n: int, file: Comparison, report: ProblemReport) -> Comparison:
    check_limits(("compare", n), file.warn, file.block, report)
    if not file.name and "=" in file.metric:
        report.at_key(("compare", n, "name"), f'missing key "name" in compare[{n}], whose metric has an "=" in it')
    return replace(file, name=file.name or file.metric)


def _build_lineage(wanted: bool | tuple[str, ...], report: ProblemReport) -> tuple[str, ...]:
    if isinstance(wanted, tuple):
        report.refuse_repeats(wanted, ("lineage_columns",))
        return tuple(column for column in LINEAGE_COLUMNS if column in wanted)
    return LINEAGE_BY_DEFAULT if wanted else ()


def _check_unique_names(product: Product, report: ProblemReport) -> None:
    """Refuse a name used by two rules: `--accept NAME=WHY` and every verdict identify a rule by its name."""
    seen: set[str] = set()
    sections = {
        "checks": [check.name for check in product.checks],
        "reconcile": [rule.name for rule in product.reconcile],
        "compare": [rule.name for rule in product.compare],
        "control": [rule.name for rule in product.control],
        "distribution": [rule.name for rule in product.distribution],
    }
    for section, names in sections.items():
        for n, name in enumerate(names):
            if name in seen:
                report.at((section, n), f'expected a unique name; "{name}" is taken', found=False)
            seen.add(name)
