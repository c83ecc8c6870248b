"""Check what a product file says about the time after a publication. Pure."""

from __future__ import annotations

from collections.abc import Collection

from errata.model.product import Control, Project
from errata.model.product.throttle import Signal
from errata.model.product.watch import Watch
from errata.project.problems import ProblemReport
from errata.project.yaml.problem_texts import hint_nearest


def check_watch(
    watch: Watch,
    controls: Collection[Control],
    signals: Collection[Signal],
    project: Project | None,
    report: ProblemReport,
) -> None:
    """Report rules, signals and channels that are not declared, and a watch that looks at nothing."""
    names = [rule.name for rule in controls]
    for n, name in enumerate(watch.metrics):
        if name not in names:
            report.at(("watch", "metrics", n), f"expected the name of a control rule{hint_nearest(name, names)}")
    able = [signal.name for signal in signals if signal.pause_above is not None]
    for n, name in enumerate(watch.health):
        if name not in able:
            said = f"expected a health signal with pause_above{hint_nearest(name, able)}"
            report.at(("watch", "health", n), said)
    if not controls and not watch.health:
        report.at_key(("watch",), "there is nothing to look at; expected control rules, or signals in watch.health")
    if watch.every_seconds > watch.for_seconds:
        report.at(("watch", "every"), "expected at most as long as for")
    if project is not None and watch.channel not in project.channels:
        report.at(
            ("watch", "channel"), f"expected a channel of errata.yaml{hint_nearest(watch.channel, project.channels)}"
        )
