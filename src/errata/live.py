"""For live jobs that write beside corrections: ask what is frozen, and hold corrections off while you write.

::

    import errata.live

    with errata.live.writing("/srv/finsight", "lake.fin.daily_revenue", ["2026-03-01"], wait="10min"):
        write_the_day()

``project`` is the project's directory, or a client that is open already. Reads the project files and the ledger; no
Spark, no JVM, no lake. Only products with ``publish: {on_live_write: freeze}`` ever freeze anything.
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
    """The freezes of these partitions, of any of the table's by default: which run, why, until when.

    Nothing keeps a freeze from starting right after the answer; a job that writes uses :func:`writing`.
    """
    with _open_client(project) as client:
        return client.frozen(table, partitions).by


@contextmanager
def writing(
    project: str | Client, table: str, partitions: Partitions = None, *, wait: str = "0s", name: str | None = None
) -> Iterator[Lease]:
    """Write these partitions, of any of the table's by default, while no correction freezes them.

    Raises :class:`Frozen` when one does and goes on for longer than ``wait`` (``30s``, ``10min``, ``2h``). ``name`` is
    what people see of the job.
    """
    with _open_client(project) as client, client.writing(table, partitions, wait=wait, name=name) as lease:
        yield lease


@contextmanager
def _open_client(project: str | Client) -> Iterator[Client]:
    if not isinstance(project, str):
        yield project
        return
    from errata.wiring import open_project

    with open_project(project) as client:
        yield client
