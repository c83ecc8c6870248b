"""The break-glass alarm: run the project's command with JSON on stdin, without a shell and with a timeout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from errata.errors import EngineError
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
        try:
            bell = subprocess.Popen(
                self.alarm.command,
                cwd=self.root,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            # only the type: the message quotes the command, which may contain a secret
            raise EngineError(f"the alarm command cannot be started: {type(error).__name__}") from None
        try:
            bell.communicate(json.dumps(told, ensure_ascii=False).encode(), timeout=self.alarm.timeout_seconds)
        except subprocess.TimeoutExpired:
            raise EngineError(f"the alarm command did not end within {self.alarm.timeout_seconds} s") from None
        finally:
            _end_process(bell)
        if bell.returncode != 0:
            raise EngineError(f"the alarm command ended with {bell.returncode}")


def _end_process(bell: subprocess.Popen[bytes]) -> None:
    """Kill a command that is still running, with every process it started."""
    if bell.poll() is None:
        try:
            os.killpg(bell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    bell.wait()


_conforms: type[AlarmHook] = CommandAlarm
