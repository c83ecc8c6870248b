"""Capture the project's code: the zip that workers import, its git state and its lock. Reads files and runs git."""

from __future__ import annotations

import io
import os
import subprocess
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from errata.canonical import digest_of, sha256
from errata.errors import UsageError

MAX_CODE_BYTES = 50_000_000
_LEFT_OUT = frozenset({"__pycache__", "tests"})
_LOCKS = ("requirements*.lock", "requirements/*.lock", "uv.lock", "poetry.lock", "requirements.txt")
_SEALED = ("errata.yaml", "products/*.yaml", *_LOCKS)
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date a zip can hold


def zip_code(root: Path | str, sql: str | None = None) -> tuple[bytes, str]:
    """Zip the SQL file of a query, or every ``*.py`` of the project; returns the zip and its SHA-256.

    The zip depends only on names and contents. A query uses no other file, so its zip has none.
    """
    base = Path(root)
    places = (base / sql,) if sql else _iterate_python_files(base)
    files = {path.relative_to(base).as_posix(): path for path in places if path.is_file()}
    buffer, size = io.BytesIO(), 0
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for folder in _list_folders(files):
            archive.writestr(_build_member(folder), b"")
        for name in sorted(files):
            content = files[name].read_bytes()
            size += len(content)
            if size > MAX_CODE_BYTES:
                raise UsageError(
                    f"the project's code was refused; expected at most {MAX_CODE_BYTES} bytes of "
                    f"{sql or '*.py'} under {base}",
                    hint="keep data, generated code and other projects out of the project directory",
                )
            archive.writestr(_build_member(name), content)
    return buffer.getvalue(), sha256(buffer.getvalue())


def _list_folders(names: Iterable[str]) -> list[str]:
    """Directory entries; without them Python cannot import a package without ``__init__.py`` from a zip."""
    parents = {parent.as_posix() for name in names for parent in PurePosixPath(name).parents}
    return sorted(f"{parent}/" for parent in parents - {"."})


def _build_member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, date_time=_EPOCH)
    member.create_system = 3  # always Unix; otherwise the same files would give different bytes on another system
    member.external_attr = (0o040755 if name.endswith("/") else 0o100644) << 16
    member.compress_type = zipfile.ZIP_STORED
    return member


def _iterate_python_files(base: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(base):
        here = Path(folder)
        inner[:] = [name for name in inner if not _is_excluded(here / name)]
        yield from (here / name for name in names if name.endswith(".py"))


def _is_excluded(folder: Path) -> bool:
    return folder.name.startswith(".") or folder.name in _LEFT_OUT or (folder / "pyvenv.cfg").exists()


def read_git_state(root: Path | str, sql: str | None = None) -> tuple[str | None, bool]:
    """The commit of the project directory, and whether anything that a plan seals differs from it.

    Sealed are the code (see :func:`zip_code`), the project files and the locks. A ledger, catalog, warehouse or source
    data inside the project changes with every run and says nothing about the code. Returns ``(None, False)`` without
    git, outside a repository, or in a directory that the repository ignores.
    """
    base = Path(root)
    if _run_git(base, "rev-parse", "--git-dir") is None or _run_git(base, "check-ignore", "-q", ".") is not None:
        return None, False
    commit = _run_git(base, "rev-parse", "--verify", "HEAD")
    return (commit.strip() if commit else None), any(_is_sealed(base, name, sql) for name in _iterate_changes(base))


def _iterate_changes(base: Path) -> Iterator[PurePosixPath]:
    """Project files, relative to the project, that differ from the commit."""
    inside = (_run_git(base, "rev-parse", "--show-prefix") or "").strip("\n")
    # a rename is reported as two names, so that every entry has the same form
    status = ("-c", "status.renames=false", "status", "--porcelain", "-z", "--untracked-files=all")
    told = _run_git(base, *status, "--", ".", ":(exclude).errata") or ""
    for entry in filter(None, told.split("\0")):
        yield PurePosixPath(entry[3:].removeprefix(inside))


def _is_sealed(base: Path, name: PurePosixPath, sql: str | None) -> bool:
    if sql is not None and name.suffix in (".py", ".sql"):
        return name == PurePosixPath(sql)
    if any(_is_excluded(base / folder) for folder in list(name.parents)[:-1]):
        return False
    # anchored at the root, because a relative pattern would match in every folder
    return name.suffix == ".py" or any(PurePosixPath("/", name).match(f"/{pattern}") for pattern in _SEALED)


def compute_lock_digest(root: Path | str) -> str | None:
    """Digest over the lock files of the project, or else of its repository; None if there are none."""
    base = Path(root)
    top = _run_git(base, "rev-parse", "--show-toplevel")
    for folder in (base, *([Path(top.strip())] if top else [])):
        locks = {
            path.relative_to(folder).as_posix(): path
            for pattern in _LOCKS
            for path in folder.glob(pattern)
            if path.is_file()
        }
        if locks:
            return digest_of({name: sha256(path.read_bytes()) for name, path in locks.items()})
    return None


def _run_git(base: Path, *arguments: str) -> str | None:
    """Output of git, or None if it fails or is not installed. Takes no locks and starts no file monitor."""
    command = ["git", "-C", str(base), "-c", "core.fsmonitor=false", *arguments]
    # GIT_DIR and similar variables, set inside hooks, would point git at another repository
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ["GIT_OPTIONAL_LOCKS"] = "0"
    try:
        done = subprocess.run(command, capture_output=True, check=False, env=environ, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
