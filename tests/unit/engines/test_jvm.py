from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from errata.engines.spark.runtime.jvm import java_version, public_settings


@pytest.mark.parametrize(
    "key",
    [
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.s3a.session.token",
        "spark.sql.catalog.lake.jdbc.password",
        "spark.sql.catalog.lake.s3.secret-access-key",
        "spark.sql.catalog.lake.credential",
    ],
)
def test_a_secret_setting_is_not_on_the_command_line_of_java(key: str):
    """Command lines can be read by everyone on the machine; the rest of the settings is kept as it is."""
    given = {"spark.driver.memory": "1g", "spark.jars": "/a.jar", key: "canary"}
    assert public_settings(given) == {"spark.driver.memory": "1g", "spark.jars": "/a.jar"}


def test_the_version_of_java_is_read_without_starting_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JDK says it in a file; starting one only to ask takes as long as a look may take."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").touch()
    (tmp_path / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.3"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_version() == 21


def test_an_early_start_that_fails_is_told_to_the_one_who_needs_java(tmp_path: Path) -> None:
    """The background prints nothing and the command does not hang: the first use raises the error."""
    program = """
from pathlib import Path
from errata.engines.spark.runtime.spark_session import SparkRuntime
from errata.errors import SetupError
from errata.model.product import Project

runtime = SparkRuntime(Project("p", ".", "", {}, {}), (), Path("spark.log"))
runtime.start_early(session=True)
try:
    runtime.session
except SetupError as error:
    print(error.message)
"""
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
        timeout=120,
    )  # fmt: skip
    assert done.stdout == "Spark needs Java 17 or 21; none was found\n"
    assert done.stderr == ""
