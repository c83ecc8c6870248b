"""Write the output files of commands."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from errata.errors import UsageError
from errata.failpoints import failpoint


def write_atomically(place: Path, content: bytes, kind: str, begin: bytes) -> None:
    """Write the whole file or nothing; an existing file is replaced only if it starts with ``begin``."""
    draft: Path | None = None
    try:
        _refuse_other_kind(place, kind, begin)
        # in the same folder, so that the rename below is atomic
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=".errata-")
        draft = Path(name)
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            # on disk before the rename: after a crash the file is either the old one or complete
            stream.flush()
            os.fsync(stream.fileno())
        draft.chmod(0o644)
        failpoint("evidence.before_write")
        os.replace(draft, place)
    except (OSError, ValueError) as problem:
        if draft is not None:
            draft.unlink(missing_ok=True)
        why = getattr(problem, "strerror", None) or "not the name of a file"
        raise UsageError(f"{place} cannot be written: {why}", state="nothing was changed") from problem


def _refuse_other_kind(place: Path, kind: str, begin: bytes) -> None:
    """Refuse to overwrite another kind of file: a typo must not cost a table, a ledger or a project file."""
    if not place.exists():
        return
    with place.open("rb") as stream:
        if stream.read(len(begin)) == begin:
            return
    raise UsageError(
        f"{place} was refused; expected a new file or an earlier {kind}, found another kind of file",
        state="nothing was changed",
    )
