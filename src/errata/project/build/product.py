"""Build the project and its products from the parsed files, with the checks that involve several keys. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from errata.errors import UsageError
from errata.model.approval import ApprovalRules
from errata.model.graph.read_rule import Shift, is_aligned, is_wider
from errata.model.partition import Grain, parse_list
from errata.model.product import (
    LINEAGE_BY_DEFAULT,
    LINEAGE_COLUMNS,
    S3,
    Catalog,
    Check,
    Comparison,
    Input,
    Live,
    Product,
    Project,
    Target,
    Transform,
)
from errata.model.product.rules import EXPECTED_ROWS, build_expected_rows, with_expected_rows
from errata.project.build.checks import build_checks
from errata.project.build.completeness import check_completeness
from errata.project.build.consumers import build_channels, build_consumers, build_warehouses
from errata.project.build.copies import check_copies
from errata.project.build.distribution import build_distributions
from errata.project.build.eras import build_eras, build_row_limits, check_row_rules
from errata.project.build.late import check_late
from errata.project.build.limits import check_limits
from errata.project.build.masking import refuse_exposing_rules
from errata.project.build.people import build_approval, build_people, refuse_unreachable_quorum
from errata.project.build.publish import build_publish
from errata.project.build.reconcile import build_controls, build_reconciliations
from errata.project.build.settings import build_dbt, build_evidence, to_absolute, to_absolute_url
from errata.project.build.throttle import build_signals, build_throttle
from errata.project.build.topic_inputs import build_record_eras, check_topic, list_record_columns
from errata.project.build.watch import check_watch
from errata.project.forms import InputForm, ProductForm, ProjectForm, TransformForm, narrow
from errata.project.problems import ProblemReport
from errata.text.secrets import find_passwords, holds_secret

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
        _check_table(file.erasure.table, ("erasure", "table"), tuple(file.catalogs), report)
    if file.ready is not None:
        _check_table(file.ready.table, ("ready", "table"), tuple(file.catalogs), report)
    _check_java_options(file, report)
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
        dbt=None if file.dbt is None else build_dbt(file.dbt, root, report),
        channels=build_channels(file, root, report),
        warehouses=build_warehouses(file, report),
        consumers=build_consumers(file, people, report),
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
    _check_table(file.target.table, ("target", "table"), catalogs, report)
    report.refuse_repeats(file.target.key, ("target", "key"))
    inputs = tuple(
        _build_own_input(name, given, file.target, report)
        if given.own
        else _build_input(name, given, grain, root, project, report)
        for name, given in file.inputs.items()
    )
    _check_single_own(file, report)
    _check_locked(file, grain, report)
    _check_diff_columns(file, report)
    check_late(file, report)
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
        publish=build_publish(file, catalogs, report),
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


def _check_table(table: str, path: tuple[str, ...], catalogs: Sequence[str] | None, report: ProblemReport) -> None:
    catalog = table.partition(".")[0]
    if catalogs is not None and catalog not in catalogs:
        report.at(path, f"expected a table of a catalog in errata.yaml ({', '.join(catalogs)})")


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


def _build_input(
    name: str, file: InputForm, grain: Grain, root: Path, project: Project | None, report: ProblemReport
) -> Input:
    path = ("inputs", name)
    catalogs, clusters = (None, None) if project is None else (tuple(project.catalogs), tuple(project.kafka))
    if sum(one is not None for one in (file.table, file.files, file.kafka)) != 1:
        report.at(path, "expected one of table, files, kafka and own", found=False)
    if file.table is not None:
        _check_table(file.table, (*path, "table"), catalogs, report)
    if file.files is not None:
        _check_pattern(file.files, file.partition, (*path, "files"), report)
    if file.version is not None and file.table is None:
        report.at_key((*path, "version"), f'the key "version" was refused in {".".join(path)}; only tables have tags')
    if file.has_own_snapshots:
        _check_reference(file, grain, path, report)
    unit = _check_input_grain(file, grain, path, report)
    for key, duration in (("lookback", file.lookback), ("lookahead", file.lookahead)):
        _check_span(duration, unit, file.partition, (*path, key), report)
    check_row_rules(file, path, report)
    check_completeness(file, grain, path, catalogs, report)
    if file.kafka is not None:
        check_topic(file, file.grain or grain, path, clusters, report)
    return narrow(
        Input,
        file,
        name=name,
        files=None if file.files is None else to_absolute(root, file.files),
        eras=build_record_eras(file.kafka) if file.kafka else build_eras(file, file.grain or grain, path, report),
        columns=list_record_columns(file.kafka) if file.kafka else file.columns,
    )


def _check_reference(file: InputForm, grain: Grain, path: tuple[str, ...], report: ProblemReport) -> None:
    """Refuse what cannot be read at a snapshot of each partition's own time."""
    key = (*path, "reference")
    if file.table is None:
        report.at(key, "only a table has snapshots; expected current, corrected_truth or none")
    if file.reference == "as_recorded" and not grain.is_time:
        report.at(key, "values have no end in time; expected a target by hour, day, month or year")
    for other, why in (
        ("version", "names one snapshot for all partitions"),
        ("columns", "describes one snapshot"),
        ("eras", "describes one snapshot"),
        ("rows", "counts the rows of one snapshot"),
    ):
        if getattr(file, other):
            said = f'the key "{other}" was refused in {".".join(path)}; it {why}, and {file.reference} reads several'
            report.at_key((*path, other), said)


def _build_own_input(name: str, file: InputForm, target: Target, report: ProblemReport) -> Input:
    """The product's own earlier partitions as an input: the target itself, partitioned like the target."""
    path = ("inputs", name)
    for key in (
        "table",
        "files",
        "kafka",
        "partition",
        "grain",
        "reference",
        "version",
        "columns",
        "eras",
        "rows",
        "quarantine",
        "complete",
    ):
        if getattr(file, key):
            report.at_key((*path, key), f'the key "{key}" was refused in {".".join(path)}; own output is the target')
    if file.drift != "approve":
        report.at((*path, "drift"), "own output is the target, which a campaign approves; expected no key")
    grain = target.grain
    if not grain.is_time:
        report.at((*path, "own"), "own output needs a target by hour, day, month or year; values have no order")
    else:
        _check_span(file.lookback, grain, target.column, (*path, "lookback"), report)
        if not int(re.sub(r"\D", "", file.lookback)):
            report.at((*path, "lookback"), f"own output is what came before: expected at least one {grain}")
    if int(re.sub(r"\D", "", file.lookahead)):
        report.at((*path, "lookahead"), "expected 0d, because later partitions are not there yet")
    return Input(name=name, table=target.table, partition=target.column, lookback=file.lookback, own=True)


def _check_input_grain(file: InputForm, grain: Grain, path: tuple[str, ...], report: ProblemReport) -> Grain:
    """The finer of both grains, in which look-back and look-ahead are counted."""
    if file.grain is None or file.grain is grain:
        return grain
    key = (*path, "grain")
    if not grain.is_time or not file.grain.is_time:
        report.at(key, f"expected {grain}, the grain of the target, or no key: only times are nested")
        return grain
    if file.partition is None:
        report.at(key, "a grain needs the key partition, the column that it is the grain of")
    if is_wider(grain, file.grain):
        return file.grain
    for other in ("columns", "rows", "quarantine"):
        if getattr(file, other):
            said = f"a row of a {file.grain} belongs to several {grain}s and cannot be counted for one of them"
            report.at_key((*path, other), f'the key "{other}" was refused in {".".join(path)}; {said}')
    return grain


def _check_single_own(file: ProductForm, report: ProblemReport) -> None:
    own = [name for name, given in file.inputs.items() if given.own]
    for name in own[1:]:
        report.at(("inputs", name, "own"), f"expected one input of own output; {own[0]} is another", found=False)


def _check_pattern(pattern: str, partition: str | None, path: tuple[str, ...], report: ProblemReport) -> None:
    if find_passwords(pattern):
        report.at(path, "expected a place without a password; it is copied into run manifests", found=False)
    holes = set(re.findall(r"\{([^{}]*)\}", pattern))
    if partition is None and holes:
        report.at(path, "{column} in the pattern needs the key partition next to files")
    elif partition is not None and holes != {partition}:
        report.at(path, f"expected {{{partition}}} in place of the partition, and nothing else in braces")


def _check_span(
    duration: str, grain: Grain, partition: str | None, path: tuple[str, ...], report: ProblemReport
) -> None:
    if not is_aligned(duration, grain):
        wanted = f"whole {grain}s" if grain.is_time else "0d, because values have no order"
        also = " or months" if grain in (Grain.HOUR, Grain.DAY) else ""
        report.at(path, f"expected {wanted}{also}")
        return
    if Shift.parse(duration) != Shift() and partition is None:
        report.at(path, "a look-back or look-ahead needs the key partition, the column it goes by")


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
