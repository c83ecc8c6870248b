"""Load the planned code: the zip stored in the ledger runs both on the driver and in Python workers.

Modules of the same names from elsewhere (the working tree, another run) are unloaded first. Modules from the zip are
pickled by value: a Python worker starts in the project directory and would otherwise import the working tree.
"""

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
from errata.engines.spark.compute.sql_transforms import SqlTransform
from errata.errors import ManifestTampered
from errata.model.product import is_sql_file

_importing = threading.RLock()
_current: list[Path] = []


def load_transform(content: bytes, digest: str, call: str, cache: Path) -> Callable[..., Any]:
    """The function ``module:name`` of this zip, or its query if ``call`` is a SQL file."""
    if sha256(content) != digest:
        raise ManifestTampered(f"the planned code was refused; expected sha256 {digest}, found {sha256(content)}")
    if is_sql_file(call):
        return SqlTransform(read_member(content, call), call)
    place = _cache_zip(content, digest, cache)
    module_name, _, function_name = call.partition(":")
    with _importing:
        if _current != [place]:
            _activate_zip(place, content)
        found: Callable[..., Any] = getattr(importlib.import_module(module_name), function_name)
        pickle_by_value()
        return found


def read_member(content: bytes, name: str) -> str:
    """The text of one file of the zip."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        return archive.read(name).decode()


def pickle_by_value() -> None:
    """Pickle every module of the current zip by value; call again after a transform ran, since it may import more."""
    if "pyspark" not in sys.modules:  # nothing is sent to a Python worker
        return
    from pyspark import cloudpickle

    with _importing:
        inside = tuple(str(place) for place in _current)
        for module in [*sys.modules.values()]:
            if str(getattr(module, "__file__", None) or "").startswith(inside) and inside:
                cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _cache_zip(content: bytes, digest: str, cache: Path) -> Path:
    place = cache / f"code-{digest}.zip"
    if not place.exists() or sha256(place.read_bytes()) != digest:
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_suffix(f".{threading.get_ident()}.tmp")
        draft.write_bytes(content)
        draft.replace(place)
    return place


def _activate_zip(place: Path, content: bytes) -> None:
    """Put the zip first on ``sys.path``, ahead of the working directory, and unload modules it replaces."""
    for old in _current:
        sys.path.remove(str(old))
    with zipfile.ZipFile(BytesIO(content)) as archive:
        roots = {name.split("/")[0].removesuffix(".py") for name in archive.namelist()} - {"errata"}
    for name in [name for name in sys.modules if name.split(".")[0] in roots]:
        del sys.modules[name]
    sys.path.insert(0, str(place))
    importlib.invalidate_caches()
    _current[:] = [place]
