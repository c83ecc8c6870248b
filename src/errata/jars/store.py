"""The jar list and the verified files in the user cache. Reads files; never downloads."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from errata.errors import SetupError
from errata.jars.lane import choose_lane, find_installed_spark

FETCH_COMMAND = "errata jars fetch"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FOR = "@"
"""Between a group and the Spark that its jars are for."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One jar of the list: its Maven coordinate and the SHA-256 of its content."""

    group_id: str
    artifact: str
    version: str
    sha256: str
    classifier: str = ""

    @property
    def coordinate(self) -> str:
        """``group:artifact:version`` or ``group:artifact:version:classifier``, as in the list."""
        return ":".join(part for part in (self.group_id, self.artifact, self.version, self.classifier) if part)

    @property
    def file_name(self) -> str:
        """The name of the file in the cache."""
        return "-".join(part for part in (self.artifact, self.version, self.classifier) if part) + ".jar"

    def path(self, cache_dir: Path) -> Path:
        """Path of the file in that cache, whether or not it exists."""
        return cache_dir / self.file_name


def parse_jar_list(text: str) -> dict[str, tuple[Jar, ...]]:
    """Parse a jar list into groups; raises ``SetupError`` for a malformed coordinate or digest."""
    groups: dict[str, tuple[Jar, ...]] = {}
    for group, entries in tomllib.loads(text).items():
        jars = []
        for coordinate, digest in entries.items():
            parts = coordinate.split(":")
            # Names become file names and Ivy arguments, so only plain names are allowed.
            if len(parts) not in (3, 4) or not all(_NAME.fullmatch(part) for part in parts):
                raise SetupError(
                    f"jar list, group {group}: expected group:artifact:version[:classifier], found {coordinate!r}",
                    group=group,
                )
            if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
                raise SetupError(
                    f"jar list, {coordinate}: expected a SHA-256 of 64 hex digits, found {digest!r}", jar=coordinate
                )
            group_id, artifact, version, *classifier = parts
            jars.append(Jar(group_id, artifact, version, digest, *classifier))
        groups[group] = tuple(jars)
    return groups


def load_jar_groups(spark: str | None = None) -> dict[str, tuple[Jar, ...]]:
    """The list that ships with Errata, by group, for this Spark (such as ``4.1``) or the installed one."""
    listed = _load_list()
    lane = spark or choose_lane(find_installed_spark(), load_lanes())
    names = dict.fromkeys(name.partition(_FOR)[0] for name in listed)
    return {name: (*listed.get(f"{name}{_FOR}{lane}", ()), *listed.get(name, ())) for name in names}


def load_lanes() -> tuple[str, ...]:
    """The versions of Spark that the list has jars for, the default one first."""
    return tuple(dict.fromkeys(lane for name in _load_list() if (lane := name.partition(_FOR)[2])))


def list_jars(*names: str) -> tuple[Jar, ...]:
    """The jars of these groups (``spark`` if none is named) for the installed Spark, in list order."""
    known = load_jar_groups()
    chosen: list[Jar] = []
    for name in names or ("spark",):
        if name not in known:
            raise SetupError(f"no jar group {name!r}; there are: {', '.join(sorted(known))}", group=name)
        chosen.extend(jar for jar in known[name] if jar not in chosen)
    return tuple(chosen)


def _load_list() -> dict[str, tuple[Jar, ...]]:
    return parse_jar_list(files("errata.jars").joinpath("jars.toml").read_text(encoding="utf-8"))


def fetch_command(jars: Iterable[Jar]) -> str:
    """The command that downloads these jars, with the groups that contain them."""
    wanted = set(jars)
    named = [name for name, members in load_jar_groups().items() if wanted & set(members)]
    if named in ([], ["spark"]):
        return FETCH_COMMAND
    return " ".join((FETCH_COMMAND, *(f"--group {name}" for name in named)))


def default_cache_dir() -> Path:
    """``$ERRATA_CACHE/jars``, then ``$XDG_CACHE_HOME/errata/jars``, then ``~/.cache/errata/jars``."""
    if own := os.environ.get("ERRATA_CACHE"):
        return Path(own).expanduser().absolute() / "jars"
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says to ignore a relative path.
    base = Path(shared) if Path(shared).is_absolute() else Path.home() / ".cache"
    return base / "errata" / "jars"


def require_jars(cache_dir: Path | None = None, *, jars: Sequence[Jar] | None = None) -> list[Path]:
    """Paths of the listed jars, each verified. Raises ``SetupError`` naming all missing jars, or the first wrong one.

    A file is hashed once; after that it is trusted until its size or modification time changes.
    """
    cache = cache_dir or default_cache_dir()
    wanted = list_jars() if jars is None else jars
    missing = [jar for jar in wanted if not jar.path(cache).is_file()]
    if missing:
        raise SetupError(
            f"jars not in {cache}: {', '.join(jar.coordinate for jar in missing)}",
            hint=fetch_command(missing),
            missing=[jar.coordinate for jar in missing],
        )
    for jar in wanted:
        if (found := find_wrong_digest(jar, cache)) is not None:
            raise mismatch_error(jar, found, hint=fetch_command((jar,)))
    return [jar.path(cache) for jar in wanted]


def find_wrong_digest(jar: Jar, cache_dir: Path) -> str | None:
    """The digest of a cached file that is not the listed one; None if it is."""
    path = jar.path(cache_dir)
    before = path.stat()
    if _read_stamp(path) == _build_stamp(jar, before):
        return None
    found = sha256_of(path)
    if found != jar.sha256:
        return found
    # A read-only cache cannot store stamps; then every use hashes the file, which is slow but correct.
    with suppress(OSError):
        write_atomically(_stamp_path(path), json.dumps(_build_stamp(jar, before)).encode())
    return None


def mismatch_error(jar: Jar, found: str, *, hint: str, state: str | None = None) -> SetupError:
    """The error for a file that is not the listed one."""
    return SetupError(
        f"{jar.coordinate}: expected SHA-256 {jar.sha256}, found {found}",
        hint=hint,
        state=state,
        jar=jar.coordinate,
        expected=jar.sha256,
        found=found,
    )


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, as 64 hex digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically, also if another process writes it at the same time."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _stamp_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.verified")


def _read_stamp(path: Path) -> object:
    try:
        return json.loads(_stamp_path(path).read_bytes())
    except (OSError, ValueError):
        return None


def _build_stamp(jar: Jar, status: os.stat_result) -> dict[str, object]:
    return {"sha256": jar.sha256, "size": status.st_size, "mtime_ns": status.st_mtime_ns}
