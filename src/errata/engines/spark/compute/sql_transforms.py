"""Run a SQL transform: one Spark SQL query over the pinned inputs, by their names, with values of the context.

The inputs become temporary views under names that no other chunk of the session uses. Common table expressions in front
of the query give them the names of the product file. The query itself is not rewritten: a name of its own hides an
input in Spark's own way, and every line is the line of the file. Spark resolves the query at once, so the views are
dropped before a row is computed.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from errata.engines.spark.runtime.spark_session import LATE_BINDING, override_conf
from errata.errors import TransformFailed
from errata.model.context import Context
from errata.model.partition_sql import quoted
from errata.model.sql_parameters import list_parameters

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MARKER = re.compile(r":([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)
_TAIL = re.compile(r"[;\s]*\Z")
_binding = threading.Lock()
_view_numbers = count(1)  # of this process, which is the only driver of its session


@dataclass(frozen=True, slots=True)
class SqlTransform:
    """A query that is called like a Python transform."""

    text: str
    name: str  # the file, for messages

    def __call__(self, context: Context, **inputs: Any) -> DataFrame:
        """The rows of the query over these frames; nothing is computed yet."""
        if not inputs or not all(hasattr(frame, "createTempView") for frame in inputs.values()):
            raise TransformFailed(
                f"{self.name} cannot run: expected its inputs as Spark frames",
                hint="SQL runs on Spark only; for tables in memory, give the product a Python function: "
                "open_project(…, transforms={PRODUCT: function})",
            )
        session = next(iter(inputs.values())).sparkSession
        views = {name: f"errata_input_{next(_view_numbers)}" for name in inputs}
        with ExitStack() as after:
            for name, frame in inputs.items():
                frame.createTempView(views[name])
                after.callback(session.catalog.dropTempView, views[name])
            return bind_query(session, write_statement(self.text, views), self._find_arguments(context))

    def _find_arguments(self, context: Context) -> dict[str, Any]:
        """The parameters that the query may name; a word after a colon in a text or comment does no harm."""
        named = set(_MARKER.findall(self.text))
        return {name: value for name, value in list_parameters(context).items() if name in named}


def bind_query(session: SparkSession, statement: str, arguments: Mapping[str, Any]) -> DataFrame:
    """A frame of the statement, with these values for its parameters.

    Iceberg 1.11 puts a parser before that of Spark 4.1, which forgets the values (apache/iceberg#16625). With this
    setting Spark binds them when it analyses the statement, which it does before this returns. Sessions of Errata have
    it; for one of the caller it is set for this call only.
    """
    if session.conf.get(LATE_BINDING, "false") == "true":
        return session.sql(statement, args=dict(arguments))
    with _binding, override_conf(session, {LATE_BINDING: "true"}):
        return session.sql(statement, args=dict(arguments))


def write_statement(text: str, views: Mapping[str, str]) -> str:
    """The statement for Spark; each line of the query has the number that it has in its file."""
    names = ", ".join(f"{quoted(name)} AS (SELECT * FROM {view})" for name, view in views.items())  # noqa: S608
    # the bracket closes on a line of its own, because the query may end with a comment
    return f"WITH {names} SELECT * FROM ({_TAIL.sub('', text)}\n)"  # noqa: S608 - the query is the user's own code
