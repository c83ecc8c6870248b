"""The break-glass alarm: run the project's command with JSON on stdin, without a shell and with a timeout."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from errata.engines.hooks.commands import run_command
from errata.model.product import Alarm
from errata.ports.hooks import AlarmHook


@dataclass(frozen=True, slots=True)
class CommandAlarm:
    """Runs the alarm command in the project directory."""

    root: Path
    alarm: Alarm | None

    @property
    def is_there(self) -> bool:
        """See the port."""
        return self.alarm is not None

    def send_alarm(self, told: Mapping[str, Any]) -> None:
        """See the port."""
        if self.alarm is None:
            return
        given = json.dumps(told, ensure_ascii=False).encode()
        run_command(self.root, self.alarm.command, given, self.alarm.timeout_seconds, what="the alarm command")


_conforms: type[AlarmHook] = CommandAlarm
