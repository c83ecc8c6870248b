"""Find erased subjects in the rows of a change log, and mask values. Runs no Spark action.

It happens after the table was rebuilt, because which row of a key is the last one follows from all its changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.inputs.access import InputAccess
from errata.engines.spark.inputs.protection import mark_listed, mask_rows
from errata.model.change_log.declaration import BEFORE, CHANGES
from errata.model.manifest import InputPin
from errata.model.partition_sql import quoted

_TEXT = "__errata_subject_"


def list_subject_sources(pin: InputPin) -> tuple[str, ...]:
    """Names that columns with subjects have in messages: the declared ones, and those that an era renames."""
    renamed = [(old, new) for era in pin.eras for old, new in era.rename.items()]
    named = [(name, *(old for old, new in renamed if new == name)) for name in pin.subjects]
    return tuple(dict.fromkeys(one for names in named for one in names))


def has_another_subject(pin: InputPin) -> Sequence[Column]:
    """For each of these columns whether an update took a row away from its subject."""
    changed = [
        F.col("before")[name].isNotNull() & ~F.col("before")[name].eqNullSafe(F.col("row")[name])
        for name in list_subject_sources(pin)
    ]
    return [F.coalesce(one, F.lit(False)) for one in changed]  # noqa: FBT003 - a literal is a value


def select_subject_texts(pin: InputPin) -> list[Column]:
    """Ids as the messages have them, in columns that :func:`protect_change_rows` takes away."""
    return [F.col("row")[name].alias(f"{_TEXT}{n}") for n, name in enumerate(list_subject_sources(pin))]


def protect_change_rows(rows: DataFrame, pin: InputPin, access: InputAccess) -> DataFrame:
    """The rows with masked values, and with a mark on those of erased subjects.

    An id counts as the message has it, and as its declared type writes it. Values before a change are masked too.
    """
    if pin.subjects:
        texts = [name for name in rows.columns if name.startswith(_TEXT)]
        ids = [F.col(quoted(name)).cast("string") for name in (*texts, *pin.subjects)]
        rows = mark_listed(rows, ids, access).drop(*texts)
    is_changes = pin.log is not None and pin.log.declared.reading == CHANGES
    shadows = {f"{BEFORE}{name}": how for name, how in pin.masks.items() if f"{BEFORE}{name}" in pin.columns}
    return mask_rows(rows, replace(pin, masks={**(shadows if is_changes else {}), **pin.masks}), access, {})
