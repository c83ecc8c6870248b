"""Log lines of commands: what each has, and what none of them may have."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from errata import logs
from errata.cli.app.session import CliEnvironment
from errata.cli.main import main
from errata.errors import RunFailed
from support.memory_world import MemoryWorld
from support.world import TABLE

Make = Callable[..., MemoryWorld]
LOG = "logging: {file: logs/errata.jsonl}\n"
SEED = ("run_id", "chunk_id", "source_range", "transform_version", "target", "processing_mode")
SECRET_ROW = "8675309"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    yield
    logs.stop()


def lines(world: MemoryWorld, **wanted: Any) -> list[dict[str, Any]]:
    text = (world.root / "logs" / "errata.jsonl").read_text("ascii")
    found = [json.loads(line) for line in text.splitlines()]
    return [line for line in found if all(line.get(name) == value for name, value in wanted.items())]


def test_every_line_of_an_attempt_has_its_run_chunk_range_version_target_and_mode(make_world: Make) -> None:
    """And the attempt, its fence, its wave and the trace; one search by run id finds all of a run."""
    world = make_world(days=3, chunk_bytes="1", project=LOG)
    run = world.to("validated")
    world.client.publish(run, as_="bo")
    events = [line["event"] for line in lines(world, run_id=run)]
    assert {"run.planned", "run.approved", "attempt.started", "chunk.adopted", "publish.committed"} <= {*events}
    worker = [line for event in ("attempt.started", "chunk.adopted") for line in lines(world, event=event)]
    assert len(worker) == 6
    for line in worker:
        assert all(line[name] for name in (*SEED, "attempt", "fence", "wave", "trace_id")), line
        assert (line["run_id"], line["target"], line["processing_mode"]) == (run, TABLE, "BACKFILL")
    assert {line["source_range"] for line in worker} == set(world.days)
    assert len({line["trace_id"] for line in worker}) == 1
    assert all(logs.FIELDS[0] in line and set(logs.FIELDS) <= line.keys() for line in lines(world))


def test_lines_about_decisions_have_the_range_version_target_and_mode_of_the_run(make_world: Make) -> None:
    """Planned, approved, paused, resumed and cancelled: also of a process that opens no run."""
    world = make_world(days=2, project=LOG)
    run = world.to("approved")
    world.client.run(run, max_chunks=0, as_="ana")
    world.client.pause(run, as_="ana")
    world.client.resume(run, as_="ana")
    logs.set_fields({})
    world.client.cancel(run, reason="wrong month", as_="ana")
    found = lines(world, run_id=run)
    assert {"run.planned", "run.approved", "run.paused", "run.cancelled"} <= {line["event"] for line in found}
    assert [line for line in found if not all(line[name] for name in SEED if name != "chunk_id")] == []


def test_a_failure_is_logged_by_its_code_and_without_what_the_exception_says(make_world: Make) -> None:
    """An exception of a transform may quote a row."""

    def fail(_ctx: Any, raw: Any) -> list[dict[str, Any]]:
        raise ValueError(f"cannot convert {SECRET_ROW} of account c4nary")

    world = make_world(days=1, project=LOG, transform=fail)
    run = world.to("approved")
    with pytest.raises(RunFailed):
        world.client.run(run, as_="ana")
    (warned,) = lines(world, event="attempt.error")[:1]
    assert (warned["level"], warned["code"], bool(warned["chunk_id"])) == ("warning", "transform-failed", True)
    assert lines(world, event="run.failed")[0]["level"] == "error"
    text = (world.root / "logs" / "errata.jsonl").read_text("ascii")
    assert SECRET_ROW not in text
    assert "c4nary" not in text


def test_a_line_about_another_run_has_none_of_the_fields_of_this_one(make_world: Make) -> None:
    """Only its id is known; a line that names no run belongs to the one that the process works on."""
    world = make_world(days=1, project=LOG)
    logs.set_fields({"run_id": "bf-1", "target": "t", "source_range": "r"})
    logs.log("some.event", run_id="bf-2")
    logs.log("some.event", run_id="bf-1")
    logs.log("some.event", run_id=None)
    logs.set_fields({})
    other, same, unnamed = lines(world, event="some.event")
    assert (other["target"], other["source_range"], other["run_id"]) == (None, None, "bf-2")
    assert (same["target"], same["run_id"]) == (unnamed["target"], unnamed["run_id"]) == ("t", "bf-1")


def test_text_cannot_begin_another_line(make_world: Make) -> None:
    """Lines are ASCII, and a line break in a value is escaped."""
    world = make_world(days=1, project=LOG)
    logs.log("some.event", consumer='x\n{"event": "forged"}\u2028é')
    (line,) = lines(world, event="some.event")
    assert line["consumer"] == 'x\n{"event": "forged"}\u2028é'
    assert not lines(world, event="forged")


def test_a_command_says_when_it_starts_ends_and_fails(make_world: Make, capsys: pytest.CaptureFixture[str]) -> None:
    """Without its arguments, which people write."""
    world = make_world(days=1, project=LOG)
    environment = CliEnvironment(
        open_project=lambda _place, **options: world.client, out=io.StringIO(), err=io.StringIO(), interactive=False,
        environ={"ERRATA_USER": "ana"}, width=100,
    )  # fmt: skip
    world.client.close = lambda: None  # type: ignore[method-assign]
    assert main(("show", "bf-no-such-run"), environment) != 0
    mine = lines(world, command="show")
    assert [(line["event"], line["level"]) for line in mine] == [
        ("command.started", "info"), ("command.failed", "error"), ("command.ended", "info"),
    ]  # fmt: skip
    assert mine[1]["code"] == "not-found"
    assert mine[2]["exit_code"] != 0
    assert "bf-no-such-run" not in json.dumps(mine)


def test_a_search_for_a_run_finds_the_beginning_and_the_end_of_its_commands(make_world: Make) -> None:
    """Also of one that is refused; part of the id is enough, and the lines have the whole one."""
    world = make_world(days=1, project=LOG)
    run = world.to("validated")
    logs.set_fields({})
    environment = CliEnvironment(
        open_project=lambda _place, **options: world.client, out=io.StringIO(), err=io.StringIO(), interactive=False,
        environ={"ERRATA_USER": "ana"}, width=100,
    )  # fmt: skip
    world.client.close = lambda: None  # type: ignore[method-assign]
    assert main(("publish", run[-8:]), environment) != 0
    mine = lines(world, run_id=run, command="publish")
    assert [line["event"] for line in mine] == ["command.started", "command.failed", "command.ended"]
    assert all(line["target"] == TABLE for line in mine)


def test_nothing_is_written_unless_the_project_asks_for_it(make_world: Make) -> None:
    """And what is asked for has the level that was asked for."""
    silent = make_world(days=1)
    silent.to("validated")
    assert not (silent.root / "logs").exists()
    loud = make_world(days=1, project="logging: {file: logs/errata.jsonl, level: warning}\n")
    loud.to("validated")
    assert lines(loud) == []


def test_a_log_that_cannot_be_written_stops_nothing(make_world: Make, tmp_path: Path) -> None:
    """People are warned once, when the project is opened."""
    place = tmp_path / "file"
    place.write_text("")
    world = make_world(days=1, project=f"logging: {{file: {place}/errata.jsonl}}\n")
    assert world.to("validated")
    assert any(re.search("WARNING: no log lines are written", text) for text in world.said)


def test_lines_go_to_stderr_without_a_file(make_world: Make, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is a line that begins with a brace."""
    world = make_world(days=1, project="logging: {format: json}\n")
    world.to("validated")
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    assert {"run.planned", "chunk.adopted"} <= {line["event"] for line in told}


def test_a_program_with_its_own_handlers_gets_the_events(make_world: Make, caplog: pytest.LogCaptureFixture) -> None:
    """The logger ``errata`` of the standard library, with the fields as an attribute."""
    world = make_world(days=1)
    with caplog.at_level(logging.INFO, logger="errata"):
        run = world.to("validated")
    found = [record for record in caplog.records if record.message == "chunk.adopted"]
    assert found[0].errata["run_id"] == run  # type: ignore[attr-defined]


def test_a_trace_of_the_caller_is_the_trace_of_the_lines(make_world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """By ``TRACEPARENT``, as a scheduler sets it."""
    monkeypatch.setenv("TRACEPARENT", f"00-{'ab' * 16}-{'cd' * 8}-01")
    logs.make_trace_id.cache_clear()
    assert "opentelemetry.trace" in sys.modules or logs.find_trace_id() == "ab" * 16
    logs.make_trace_id.cache_clear()
