"""The planned code: the zip kept in the ledger is what is imported, whatever the working tree says by now."""

from __future__ import annotations

import importlib
import sys
import threading
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

from errata.canonical import sha256
from errata.errors import ManifestTampered, TransformFailed

__all__ = ["load_transform"]

_importing = threading.Lock()


def load_transform(content: bytes, digest: str, call: str, cache: Path) -> Callable[..., Any]:
    """The function ``module:name`` out of this zip; modules of the same names from elsewhere are set aside first."""
    if sha256(content) != digest:
        raise ManifestTampered(f"the planned code was refused; expected sha256 {digest}, found {sha256(content)}")
    place = cache / f"code-{digest}.zip"
    if not place.exists() or sha256(place.read_bytes()) != digest:
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_suffix(f".{threading.get_ident()}.tmp")
        draft.write_bytes(content)
        draft.replace(place)
    module_name, _, function_name = call.partition(":")
    with _importing:
        _set_aside(content)
        sys.path.insert(0, str(place))
        importlib.invalidate_caches()
        try:
            module = importlib.import_module(module_name)
            return getattr(module, function_name)  # type: ignore[no-any-return]
        except Exception as error:
            raise TransformFailed(
                f"the planned code cannot be imported: {call}: {type(error).__name__}: {error}",
                hint="errata check, then plan again",
            ) from error
        finally:
            sys.path.remove(str(place))


def _set_aside(content: bytes) -> None:
    with zipfile.ZipFile(BytesIO(content)) as archive:
        roots = {name.split("/")[0].removesuffix(".py") for name in archive.namelist()} - {"errata"}
    for name in [name for name in sys.modules if name.split(".")[0] in roots]:
        del sys.modules[name]
