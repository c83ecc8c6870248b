"""Keys whose form in a file differs from the value they become: shorthands, and several keys for one field. Pure.

Each form is the value with further keys; :func:`narrow` gives the value itself. All other keys are declared in
``errata.model``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Discriminator, Field, Tag

from errata.model.file_keys import AtLeast, Key, OneOf
from errata.model.file_values import (
    Bytes,
    Call,
    Column,
    Count,
    DecimalText,
    Duration,
    Identifier,
    InputName,
    Line,
    PersonName,
    Query,
    ScalarText,
    SqlFile,
    TableName,
    YesNo,
)
from errata.model.kafka.declaration import TopicPlace
from errata.model.product import (
    LINEAGE_COLUMNS,
    Check,
    Control,
    Distribution,
    GroupKey,
    Input,
    Live,
    Metric,
    Person,
    Product,
    Project,
    Publish,
    Reconciliation,
    Transform,
)
from errata.model.product.eras import RowLimits
from errata.model.product.throttle import Signal

V = TypeVar("V")

DBT_METRICS = {
    "not_null": Metric.NULL_VALUES,
    "unique": Metric.DUPLICATE_VALUES,
    "accepted_values": Metric.INVALID_VALUES,
    "relationships": Metric.MISSING_REFERENCES,
    "unique_combination_of_columns": Metric.DUPLICATE_VALUES,
    "accepted_range": Metric.INVALID_VALUES,
    "expression_is_true": Metric.EXPRESSION,
}


def narrow(kind: type[V], form: Any, /, **changes: Any) -> V:
    """The value that a form is, without the form's own keys."""
    return kind(**{field.name: getattr(form, field.name) for field in fields(kind)} | changes)  # type: ignore[arg-type]


def _detect_form(value: Any) -> str:
    """Which of two forms a value has, so that a problem with it is about the form that was meant."""
    return "<many>" if isinstance(value, (dict, list)) else "<one>"


def _detect_list(value: Any) -> str:
    return "<list>" if isinstance(value, list) else "<mapping>"


_Pair = Annotated[tuple[DecimalText, ...], Field(min_length=2, max_length=2)]
_Command = Annotated[tuple[ScalarText, ...], AtLeast(1)]
_Sides = Annotated[Annotated[GroupKey, Tag("<many>")] | Annotated[Line, Tag("<one>")], Discriminator(_detect_form)]
_GroupBy = Annotated[
    Annotated[tuple[Column, ...], AtLeast(1), Tag("<list>")]
    | Annotated[Mapping[Identifier, _Sides], AtLeast(1), Tag("<mapping>")],
    Discriminator(_detect_list),
]
_ByKey = Annotated[_GroupBy | None, Key("Columns to group by, or names with one expression, or with one per side.")]
_People = Annotated[
    Annotated[Mapping[PersonName, Person], AtLeast(1), Tag("<many>")] | Annotated[Literal["single-user"], Tag("<one>")],
    Discriminator(_detect_form),
    Key("People and their roles, or single-user, which is then recorded everywhere.", needed=True),
]
_Lineage = Annotated[
    Annotated[tuple[Annotated[str, OneOf(*LINEAGE_COLUMNS)], ...], Tag("<many>")] | Annotated[YesNo, Tag("<one>")],
    Discriminator(_detect_form),
]
_Live = Annotated[
    Annotated[tuple[Line, ...], Tag("<list>")] | Annotated[Live, Tag("<mapping>")],
    Discriminator(_detect_list),
    Key("Registered live jobs (application names or ids, or names given to errata.live), or a mapping."),
]


@dataclass(frozen=True, slots=True)
class SignalForm(Signal):
    """A signal, by the one of three keys that gives its number."""

    sql: Annotated[Query | None, Key("One SELECT whose first value is the number.")] = None
    http: Annotated[Line | None, Key("Address that returns the number, or JSON.")] = None
    command: Annotated[_Command | None, Key("Program and arguments, run without a shell; prints the number.")] = None


@dataclass(frozen=True, slots=True)
class CheckForm(Check):
    """A check, with dbt's names of metrics, a single column and the eight thresholds."""

    metric: Annotated[str, OneOf(*Metric, *DBT_METRICS), Key(needed=False)]  # type: ignore[assignment]
    column: Column | None = None
    must_be: Annotated[DecimalText | None, Key(path="mustBe")] = None
    must_not_be: Annotated[DecimalText | None, Key(path="mustNotBe")] = None
    must_be_greater_than: Annotated[DecimalText | None, Key(path="mustBeGreaterThan")] = None
    must_be_greater_or_equal_to: Annotated[DecimalText | None, Key(path="mustBeGreaterOrEqualTo")] = None
    must_be_less_than: Annotated[DecimalText | None, Key(path="mustBeLessThan")] = None
    must_be_less_or_equal_to: Annotated[DecimalText | None, Key(path="mustBeLessOrEqualTo")] = None
    must_be_between: Annotated[_Pair | None, Key(path="mustBeBetween")] = None
    must_not_be_between: Annotated[_Pair | None, Key(path="mustNotBeBetween")] = None


@dataclass(frozen=True, slots=True)
class ReconciliationForm(Reconciliation):
    """A reconciliation, with its groups as a list or a mapping."""

    by: _ByKey = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class ControlForm(Control):
    """A control period, by weeks or years."""

    weeks: Annotated[Count | None, Key("Day or hour: weeks before and after (default: 4).")] = None
    years: Annotated[Count | None, Key("Month: years before and after (default: 4).")] = None
    warn: Annotated[DecimalText | None, Key("Robust z-score (default without warn and block: 3.5).")] = None
    block: Annotated[DecimalText | None, Key("Robust z-score (default without warn and block: 8).")] = None


@dataclass(frozen=True, slots=True)
class DistributionForm(Distribution):
    """A distribution rule, with its control partitions by weeks or years."""

    weeks: Annotated[Count | None, Key("against control, day or hour: weeks before and after (default: 4).")] = None
    years: Annotated[Count | None, Key("against control, month: years before and after (default: 4).")] = None


@dataclass(frozen=True, slots=True)
class CorrectionsForm(TopicPlace):
    """Corrections that go to a topic as well; they are sent from their table."""

    table: Annotated[TableName | None, Key("Table of corrections (default: the target's name and _corrections).")] = (
        None
    )


_TableOrTopic = Annotated[
    Annotated[CorrectionsForm, Tag("<many>")] | Annotated[TableName, Tag("<one>")], Discriminator(_detect_form)
]
_Corrections = Annotated[
    _TableOrTopic | None,
    Key("Table of old and new values by key; or cluster and topic, to send them as events as well."),
]


@dataclass(frozen=True, slots=True)
class PublishForm(Publish):
    """``publish``, with two keys that belong to the product."""

    corrections: _Corrections = None  # type: ignore[assignment]
    rollback_window: Duration = "30d"
    manual: Annotated[YesNo, Key("false: publish automatically if the gate finds nothing.")] = True


@dataclass(frozen=True, slots=True)
class TransformForm(Transform):
    """``transform``, by the one of two keys that names it."""

    call: Annotated[Call, Key("Python function of the project.", needed=False)]
    sql: Annotated[SqlFile | None, Key("File of the project with one Spark SQL query over the inputs.")] = None


@dataclass(frozen=True, slots=True)
class InputForm(Input):
    """An input, with limits that belong to the product."""

    quarantine: RowLimits | None = None


@dataclass(frozen=True, slots=True)
class ProductForm(Product):
    """A product file."""

    transform: TransformForm
    inputs: Annotated[Mapping[InputName, InputForm], AtLeast(1)]  # type: ignore[assignment]
    publish: PublishForm = PublishForm()
    checks: tuple[CheckForm, ...] = ()
    reconcile: tuple[ReconciliationForm, ...] = ()
    control: tuple[ControlForm, ...] = ()
    distribution: tuple[DistributionForm, ...] = ()
    health: Annotated[tuple[SignalForm, ...], Key("Signals in addition to the project's.")] = ()
    lineage_columns: _Lineage = False  # type: ignore[assignment]
    live: _Live = ()  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class ProjectForm(Project):
    """``errata.yaml``."""

    people: _People = "single-user"  # type: ignore[assignment]
    # projects whose runs are kept have it at the top
    top_chunk_bytes: Annotated[Bytes | None, Key("The same as chunks.bytes.", "chunk_bytes")] = None
    health: tuple[SignalForm, ...] = ()
