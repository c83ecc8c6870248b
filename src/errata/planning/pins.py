"""What a manifest pins: the target, each input, and the newest moment of both. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from errata.canonical import canonical_bytes, sha256
from errata.model.change_log.log_pin import LogPin, build_log_pin
from errata.model.duration import count_steps
from errata.model.graph.read_rule import find_window, rule_of_input
from errata.model.kafka.topic_range import TopicPin, merge_ranges
from errata.model.manifest import InputPin, TargetPin
from errata.model.partition import EPOCH, WHOLE, Grain
from errata.model.product import Input, Product
from errata.model.span import unit_transform
from errata.planning.era_coverage import check_coverage
from errata.planning.inputs.references import build_spans
from errata.planning.plan_context import PlanContext
from errata.planning.schema import find_new_columns
from errata.planning.shared_files import find_partition_unit, find_rewrite
from errata.ports.tables import InputState, TargetState


def _add_part(parts: dict[str, bytes], value: object) -> str:
    content = canonical_bytes(value)
    digest = sha256(content)
    parts[digest] = content
    return digest


def build_target_pin(product: Product, facts: TargetState, parts: dict[str, bytes]) -> TargetPin | None:
    """The target as it is now; its lists go into ``parts``. None if it has no such partitions."""
    field = find_partition_unit(product.target, facts)
    if field is None:
        return None
    new, rewrite = find_new_columns(product.target, facts), find_rewrite(product.target, facts)
    return TargetPin(
        table=facts.table,
        table_uuid=facts.table_uuid,
        base_snapshot_id=facts.base_snapshot_id,
        schema_id=facts.schema_id,
        spec_id=facts.spec_id,
        column=field.column,
        column_type=field.column_type,
        transform=field.transform,
        grain=product.target.grain,
        columns={column.name: column.type for column in facts.columns} | {column.name: column.type for column in new},
        key=product.target.key,
        expected_part=_add_part(parts, facts.expected),
        fingerprints=facts.fingerprints,
        total_partitions=len(facts.partitions),
        required=tuple(column.name for column in facts.columns if column.required),
        last_column_id=facts.last_column_id if new else 0,
        new_columns=new,
        mode="rewrite" if rewrite else "metadata",
        rewrite=rewrite,
    )


def build_input_pin(world: PlanContext, source: Input, facts: InputState, parts: dict[str, bytes]) -> InputPin:
    """An input as it is now; its files go into ``parts``."""
    grain = world.product.target.grain
    rule, window = rule_of_input(source, grain), find_window(source, grain)
    steps = (0, 0) if window or rule.is_whole else tuple(count_steps(text, grain) for text in _looks(source))
    sizes = facts.partitions if facts.whole is None else {WHOLE: facts.whole}
    field = find_partition_unit(world.product.target, world.target)
    asked = rule.list_reads(world.partitions)
    proof = check_coverage(source, facts, rule.input_grain, field.column_type if field else None, asked)
    return InputPin(
        name=source.name,
        kind=facts.kind,
        location=facts.location,
        partition=source.partition,
        column_type=facts.column_type
        or source.columns.get(source.partition or "")
        or (_choose_type(field.column_type, rule.input_grain) if window and field else None),
        lookback=steps[0],
        lookahead=steps[1],
        input_partitions=asked,
        fingerprints={name: size.fingerprint for name, size in sizes.items() if size.fingerprint},
        rows=sum(size.rows for size in sizes.values()),
        bytes=sum(size.bytes for size in sizes.values()),
        file_count=sum(size.files for size in sizes.values()),
        reference=source.reference,
        version=source.version,
        snapshot_id=facts.snapshot_id,
        table_uuid=facts.table_uuid,
        files_part=None if (listed := _list_parts(facts)) is None else _add_part(parts, listed),
        own=source.own,
        columns=proof.columns,
        eras=source.eras,
        era_of=proof.era_of,
        schemas=facts.schemas if source.columns else (),
        counts={name: size.rows for name, size in sizes.items()} if facts.kind == "files" and facts.rows_known else {},
        row_rules=source.rows,
        snapshots=build_spans(grain, facts),
        window=window,
        recording=source.recording,
        topic=_build_topic_pin(source, facts),
        value=source.value,
        log=_build_log_pin(world, source, facts),
        transactions_of=source.transactions_of,
        subjects=source.subjects,
        masks=source.policy.mask,
        uncounted=bool(source.subjects or source.policy.mask)
        and (source.own or rule.is_wider or source.has_own_snapshots),
    )


def _build_log_pin(world: PlanContext, source: Input, facts: InputState) -> LogPin | None:
    if source.cdc is None or facts.log is None:
        return None
    ends = next(one for one in world.product.inputs if one.transactions_of == source.name)
    return build_log_pin(source.cdc, ends.name, facts.log)


def _build_topic_pin(source: Input, facts: InputState) -> TopicPin | None:
    if source.kafka is None or facts.topic is None:
        return None
    topic, ranges = facts.topic, merge_ranges((facts.offsets or {}).values())
    return TopicPin(source.kafka, topic.topic_id, len(topic.logs), topic.clock, ranges)


def _list_parts(facts: InputState) -> object:
    return facts.offsets if facts.offsets is not None else facts.files


def _looks(source: Input) -> tuple[str, str]:
    return source.lookback, source.lookahead


def _choose_type(target_type: str, grain: Grain) -> str:
    """Type of a partition column that is only in the paths of files: the target's, unless its values are too coarse.

    >>> _choose_type("date", Grain.HOUR), _choose_type("date", Grain.MONTH)
    ('timestamptz', 'date')
    """
    return target_type if unit_transform(target_type, grain) is not None else "timestamptz"


def find_as_of(target: TargetState, inputs: Iterable[InputState]) -> str:
    """Newest timestamp in the pinned state: the run's clock, equal for every plan of the same state."""
    known = [target.base_timestamp_ms, *(facts.newest_ms for facts in inputs)]
    newest = max((moment for moment in known if moment is not None), default=0)
    return (EPOCH + timedelta(milliseconds=newest)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
