"""Delete and read keys of a Redis server. Keys are found with SCAN, which does not block other clients as KEYS does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from errata.errors import EngineError, SetupError
from errata.model.consumer.partition_text import fill_redis_key
from errata.model.consumer.redis_keys import compile_pattern, widen_pattern

if TYPE_CHECKING:
    from redis import Redis

_SCANNED_AT_ONCE = 1_000
_DELETED_AT_ONCE = 500


def delete_keys(uri: str, template: str, partitions: Sequence[str], timeout_seconds: float) -> int:
    """Delete the keys of these partitions in one pass over all keys; returns how many there were."""
    # Redis matches bytes; in Latin-1 every byte is one character
    wanted = compile_pattern(_to_bytes_text(template), [_to_bytes_text(name) for name in partitions])
    deleted = 0
    batch: list[bytes] = []
    with _connect(uri, timeout_seconds) as client:
        for key in client.scan_iter(match=widen_pattern(template).encode(), count=_SCANNED_AT_ONCE):
            if wanted.fullmatch(key.decode("latin-1")):
                batch.append(key)
            if len(batch) == _DELETED_AT_ONCE:
                deleted += int(client.unlink(*batch))
                batch.clear()
        if batch:
            deleted += int(client.unlink(*batch))
    return deleted


def read_values(uri: str, template: str, partitions: Sequence[str], timeout_seconds: float) -> dict[str, str | None]:
    """The value of each partition's key; None where there is no key."""
    with _connect(uri, timeout_seconds) as client:
        found = {name: client.get(fill_redis_key(template, name).encode()) for name in partitions}
    return {name: None if value is None else _to_text(value) for name, value in found.items()}


def _to_text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _to_bytes_text(text: str) -> str:
    return text.encode().decode("latin-1")


@contextmanager
def _connect(uri: str, timeout_seconds: float) -> Iterator[Redis]:
    try:
        from redis import Redis, RedisError
    except ModuleNotFoundError as missing:
        raise SetupError(
            "a Redis cache cannot be reached; expected the Python package redis, found none",
            state="nothing was changed",
            hint='pip install "errata[redis]"',
        ) from missing
    try:
        with Redis.from_url(uri, socket_timeout=timeout_seconds, socket_connect_timeout=timeout_seconds) as client:
            yield client
    except (RedisError, OSError, ValueError) as error:
        # only the type: the message quotes the address, which may contain a password
        raise EngineError(f"Redis did not do it: {type(error).__name__}") from None
