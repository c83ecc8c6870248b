"""Sinks, and topics that Errata sends to: keys that belong together. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from errata.model.product.sinks import BACKFILL_TOPIC, SEND
from errata.project.forms import ProductForm
from errata.project.problems import Path, ProblemReport

_OF_TOPIC = ("cluster", "topic", "key")


def check_cluster(cluster: str, path: Path, clusters: Sequence[str] | None, report: ProblemReport) -> None:
    """Report a cluster that errata.yaml does not have."""
    if clusters is not None and cluster not in clusters:
        report.at(path, f"expected a cluster of kafka in errata.yaml ({', '.join(clusters) or 'there is none'})")


def check_sinks(file: ProductForm, clusters: Sequence[str] | None, report: ProblemReport) -> None:
    """Report sinks whose rows could not be sent, or whose consumers could not recognise what they have seen."""
    for name, sink in file.sinks.items():
        path = ("sinks", name)
        if sink.kind != BACKFILL_TOPIC:
            for key in _OF_TOPIC:
                if getattr(sink, key):
                    report.at_key(
                        (*path, key), f'the key "{key}" was refused in sinks.{name}; it is for {BACKFILL_TOPIC}'
                    )
            if sink.backfill == SEND:
                report.at((*path, "backfill"), f"only a {BACKFILL_TOPIC} is sent to; expected forbid or drop")
            continue
        for key in _OF_TOPIC:
            if not getattr(sink, key):
                report.at_key(path, f'missing key "{key}" in sinks.{name}, which {BACKFILL_TOPIC} needs')
        if sink.cluster is not None:
            check_cluster(sink.cluster, (*path, "cluster"), clusters, report)
        report.refuse_repeats(sink.key, (*path, "key"))
        if sink.key and file.target.column.casefold() not in (column.casefold() for column in sink.key):
            said = f"expected {file.target.column} among them, so that no two chunks of a run send the same key"
            report.at((*path, "key"), said, found=False)
        read = {(one.kafka.cluster, one.kafka.topic) for one in file.inputs.values() if one.kafka}
        if (sink.cluster, sink.topic) in read:
            report.at(
                (*path, "topic"), "an input reads this topic, so that a run would read what it sent; expected another"
            )
