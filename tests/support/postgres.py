"""A PostgreSQL server of the tests' own: data in one directory, a free port on 127.0.0.1, no password.

The server's programs come from the PATH or from Debian's versioned directory. PostgreSQL refuses to run as root, so
root starts it as the user ``postgres``; the directory must therefore lie where that user may go (not below pytest's
own temporary directories, which are closed to others).
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

__all__ = ["INSTALL", "PostgresServer", "free_port", "server_programs"]

INSTALL = "PostgreSQL's server programs are missing (Debian: apt-get install --no-install-recommends postgresql)"
_ROLE = "errata"
_LIMIT_SECONDS = 60
# Nothing survives the machine, all survives the server: what `kill` loses, a real crash loses too.
_SETTINGS = (
    "listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "full_page_writes=off",
    "wal_level=minimal", "max_wal_senders=0", "autovacuum=off", "shared_buffers=32MB", "max_connections=150",
    "timezone=UTC",
)  # fmt: skip


def server_programs() -> Path | None:
    """The directory of ``initdb`` and ``pg_ctl``, the newest version first; None when there is none."""
    versioned = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda at: int(at.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    places = [*versioned, *([Path(on_path).parent] if on_path else [])]
    return next((place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class PostgresServer:
    """One server; it may be stopped, killed and started again on the same port and data."""

    programs: Path
    directory: Path
    port: int
    settings: tuple[str, ...] = _SETTINGS

    @classmethod
    def start(cls, directory: Path | None = None, settings: tuple[str, ...] = _SETTINGS) -> Self:
        """Make the data below ``directory`` (a fresh one by default) and start the server."""
        programs = server_programs()
        if programs is None:
            raise FileNotFoundError(INSTALL)
        directory = directory or Path(tempfile.mkdtemp(prefix="errata-pg-"))
        directory.mkdir(parents=True, exist_ok=True)
        if os.getuid() == 0:
            shutil.chown(directory, "postgres", "postgres")
        server = cls(programs, directory, free_port(), settings)
        server._run(
            "initdb", "-D", str(server.data), "-A", "trust", "-U", _ROLE, "--no-sync", "-E", "UTF8", "--locale=C"
        )
        server.start_again()
        return server

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def url(self, database: str = "postgres", *, port: int | None = None, role: str = _ROLE) -> str:
        """A SQLAlchemy URL; ``port`` may be that of a proxy."""
        return f"postgresql+psycopg://{role}@127.0.0.1:{port or self.port}/{database}"

    def jdbc_url(self, database: str) -> str:
        """The same place for a JVM; the user is ``errata``."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{database}?user={_ROLE}"

    def execute(self, *statements: str, database: str = "postgres") -> list[Any]:
        """Run statements outside of transactions; the rows of the last one."""
        import psycopg

        rows: list[Any] = []
        address = f"postgresql://{_ROLE}@127.0.0.1:{self.port}/{database}"
        with psycopg.connect(address, autocommit=True) as conn:
            for statement in statements:
                cursor = conn.execute(statement.encode())
                rows = cursor.fetchall() if cursor.description else []
        return rows

    def create_database(self, name: str, *, template: str = "template1") -> str:
        """A new database, copied from ``template`` (which nobody may be connected to); returns its URL."""
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Remove a database and whoever is connected to it."""
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def start_again(self) -> None:
        """Start a stopped server; returns when it accepts connections."""
        options = " ".join(f"-c {setting}" for setting in (*self.settings, f"port={self.port}"))
        self._run("pg_ctl", "-D", str(self.data), "-w", "-l", str(self.directory / "log"), "-o", options, "start")

    def stop(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> None:
        """Shut down: clients are sent away, what they committed is kept."""
        self._run("pg_ctl", "-D", str(self.data), "-w", "-m", mode, "stop")

    def kill(self) -> None:
        """End at once, as in a crash; the next start recovers from the log."""
        self.stop("immediate")

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start_again()

    def remove(self) -> None:
        """Stop for good and delete the data."""
        if (self.data / "postmaster.pid").exists():
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        who: dict[str, Any] = {}
        if os.getuid() == 0:
            entry = pwd.getpwnam("postgres")
            who = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        # The server inherits the outputs of pg_ctl: a pipe would stay open until the server ends.
        with (self.directory / "tool.log").open("wb") as out:
            done = subprocess.run(
                [str(self.programs / program), *arguments],
                cwd=self.directory, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=_LIMIT_SECONDS,
                check=False, **who,
            )  # fmt: skip
        if done.returncode != 0:
            logs = [self.directory / "tool.log", self.directory / "log"]
            said = "\n".join(log.read_text()[-2000:] for log in logs if log.exists())
            raise RuntimeError(f"{program} failed with {done.returncode}:\n{said}")
