"""Check the jars shipped with ``spark-submit`` against the pinned list. Reads those files only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from errata.errors import SetupError
from errata.jars.store import Jar, mismatch_error, sha256_of

_HINT = "ship the jars of `errata jars check`; errata submit RUN --print TARGET prints the command that does"


def require_shipped(jars: Sequence[Jar], class_path: Iterable[Path]) -> None:
    """Raise ``SetupError`` unless every pinned jar is on the driver's class path with its SHA-256."""
    found = {path.name: path for path in reversed([*class_path]) if path.is_file()}
    missing = [jar.coordinate for jar in jars if jar.file_name not in found]
    if missing:
        raise SetupError(
            f"the driver that spark-submit started has no {', '.join(missing)} on its class path",
            hint=_HINT,
            state="nothing was computed",
            missing=missing,
        )
    for jar in jars:
        if (digest := sha256_of(found[jar.file_name])) != jar.sha256:
            raise mismatch_error(jar, digest, hint=_HINT, state="nothing was computed")
