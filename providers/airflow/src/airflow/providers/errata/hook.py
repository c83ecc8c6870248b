"""Airflow's connection to an Errata project."""

from __future__ import annotations

from typing import Any

from airflow.providers.errata.installation import Installation
from airflow.sdk import BaseHook


class ErrataHook(BaseHook):
    """Reads a connection of type ``errata``.

    ``login`` is the account in Errata's ``people`` that tasks act as, best a service account. The extra fields are
    ``project`` (directory of errata.yaml), ``program`` (the ``errata`` of its own environment), and for links
    ``reports``, ``reports_url`` and ``spark_url``. None of them is a secret: those stay in the environment.
    """

    conn_name_attr = "errata_conn_id"
    default_conn_name = "errata_default"
    conn_type = "errata"
    hook_name = "Errata"

    def __init__(self, errata_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.errata_conn_id = errata_conn_id

    def get_conn(self) -> Installation:
        """The installation that the connection describes."""
        connection = self.get_connection(self.errata_conn_id)
        extra = connection.extra_dejson
        if not extra.get("project"):
            raise ValueError(
                f"connection {self.errata_conn_id} has no project; expected the directory of errata.yaml in its extra:"
                ' {"project": "/srv/errata/shop", "program": "/srv/errata/.venv/bin/errata"}'
            )
        named = {key: extra.get(key) for key in ("reports", "reports_url", "spark_url")}
        return Installation(
            project=extra["project"],
            program=extra.get("program") or "errata",
            account=connection.login or None,
            **named,
        )

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Which fields the form of a connection shows."""
        return {
            "hidden_fields": ["host", "port", "schema", "password"],
            "relabeling": {"login": "Account in Errata"},
            "placeholders": {"extra": '{"project": "/srv/errata/shop", "program": "/srv/errata/.venv/bin/errata"}'},
        }
