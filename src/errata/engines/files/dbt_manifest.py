"""Read the manifest.json that dbt writes into its target directory. Reads one file; imports no dbt."""

from __future__ import annotations

import json
import re
from pathlib import Path

from errata.errors import NotFound, UsageError
from errata.model.graph.dbt_graph import VERSION, DbtManifest, build_dbt_graph

_SCHEMA = re.compile(r"/manifest/v(\d+)\.json$")
_BUILD = "write it again with a dbt of 1.8 or newer: dbt parse"


def read_dbt_manifest(file: str) -> DbtManifest:
    """Read a manifest; raises ``NotFound`` if the file is missing, ``UsageError`` if it is not what is expected."""
    state = "nothing was changed"
    try:
        content = Path(file).read_bytes()
    except FileNotFoundError:
        hint = "write it with: dbt parse; or correct dbt.manifest in errata.yaml"
        raise NotFound(f"dbt's manifest {file} was not found", hint=hint, state=state) from None
    except OSError as error:
        raise UsageError(f"dbt's manifest {file} cannot be read: {error.strerror}", state=state) from error
    try:
        data = json.loads(content)
    except ValueError as error:
        raise UsageError(f"dbt's manifest {file} is not JSON: {error}", hint=_BUILD, state=state) from error
    metadata = (data.get("metadata") if isinstance(data, dict) else None) or {}
    schema = str(metadata.get("dbt_schema_version", ""))
    version = _SCHEMA.search(schema)
    if version is None or int(version[1]) != VERSION:
        found = f"v{version[1]}" if version else schema or "none"
        raise UsageError(
            f"dbt's manifest {file} has schema {found}; expected manifest v{VERSION}", hint=_BUILD, state=state
        )
    by = str(metadata.get("dbt_version", "?"))
    if not isinstance(data.get("nodes"), dict) or not isinstance(data.get("sources"), dict):
        said = f"dbt's manifest {file} (dbt {by}, schema v{VERSION}) has no nodes or no sources"
        raise UsageError(said, hint=_BUILD, state=state)
    try:
        graph = build_dbt_graph(data)
    except ValueError as error:
        said = f"dbt's manifest {file} (dbt {by}, schema v{VERSION}) is incomplete: {error}"
        raise UsageError(said, hint=_BUILD, state=state) from error
    return DbtManifest(file, by, graph)
