"""``python -m benchmarks [NAME…] [--quick] [--into FILE]``: every question in a process of its own, as Markdown.

``--quick`` asks whether the questions can be answered at all: small data, each act once, all in one process.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import platform
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import redirect_stdout
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.clock import load
from benchmarks.page import merged

QUESTIONS = (
    "overhead", "days", "waves", "loop", "publish", "scale", "skew", "resume", "planning", "looks", "again", "copies",
    "live", "kafka", "change_log", "sqlmesh",
)  # fmt: skip


def main() -> None:
    """Every question that was asked for; progress on standard error."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(QUESTIONS))
    parser.add_argument("--quick", action="store_true", help="small data: whether it works, not how fast")
    parser.add_argument("--into", type=Path, metavar="FILE", help="replace the sections of this page as well")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(QUESTIONS):
        parser.error(f"{', '.join(sorted(unknown))}: expected {', '.join(QUESTIONS)}")
    if asked.alone:
        _answer(asked.names[0], quick=False)
        return
    if asked.quick:
        os.environ["BENCH_QUICK"] = "1"
    failed = []
    for name in asked.names or QUESTIONS:
        section = _try(name) if asked.quick else _ask(name)
        failed += [name] if section is None else []
        if section is not None:
            print(section, flush=True)
            if asked.into:
                old = asked.into.read_text("utf-8") if asked.into.exists() else ""
                asked.into.write_text(merged(old, {name: section}, QUESTIONS), "utf-8")
    if failed:
        sys.exit(f"not measured: {', '.join(failed)}")


def _ask(name: str) -> str | None:
    started, before = time.monotonic(), load()
    command = [sys.executable, "-m", "benchmarks", "--alone", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    took = time.monotonic() - started
    return None if done.returncode else f"{done.stdout.strip()}\n\n{_where(took, before)}\n"


def _try(name: str) -> str | None:
    """Answer a question in this process, whose JVM and session the next one finds warm."""
    started, written = time.monotonic(), io.StringIO()
    try:
        with redirect_stdout(written):
            _answer(name, quick=True)
    except (Exception, SystemExit):  # noqa: BLE001 - the other questions are tried as well
        traceback.print_exc()
        return None
    return f"{written.getvalue().strip()}\n\n*small data, {time.monotonic() - started:.0f} s*\n"


def _where(took: float, before: float) -> str:
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.split('"')[1]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    return (
        f"*{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {took:.0f} s; "
        f"{os.cpu_count()} cores, "
        f"{memory:.0f} GiB, load {before:.1f} before; Python {platform.python_version()}, Java {java}, "
        f"PySpark {version('pyspark')}, Iceberg {_iceberg()}, pyiceberg {version('pyiceberg')}, "
        f"Errata {version('errata')}.*"
    )


def _iceberg() -> str:
    from errata.jars import list_jars

    return next(jar.coordinate.rpartition(":")[2] for jar in list_jars("spark") if "iceberg" in jar.coordinate)


def _answer(name: str, *, quick: bool) -> None:
    from errata.wiring.class_archive import prepare_archive

    prepare_archive()  # as `make setup` does; other checkouts on the machine may have pushed it out since
    with tempfile.TemporaryDirectory(prefix=f"errata-bench-{name}-") as place:
        importlib.import_module(f"benchmarks.{name}").main(Path(place), quick=quick)


if __name__ == "__main__":
    main()
