from __future__ import annotations

import pytest

from errata.engines.spark.runtime.jvm import public_settings


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
