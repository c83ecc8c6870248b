"""Settings of a Kafka connection, for librdkafka and for Java's client, from one declaration. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from errata.errors import MissingCredentials
from errata.model.kafka.declaration import KafkaCluster

_TIMEOUT_MS = "10000"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
"""What a text still has where the environment had no value for it."""
_SAME = ("security.protocol", "sasl.mechanism", "client.id", "request.timeout.ms", "metadata.max.age.ms")
"""Settings that both clients know under the same name."""
_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def build_client_settings(cluster: KafkaCluster) -> dict[str, str]:
    """Settings for librdkafka.

    Raises ``MissingCredentials`` if a variable is not set: brokers answer its name in place of a password with silence.
    """
    made = {"socket.timeout.ms": _TIMEOUT_MS, **cluster.conf, "bootstrap.servers": cluster.bootstrap}
    if missing := next((name for text in made.values() for name in _VARIABLE.findall(text)), None):
        raise MissingCredentials(
            f"kafka.{cluster.name} in errata.yaml needs the variable {missing}, which is not set here",
            state="nothing was changed",
            hint="type the command where the variable is set",
        )
    return made


def build_spark_options(cluster: KafkaCluster) -> dict[str, str]:
    """Options of Spark's Kafka source: the same connection for Java's client.

    Login and certificates have other names there. What is not translated is given in ``spark_conf``.
    """
    java = {name: cluster.conf[name] for name in _SAME if name in cluster.conf}
    if "sasl.mechanisms" in cluster.conf:
        java.setdefault("sasl.mechanism", cluster.conf["sasl.mechanisms"])
    if login := _build_login(cluster.conf, java.get("sasl.mechanism", "")):
        java["sasl.jaas.config"] = login
    if "ssl.ca.location" in cluster.conf:
        java |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": cluster.conf["ssl.ca.location"]}
    java |= cluster.spark_conf
    return {f"kafka.{name}": value for name, value in java.items()} | {"kafka.bootstrap.servers": cluster.bootstrap}


def _build_login(conf: Mapping[str, str], mechanism: str) -> str | None:
    user, password, module = conf.get("sasl.username"), conf.get("sasl.password"), _LOGIN.get(mechanism)
    if user is None or password is None or module is None:
        return None
    return f'{module} required username="{_escape(user)}" password="{_escape(password)}";'


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
