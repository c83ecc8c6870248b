"""Every metric, once: name, type, meaning and labels. Pure.

The reference, the recording rules, the alerts and the dashboard are made from this list or checked against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

PREFIX = "errata_"


class MetricType(StrEnum):
    """Types of Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; ``name`` is without the prefix and, of a counter, with ``_total``."""

    name: str
    type: MetricType
    help: str
    labels: tuple[str, ...] = ()
    also: str = ""  # the name of a recording rule with the same content

    @property
    def full_name(self) -> str:
        """The name that Prometheus knows."""
        return f"{PREFIX}{self.name}"


_RUN = ("product", "run")
C, G, H, S = MetricType.COUNTER, MetricType.GAUGE, MetricType.HISTOGRAM, MetricType.SUMMARY

METRICS: tuple[Metric, ...] = (
    Metric("info", G, "Always 1; the version of Errata and the project.", ("version", "project")),
    Metric("ledger_up", G, "1 if the ledger could be read, 0 if not; without it there is nothing else."),
    Metric("runs", G, "Runs in the ledger, by state.", ("product", "state")),
    Metric("runs_without_series", G, "Active runs that are too many for series of their own."),
    Metric("run_state", G, "Always 1; the state that the run is in.", (*_RUN, "state")),
    Metric("run_planned_timestamp_seconds", G, "When the run was planned.", _RUN),
    Metric("run_state_timestamp_seconds", G, "When the run came into its state.", _RUN),
    Metric("run_progress_timestamp_seconds", G, "When a chunk of the run was last adopted.", _RUN),
    Metric("run_finish_timestamp_seconds", G, "When the last chunk will be done at the pace of the last hour.", _RUN),
    Metric("run_deadline_timestamp_seconds", G, "The deadline that the plan was asked about.", _RUN),
    Metric("input_records_total", C, "Records that adopted attempts read.", _RUN, "backfill_input_records_total"),
    Metric("output_records_total", C, "Records in the output that counts.", _RUN, "backfill_output_records_total"),
    Metric(
        "rejected_records_total", C, "Input records that adopted attempts did not use, by outcome.", (*_RUN, "outcome"),
        "backfill_rejected_records_total",
    ),
    Metric("input_bytes_total", C, "Bytes that adopted attempts read.", _RUN),
    Metric("shuffle_bytes_total", C, "Bytes that adopted attempts shuffled.", _RUN),
    Metric("core_seconds_total", C, "Time that tasks of adopted attempts had a core.", _RUN),
    Metric("chunks", G, "Chunks of the run, by state.", (*_RUN, "state")),
    Metric("chunks_completed_total", C, "Chunks that are done.", _RUN, "backfill_chunks_completed_total"),
    Metric("attempts_lost_total", C, "Attempts whose worker died or lost its lease.", _RUN),
    Metric("attempts_failed_total", C, "Attempts that ended with an error.", _RUN),
    Metric("chunk_duration_seconds", H, "Duration of adopted attempts.", _RUN, "backfill_chunk_duration_seconds"),
    Metric(
        "sink_write_duration_seconds", S,
        "Duration of writes: to the lake, with what Spark computes meanwhile, and of transactions in copies.",
        (*_RUN, "sink"),
        "backfill_sink_write_latency_ms",
    ),
    Metric("validation_failures_total", C, "Verdicts that did not pass.", _RUN, "backfill_validation_failures_total"),
    Metric("cost_estimate_usd", G, "Estimated cost of the run; a canary refines it.", _RUN, "backfill_cost_estimate"),
    Metric(
        "publish_duration_seconds", H, "From the intent of a commit to its record.", (*_RUN, "kind"),
        "backfill_publish_duration_seconds",
    ),
    Metric("waves", G, "Waves of the run that readers see as a whole, and those that wait.", (*_RUN, "state")),
    Metric(
        "batch_visible_seconds", S,
        "Until readers saw what was computed: in the lake since the last chunk, in a copy since the commit.",
        (*_RUN, "place"),
    ),
    Metric("throttle_decisions_total", C, "Changes of the pace because of a health signal.", (*_RUN, "level")),
    Metric("live_signal", G, "Last reading of a health signal of the live pipeline.", ("product", "signal")),
    Metric(
        "live_signal_level", G, "What the last reading leads to: 0 continue, 1 slow, 2 pause.", ("product", "signal")
    ),
    Metric("live_signal_timestamp_seconds", G, "When the signal was last read.", ("product", "signal")),
    Metric("leases", G, "Leases, by what they are for and whether they have run out.", ("product", "kind", "state")),
    Metric("outbox_items", G, "What is owed and not settled.", ("product", "effect", "consumer", "state")),
    Metric(
        "outbox_oldest_timestamp_seconds", G, "Since when the oldest of these is owed.",
        ("product", "effect", "consumer", "state"),
    ),
    Metric("stale_partitions", G, "Stale partitions, as `errata stale` or `errata late` last found.", ("product",)),
    Metric("stale_timestamp_seconds", G, "When somebody last looked for stale partitions.", ("product",)),
    Metric(
        "copy_mismatch_partitions", G, "Partitions of a copy that differ, as `errata copies check` last found.",
        ("product", "copy"),
    ),
    Metric("copy_check_timestamp_seconds", G, "When the copy was last compared with the lake.", ("product", "copy")),
    Metric("audit_entries_total", C, "Entries of the audit log."),
    Metric("audit_head_timestamp_seconds", G, "When the last entry was written."),
    Metric("audit_unexported_seconds", G, "Age of the oldest publication that no exported head covers."),
    Metric("collect_duration_seconds", G, "How long it took to read these values from the ledger."),
)  # fmt: skip

BY_NAME = {metric.name: metric for metric in METRICS}
