"""Compare what a consumer shows with what it should show. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from errata.gate.verdict.thresholds import Limit
from errata.model.consumer.message import Difference
from errata.model.partition import Grain, format_ranges, value_from_text

_MOST_NAMED, _MOST_TOLD = 3, 100
"""Partitions that an error names, and that a message has."""
_LONGEST = 60
"""Digits of a number that are shown."""
_OTHER = "something else"


def name_for_consumer(grain: Grain, partition: str) -> str:
    """The partition as a consumer names it: values as they are in the table, rows without a value as ``null``.

    >>> [name_for_consumer(Grain.VALUE, text) for text in ("EU", '"null"', "null")]
    ['EU', 'null', 'null']
    >>> name_for_consumer(Grain.DAY, "2026-01-03")
    '2026-01-03'
    """
    if grain.is_time:
        return partition
    value = value_from_text(partition)
    return partition if value is None else value


def find_differences(
    shown: Mapping[str, str | None], expected: Mapping[str, str | None], tolerance: str
) -> tuple[Difference, ...]:
    """Partitions whose values differ by more than the tolerance; ``shown`` has every partition of ``expected``.

    Numbers are compared as numbers, everything else as text. Nothing is the same as zero: a sum over no rows is 0 here
    and NULL in most databases.

    >>> find_differences({"a": "10.00", "b": "11", "c": None}, {"a": "10", "b": "10", "c": "0"}, "5%")
    (Difference(partition='b', shown='11', expected='10'),)
    """
    limit = Limit.parse(tolerance)
    return tuple(_iterate_differences(shown, expected, limit))


def _iterate_differences(
    shown: Mapping[str, str | None], expected: Mapping[str, str | None], limit: Limit
) -> Iterator[Difference]:
    for partition, wanted in expected.items():
        found = shown[partition]
        if not _is_same(found, wanted, limit):
            yield Difference(partition, found, wanted)


def _is_same(shown: str | None, expected: str | None, limit: Limit) -> bool:
    if shown is None or expected is None:
        return all(one is None or parse_number(one) == 0 for one in (shown, expected))
    one, other = parse_number(shown), parse_number(expected)
    if one is None or other is None:
        return shown == expected
    return not limit.is_exceeded(abs(one - other), other)


def parse_number(text: str) -> Decimal | None:
    """The finite number that a text is; None for any other text.

    >>> parse_number(" 1.50 "), parse_number("NaN"), parse_number("EU")
    (Decimal('1.50'), None, None)
    """
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def describe_differences(
    consumer: str, grain: Grain, differences: Collection[Difference], *, is_classified: bool
) -> str:
    """Say which partitions differ, with values only if they are numbers of columns that anybody may see.

    >>> found = [Difference("2026-01-03", "11", "10"), Difference("2026-01-04", "Ana", "10")]
    >>> describe_differences("exec-dashboard", Grain.DAY, found, is_classified=False)
    'exec-dashboard shows 11 for 2026-01-03, expected 10; shows something else for 2026-01-04, expected 10'
    >>> describe_differences("exec-dashboard", Grain.DAY, found, is_classified=True)
    'exec-dashboard differs for 2026-01-03 … 2026-01-04'
    """
    if is_classified:
        return f"{consumer} differs for {format_ranges(grain, [one.partition for one in differences], _MOST_NAMED)}"
    listed = list(differences)[:_MOST_NAMED]
    told = "; ".join(f"shows {_show(one.shown)} for {one.partition}, expected {_show(one.expected)}" for one in listed)
    more = f"; and {len(differences) - len(listed):,} more" if len(differences) > len(listed) else ""
    return f"{consumer} {told}{more}"


def list_for_message(differences: Sequence[Difference], *, is_classified: bool) -> dict[str, Any]:
    """The differences as an item keeps them for a message: partition, what is shown, what was expected.

    >>> list_for_message([Difference("2026-01-03", "Ana", "10")], is_classified=False)
    {'differences': [['2026-01-03', 'something else', '10']], 'more': 0}
    >>> list_for_message([Difference("2026-01-03", "11", "10")], is_classified=True)
    {'differences': [['2026-01-03', None, None]], 'more': 0}
    """
    listed = differences[:_MOST_TOLD]
    values = [
        (None, None) if is_classified else (_keep_number(one.shown), _keep_number(one.expected)) for one in listed
    ]
    told = [[one.partition, *both] for one, both in zip(listed, values, strict=True)]
    return {"differences": told, "more": len(differences) - len(listed)}


def _show(value: str | None) -> str:
    return _keep_number(value) or "nothing"


def _keep_number(value: str | None) -> str | None:
    """A number, or that it is none: any other text may be of a person."""
    if value is None:
        return None
    return value.strip()[:_LONGEST] if parse_number(value) is not None else _OTHER
