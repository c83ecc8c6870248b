"""An open project and the acting person: what every method of the Client works with."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from errata.model.audit import Actor
from errata.text.escape import escape_text, require_one_line
from errata.views.checks import DoctorCheck

if TYPE_CHECKING:
    from errata.project import ProjectProblem
    from errata.workspace import Workspace

Partitions = str | Sequence[str] | None
MAX_NAME_LENGTH = 100
"""Longest name of a person or a live job, in characters."""


class OpenProject:
    """One open project; close it, or use it as a context manager."""

    def __init__(
        self,
        workspace: Workspace,
        doctor: Callable[[bool], tuple[DoctorCheck, ...]],
        check: Callable[[], tuple[ProjectProblem, ...]],
    ) -> None:
        self._workspace = workspace
        self._doctor = doctor
        self._check = check
        self._heads: dict[str, str | None] = {}  # by run id: head of main at the last check for live writes

    def redact(self, text: str) -> str:
        """Text for display, without the values that came from the environment.

        Example: client.redact(str(error))
        """
        return self._workspace.project.redact(text)

    @property
    def log(self) -> str:
        """Path of the log file of Java and Spark.

        Example: print(client.log)
        """
        return str(self._workspace.engines.log)

    def close(self) -> None:
        """Close the connections to catalogs and ledger.

        Example: client.close()
        """
        self._workspace.engines.close()
        self._workspace.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _actor(self, person: str | None) -> Actor:
        user = _read_os_user()
        name = require_one_line("--as", person or os.environ.get("ERRATA_USER") or user, MAX_NAME_LENGTH)
        project = self._workspace.project
        return Actor(project.resolve_alias(name), user, escape_text(socket.gethostname()), project.single_user)


def _read_os_user() -> str:
    try:
        return escape_text(getpass.getuser())
    except (KeyError, OSError):
        return f"uid-{os.getuid()}"
