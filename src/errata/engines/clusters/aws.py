"""Clients of AWS, and their errors as ours; boto3 is imported on first use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from errata.errors import EngineError, MissingDriver


def open_client(service: str, region: str) -> Any:
    """A client for a service; credentials come from AWS's own chain.

    It asks once: an answer that got lost may belong to a start, and EMR would start a second cluster when asked again.
    """
    try:
        import boto3
        from botocore.config import Config
    except ImportError:
        raise MissingDriver(
            "boto3 is not installed, which starts workers on AWS",
            state="nothing was started",
            hint="pip install 'errata[aws]'",
        ) from None
    return boto3.client(service, region_name=region, config=Config(retries={"total_max_attempts": 1}))


@contextmanager
def translate_errors(what: str) -> Iterator[None]:
    """Turn errors of AWS into ``EngineError``: what was asked, and the answer of AWS."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        said = error.response.get("Error", {})
        raise EngineError(f"{what}: AWS answered {said.get('Code', '?')}: {said.get('Message', '')}") from None
    except BotoCoreError as error:
        raise EngineError(f"{what}: AWS could not be asked: {error}") from None
