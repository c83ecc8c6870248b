"""Errata: correct published data, and show your work.

::

     request ──▶ planner ──▶ ledger ──▶ executor ──▶ staging ──▶ validator ──▶ publisher ──▶ evidence
       who,       facts +     sealed      chunks on     branch of    measure,      one commit     bundle,
       what,      policy →    manifest,   Spark, with   the target   judge,        on main, or    audit
       why        manifest    states      leases        table        diff          back out       chain

``errata.open(project)`` gives a client with one method per command; ``errata.live_context`` gives the daily job the
same context that a run gives the transform. Importing this module imports no engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from errata.errors import ErrataError
from errata.model.context import Context, Mode

if TYPE_CHECKING:
    from errata.client import Client

__all__ = ["Client", "Context", "ErrataError", "Mode", "__version__", "live_context", "open"]

__version__ = "0.1.0"


def open(project: str = ".", **options: Any) -> Client:  # noqa: A001  reads as errata.open(...)
    """A client of the project in this directory; see :func:`errata.wiring.open_project`."""
    from errata.wiring import open_project

    return open_project(project, **options)


def live_context(project: str, product: str, interval: tuple[str, str]) -> Context:
    """The context of a daily job over the half-open interval of partitions; no run, no ledger write."""
    from errata.wiring.live import live_context as make

    return make(project, product, interval)


def __getattr__(name: str) -> Any:
    if name == "Client":
        from errata.client import Client

        return Client
    raise AttributeError(f"module 'errata' has no attribute {name!r}")
