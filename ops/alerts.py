"""Every alert, once: when it fires, what it means, and what to type. Rules and pages are made from this list."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Alert:
    """One alert; ``steps`` are commands with a sentence each, in the order in which one tries them."""

    name: str
    expr: str
    wait: str  # how long it has to be so
    severity: str  # page: somebody has to act now; ticket: today is soon enough
    summary: str
    means: str
    data: str  # the state of the data while it fires
    steps: tuple[tuple[str, str], ...]


WAITING = "planned|staged|validated|rejected|needs_acceptance|part_published"
UNPUBLISHED = "planned|approved|running|paused|failed|staged|validated|rejected|needs_acceptance|part_published"
STATE_AGE = "time() - errata_run_state_timestamp_seconds"
OF_RUN = "on (product, run)"

ALERTS = (
    Alert(
        "ErrataMetricsAbsent",
        "absent(errata_ledger_up)",
        "10m",
        "ticket",
        "Prometheus gets no metrics of Errata.",
        "`errata metrics --serve` has ended, or cron no longer writes the file of node_exporter. Nothing else that is "
        "described here can fire meanwhile.",
        "Runs continue; nobody watches them.",
        (
            ("errata metrics", "prints the metrics, or says why it cannot"),
            ("errata metrics --serve 127.0.0.1:9464", "serves them again"),
        ),
    ),
    Alert(
        "ErrataLedgerUnreadable",
        "errata_ledger_up == 0",
        "5m",
        "page",
        "The ledger of Errata cannot be read.",
        "The database is down, or its address or password has changed. Workers wait for a while and then leave; "
        "nothing can be published.",
        "Readers are not affected. What was committed to the lake stays, and is recorded when the ledger is back.",
        (
            ("errata doctor", "says what is wrong with the ledger"),
            ("errata status", "shows the runs when it is back"),
        ),
    ),
    Alert(
        "ErrataRunStuck",
        f'errata_run_state{{state="running"}} and {OF_RUN} ({STATE_AGE} > 3600)'
        f" unless {OF_RUN} (time() - errata_run_progress_timestamp_seconds < 3600)",
        "5m",
        "page",
        "{{ $labels.run }} of {{ $labels.product }} has finished no chunk for an hour.",
        "No worker is there, a chunk takes very long, or a throttle keeps every chunk from starting.",
        "Main is unchanged. Chunks that are done stay done.",
        (
            ("errata status RUN", "shows chunks, workers and what throttles the run"),
            ("errata run RUN", "joins as another worker"),
        ),
    ),
    Alert(
        "ErrataDeadlineAtRisk",
        "(errata_run_finish_timestamp_seconds > errata_run_deadline_timestamp_seconds) or "
        f'(errata_run_deadline_timestamp_seconds < time() and {OF_RUN} errata_run_state{{state=~"{UNPUBLISHED}"}})',
        "10m",
        "page",
        "{{ $labels.run }} of {{ $labels.product }} will not be done by its deadline.",
        "At the pace of the last hour the last chunk is done after the deadline of the plan, or the deadline is over "
        "and the run is not published.",
        "Nothing is wrong with the data; it will be late.",
        (
            ("errata status RUN", "shows the pace and what holds it back"),
            ("errata run RUN", "adds a worker on this or another machine"),
        ),
    ),
    Alert(
        "ErrataRunFailed",
        'errata_run_state{state="failed"}',
        "1m",
        "page",
        "{{ $labels.run }} of {{ $labels.product }} has failed.",
        "A chunk failed as often as it may, and the run cannot be completed without it.",
        "Main is unchanged. Chunks that are done stay done.",
        (
            ("errata status RUN", "shows the error of each failed chunk"),
            ("errata retry RUN", "tries failed chunks again once the cause is gone"),
            ("errata run RUN", "continues"),
        ),
    ),
    Alert(
        "ErrataRunRejected",
        'errata_run_state{state="rejected"}',
        "1m",
        "ticket",
        "{{ $labels.run }} of {{ $labels.product }} did not pass the gate.",
        "The output breaks a rule of the product file, or differs more than the plan expected.",
        "Main is unchanged. The output is kept for the diff.",
        (
            ("errata diff RUN", "shows which rules failed, and sample rows"),
            ('errata cancel RUN --reason "…"', "gives the run up; plan again with repaired code"),
        ),
    ),
    Alert(
        "ErrataWaitsForPerson",
        f'errata_run_state{{state=~"{WAITING}"}} and {OF_RUN} ({STATE_AGE} > 86400)',
        "5m",
        "ticket",
        "{{ $labels.run }} of {{ $labels.product }} has been {{ $labels.state }} for a day.",
        "Somebody has to approve, accept, release, publish or cancel it. Meanwhile it reserves its partitions, and the "
        "snapshots it reads come closer to their expiry.",
        "As the last command left it.",
        (
            ("errata status RUN", "ends with the command to type next, and who may type it"),
            ('errata cancel RUN --reason "…"', "frees the partitions"),
        ),
    ),
    Alert(
        "ErrataChunkAbandoned",
        'errata_leases{kind="chunk",state="expired"} > 0',
        "5m",
        "page",
        "{{ $value }} chunks of {{ $labels.product }} have lost their worker, and no other has taken over.",
        "A worker died, and there is no other one to take its chunks.",
        "Main is unchanged. What the dead worker wrote does not count.",
        (
            ("errata status", "lists the runs of the product; that which is running is the one"),
            ("errata status RUN", "shows its chunks and their workers"),
            ("errata run RUN", "takes the chunks over"),
        ),
    ),
    Alert(
        "ErrataPublicationOpen",
        'errata_leases{kind="publication",state="expired"} > 0',
        "5m",
        "page",
        "A publication of {{ $labels.product }} was not finished.",
        "The process that published or rolled back died between its intent and its record.",
        "The commit landed whole or not at all. The next command looks which, and records it.",
        (
            ("errata deliver PRODUCT", "looks which it is and records it, for a publication and for a rollback"),
            ("errata status", "lists the runs of the product and their states; then repeat the command that died"),
        ),
    ),
    Alert(
        "ErrataDeliveryFailed",
        'errata_outbox_items{state="failed"} > 0',
        "1m",
        "page",
        "{{ $value }} items ({{ $labels.effect }} {{ $labels.consumer }}) of {{ $labels.product }} have failed.",
        "A message, a refresh or a copy failed as often as it may. Its consumer shows old numbers or knows nothing of "
        "the correction.",
        "The lake is published. This consumer has not followed.",
        (
            ("errata outbox", "shows each item with its error and the command that decides about it"),
            ("errata outbox retry ITEM", "tries it again once the cause is gone"),
            ('errata outbox waive ITEM --reason "…"', "gives it up, on the record"),
        ),
    ),
    Alert(
        "ErrataDeliveryLate",
        'time() - errata_outbox_oldest_timestamp_seconds{state="owed",effect!="watch"} > 1800',
        "5m",
        "ticket",
        "{{ $labels.effect }} {{ $labels.consumer }} of {{ $labels.product }} has been owed for half an hour.",
        "Nobody pays what is owed, or the receiver does not answer and it is tried again and again.",
        "The lake is published. This consumer has not followed yet.",
        (
            ("errata outbox", "shows what is owed and the last error"),
            ("errata deliver", "pays it now; put it into cron"),
        ),
    ),
    Alert(
        "ErrataCopyDiffers",
        "errata_copy_mismatch_partitions > 0",
        "1m",
        "page",
        "{{ $value }} partitions of {{ $labels.copy }} differ from {{ $labels.product }}.",
        "Somebody wrote to the copy, or a delivery is missing. The value is that of the last `errata copies check`.",
        "The lake is as accepted. Readers of the copy see other rows.",
        (
            ("errata copies check PRODUCT", "names the partitions and the command that repairs them"),
            ("errata deliver PRODUCT", "delivers what is missing"),
        ),
    ),
    Alert(
        "ErrataStalePartitions",
        "errata_stale_partitions > 0",
        "1h",
        "ticket",
        "{{ $value }} partitions of {{ $labels.product }} do not follow from their inputs.",
        "Late data, new code or a correction of an input. The value is from the last `errata stale` or `errata late`.",
        "Readers see what was published before the inputs changed.",
        (
            ("errata stale PRODUCT", "says which partitions, and why"),
            ('errata plan PRODUCT --stale --reason "late data"', "plans them"),
        ),
    ),
    Alert(
        "ErrataHeldByLivePipeline",
        "errata_live_signal_level == 2 and on (product, signal) (time() - errata_live_signal_timestamp_seconds < 600)",
        "30m",
        "ticket",
        "Runs of {{ $labels.product }} have waited for {{ $labels.signal }} for half an hour.",
        "The live pipeline is behind, or the signal cannot be read; the run starts no chunk meanwhile.",
        "Nothing is wrong with the run. The live pipeline has priority.",
        (
            ("errata status", "lists the runs of the product; that which is running is the one"),
            ("errata status RUN", "shows the reading"),
            ("errata pause RUN", "sends the workers home until the pipeline has recovered"),
        ),
    ),
    Alert(
        "ErrataVisibleLate",
        'errata_batch_visible_seconds_sum{place="lake"} / (errata_batch_visible_seconds_count > 0) > 1800'
        f" and {OF_RUN} ({STATE_AGE} < 3600)",
        "1m",
        "ticket",
        "What {{ $labels.run }} of {{ $labels.product }} computed became visible after more than half an hour.",
        "A release was waited for, holds of consumers took long, or waves were too big.",
        "Nothing is wrong with the data; it was late.",
        (
            ("errata status RUN", "shows the waves and when each was published"),
            ("errata runbook RUN", "shows when each step was done"),
        ),
    ),
    Alert(
        "ErrataRecordsRejected",
        "sum by (product, run) (errata_rejected_records_total)"
        " / on (product, run) (errata_input_records_total > 0) > 0.01"
        f" and {OF_RUN} ({STATE_AGE} < 86400)",
        "5m",
        "ticket",
        "{{ $labels.run }} of {{ $labels.product }} did not use {{ $value | humanizePercentage }} of its input.",
        "Rows broke a rule of their input, the transform set them aside, or their subjects were erased.",
        "They are in the quarantine of the run; the gate compares the counts.",
        (("errata quarantine RUN", "shows how many, why, and sample rows"),),
    ),
    Alert(
        "ErrataAuditHeadLate",
        "errata_audit_unexported_seconds > 21600",
        "5m",
        "page",
        "A publication has had no exported audit head for six hours.",
        "The directory of `evidence.heads` cannot be written to, or the key cannot be read. After `evidence.max_lag` "
        "the next publication is refused.",
        "The record is complete. Until a head is outside, nobody can show that it was not cut.",
        (
            ("errata audit head", "exports one, or says why it cannot"),
            ("errata audit verify", "checks the chain against the heads that are there"),
        ),
    ),
)
