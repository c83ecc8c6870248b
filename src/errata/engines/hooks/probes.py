"""Read health signals from SQL, HTTP or a command: one number each, or an error with the reason."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from errata.engines.hooks.commands import run_command
from errata.errors import EngineError, ErrataError
from errata.model.product.throttle import Signal
from errata.ports.hooks import Probes

_MAX_BODY_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SignalProbes:
    """Reads signals; ``queries`` maps ``ledger`` and ``lake`` to a function from SQL text to its first value."""

    root: Path
    queries: Mapping[str, Callable[[str], Any]]

    def read(self, signal: Signal) -> Decimal:
        """See the port."""
        try:
            match signal.kind:
                case "sql":
                    return _parse_number(signal, self.queries[signal.on](signal.source[0]))
                case "http":
                    return _read_http(signal)
                case _:
                    return self._command(signal)
        except ErrataError:
            raise
        except Exception as error:
            # only the type: the message may quote the address or the command, which may contain a secret
            raise _read_error(signal, type(error).__name__) from error

    def _command(self, signal: Signal) -> Decimal:
        try:
            output = run_command(self.root, signal.source, b"", signal.timeout_seconds, keeps_output=True)
        except EngineError as error:
            raise _read_error(signal, error.message) from None
        return _parse_number(signal, (output.decode().split() or [""])[-1])


def _read_http(signal: Signal) -> Decimal:
    """The number in the response's field; without a field, 0 for a successful response and 1 for an HTTP error."""
    request = urllib.request.Request(signal.source[0], headers={"accept": "application/json"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=signal.timeout_seconds) as answer:  # noqa: S310 - scheme is checked when the file is read
            body = answer.read(_MAX_BODY_BYTES)
    except urllib.error.HTTPError as error:
        if signal.field is None:
            return Decimal(1)
        raise _read_error(signal, f"HTTP {error.code}") from error
    if signal.field is None:
        return Decimal(0)
    try:
        found = json.loads(body)
        for key in signal.field.split("."):
            found = found[key]
    except (ValueError, KeyError, TypeError) as error:
        raise _read_error(signal, f"its answer has no field {signal.field}") from error
    return _parse_number(signal, found)


def _parse_number(signal: Signal, found: object) -> Decimal:
    try:
        number = Decimal(str(found))
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise _read_error(signal, f"expected a number, found {str(found)[:40]!r}")
    return number


def _read_error(signal: Signal, why: str) -> EngineError:
    return EngineError(f"health signal {signal.name} cannot be read: {why}")


_conforms: type[Probes] = SignalProbes
