"""Pin an input again for some partitions: same columns, eras and rules, current data of the source. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from errata.canonical import canonical_bytes, sha256
from errata.model.kafka.topic_range import merge_ranges
from errata.model.manifest import InputPin
from errata.model.partition import WHOLE, Grain
from errata.model.product import READ_AT_ITS_TIME, Input
from errata.model.product.input_policy import InputPolicy
from errata.planning.era_coverage import check_coverage
from errata.ports.tables import InputState


def needs_repin(pin: InputPin) -> bool:
    """Whether the input brings in live data; reference data, named versions and log positions stay as approved."""
    is_fixed = pin.version is not None or pin.reference in READ_AT_ITS_TIME or pin.is_message_log
    return pin.partition is not None and not is_fixed and not pin.own


def input_from_pin(pin: InputPin) -> Input:
    """The input as planned, whatever the product file says now."""
    return Input(
        pin.name,
        table=pin.location if pin.kind == "table" else None,
        files=pin.location if pin.kind == "files" and pin.recording is None else None,
        recording=pin.recording,
        value=pin.value,
        kafka=pin.topic.declared if pin.topic else None,
        partition=pin.partition,
        grain=pin.window.grain if pin.window else None,
        reference=pin.reference,
        columns=pin.columns,
        eras=pin.eras,
        rows=pin.row_rules,
        cdc=pin.log.declared if pin.log else None,
        transactions_of=pin.transactions_of,
        subjects=pin.subjects,
        policy=InputPolicy(mask=pin.masks),
    )


def repin_input(
    pin: InputPin, facts: InputState, asked: Sequence[str], grain: Grain, column_type: str
) -> tuple[InputPin, dict[str, bytes], tuple[str, ...]]:
    """The new pin, the parts it refers to, and the problems found."""
    proof = check_coverage(input_from_pin(pin), facts, grain, column_type, asked)
    problems = [*([facts.problem] if facts.problem else []), *proof.problems]
    if facts.table_uuid != pin.table_uuid:
        problems.append(f"input {pin.name}: {pin.location} was dropped and created again")
    if pin.topic and facts.topic and pin.topic.topic_id != facts.topic.topic_id:
        problems.append(f"input {pin.name}: {pin.location} was deleted and created again")
    listed = facts.offsets if facts.offsets is not None else facts.files
    content = canonical_bytes(listed) if listed is not None else b""
    parts = {sha256(content): content} if content else {}
    sizes = facts.partitions if facts.whole is None else {WHOLE: facts.whole}
    known = facts.kind == "files" and facts.rows_known
    made = replace(
        pin,
        input_partitions=tuple(asked),
        fingerprints={name: size.fingerprint for name, size in sizes.items() if size.fingerprint},
        rows=sum(size.rows for size in sizes.values()),
        bytes=sum(size.bytes for size in sizes.values()),
        file_count=sum(size.files for size in sizes.values()),
        snapshot_id=facts.snapshot_id,
        files_part=next(iter(parts), None),
        era_of=proof.era_of,
        schemas=facts.schemas if pin.columns else (),
        counts={name: size.rows for name, size in sizes.items()} if known else {},
        topic=replace(pin.topic, ranges=merge_ranges((facts.offsets or {}).values())) if pin.topic else None,
    )
    return made, parts, tuple(problems)
