"""Shared values of the verdict rules: measurement index, levels, number formatting. Pure."""

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
    """A candidate as known without a scan: adopted rows by partition with an adopted chunk, and the schema."""

    adopted_rows: Mapping[str, int]
    columns: Mapping[str, str]  # name → Iceberg type text
    is_trial: bool = False  # nothing was written, so there are no chunk counts and no quarantine table


@dataclass(frozen=True, slots=True)
class MeasurementIndex:
    """Measurements by scope, partition and name."""

    by_place: Mapping[tuple[str, str, str], Measurement]

    def get(self, scope: str, partition: str, name: str) -> Measurement | None:
        """The measurement, if it was taken."""
        return self.by_place.get((scope, partition, name))

    def rows(self, scope: str, partition: str) -> int | None:
        """Row count of a partition in a scope, if it was measured."""
        found = self.get(scope, partition, ROW_COUNT)
        return None if found is None or found.value is None else int(found.value)


def build_unmeasured(name: str, partition: str | None) -> CheckResult:
    """Blocking result of a rule without its measurement: what was not measured never passes."""
    return CheckResult(name, partition, None, BLOCK, "was not measured")


def parse_decimal(text: str | None) -> Decimal | None:
    """Parse a finite number; None if the text is not one."""
    if text is None:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def is_same_text(one: str | None, other: str | None) -> bool:
    """Whether two non-numeric values are equal; NaN and infinities equal nothing, including themselves."""
    return one == other and (one is None or one.strip().lower().lstrip("+-") not in _NOT_FINITE)


def format_decimal(number: Decimal) -> str:
    """Format a number without an exponent."""
    return format(number, "f")


def round_percent(percent: Decimal) -> Decimal:
    """Round a percentage to two places."""
    return percent.quantize(Decimal("0.01"))
