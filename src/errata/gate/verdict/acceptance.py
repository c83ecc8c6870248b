"""Warnings that wait for a person, and the command that accepts them. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from errata.gate.verdict.findings import BLOCK, OK


def find_open_warnings(checks: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Rules whose warnings nobody accepted; empty if a rule blocks, because accepting them would not help."""
    found = [check for check in checks if check.get("level") != OK]
    if any(check.get("level") == BLOCK for check in found):
        return ()
    return tuple(dict.fromkeys(str(check["name"]) for check in found if not check.get("accepted_by")))


def format_accept_command(run_id: str, warned: Iterable[str]) -> str:
    """The command by which an approver accepts these warnings, as a shell takes it.

    >>> format_accept_command("bf-1", ["sum(gross)", "empty"])
    "errata validate bf-1 --accept 'sum(gross)=why it is right' --accept 'empty=why it is right'"
    """
    options = (f"--accept {shlex.quote(f'{name}=why it is right')}" for name in warned)
    return " ".join([f"errata validate {run_id}", *options])
