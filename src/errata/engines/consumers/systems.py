"""Refresh what consumers show and read it back, each by the way that errata.yaml declares."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from errata.engines.consumers import http_calls, postgres_database, redis_cache
from errata.engines.hooks.commands import run_command
from errata.errors import UsageError
from errata.model.consumer.declaration import HttpCall, Refresh, Verify
from errata.model.consumer.partition_text import HOLE, fill_command, fill_url
from errata.ports.consumers import ConsumerSystems

KEY = "ERRATA_KEY"
"""Environment variable with the key that is the same for every repetition of the same work."""


@dataclass(frozen=True, slots=True)
class DeclaredSystems:
    """The systems of a project: commands run in ``root``, ``uris`` are the addresses of its databases."""

    root: Path
    uris: Mapping[str, str]

    def refresh(self, step: Refresh, partitions: Sequence[str], key: str) -> int | None:
        """See the port."""
        seconds = step.timeout_seconds
        if step.redis is not None and step.delete is not None:
            return redis_cache.delete_keys(step.redis, step.delete, partitions, seconds)
        if step.sql is not None:
            postgres_database.run_statements(
                postgres_database.find_uri(self.uris, step.on), step.sql, partitions, seconds
            )
        elif step.http is not None:
            self._call(step.http, partitions, key, seconds, reads_body=False)
        elif step.command:
            self._run(step.command, partitions, key, seconds)
        else:
            raise UsageError("a refresh step was refused; expected one of redis, sql, http and command")
        return None

    def read_shown(self, verify: Verify, partitions: Sequence[str], key: str) -> dict[str, str | None]:
        """See the port."""
        seconds = verify.timeout_seconds
        if verify.redis is not None and verify.get is not None:
            return redis_cache.read_values(verify.redis, verify.get, partitions, seconds)
        if verify.sql is not None:
            return postgres_database.read_values(
                postgres_database.find_uri(self.uris, verify.on), verify.sql, partitions, seconds
            )
        if verify.http is not None:
            call = verify.http
            return {
                name: http_calls.read_field(self._call(call, [name], key, seconds, reads_body=True), verify.answer)
                for name in partitions
            }
        if verify.command:
            outputs = {name: self._run(verify.command, [name], key, seconds).split() for name in partitions}
            return {name: words[-1].decode("utf-8", "replace") if words else None for name, words in outputs.items()}
        raise UsageError("verify was refused; expected one of sql, redis, http and command")

    def rerun(self, command: Sequence[str], partitions: Sequence[str], key: str, timeout_seconds: float) -> None:
        """See the port."""
        self._run(command, partitions, key, timeout_seconds)

    def _call(self, call: HttpCall, partitions: Sequence[str], key: str, seconds: float, *, reads_body: bool) -> bytes:
        """One request for each partition, or one for all; returns the last answer."""
        if HOLE not in call.url:
            return http_calls.call_address(call, call.url, partitions, key, seconds, reads_body=reads_body)
        answer = b""
        for name in partitions:
            with _refused_values():
                url = fill_url(call.url, name)
            mine = name_work(key, name)
            answer = http_calls.call_address(call, url, [name], mine, seconds, reads_body=reads_body)
        return answer

    def _run(self, command: Sequence[str], partitions: Sequence[str], key: str, seconds: float) -> bytes:
        """One run for each partition, or one for all; returns the last output."""
        if HOLE not in command:
            return self._run_once(command, partitions, key, seconds)
        output = b""
        for name in partitions:
            with _refused_values():
                filled = fill_command(command, name)
            output = self._run_once(filled, [name], name_work(key, name), seconds)
        return output

    def _run_once(self, command: Sequence[str], partitions: Sequence[str], key: str, seconds: float) -> bytes:
        given = json.dumps(list(partitions)).encode()
        return run_command(self.root, command, given, seconds, variables={KEY: key}, keeps_output=True)


def name_work(key: str, partition: str) -> str:
    """The key of the work for one partition, which is work of its own; a header takes no value as it is.

    >>> name_work("bf-1-p1/published/recover/bi", "東\\n京")
    'bf-1-p1/published/recover/bi/%E6%9D%B1%0A%E4%BA%AC'
    """
    return f"{key}/{quote(partition, safe='')}"


@contextmanager
def _refused_values() -> Iterator[None]:
    """A value that cannot be put where a template has it is a refusal, not a crash."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from None


_conforms: type[ConsumerSystems] = DeclaredSystems
