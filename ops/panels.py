"""The panels of the dashboard, row by row."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Panel:
    """One panel; ``queries`` are expressions with the legend of their series."""

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8  # of 24


def mean(name: str) -> str:
    """The mean of durations."""
    return f"{name}_sum{{{R}}} / ({name}_count{{{R}}} > 0)"


P, R = 'product=~"$product"', 'product=~"$product",run=~"$run"'
RUN, PRODUCT, COPY, OWED = "{{run}}", "{{product}}", "{{copy}}", "{{effect}} {{consumer}} {{state}}"

ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Now",
        (
            Panel("Runs by state", ((f"sum by (state) (errata_runs{{{P}}})", "{{state}}"),), kind="bargauge"),
            Panel("State of runs", ((f"errata_run_state{{{R}}}", "{{run}} {{state}}"),), kind="table", width=16),
            Panel("Ledger", (("errata_ledger_up", "up"),), kind="stat", width=4),
            Panel("Runs without series", (("errata_runs_without_series", "runs"),), kind="stat", width=4),
            Panel("Version", (("errata_info", "{{version}} {{project}}"),), kind="table", width=8),
            Panel("Time to read the ledger", (("errata_collect_duration_seconds", "seconds"),), "s", width=8),
        ),
    ),
    (
        "Progress",
        (
            Panel("Chunks by state", ((f"sum by (run, state) (errata_chunks{{{R}}})", "{{run}} {{state}}"),)),
            Panel(
                "Chunks per minute",
                ((f"60 * rate(errata_chunks_completed_total{{{R}}}[10m])", RUN),),
            ),
            Panel("Waves", ((f"errata_waves{{{R}}}", "{{run}} {{state}}"),)),
            Panel(
                "Time to the end and to the deadline",
                (
                    (f"errata_run_finish_timestamp_seconds{{{R}}} - time()", "{{run}} end"),
                    (f"errata_run_deadline_timestamp_seconds{{{R}}} - time()", "{{run}} deadline"),
                ),
                "s",
            ),
            Panel("Time since the plan", ((f"time() - errata_run_planned_timestamp_seconds{{{R}}}", RUN),), "s"),
            Panel(
                "Time since the last chunk",
                ((f"time() - errata_run_progress_timestamp_seconds{{{R}}}", RUN),),
                "s",
            ),
        ),
    ),
    (
        "Rows and cost",
        (
            Panel("Records read per second", ((f"rate(errata_input_records_total{{{R}}}[10m])", RUN),)),
            Panel("Records written per second", ((f"rate(errata_output_records_total{{{R}}}[10m])", RUN),)),
            Panel("Records not used", ((f"errata_rejected_records_total{{{R}}}", "{{run}} {{outcome}}"),)),
            Panel("Bytes read per second", ((f"rate(errata_input_bytes_total{{{R}}}[10m])", RUN),), "Bps"),
            Panel("Bytes shuffled per second", ((f"rate(errata_shuffle_bytes_total{{{R}}}[10m])", RUN),), "Bps"),
            Panel("Cores at work", ((f"rate(errata_core_seconds_total{{{R}}}[10m])", RUN),)),
            Panel("Estimated cost", ((f"errata_cost_estimate_usd{{{R}}}", RUN),), "currencyUSD"),
        ),
    ),
    (
        "Durations and failures",
        (
            Panel(
                "Duration of chunks, 95 of 100",
                ((f"histogram_quantile(0.95, sum by (le, run) (errata_chunk_duration_seconds_bucket{{{R}}}))", RUN),),
                "s",
            ),
            Panel(
                "Mean duration of writes",
                ((mean("errata_sink_write_duration_seconds"), "{{run}} {{sink}}"),),
                "s",
            ),
            Panel(
                "Mean duration of publications",
                ((mean("errata_publish_duration_seconds"), "{{run}} {{kind}}"),),
                "s",
            ),
            Panel(
                "Until readers saw it",
                ((mean("errata_batch_visible_seconds"), "{{run}} {{place}}"),),
                "s",
            ),
            Panel(
                "Attempts lost and failed",
                (
                    (f"errata_attempts_lost_total{{{R}}}", "{{run}} lost"),
                    (f"errata_attempts_failed_total{{{R}}}", "{{run}} failed"),
                ),
            ),
            Panel("Verdicts that did not pass", ((f"errata_validation_failures_total{{{R}}}", RUN),)),
        ),
    ),
    (
        "Live pipeline",
        (
            Panel("Health signals", ((f"errata_live_signal{{{P}}}", "{{product}} {{signal}}"),)),
            Panel("What they lead to", ((f"errata_live_signal_level{{{P}}}", "{{product}} {{signal}}"),)),
            Panel(
                "Changes of the pace",
                ((f"errata_throttle_decisions_total{{{R}}}", "{{run}} {{level}}"),),
            ),
            Panel("Leases", ((f"errata_leases{{{P}}}", "{{product}} {{kind}} {{state}}"),)),
            Panel("Stale partitions", ((f"errata_stale_partitions{{{P}}}", "{{product}}"),)),
            Panel("Time since the last look", ((f"time() - errata_stale_timestamp_seconds{{{P}}}", PRODUCT),), "s"),
        ),
    ),
    (
        "Consumers and the record",
        (
            Panel(
                "Owed and failed",
                ((f"sum by (effect, consumer, state) (errata_outbox_items{{{P}}})", OWED),),
            ),
            Panel("Partitions of copies that differ", ((f"errata_copy_mismatch_partitions{{{P}}}", "{{copy}}"),)),
            Panel("Time since the comparison", ((f"time() - errata_copy_check_timestamp_seconds{{{P}}}", COPY),), "s"),
            Panel("Audit entries per minute", (("60 * rate(errata_audit_entries_total[10m])", "entries"),)),
            Panel("Time since the last entry", (("time() - errata_audit_head_timestamp_seconds", "seconds"),), "s"),
            Panel("Publications without an exported head", (("errata_audit_unexported_seconds", "oldest"),), "s"),
        ),
    ),
)  # fmt: skip
