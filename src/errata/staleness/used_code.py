"""Which files of a project's code a transform uses, so that a change elsewhere does not make its output stale. Pure.

Follows the imports in the source from the transform's module on. What is imported in another way, such as by name at
run time, is not seen; a file that cannot be parsed makes every file count.
"""

from __future__ import annotations

import ast
import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from errata.canonical import digest_of, sha256
from errata.model.product import is_sql_file


def digest_used_code(content: bytes, call: str) -> str:
    """Digest of the files in a code zip that a transform uses."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    used = files.keys() if is_sql_file(call) else find_used_files(files, call.partition(":")[0])
    return digest_of({name: sha256(files[name]) for name in sorted(used)})


def find_used_files(files: Mapping[str, bytes], module: str) -> frozenset[str]:
    """The files of a module and of everything that it imports from the project; all of them if that is not clear."""
    found: set[str] = set()
    open_ = list(_locate(files, module))
    if not open_:
        return frozenset(files)
    while open_:
        name = open_.pop()
        if name in found:
            continue
        found.add(name)
        try:
            tree = ast.parse(files[name])
        except (SyntaxError, ValueError):
            return frozenset(files)
        open_ += [place for wanted in _iterate_imports(tree, name) for place in _locate(files, wanted)]
    return frozenset(found)


def _locate(files: Mapping[str, bytes], module: str) -> Iterator[str]:
    """Files that Python runs to import a module: the packages around it, and itself."""
    parts = module.split(".")
    for n in range(1, len(parts) + 1):
        place = "/".join(parts[:n])
        yield from (name for name in (f"{place}.py", f"{place}/__init__.py") if name in files)


def _iterate_imports(tree: ast.AST, name: str) -> Iterator[str]:
    package = PurePosixPath(name).parent.parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{one.name}" if base else one.name for one in node.names)
