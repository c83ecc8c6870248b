"""FinSight's warehouse: a server of the demo's own on the loopback interface, filled and read by its own client.

PostgreSQL if its server programs are installed, otherwise fakesnow, an emulator of Snowflake, if that is. Nothing here
uses Errata's copies: the rows in the demo's last table are what psycopg or Snowflake's connector return.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from examples.finsight.independent import COLUMNS, KEY, RevenueRow, as_text, copy_revenue
from examples.finsight.workshop import ROOT

POSTGRES, SNOWFLAKE, NONE = "postgres", "snowflake", "none"
AUTO = "auto"
DEBIAN = Path("/usr/lib/postgresql")
EMULATOR = ROOT / ".tools" / "fakesnow" / "bin" / "python"
EMULATOR_SERVER = ROOT / "src" / "errata" / "testing" / "copies" / "fakesnow_server.py"
KEY_FILE = "snowflake.pem"
_LIMIT_SECONDS = 180
_END_SECONDS = 15
_TYPES = {
    POSTGRES: ("date", "text", "text", "numeric(18,2)", "numeric(18,6)", "numeric(18,2)", "bigint"),
    SNOWFLAKE: ("date", "varchar", "varchar", "number(18,2)", "number(18,6)", "number(18,2)", "number(19,0)"),
}


class NotHere(Exception):
    """This kind of server cannot be started on this machine; the message says why."""


class Warehouse(Protocol):
    """A table of daily revenue in a running server."""

    title: str

    def declare(self, project: Path) -> tuple[str, str]:
        """The warehouse as errata.yaml declares it, and its copy as the product file does."""

    def answers(self) -> bool:
        """Whether it accepts connections."""

    def load(self, files: Sequence[str]) -> int:
        """Load Parquet files of the lake, as a nightly job does; returns the number of rows in the table."""

    def read(self, first: str, last: str) -> list[RevenueRow]:
        """All rows of these days."""

    def count_duplicates(self) -> int:
        """How many keys the table has more than once."""


@contextmanager
def open_warehouse(
    kind: str = AUTO, say: Callable[[str], None] = print, *, debian: Path = DEBIAN, emulator: Path = EMULATOR
) -> Iterator[Warehouse | None]:
    """Start the first kind of server that is here; None, and a sentence, if there is none. Stopped with the block."""
    starts: dict[str, Callable[[], AbstractContextManager[Warehouse]]] = {
        POSTGRES: lambda: start_postgres(debian),
        SNOWFLAKE: lambda: start_emulator(emulator),
    }
    wanted = [] if kind == NONE else list(starts) if kind == AUTO else [kind]
    reasons: list[str] = []
    with ExitStack() as stack:
        for name in wanted:
            try:
                found = stack.enter_context(starts[name]())
            except NotHere as error:
                reasons.append(str(error))
            else:
                say(f"FinSight's dashboards read a copy of the table in {found.title}, which runs only for this demo.")
                yield found
                return
        why = ", and ".join(reasons) or "none was wanted"
        say(f"There is no copy in a warehouse in this demo: {why}.")
        yield None


# ── PostgreSQL ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Postgres:
    """The table ``fin.daily_revenue`` in a PostgreSQL server, read with psycopg."""

    title: str
    uri: str

    def declare(self, project: Path) -> tuple[str, str]:
        """See the protocol."""
        del project
        return f'pg: {{type: postgres, uri: "{self.uri}"}}', "{warehouse: pg, table: fin.daily_revenue, required: true}"

    def answers(self) -> bool:
        """Whether it accepts connections."""
        import psycopg

        try:
            self._execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def create(self) -> None:
        """The empty table, with the index that a warehouse has on its dates."""
        self._execute(
            "CREATE SCHEMA fin",
            f"CREATE TABLE fin.daily_revenue ({_describe_columns(POSTGRES)})",
            "CREATE INDEX ON fin.daily_revenue (business_date)",
        )

    def load(self, files: Sequence[str]) -> int:
        """See the protocol."""
        import psycopg

        with (
            tempfile.TemporaryDirectory(prefix="finsight-load-") as directory,
            psycopg.connect(self.uri) as conn,
            conn.cursor() as cursor,
        ):
            path = Path(directory) / "revenue.csv"
            copy_revenue(files, path, "csv, header false")
            with cursor.copy("COPY fin.daily_revenue FROM STDIN (FORMAT csv)") as copy, path.open("rb") as rows:
                shutil.copyfileobj(rows, _Writer(copy.write), 1 << 20)
        return int(self._execute("SELECT count(*) FROM fin.daily_revenue")[0][0])

    def read(self, first: str, last: str) -> list[RevenueRow]:
        """See the protocol."""
        return self._execute(_READ.format(table="fin.daily_revenue", first=first, last=last))

    def count_duplicates(self) -> int:
        """See the protocol."""
        return int(self._execute(_COUNT_DUPLICATES.format(table="fin.daily_revenue"))[0][0])

    def _execute(self, *statements: str) -> list[Any]:
        import psycopg

        rows: list[Any] = []
        with psycopg.connect(self.uri, autocommit=True) as conn:
            for statement in statements:
                cursor = conn.execute(statement.encode())
                rows = cursor.fetchall() if cursor.description else []
        return rows


@dataclass(frozen=True, slots=True)
class _Writer:
    write: Callable[[bytes], object]


def find_postgres_programs(debian: Path = DEBIAN) -> Path | None:
    """The directory of ``initdb`` and ``pg_ctl``: Debian's newest version, or what is on the PATH."""
    versioned = [place for place in debian.glob("*/bin") if place.parent.name.isdigit()]
    places = sorted(versioned, key=lambda place: int(place.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    # what is on the PATH may be a link into a directory that has the rest
    places += [Path(on_path).parent, Path(on_path).resolve().parent] if on_path else []
    return next((place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)


@contextmanager
def start_postgres(debian: Path = DEBIAN) -> Iterator[Postgres]:
    """A server with an empty table; its data is deleted when it stops."""
    programs = find_postgres_programs(debian)
    if programs is None:
        raise NotHere("PostgreSQL's server programs are not installed")
    if any(find_spec(name) is None for name in ("psycopg", "adbc_driver_postgresql")):
        raise NotHere('PostgreSQL\'s drivers are not installed (pip install "errata[postgres-copy]")')
    owner = find_owner()
    who = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if owner else {}
    with tempfile.TemporaryDirectory(prefix="finsight-warehouse-", ignore_cleanup_errors=True) as made:
        data = Path(made) / "data"
        if owner:
            os.chown(made, owner.pw_uid, owner.pw_gid)
        _make_data(programs, data, who)
        port = find_free_port()
        settings = (
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            f"port={port}",
            "fsync=off",
            "timezone=UTC",
        )
        command = [str(programs / "postgres"), "-D", str(data)]
        command += [word for setting in settings for word in ("-c", setting)]
        with _serve(command, Path(made), who) as process:
            version = (data / "PG_VERSION").read_text("utf-8").strip()
            found = Postgres(f"PostgreSQL {version}", f"postgresql://finsight@127.0.0.1:{port}/postgres")
            _wait_for(found.answers, process, "PostgreSQL")
            found.create()
            yield found


def find_owner() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root: the user that it then runs as. None: the one that runs the demo."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise NotHere("PostgreSQL does not run as root, and this machine has no user postgres")


def _make_data(programs: Path, data: Path, who: dict[str, Any]) -> None:
    options = ["-A", "trust", "-U", "finsight", "--no-sync", "-E", "UTF8", "--locale=C"]
    try:
        done = subprocess.run(
            [str(programs / "initdb"), "-D", str(data), *options],
            cwd=data.parent, text=True, capture_output=True, timeout=_LIMIT_SECONDS, check=False, **who,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotHere(f"PostgreSQL did not start (initdb: {type(error).__name__})") from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise NotHere(f"PostgreSQL did not start ({said[-1] if said else 'initdb gave no message'})")


# ── Snowflake, emulated ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Emulated:
    """The table ``DAILY_REVENUE`` in the Snowflake emulator, read with Snowflake's connector."""

    title: str
    port: int

    def declare(self, project: Path) -> tuple[str, str]:
        """See the protocol; the emulator accepts any key, and Errata needs one."""
        write_key(project / KEY_FILE)
        account = (
            f"snow: {{type: snowflake, account: emulator, user: ERRATA, private_key: {KEY_FILE}, role: BACKFILL,\n"
            f'         warehouse: BACKFILL_WH, database: FIN, schema: PUBLIC, host: "http://127.0.0.1:{self.port}"}}'
        )
        return account, "{warehouse: snow, table: DAILY_REVENUE, required: true}"

    def answers(self) -> bool:
        """Whether it accepts connections."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def create(self) -> None:
        """The empty table."""
        columns = _describe_columns(SNOWFLAKE).upper()
        self._execute("create database FIN", "create schema if not exists FIN.PUBLIC", within={})
        self._execute(f"create table DAILY_REVENUE ({columns})", "create stage NIGHTLY")

    def load(self, files: Sequence[str]) -> int:
        """See the protocol."""
        with tempfile.TemporaryDirectory(prefix="finsight-load-") as directory:
            path = Path(directory) / f"{Path(directory).name}.parquet"  # Snowflake loads no file of the same name twice
            copy_revenue(files, path, "parquet")
            self._execute(
                f"put 'file://{path}' @NIGHTLY auto_compress = false",
                "copy into DAILY_REVENUE from @NIGHTLY file_format = (type = parquet)"
                " match_by_column_name = case_insensitive",
            )
        return int(self._execute("select count(*) from DAILY_REVENUE")[0][0])

    def read(self, first: str, last: str) -> list[RevenueRow]:
        """See the protocol."""
        return self._execute(_READ.format(table="DAILY_REVENUE", first=first, last=last).upper())

    def count_duplicates(self) -> int:
        """See the protocol."""
        return int(self._execute(_COUNT_DUPLICATES.format(table="DAILY_REVENUE").upper())[0][0])

    def _execute(self, *statements: str, within: dict[str, str] | None = None) -> list[Any]:
        from snowflake import connector

        place = {"database": "FIN", "schema": "PUBLIC"} if within is None else within
        rows: list[Any] = []
        with connector.connect(
            account="emulator", user="finsight", password="none", host="127.0.0.1", port=self.port, protocol="http",  # noqa: S106 - it asks for none
            network_timeout=_LIMIT_SECONDS, login_timeout=_LIMIT_SECONDS, **place,
        ) as conn:  # fmt: skip
            for statement in statements:
                cursor = conn.cursor()
                cursor.execute(statement)
                rows = cursor.fetchall()
        return rows


@contextmanager
def start_emulator(python: Path = EMULATOR) -> Iterator[Emulated]:
    """The emulator with an empty table; all of it is in memory."""
    if not python.exists():
        raise NotHere("the Snowflake emulator is not installed (make setup-fakesnow)")
    if find_spec("snowflake") is None:
        raise NotHere('Snowflake\'s connector is not installed (pip install "errata[snowflake]")')
    # the connector would ask the metadata services of three clouds where it runs
    os.environ["SNOWFLAKE_DISABLE_PLATFORM_DETECTION"] = "true"
    port = find_free_port()
    with (
        tempfile.TemporaryDirectory(prefix="finsight-warehouse-", ignore_cleanup_errors=True) as made,
        _serve([str(python), str(EMULATOR_SERVER), str(port)], Path(made), {}) as process,
    ):
        found = Emulated("an emulator of Snowflake (fakesnow)", port)
        _wait_for(found.answers, process, "the Snowflake emulator")
        found.create()
        yield found


def write_key(path: Path) -> None:
    """A private key as a person would create one, readable by its owner."""
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
    path.touch(mode=0o600)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


# ── both ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_READ = f"select {as_text()} from {{table}} where business_date between '{{first}}' and '{{last}}'"  # noqa: S608
_COUNT_DUPLICATES = f"select count(*) from (select 1 as n from {{table}} group by {KEY} having count(*) > 1) as twice"  # noqa: S608


def _describe_columns(kind: str) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in zip(COLUMNS, _TYPES[kind], strict=True))


@contextmanager
def _serve(command: Sequence[str], directory: Path, who: dict[str, Any]) -> Iterator[subprocess.Popen[bytes]]:
    """A server as a child in a session of its own: Ctrl-C reaches only the demo, which then ends it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["TMPDIR"] = str(directory)  # so that nothing of it is left elsewhere
    with (directory / "log").open("wb") as out:
        process = subprocess.Popen(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            env=environment, **who,
        )  # fmt: skip
    try:
        yield process
    finally:
        # PostgreSQL sends its clients away on this signal, and removes its shared memory
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(answers: Callable[[], bool], process: subprocess.Popen[bytes], name: str) -> None:
    deadline = time.monotonic() + _LIMIT_SECONDS
    while not answers():
        if time.monotonic() > deadline or process.poll() is not None:
            raise NotHere(f"{name} did not start")
        time.sleep(0.1)


def find_free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> int:
    """Exit code 0 if PostgreSQL's server programs are here, 1 if the emulator is needed."""
    return 0 if find_postgres_programs() else 1


if __name__ == "__main__":
    raise SystemExit(main())
