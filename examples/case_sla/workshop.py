"""What the demo needs: a project directory with two releases in its history."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from examples.case_sla.calendars import AS_RECORDED, RESTATED
from examples.finsight.workshop import DemoError, make_room

HERE = Path(__file__).resolve().parent
MARKER = ".case-sla-demo"
IGNORED = (MARKER, "/.errata/", "/lake/", "/logs/", "/report.html", "__pycache__/")


def lay_out(project: Path, *, chunk_kilobytes: int) -> None:
    """A fresh project directory; an earlier demo in it is deleted, anything else is left alone."""
    make_room(project, MARKER)
    (project / ".gitignore").write_text("".join(f"{line}\n" for line in IGNORED), encoding="utf-8")
    settings = (HERE / "errata.yaml").read_text(encoding="utf-8")
    fitting = settings.replace("{bytes: 500KB}", f"{{bytes: {chunk_kilobytes}KB}}")
    (project / "errata.yaml").write_text(fitting, encoding="utf-8")
    for folder in ("products", "transforms"):
        shutil.copytree(HERE / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__"))
    product = project / "products" / "case_sla.yaml"
    change(product, RESTATED, AS_RECORDED)
    if shutil.which("git"):  # so that the plan names the commit it runs
        _commit_releases(project, product)


def _commit_releases(project: Path, product: Path) -> None:
    """Release 2.4.1 and the fix of its code; nobody has thought of the calendar yet."""
    transform = project / "transforms" / "case_sla.py"
    right = transform.read_text(encoding="utf-8")
    _git(project, "init")
    shutil.copy(HERE / "releases" / "case_sla_2_4_1.py", transform)
    change(product, "version: 3.1.0", "version: 2.4.1")
    commit(project, "Release 2.4.1")
    transform.write_text(right, encoding="utf-8")
    change(product, "version: 2.4.1", "version: 3.1.0")
    commit(project, "Release 3.1.0: count from the day in the jurisdiction (REG-2071)")


def change(file: Path, old: str, new: str) -> None:
    """One piece of text for another; it has to be there."""
    text = file.read_text(encoding="utf-8")
    if old not in text:
        raise DemoError(f"expected {old!r} in {file}, found none")
    file.write_text(text.replace(old, new), encoding="utf-8")


def commit(project: Path, subject: str) -> None:
    """Everything that changed, as one commit; nothing on a machine without git."""
    if shutil.which("git"):
        _git(project, "add", ".")
        _git(project, "commit", "-m", subject)


_PERSON = ("-c", "user.name=Case data", "-c", "user.email=data@regulator.example", "-c", "init.defaultBranch=main")


def _git(project: Path, *arguments: str) -> None:
    # Ignore the user's own settings: signing, hooks, templates.
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    plain = {**kept, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *_PERSON, *arguments], cwd=project, check=True, stdout=subprocess.DEVNULL, env=plain)
