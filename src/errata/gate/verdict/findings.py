"""What rules are judged by and what they answer: numbers by place, levels, findings. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from errata.ports.measure import ROW_COUNT, Measurement
from errata.views.checks import CheckResult

OK, WARN, BLOCK = "ok", "warn", "block"
SEVERITY = (OK, WARN, BLOCK)
_NOT_FINITE = frozenset({"nan", "inf", "infinity"})


@dataclass(frozen=True, slots=True)
class CandidateSummary:
    """What is known without a scan: adopted rows of every partition that has an adopted chunk, and the schema."""

    adopted_rows: Mapping[str, int]
    columns: Mapping[str, str]  # name → Iceberg type text
    is_trial: bool = False  # nothing was written, so no chunk and no table can be asked


@dataclass(frozen=True, slots=True)
class MeasurementIndex:
    """Measurements by where they were taken."""

    by_place: Mapping[tuple[str, str, str], Measurement]

    def get(self, scope: str, partition: str, name: str) -> Measurement | None:
        """One measurement, if it was taken."""
        return self.by_place.get((scope, partition, name))

    def rows(self, scope: str, partition: str) -> int | None:
        """How many rows a partition has there."""
        found = self.get(scope, partition, ROW_COUNT)
        return None if found is None or found.value is None else int(found.value)


def build_unmeasured(name: str, partition: str | None) -> CheckResult:
    """A rule without its number blocks: what was not looked at is not fine."""
    return CheckResult(name, partition, None, BLOCK, "was not measured")


def parse_decimal(text: str | None) -> Decimal | None:
    """A finite number, or None."""
    if text is None:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def is_same_text(one: str | None, other: str | None) -> bool:
    """Whether two values that are no numbers are the same; what is not finite is equal to nothing, itself included."""
    return one == other and (one is None or one.strip().lower().lstrip("+-") not in _NOT_FINITE)


def format_decimal(number: Decimal) -> str:
    """A number without an exponent."""
    return format(number, "f")


def round_percent(percent: Decimal) -> Decimal:
    """A percentage as people read it."""
    return percent.quantize(Decimal("0.01"))
