"""`errata check` beside Kafka clusters that do not answer, on closed ports of this machine."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import pytest

from errata.engines.kafka.topics import KafkaTopics
from errata.model.kafka.declaration import KafkaCluster
from errata.project import load_project
from errata.project.check import check_project
from errata.wiring.cluster_check import find_silent_clusters, report_silent_clusters
from unit.project.conftest import PRODUCT, Write
from unit.project.test_check import with_transform

FILES = '    files: "raw/transactions/business_date={business_date}/*.parquet"\n'
TOPIC = "    kafka: {cluster: events, topic: NAME, value: {columns: {business_date: date}}}\n"
CLUSTERS = 'kafka:\n  events: {bootstrap: "127.0.0.1:1"}\n  unused: {bootstrap: "127.0.0.1:2"}\n'


class Asked:
    """Fails if anybody asks for a topic."""

    def read_input(self, *given: object) -> None:
        raise AssertionError(given)

    find_near_miss = read_input


def test_a_silent_cluster_is_one_problem_and_no_topic_of_it_is_looked_for(write: Write) -> None:
    """The problem is where errata.yaml has the address, names the cluster, and counts what was not looked for."""
    more = f"  more:\n{TOPIC.replace('NAME', 'b')}    partition: business_date\n"
    product = PRODUCT.replace(FILES, TOPIC.replace("NAME", "a")).replace("inputs:\n", f"inputs:\n{more}")
    project = load_project(with_transform(write(product=product, also=CLUSTERS)))
    asked: list[Sequence[str]] = []

    def ask(clusters: Sequence[str]) -> Mapping[str, str]:
        asked.append(clusters)
        return {"events": "Kafka cluster events did not answer in 20 s"}

    silent = find_silent_clusters(project, ask)
    assert asked == [["events"]]
    problems = check_project(project, None, Asked(), {}, silent)  # type: ignore[arg-type]
    assert not [one for one in problems if "kafka" in one.key]
    (problem,) = report_silent_clusters(project, silent)
    assert (problem.file, problem.key) == ("errata.yaml", "kafka.events.bootstrap")
    assert "Kafka cluster events did not answer in 20 s; 2 topics of it were not looked for" in problem.message


def test_a_project_without_topics_asks_no_cluster(write: Write) -> None:
    """A cluster that nothing uses may be down."""
    project = load_project(with_transform(write(also=CLUSTERS)))
    assert find_silent_clusters(project, lambda _: pytest.fail("asked")) == {}


def test_silent_clusters_cost_one_timeout_together() -> None:
    """They are asked at the same time; one whose settings are wrong is left to those who read its topics."""
    pytest.importorskip("confluent_kafka")
    names = [f"c{n}" for n in range(4)]
    clusters = {name: KafkaCluster(name, "127.0.0.1:1") for name in names}
    clusters["wrong"] = KafkaCluster("wrong", "127.0.0.1:1", {"security.protocol": "none such"})
    topics = KafkaTopics(clusters, timeout_seconds=1)
    began = time.monotonic()
    silent = topics.find_silent([*names, "wrong"])
    assert silent == {name: f"Kafka cluster {name} did not answer in 1 s" for name in names}
    assert time.monotonic() - began < 3
