"""The account of a Snowflake warehouse with its private key, from a file or from the environment."""

from __future__ import annotations

from pathlib import Path

from errata.errors import MissingCredentials
from errata.model.consumer.declaration import Warehouse
from errata.model.copy.snowflake_account import SnowflakeAccount

_PEM = "-----BEGIN"


def build_account(declared: Warehouse, root: Path) -> SnowflakeAccount:
    """The account as the engine needs it; raises ``MissingCredentials`` if the file with the key cannot be read."""
    key = declared.private_key or ""
    if _PEM not in key:
        try:
            key = (root / key).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise MissingCredentials(
                f"the private key of warehouse {declared.name} cannot be read: {type(error).__name__}",
                state="nothing was changed",
                hint=f"correct warehouses.{declared.name}.private_key in errata.yaml",
            ) from None
    return SnowflakeAccount(
        account=declared.account or "",
        user=declared.user or "",
        private_key=key,
        role=declared.role or "",
        warehouse=declared.warehouse or "",
        database=declared.database or "",
        schema=declared.schema_name or "",
        stage=declared.stage,
        host=declared.host,
    )
