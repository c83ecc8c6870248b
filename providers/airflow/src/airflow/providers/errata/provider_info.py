"""What Airflow's list of providers shows about this one."""

from __future__ import annotations

from typing import Any

from airflow.providers.errata import __version__


def get_provider_info() -> dict[str, Any]:
    """Describe the provider: its connection, its task decorator and its links."""
    return {
        "package-name": "apache-airflow-providers-errata",
        "name": "Errata",
        "description": "Governed corrections of published data.",
        "versions": [__version__],
        "connection-types": [
            {"connection-type": "errata", "hook-class-name": "airflow.providers.errata.hook.ErrataHook"}
        ],
        "task-decorators": [
            {"name": "live_write", "class-name": "airflow.providers.errata.live_write.live_write_task"}
        ],
        "extra-links": ["airflow.providers.errata.links.ReportLink", "airflow.providers.errata.links.SparkLink"],
    }
