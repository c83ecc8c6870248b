"""Download listed jars into the user cache with the Ivy that comes with pyspark. Uses network and files.

Ivy uses its own defaults, or ``$ERRATA_IVY_SETTINGS`` for a company repository; nothing here names a host. Ivy pins
versions, not contents, so every file is checked against its SHA-256 before it is moved into the cache.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from errata.errors import SetupError
from errata.jars.store import (
    Jar,
    default_cache_dir,
    fetch_command,
    find_wrong_digest,
    list_jars,
    mismatch_error,
    sha256_of,
)

Resolver = Callable[[Sequence[Jar], Path], None]
"""Downloads jars into a directory, each under its file name."""

_TIMEOUT_SECONDS = 1200
_ADDRESS = re.compile(r"\S+://\S+")


def fetch_jars(
    cache_dir: Path | None = None, *, jars: Sequence[Jar] | None = None, resolve: Resolver | None = None
) -> list[Jar]:
    """Download missing or wrong jars into the cache, verified, and return all listed jars.

    Idempotent; needs the network only for missing or wrong jars. After a crash the cache holds only complete, verified
    files and perhaps a directory ``.fetch-*``.
    """
    cache = cache_dir or default_cache_dir()
    wanted = list(list_jars() if jars is None else jars)
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise SetupError(
            f"cannot create the jar cache {cache}: {problem.strerror}",
            hint="set ERRATA_CACHE to a directory you can write",
        ) from problem
    needed = [jar for jar in wanted if not jar.path(cache).is_file() or find_wrong_digest(jar, cache) is not None]
    if needed:
        # Inside the cache, so that moving a jar into place is a rename within one file system.
        with tempfile.TemporaryDirectory(dir=cache, prefix=".fetch-") as scratch:
            (resolve or resolve_with_ivy)(needed, Path(scratch))
            for jar in needed:
                _install_jar(jar, Path(scratch), cache)
    return wanted


def _install_jar(jar: Jar, scratch: Path, cache: Path) -> None:
    arrived = scratch / jar.file_name
    if not arrived.is_file():
        raise SetupError(
            f"{jar.coordinate} was not found in any repository", hint=fetch_command((jar,)), jar=jar.coordinate
        )
    found = sha256_of(arrived)
    if found != jar.sha256:
        arrived.unlink()
        jar.path(cache).unlink(missing_ok=True)
        raise mismatch_error(
            jar,
            found,
            state="the downloaded file was removed; the cache does not hold this jar",
            hint=f"{fetch_command((jar,))} (if it happens again, the repository in use serves a different file)",
        )
    with arrived.open("rb") as stream:
        os.fsync(stream.fileno())
    os.replace(arrived, jar.path(cache))
    find_wrong_digest(jar, cache)


def resolve_with_ivy(jars: Sequence[Jar], directory: Path) -> None:
    """Run Ivy on exactly these coordinates, without their dependencies."""
    module = directory / "ivy.xml"
    module.write_text(render_ivy_module(jars), encoding="utf-8")
    command = [
        _find_java(),
        # A separate home, so that the user's Ivy files neither affect the result nor get changed.
        f"-Divy.home={directory / 'ivy-home'}",
        *("-jar", str(_find_ivy_jar())),
        *_build_settings_args(),
        *("-warn", "-cache", str(directory / "ivy-cache"), "-ivy", str(module)),
        *("-confs", "default", "-types", "jar", "bundle"),
        *("-retrieve", str(directory / "[artifact]-[revision](-[classifier]).[ext]")),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise SetupError(
            f"fetching {len(jars)} jars took longer than {_TIMEOUT_SECONDS // 60} minutes", hint=fetch_command(jars)
        ) from late
    if done.returncode != 0:
        raise SetupError(
            f"could not fetch {', '.join(jar.coordinate for jar in jars)}: "
            f"{_summarize_output(done.stdout + done.stderr)}",
            hint=f"{fetch_command(jars)} again when the network is back; ERRATA_IVY_SETTINGS names an ivysettings.xml "
            "if jars come from a repository of your own",
        )


def render_ivy_module(jars: Sequence[Jar]) -> str:
    """The ``ivy.xml`` that asks for these jars and nothing else."""
    modules: dict[tuple[str, str, str], list[Jar]] = {}
    for jar in jars:
        modules.setdefault((jar.group_id, jar.artifact, jar.version), []).append(jar)
    dependencies = "\n".join(_render_dependency(*module, wanted) for module, wanted in modules.items())
    return f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="errata" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def _render_dependency(group_id: str, artifact: str, version: str, wanted: Sequence[Jar]) -> str:
    start = (
        f"    <dependency org={quoteattr(group_id)} name={quoteattr(artifact)} rev={quoteattr(version)}"
        ' conf="default->master" transitive="false"'
    )
    if not any(jar.classifier for jar in wanted):
        return f"{start}/>"
    # Explicit artifacts replace the module's default, so the jar without a classifier must be listed too if wanted.
    named = "".join(
        f'<artifact name={quoteattr(artifact)} type="jar" ext="jar"'
        + (f" m:classifier={quoteattr(jar.classifier)}/>" if jar.classifier else "/>")
        for jar in wanted
    )
    return f"{start}>{named}</dependency>"


def _find_java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(Path(home) / "bin" / "java" if home else "java")
    if java is None:
        where = f"JAVA_HOME={home}" if home else "PATH"
        raise SetupError(
            f"Java 17 or 21 is needed; found none in {where}", hint="apt-get install openjdk-17-jre-headless"
        )
    return java


def _find_ivy_jar() -> Path:
    # Located without an import: only errata.engines.spark may import pyspark.
    spec = importlib.util.find_spec("pyspark")
    for location in (spec and spec.submodule_search_locations) or ():
        for jar in sorted(Path(location).glob("jars/ivy-*.jar")):
            return jar
    raise SetupError("pyspark with its jars is needed to fetch jars; found none", hint="pip install 'errata[spark]'")


def _build_settings_args() -> tuple[str, ...]:
    own = os.environ.get("ERRATA_IVY_SETTINGS")
    return ("-settings", own) if own else ()


def _summarize_output(output: str) -> str:
    lines = [line.strip(" :\t") for line in output.splitlines()]
    telling = [line for line in lines if "unresolved" in line.lower() or "not found" in line.lower()] or [
        line for line in lines if line
    ]
    # Repository addresses may contain credentials, which an error must not show.
    return _ADDRESS.sub("…", "; ".join(dict.fromkeys(telling[:6]))) or "Ivy gave no reason"
