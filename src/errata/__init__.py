"""Errata: correct published data, and show your work.

::

     request ──▶ planning ──▶ approval ──▶ worker ──▶ gate ──▶ publishing ──▶ evidence
       who,       sealed       quorum,      chunks     measure,   one commit      bundle for
       what,      manifest     release      on Spark   judge,     on main, or     the auditor
       why                                             diff       rolled back

``errata.open(project)`` gives a client with one method per command; ``errata.live_context`` gives the daily job the
same context that a run gives the transform. Importing this module imports no engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from errata._version import __version__
from errata.errors import ErrataError
from errata.model.context import Context, Mode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from errata.client import Client
    from errata.ports.hooks import ProgressListener

__all__ = ["Client", "Context", "ErrataError", "Mode", "__version__", "live_context", "open", "sql_transform"]


def open(  # noqa: A001  reads as errata.open(...)
    project: str = ".",
    *,
    spark: SparkSession | None = None,
    narrate: Callable[[str], None] | None = None,
    progress: Callable[[str, int, str], ProgressListener] | None = None,
) -> Client:
    """A client of the project in this directory.

    ``spark`` is your session, if Errata should use it instead of starting one. ``narrate`` receives each message
    (default: stderr); ``progress`` makes a listener to the chunks of a run.

    Example: client = errata.open("finsight", narrate=print)
    """
    from errata.wiring import open_project

    return open_project(project, spark=spark, narrate=narrate, progress=progress)


def live_context(
    project: str,
    product: str,
    interval: tuple[str, str],
    quarantine: Callable[[DataFrame, str], None] | None = None,
    emit: Callable[[str, DataFrame], None] | None = None,
) -> Context:
    """The context of a daily job over the half-open interval of partitions; no run, no ledger write.

    ``quarantine`` is called with the rows and the reason whenever the transform quarantines rows, ``emit`` with the
    name of a sink and the rows whenever it emits some.

    Example: ctx = errata.live_context("finsight", "fin.daily_revenue", ("2026-03-02", "2026-03-03"))
    """
    from errata.wiring.live_context import live_context as make

    return make(project, product, interval, quarantine, emit)


def sql_transform(path: str) -> Callable[..., DataFrame]:
    """The query in a SQL file as a function of a context and one Spark frame for each input, by name.

    Example: revenue = errata.sql_transform("transforms/daily_revenue.sql")
    """
    from errata.wiring.live_context import read_sql_transform

    return read_sql_transform(path)


def __getattr__(name: str) -> Any:
    if name == "Client":
        from errata.client import Client

        return Client
    raise AttributeError(f"module 'errata' has no attribute {name!r}")
