"""For live jobs that write to governed tables: check for freezes, and keep corrections from freezing while you write.

::

    import errata.live

    with errata.live.writing("/srv/finsight", "lake.fin.daily_revenue", ["2026-03-01"], wait="10min"):
        write_the_day()

``project`` is the project's directory, or an open client. Reads the project files and the ledger; needs no Spark, no
JVM and no lake. Only products with ``publish: {on_live_write: freeze}`` ever freeze partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from errata.errors import Frozen

if TYPE_CHECKING:
    from errata.client import Client
    from errata.live_writers.lease import Lease, Partitions
    from errata.views import FreezeView

__all__ = ["Frozen", "frozen", "writing"]


def frozen(project: str | Client, table: str, partitions: Partitions = None) -> tuple[FreezeView, ...]:
    """Open freezes of these partitions (default: of the whole table), each with its run, reason and end.

    A freeze may start right after this returns, so a job that writes uses :func:`writing`.
    """
    with _open_client(project) as client:
        return client.frozen(table, partitions).by


@contextmanager
def writing(
    project: str | Client,
    table: str,
    partitions: Partitions = None,
    *,
    wait: str = "0s",
    name: str | None = None,
    report: bool = False,
) -> Iterator[Lease]:
    """Hold a write lease on these partitions (default: the whole table), so that no correction freezes them meanwhile.

    Raises :class:`Frozen` if a correction has frozen them and does not end within ``wait`` (``30s``, ``10min``,
    ``2h``). ``name`` is how the job appears in messages. With ``report``, what the product's inputs hold now and what
    the job has committed at the end are recorded, so that `errata stale` knows what the partitions were computed from;
    that reads the metadata of the tables, and the job's commits must carry ``lease.properties``.
    """
    with (
        _open_client(project) as client,
        client.writing(table, partitions, wait=wait, name=name, report=report) as lease,
    ):
        yield lease


@contextmanager
def _open_client(project: str | Client) -> Iterator[Client]:
    if not isinstance(project, str):
        yield project
        return
    from errata.wiring import open_project

    with open_project(project) as client:
        yield client
