"""One declaration of a Kafka cluster for two clients."""

from __future__ import annotations

import pytest

from errata.engines.kafka.settings import build_client_settings, build_spark_options
from errata.errors import MissingCredentials
from errata.model.kafka.declaration import KafkaCluster

CONF = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanisms": "SCRAM-SHA-512",
    "sasl.username": "errata",
    "sasl.password": 'p"w\\',
    "ssl.ca.location": "/etc/ca.pem",
}


def test_a_login_reaches_both_clients() -> None:
    """Names of librdkafka become those of Java's client, and quotes in a password stay inside it."""
    cluster = KafkaCluster("c", "b:9092", CONF)
    assert build_client_settings(cluster)["sasl.password"] == 'p"w\\'
    java = build_spark_options(cluster)
    assert java["kafka.bootstrap.servers"] == "b:9092"
    assert java["kafka.security.protocol"] == "SASL_SSL"
    assert java["kafka.sasl.mechanism"] == "SCRAM-SHA-512"
    assert java["kafka.sasl.jaas.config"].endswith('username="errata" password="p\\"w\\\\";')
    assert (java["kafka.ssl.truststore.type"], java["kafka.ssl.truststore.location"]) == ("PEM", "/etc/ca.pem")
    assert not any("sasl.password" in name for name in java)


def test_settings_for_java_win() -> None:
    """What cannot be translated is given by its own name."""
    cluster = KafkaCluster("c", "b:9092", {"client.id": "a"}, {"client.id": "b", "ssl.keystore.location": "/k"})
    java = build_spark_options(cluster)
    assert (java["kafka.client.id"], java["kafka.ssl.keystore.location"]) == ("b", "/k")


def test_secrets_are_not_in_the_text_of_a_cluster() -> None:
    """A cluster in a message or a log shows where it is, not how one logs in."""
    assert 'p"w' not in repr(KafkaCluster("c", "b:9092", CONF))


def test_a_variable_that_is_not_set_is_named_and_sent_nowhere() -> None:
    """The name of the variable in place of a password would end in a time-out that says nothing."""
    cluster = KafkaCluster("events", "broker:9092", {"sasl.password": "${KAFKA_PASSWORD}"})
    with pytest.raises(MissingCredentials, match=r"kafka\.events in errata\.yaml needs the variable KAFKA_PASSWORD"):
        build_client_settings(cluster)
