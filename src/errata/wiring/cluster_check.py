"""Ask the Kafka clusters that products use whether they answer, for `errata check`. Only reads.

All are asked at once and before their topics, so that a check costs one time-out, however many topics there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from errata.model.kafka.declaration import TopicPlace
from errata.model.product import Product, Project
from errata.model.product.sinks import SEND
from errata.project.check import open_report
from errata.project.load import PROJECT_FILE
from errata.project.problems import Path, ProjectProblem
from errata.text.numbers import plural


def find_silent_clusters(project: Project, ask: Callable[[Sequence[str]], Mapping[str, str]]) -> Mapping[str, str]:
    """Clusters of the project's topics that do not answer, with what was found."""
    used = sorted(name for name in _count_topics(project.products.values()) if name in project.kafka)
    return ask(used) if used else {}


def report_silent_clusters(project: Project, silent: Mapping[str, str]) -> Iterator[ProjectProblem]:
    """One problem for each silent cluster, where errata.yaml has its address."""
    report = open_report(project, PROJECT_FILE)
    used = _count_topics(project.products.values())
    for name, said in silent.items():
        left = f"{plural(used[name], 'topic')} of it {'was' if used[name] == 1 else 'were'} not looked for"
        report.at(("kafka", name, "bootstrap"), f"{project.redact(said)}; {left}")
    yield from report.problems


def list_sent_topics(product: Product) -> Iterator[tuple[Path, TopicPlace]]:
    """Topics that a product sends to, with their places in the product file."""
    for name, sink in product.sinks.items():
        if sink.decision == SEND:
            yield ("sinks", name, "topic"), TopicPlace(str(sink.cluster), str(sink.topic))
    if product.publish.corrections_topic is not None:
        yield ("publish", "corrections", "topic"), product.publish.corrections_topic


def _count_topics(products: Iterable[Product]) -> Counter[str]:
    """How many topics are read and sent to, by cluster."""
    places = set()
    for product in products:
        places |= {(one.kafka.cluster, one.kafka.topic) for one in product.inputs if one.kafka is not None}
        places |= {(place.cluster, place.topic) for _, place in list_sent_topics(product)}
    return Counter(cluster for cluster, _ in places)
