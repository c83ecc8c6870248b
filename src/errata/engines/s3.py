"""S3 settings for each library that reads the store: Iceberg (S3FileIO and pyiceberg), pyarrow, Hadoop's s3a. Pure.

Settings that the project does not give stay unset, so that AWS's default chain (role, profile, environment) applies.
"""

from __future__ import annotations

from typing import Any

from errata.model.product import S3

_SCHEMES = ("s3://", "s3a://", "s3n://")


def is_s3(place: str | None) -> bool:
    """Whether a location is on S3 (``s3``, ``s3a`` or ``s3n`` scheme)."""
    return (place or "").startswith(_SCHEMES)


def to_s3a(place: str) -> str:
    """The path with the s3a scheme, under which Hadoop and therefore Spark reads S3.

    >>> to_s3a("s3://raw/x.parquet"), to_s3a("file:///raw/x.parquet")
    ('s3a://raw/x.parquet', 'file:///raw/x.parquet')
    """
    return f"s3a://{place.partition('://')[2]}" if is_s3(place) else place


def to_iceberg_properties(s3: S3 | None) -> dict[str, str]:
    """Catalog properties; where Java and pyiceberg name a setting differently, both names are set."""
    return _drop_unset(
        {
            "s3.endpoint": s3.endpoint,
            "s3.region": s3.region,
            "client.region": s3.region,
            "s3.path-style-access": _flag(s3.path_style),
            "s3.force-virtual-addressing": None if s3.path_style is None else _flag(not s3.path_style),
            "s3.access-key-id": s3.access_key_id,
            "s3.secret-access-key": s3.secret_access_key,
            "s3.session-token": s3.session_token,
        }
        if s3
        else {}
    )


def to_pyarrow_arguments(s3: S3 | None) -> dict[str, Any]:
    """Arguments of ``pyarrow.fs.S3FileSystem``."""
    if s3 is None:
        return {}
    scheme, mark, host = (s3.endpoint or "").partition("://")
    found: dict[str, Any] = _drop_unset(
        {
            "access_key": s3.access_key_id,
            "secret_key": s3.secret_access_key,
            "session_token": s3.session_token,
            "region": s3.region,
            "endpoint_override": (host if mark else scheme).rstrip("/") or None,
            "scheme": scheme if mark else None,
        }
    )
    if s3.path_style is not None:
        found["force_virtual_addressing"] = not s3.path_style
    return found


def to_hadoop_settings(s3: S3 | None) -> dict[str, str]:
    """s3a settings for reading source files. They hold credentials: set them on a session, never on a command line."""
    if s3 is None:
        return {}
    found = _drop_unset(
        {
            "fs.s3a.endpoint": s3.endpoint,
            "fs.s3a.endpoint.region": s3.region,
            "fs.s3a.path.style.access": _flag(s3.path_style),
            "fs.s3a.access.key": s3.access_key_id,
            "fs.s3a.secret.key": s3.secret_access_key,
            "fs.s3a.session.token": s3.session_token,
        }
    )
    if (s3.endpoint or "").startswith("http://"):
        found["fs.s3a.connection.ssl.enabled"] = "false"
    if s3.access_key_id:
        # without an explicit provider, s3a falls back to the machine's role on wrong keys and fails a minute later
        kind = "TemporaryAWSCredentialsProvider" if s3.session_token else "SimpleAWSCredentialsProvider"
        found["fs.s3a.aws.credentials.provider"] = f"org.apache.hadoop.fs.s3a.{kind}"
    return found


def _flag(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()


def _drop_unset(settings: dict[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in settings.items() if value is not None}
