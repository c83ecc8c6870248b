"""Start the JVM for Spark and Iceberg: one per process, without a SparkContext.

Commands that only commit metadata need no more; commands that compute build a session in the same JVM. Java's output
goes to a log file, so that stdout carries only data and stderr only narration. A driver started by ``spark-submit``
already has a JVM, with its own settings, jars and log.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from errata.errors import SetupError
from errata.text.secrets import hide_passwords, is_secret_name

SUPPORTED_JAVA = (17, 21)
_GATEWAY_PORT = "PYSPARK_GATEWAY_PORT"
_JVM_PREFIXES = ("spark.driver.", "spark.jars", "spark.master")
"""Settings needed to start the JVM itself, which a session cannot change later."""


def java_version() -> int | None:
    """Major version of the Java that Spark would use; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        return None
    if stated := _read_release(Path(java)):
        return stated
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(found.group(1)) if found else None


def _read_release(java: Path) -> int | None:
    """Major version from the file ``release`` of a JDK, which saves starting it; None without such a file."""
    try:
        text = (java.resolve().parent.parent / "release").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    found = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
    return int(found.group(1)) if found else None


def start_jvm(conf: Mapping[str, str], log: Path, redact: Callable[[str], str] = hide_passwords) -> Any:
    """The gateway of this process's JVM, started with these settings unless it is already running.

    ``redact`` removes secrets from a text; settings that it would change are not put on the command line.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    # pyspark has no public way to start the JVM without a context
    if SparkContext._gateway is None and is_submitted():  # noqa: SLF001
        SparkContext._ensure_initialized()  # noqa: SLF001
    elif SparkContext._gateway is None:  # noqa: SLF001
        _require_java()
        settings = SparkConf(loadDefaults=False).setAll(list(public_settings(conf, redact).items()))
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        log.parent.mkdir(parents=True, exist_ok=True)
        # Java's output alone: this may run in the background, while the command prints
        with log.open("ab") as output:
            streams = {"stdout": output, "stderr": output}
            gateway = launch_gateway(settings, streams)  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001
    return SparkContext._gateway  # noqa: SLF001


def public_settings(conf: Mapping[str, str], redact: Callable[[str], str] = hide_passwords) -> dict[str, str]:
    """Settings allowed on the JVM's command line, which everyone on the machine can read; the session gets the rest."""
    return {
        key: value
        for key, value in conf.items()
        if not is_secret_name(key) and (key.startswith(_JVM_PREFIXES) or redact(value) == value)
    }


def is_submitted() -> bool:
    """Whether ``spark-submit`` started this process, so that a JVM is already running."""
    return _GATEWAY_PORT in os.environ


def submitted_settings() -> dict[str, str] | None:
    """Settings from ``spark-submit``'s command line and the cluster's defaults; None without ``spark-submit``."""
    if not is_submitted():
        return None
    from pyspark import SparkConf

    start_jvm({}, Path(os.devnull))
    return dict(SparkConf().getAll())


def class_path(gateway: Any) -> tuple[Path, ...]:
    """Files that the JVM loads classes from: its class path and the jars shipped with ``spark-submit``."""
    jvm = gateway.jvm
    found = [Path(text) for text in jvm.System.getProperty("java.class.path").split(os.pathsep)]
    loader = jvm.Thread.currentThread().getContextClassLoader()
    if loader.getClass().getSimpleName().endswith("URLClassLoader"):
        found += [Path(unquote(url.getPath())) for url in loader.getURLs()]
    return tuple(found)


def _require_java() -> None:
    version = java_version()
    if version not in SUPPORTED_JAVA:
        found = "none was found" if version is None else f"Java {version} was found"
        raise SetupError(
            f"Spark needs Java 17 or 21; {found}",
            hint="install openjdk-17-jre-headless (Debian) or set JAVA_HOME, then: errata doctor",
        )
