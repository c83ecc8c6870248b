"""Iceberg's own REST catalog server on 127.0.0.1, one JVM for any number of catalogs; and a proxy that loses answers.

The server that Iceberg ships for its tests listens on every interface, so its servlet is put into a Jetty of our own,
driven through py4j. Each catalog has a port and a SQLite database of its own.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from errata.jars import listed, require
from support.jars import rest_server, there

__all__ = ["LosingProxy", "RestCatalogServer"]


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
        sqlite = [jar for jar in listed() if jar.artifact == "sqlite-jdbc"]
        jars = [*there(rest_server()), *require(jars=sqlite), *spark.glob("hadoop-client-*.jar")]
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


@dataclass
class LosingProxy:
    """Stands before a catalog; while ``loses`` says so of a request, it is done and its answer is not given; while
    ``holds`` says so of its content, it is answered with a time-out and kept, to be delivered late; what
    ``forbids`` names is answered with 403. ``asks`` and ``answers`` change what goes to the catalog and comes back."""

    target: str
    loses: Callable[[str, str], bool] = lambda _method, _path: False
    holds: Callable[[bytes], bool] = lambda _body: False
    forbids: Callable[[bytes], bool] = lambda _body: False
    asks: Callable[[bytes], bytes] = lambda body: body
    answers: Callable[[bytes], bytes] = lambda content: content
    lost: list[str] = field(default_factory=list)
    held: list[tuple[str, str, bytes, dict[str, str]]] = field(default_factory=list)
    address: str = ""

    def forward(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[Any, bytes]:
        """Ask the catalog; its answer and the content of it."""
        there = http.client.HTTPConnection(self.target, timeout=60)
        there.request(method, path, body, headers)
        answer = there.getresponse()
        content = answer.read()
        there.close()
        return answer, content

    def deliver(self) -> list[int]:
        """What was kept reaches the catalog at last; what it says of each."""
        late, self.held = self.held, []
        return [self.forward(*request)[0].status for request in late]

    @classmethod
    @contextmanager
    def before(cls, target: str) -> Iterator[LosingProxy]:
        """A proxy for this address, until the block ends."""
        proxy = cls(target.removeprefix("http://"))
        handler = type("Handler", (_Forwarding,), {"proxy": proxy})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        proxy.address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield proxy
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _Forwarding(BaseHTTPRequestHandler):
    proxy: LosingProxy
    protocol_version = "HTTP/1.1"

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kept = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "accept-encoding")}
        if self.proxy.holds(body):
            self.proxy.held.append((self.command, self.path, body, kept))
            self.send_response(504)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.proxy.forbids(body):
            said = b'{"error": {"message": "not allowed", "type": "ForbiddenException", "code": 403}}'
            self.send_response(403)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)
            return
        body = self.proxy.asks(body)
        kept = {k: v for k, v in kept.items() if k.lower() != "content-length"}
        answer, content = self.proxy.forward(self.command, self.path, body, kept)
        content = self.proxy.answers(content)
        if self.proxy.loses(self.command, self.path):
            self.proxy.lost.append(f"{self.command} {self.path} {answer.status}")
            self.close_connection = True
            self.connection.shutdown(2)
            return
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_POST = do_DELETE = do_HEAD = _forward  # noqa: N815 - the names that http.server calls

    def log_message(self, *_: Any) -> None:
        """Nothing: the tests say what they see."""
