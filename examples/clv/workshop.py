"""What the demo needs: a fresh project directory, and workers that can be killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from examples.finsight.command import ERRATA
from examples.finsight.workshop import DemoError, environment

HERE = Path(__file__).resolve().parent
MARKER = ".clv-demo"
WAVE_DAYS = 365
WORKERS = "backfill"  # the service account
IGNORED = (MARKER, "/.errata/", "/lake/", "/logs/", "__pycache__/")


def lay_out(project: Path, *, chunk_kilobytes: int, wave_days: int = WAVE_DAYS) -> None:
    """A fresh project directory; an earlier demo in it is deleted, anything else is left alone."""
    if project.exists() and any(project.iterdir()):
        if not (project / MARKER).exists():
            raise DemoError(f"{project} is not empty and not a demo; choose another --directory")
        shutil.rmtree(project)
    project.mkdir(parents=True, exist_ok=True)
    lay_out_over(project, chunk_kilobytes=chunk_kilobytes, wave_days=wave_days)


def lay_out_over(project: Path, *, chunk_kilobytes: int, wave_days: int = WAVE_DAYS) -> None:
    """The project files beside what is there, with chunks and waves of this size."""
    (project / "logs").mkdir()
    (project / MARKER).touch()
    (project / ".gitignore").write_text("".join(f"{line}\n" for line in IGNORED), encoding="utf-8")
    settings = (HERE / "errata.yaml").read_text(encoding="utf-8")
    fitting = settings.replace("{bytes: 140KB}", f"{{bytes: {chunk_kilobytes}KB}}")
    (project / "errata.yaml").write_text(fitting, encoding="utf-8")
    for folder in ("products", "transforms"):
        shutil.copytree(HERE / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__"))
    product = project / "products" / "customer_value.yaml"
    declared = product.read_text(encoding="utf-8")
    product.write_text(declared.replace("{size: 365d,", f"{{size: {wave_days}d,"), encoding="utf-8")
    if shutil.which("git"):  # so that the plan names the commit it runs
        for command in (["init"], ["add", "."], ["commit", "-m", "Release 2.0.0: credit touches before the order"]):
            subprocess.run(
                ["git", *_PERSON, *command], cwd=project, check=True, stdout=subprocess.DEVNULL, env=_plain()
            )


_PERSON = ("-c", "user.name=Growth data", "-c", "user.email=data@shop.example", "-c", "init.defaultBranch=main")


def _plain() -> dict[str, str]:
    """Run git without the user's own settings: signing, hooks, templates."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return {**kept, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


class Worker:
    """``errata run`` as a process of its own, with its JVM in the same process group."""

    def __init__(self, project: Path, name: str, *arguments: str) -> None:
        self.name = name
        self.log = project / "logs" / f"worker-{name}.log"
        command = [str(ERRATA), "--as", WORKERS, "run", *arguments]
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                command, cwd=project, env=environment(), stdout=out, stderr=out, start_new_session=True
            )

    @property
    def pid(self) -> int:
        """The id of the Python process, which is also the id of its group."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """End Python and JVM at once and without warning, as when a machine is lost."""
        os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def wait(self, seconds: float) -> str:
        """Its output, once it has ended; a worker that fails or hangs ends the demo."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise DemoError(f"worker {self.name} did not end in {seconds:.0f} s; see {self.log}") from None
        said = self.log.read_text(encoding="utf-8")
        if code != 0:
            raise DemoError(f"worker {self.name} ended with {code}\n{said}")
        return said

    def stop(self) -> None:
        """End it and its JVM, however the demo ends: terminate first, then kill."""
        if not self.ended:
            self._process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if self.ended and not _group_exists(self.pid):
                return
            time.sleep(0.1)
        if _group_exists(self.pid):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()


def _group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
