"""JSON for programs: the promised fields, strings where they are promised, one document on stdout."""

from __future__ import annotations

import os
from typing import Any

import pytest

from errata.errors import EngineError, ErrataError, PlanRefused, ProjectFileError, RunFailed
from unit.cli import samples
from unit.cli.sample_client import FakeClient, errata

RUN, DIGEST = samples.RUN, samples.DIGEST
COUNTS = {"total", "done", "running", "failed", "quarantined", "pending"}
PLAN = ("plan", "p", "--from", "2026-01-01", "--to", "2026-02-15", "--reason", "x")

PROMISED: dict[tuple[str, ...], set[str]] = {
    PLAN: {
        "run_id", "manifest_digest", "state", "already", "product", "partitions", "chunks", "inputs", "verdicts",
        "estimate",
    },
    ("show", RUN): {"run_id", "manifest_digest", "state", "partitions", "verdicts"},
    ("approve", RUN, "--digest", DIGEST): {"state", "already", "approvals"},
    ("decline", RUN, "--note", "no"): {"state", "already", "approvals"},
    ("run", RUN): {"state", "chunks", "recomputed", "rows"},
    ("pause", RUN): {"state"},
    ("resume", RUN): {"state"},
    ("cancel", RUN, "--reason", "wrong month"): {"state"},
    ("retry", RUN): {"state"},
    ("validate", RUN): {"state", "passed", "snapshot_id", "checks"},
    ("diff", RUN): {"partitions", "columns", "sample", "schema"},
    ("release", RUN, "--digest", DIGEST): {"state", "already", "release_digest", "release", "accepted", "partitions"},
    ("publish", RUN): {"state", "already", "publication_id", "snapshot_id", "partitions", "data_files_written"},
    ("publish", RUN, "--dark"): {
        "name", "table", "snapshot_id", "reads", "comparison", "view", "keep_until", "rejected",
    },
    ("rollback", RUN, "--reason", "x"): {"state", "already", "snapshot_id", "partitions", "data_files_written"},
    ("status", RUN): {"run_id", "state", "chunks", "partitions"},
    ("why", "t", "2026-01-17"): {"history"},
    ("audit", "verify"): {"ok", "entries", "first_bad", "head", "heads"},
    ("audit", "head"): {"seq", "hash", "at", "ledger", "project", "key_id", "files", "already", "envelope"},
    ("erase", "add", "--from", os.devnull, "--reason", "x"): {
        "table", "added", "already", "watermark", "products", "judge_again",
    },
    ("erase", "where", "--from", os.devnull): {"subjects", "listed", "places", "day"},
    ("erase", "prove", "--from", os.devnull, "--reason", "x"): {"subjects", "day", "left", "audit_seq"},
    ("erase", "redact", "--reason", "x"): {"sources", "files", "unproven", "expired_runs"},
    ("audit", "erase-person", "bo", "--reason", "x"): {"pseudonym", "entries", "already", "warnings"},
    ("ledger", "roles", "--print"): {"sql"},
    ("runs", "--accepted-at", "2026-02-20T18:30Z"): {"accepted_at", "accepted"},
    ("stale",): {"ok", "products", "partitions"},
    ("late",): {"ok", "products"},
    ("consumers", "check", "fin.daily_revenue"): {
        "product", "table", "grain", "operation", "partitions", "consumers",
    },
    ("consumers", "confirm", RUN, "fraud-stream"): {
        "run_id", "consumer", "step", "checkpoint", "is_done", "steps", "waits", "warnings",
    },
    ("outbox",): {"items", "next"},
    ("outbox", "retry", "17"): {"action", "items", "already"},
    ("outbox", "waive", "17", "--reason", "x"): {"action", "items", "already"},
    ("ready", "t"): {"ready", "partitions"},
    ("ack", "r", "c"): {"hold_id", "run_id", "consumer", "state", "until", "acknowledged_by"},
    ("deliver",): {"ok", "paid", "items", "warnings", "seconds"},
    ("copies", "check", "fin.daily_revenue"): {"product", "grain", "snapshot_id", "copies", "ok", "next"},
    ("deliver", "fin.daily_revenue", "--baseline"): {"product", "grain", "copies", "is_accepted", "next"},
    ("standing", "show"): {"standing"},
    ("standing", "approve", "p", "--change", "rows=5%", "--digest", "a" * 64): {"digest", "counts", "why", "changes"},
    ("impact", "p", "--partitions", "2026-01-17"): {"products", "dbt", "exposures", "consumers", "notes"},
    ("metrics",): {"metrics"},
    ("metrics", "--into", "errata.prom"): {"file"},
    ("history", "t", "2026-01-17"): {"table", "partition", "commits", "complete", "next"},
    ("cleanup",): {"removed"},
    ("doctor",): {"ok", "checks"},
    ("check",): {"ok", "problems"},
}  # fmt: skip


@pytest.mark.parametrize("arguments", PROMISED, ids=lambda arguments: "-".join(arguments[:2]))
def test_promised_fields_are_there(arguments: tuple[str, ...]):
    """Scripts rely on these names."""
    assert errata(*arguments, "--json").json.keys() >= PROMISED[arguments]


@pytest.mark.parametrize("arguments", PROMISED, ids=lambda arguments: "-".join(arguments[:2]))
def test_json_stands_before_or_after_the_command(arguments: tuple[str, ...]):
    """People and scripts write it in both places."""
    assert errata("--json", *arguments).json == errata(*arguments, "--json").json


def test_plan_has_the_promised_parts():
    """Chunks, inputs, verdicts and the estimate have their own fields."""
    plan = errata(*PLAN, "--json").json
    assert plan["chunks"][0].keys() >= {"chunk_id", "partitions", "bytes", "rows"}
    assert plan["inputs"][0].keys() >= {"name", "files", "file_count"}
    assert plan["inputs"][1]["snapshot_id"] == "1203944182745550012"
    assert plan["verdicts"][2].keys() >= {"rule", "level", "message"}
    assert plan["estimate"].keys() >= {"rows", "bytes", "seconds", "usd"}
    assert len(plan["partitions"]) == 45


def test_diff_is_one_flat_object():
    """Rows per partition, columns by name, samples with exact values as text."""
    diff = errata("diff", RUN, "--json").json
    fields = {"partition", "before_rows", "after_rows", "added", "removed", "changed", "unchanged"}
    assert diff["partitions"][0].keys() >= fields
    assert diff["columns"]["revenue_usd"]["changed"] == 1_465_020
    assert diff["sample"][0]["before"]["revenue_usd"] == "1204.11"
    assert diff["sample"][0]["key"]["business_date"] == "2026-01-17"
    assert "diff" not in diff


def test_status_of_one_run_is_that_run():
    """Counts, partitions with their state, and no list of other runs."""
    status = errata("status", RUN, "--json").json
    assert status["chunks"].keys() == COUNTS
    assert status["partitions"][0] == {"partition": "2026-01-01", "state": "waiting"}
    assert "runs" not in status


def test_status_of_all_runs_is_a_list():
    """Only the list."""
    status = errata("status", "--json", client=FakeClient({"status": samples.runs()})).json
    assert list(status) == ["runs", "campaigns", "reserved"]
    assert status["runs"][0]["run_id"] == RUN


def test_audit_log_is_a_list_of_entries():
    """Each with the hash before it."""
    entries = errata("audit", "log", "--json").json
    assert [entry["seq"] for entry in entries] == [1, 2]
    assert entries[1]["previous"] == entries[0]["hash"]


def test_why_has_the_promised_history():
    """From what to what, by whom."""
    fields = {"run_id", "reason", "requested_by", "approved_by", "published_at", "action", "before", "after"}
    assert errata("why", "t", "p", "--json").json["history"][1].keys() >= fields


def error_of(given: dict[str, Any], *arguments: str) -> tuple[int, dict[str, Any], str]:
    result = errata(*arguments, "--json", client=FakeClient(given))
    return result.code, result.json["error"], result.err


def test_error_has_one_shape_on_stdout():
    """Code, message, hint and state; the fields are made plain; stderr stays silent."""
    error = PlanRefused("no", hint="h", state="s", plan=samples.refused_plan(), rules=("a", "b"))
    code, found, narration = error_of({"plan": error}, *PLAN)
    assert (code, narration) == (3, "")
    assert {key: found[key] for key in ("code", "message", "hint", "state")} == {
        "code": "plan-refused", "message": "no", "hint": "h", "state": "s",
    }  # fmt: skip
    assert found["plan"]["verdicts"][1]["level"] == "refuse"
    assert found["rules"] == ["a", "b"]


@pytest.mark.parametrize("error, retryable", [(EngineError("no"), True), (PlanRefused("no"), False)])
def test_error_says_whether_a_repeat_may_succeed(error: ErrataError, retryable: bool):
    """A scheduler decides by it whether it tries again."""
    _, found, _ = error_of({"run": error}, "run", RUN)
    assert found["retryable"] is retryable


def test_error_of_a_run_carries_the_run():
    """What is staged and what failed is in the error."""
    _, found, _ = error_of({"run": RunFailed("no", run=samples.failed_run())}, "run", RUN)
    assert found["run"]["chunks"]["failed"] == 1


def test_check_of_files_that_do_not_load_still_lists_problems():
    """The project that cannot be opened is the one whose problems matter."""
    problem = {"file": "errata.yaml", "line": 3, "column": 1, "message": "unknown key", "key": "x"}
    client = FakeClient({"check": ProjectFileError("1 problem", problems=[problem])})
    result = errata("check", "--json", client=client)
    assert (result.code, result.json) == (1, {"ok": False, "problems": [problem], "warnings": []})


def test_manifest_is_the_exact_bytes():
    """No newline is added: the digest of the output is the digest of the manifest."""
    assert errata("show", RUN, "--manifest").out == '{"format":"errata.manifest/1"}'


def test_decline_by_a_person_is_not_an_approval():
    """The state is said."""
    assert errata("decline", RUN, "--note", "no", "--json").json["state"] == "declined"
