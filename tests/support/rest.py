"""Iceberg's own REST catalog server on 127.0.0.1, one JVM for any number of catalogs.

The server that Iceberg ships for its tests listens on every interface, so its servlet is put into a Jetty of our own,
driven through py4j. Each catalog has a port and a SQLite database of its own.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from errata.jars import list_jars, require_jars
from support.jars import rest_server, there

__all__ = ["RestCatalogServer"]


@dataclass
class RestCatalogServer:
    """One server; ``catalog`` adds an empty catalog to it."""

    gateway: Any

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[RestCatalogServer]:
        """A server, until the block ends."""
        from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

        spark = Path(str(find_spec("pyspark").submodule_search_locations[0])) / "jars"  # type: ignore[union-attr,index]
        sqlite = [jar for jar in list_jars() if jar.artifact == "sqlite-jdbc"]
        jars = [*there(rest_server()), *require_jars(jars=sqlite), *spark.glob("hadoop-client-*.jar")]
        port, token, process = launch_gateway(
            jarpath=str(next(spark.glob("py4j-*.jar"))),
            classpath=os.pathsep.join(map(str, jars)),
            javaopts=["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
            die_on_exit=True,
            enable_auth=True,
            return_proc=True,
            redirect_stdout=subprocess.DEVNULL,
            redirect_stderr=subprocess.DEVNULL,
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
        try:
            yield cls(gateway)
        finally:
            gateway.shutdown()
            process.stdin.close()
            process.wait(timeout=20)

    def catalog(self, directory: Path) -> str:
        """The address of a new catalog whose database and warehouse are in this directory."""
        jvm = self.gateway.jvm
        properties = {
            "uri": f"jdbc:sqlite:{directory}/catalog.db?busy_timeout=30000&journal_mode=WAL",
            "warehouse": f"file://{directory}/warehouse",
            "jdbc.schema-version": "V1",
        }
        catalog = jvm.org.apache.iceberg.jdbc.JdbcCatalog()
        catalog.setConf(jvm.org.apache.hadoop.conf.Configuration())
        catalog.initialize("rest_backend", properties)
        rest, servlets = jvm.org.apache.iceberg.rest, jvm.org.eclipse.jetty.ee10.servlet
        context = servlets.ServletContextHandler()
        context.addServlet(servlets.ServletHolder(rest.RESTCatalogServlet(rest.RESTCatalogAdapter(catalog))), "/*")
        server = jvm.org.eclipse.jetty.server.Server(jvm.java.net.InetSocketAddress("127.0.0.1", 0))
        server.setHandler(context)
        server.start()
        return f"http://127.0.0.1:{server.getURI().getPort()}"
