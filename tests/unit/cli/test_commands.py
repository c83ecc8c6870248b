"""The commands themselves: names, help, options, questions, and what reaches the client."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from errata.cli.app.session import CliEnvironment
from errata.cli.main import build_app, main
from errata.errors import ApprovalRefused
from unit.cli import samples
from unit.cli.sample_client import FakeClient, errata

RUN, DIGEST = samples.RUN, samples.DIGEST
PLAIN = (
    "init adopt check doctor try plan show approve decline run pause resume cancel retry submit validate diff "
    "report release publish quarantine rollback status why runs history impact stale late runbook note cleanup deliver "
    "ready ack import record recordings metrics"
)
NAMES = (
    *PLAIN.split(" "),
    *("jars fetch", "jars archive", "jars check"),
    *("audit verify", "audit gaps", "audit log", "audit head", "audit keygen", "audit erase-person", "erase add"),
    *("erase where", "erase redact", "erase prove"),
    *("ledger create", "ledger roles"),
    *("evidence export", "evidence verify"),
    *("live check", "live write"),
    *("consumers check", "consumers confirm", "copies check"),
    *("standing show", "standing approve", "standing revoke"),
    *("outbox list", "outbox retry", "outbox waive"),
)


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, child in getattr(command, "commands", {}).items():
        below = list(walk(child, (*path, name)))
        yield from below or [(" ".join((*path, name)), child)]


COMMANDS = dict(walk(typer.main.get_command(build_app())))


def test_every_command_of_the_interface_is_there():
    """The documented names, and no undocumented ones."""
    assert sorted(COMMANDS) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]):
    """Help says what it does and shows how it is typed; every option is explained."""
    assert main([*name.split(), "--help"]) == 0
    page = capsys.readouterr().out
    assert f"Example:\n    errata {name}" in page
    assert all(getattr(parameter, "help", None) for parameter in COMMANDS[name].params)


def test_first_sentences_fit_the_list_of_commands(capsys: pytest.CaptureFixture[str]):
    """The overview cuts nothing off."""
    main(["--help"])
    assert "..." not in capsys.readouterr().out.partition("Set up:")[2]


def test_help_imports_no_engine():
    """Help is fast: neither Spark nor Iceberg nor the ledger is loaded for it."""
    code = (
        "import sys; from errata.cli.main import main; assert main(['--help']) == 0; "
        "heavy = ('pyspark', 'pyiceberg', 'sqlalchemy', 'pydantic', 'pyarrow', 'sqlglot'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_version_is_told():
    """For bug reports."""
    assert re.fullmatch(r"errata \d+\.\d+\.\d+.*\n", errata("--version").out)


def test_no_command_shows_help(capsys: pytest.CaptureFixture[str]):
    """Typing the name alone is a question."""
    assert main([]) == 0
    assert "Usage: errata" in capsys.readouterr().out


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_shared_options_stand_before_or_after_the_command(first: bool):
    """-C, --as and --json mean the same in both places."""
    shared, client = ("-C", "shop", "--as", "bo", "--json"), FakeClient()
    command = ("pause", RUN)
    result = errata(*(shared + command if first else command + shared), client=client)
    assert client.opened[0]["directory"] == "shop"
    assert client.called("pause") == {"as_": "bo"}
    assert result.json["state"] == "paused"


def test_later_person_wins():
    """What stands nearer to the command counts."""
    client = FakeClient()
    errata("--as", "ana", "pause", RUN, "--as", "bo", client=client)
    assert client.called("pause") == {"as_": "bo"}


def test_person_comes_from_the_environment():
    """ERRATA_USER, when --as is not given."""
    client = FakeClient()
    errata("pause", RUN, client=client, environ={"ERRATA_USER": "cy"})
    assert client.called("pause") == {"as_": "cy"}


def test_person_is_the_user_of_the_machine_else(monkeypatch: pytest.MonkeyPatch):
    """Somebody always acts."""
    monkeypatch.setenv("LOGNAME", "dee")
    client = FakeClient()
    errata("pause", RUN, client=client, environ={"ERRATA_USER": ""})
    assert client.called("pause") == {"as_": "dee"}


def test_plan_hands_over_everything():
    """Every option reaches the client under its own name."""
    client = FakeClient()
    errata(
        "plan", "p", "--from", "2026-01-01", "--to", "2026-02-01", "--reason", "why", "--kind", "repair",
        "--order", "oldest", "--canary", "3", "--prove-determinism", "2", "--deadline", "8h",
        "--supersede", "bf-1", "--override", "recent=closed = early",
        "--override", "rows=fine", "--expected-rows", "1..9", "--explain", "--dry-run", client=client,
    )  # fmt: skip
    ((name, positional, named),) = client.calls
    assert (name, positional) == ("plan", ("p", "2026-01-01", "2026-02-01"))
    assert named == {
        "partitions": None, "reason": "why", "kind": "repair", "copies": None, "order": "oldest", "canary": 3,
        "supersede": "bf-1",
        "prove_determinism": 2, "deadline": "8h",
        "overrides": {"recent": "closed = early", "rows": "fine"}, "restore": None, "restore_from": None,
        "dry_run": True, "as_": "ana",
        "expected_rows": "1..9", "explain": True, "stale": False,
    }  # fmt: skip


def test_digest_is_taken_with_or_without_its_algorithm():
    """Both spellings name the same bytes."""
    client = FakeClient()
    errata("approve", RUN, "--digest", f"sha256:{DIGEST}", "--note", "ok", client=client)
    assert client.called("approve") == {"digest": f"sha256:{DIGEST}", "note": "ok", "break_glass": None, "as_": "ana"}


@pytest.mark.parametrize("command", ["approve", "release"])
def test_the_beginning_of_a_digest_is_not_a_digest(command: str):
    """A terminal asks for 8 characters, ``--digest`` takes all; the refusal says so before anything starts."""
    client = FakeClient()
    result = errata(command, RUN, "--as", "bo", "--digest", DIGEST[:8], client=client)
    assert f"errata {command} {RUN} --as bo" in " ".join(result.err.split())
    assert f"{command} {RUN} was refused; --digest needs all 64 characters, found 8" in result.err
    assert (result.code, client.calls, DIGEST in result.err) == (2, [], False)


def test_options_of_work_and_release_reach_the_client():
    """Numbers as numbers, lists as given, pairs as mappings."""
    client = FakeClient()
    errata("run", RUN, "--parallel", "4", "--max-chunks", "1", client=client)
    errata("release", RUN, "--wave", "3", client=client)
    errata("rollback", RUN, "--wave", "2", "--reason", "x", client=client)
    errata("retry", RUN, "--chunk", "c0003", client=client)
    errata("validate", RUN, "--accept", "empty=holiday", "--thresholds", "too tight", client=client)
    errata("diff", RUN, "--partitions", "a,b", "--sample", "3", client=client)
    errata("publish", RUN, "--partitions", "a..b", client=client)
    errata("why", "t", "p", "--key", "a=1", "--key", "b=x", client=client)
    assert client.called("run") == {"parallel": 4, "max_chunks": 1, "publish": False, "as_": "ana"}
    assert (client.called("release")["wave"], client.called("rollback")["wave"]) == (3, 2)
    assert client.called("retry") == {"chunk": "c0003", "as_": "ana"}
    assert client.called("validate") == {
        "accept": {"empty": "holiday"}, "thresholds": "too tight", "wave": None, "as_": "ana",
    }  # fmt: skip
    assert client.called("diff") == {"partitions": "a,b", "sample": 3, "wave": None}
    assert client.called("publish") == {
        "partitions": "a..b", "digest": None, "break_glass": None, "wait": False, "early": None, "as_": "ana",
    }  # fmt: skip
    assert client.called("why") == {"key": {"a": "1", "b": "x"}}


def test_a_run_goes_on_to_publish_only_where_the_product_does_so_by_itself():
    """With --validate when nobody is needed, with --publish on request; never as a decision of whoever runs it."""
    client = FakeClient({"publishes_itself": True})
    assert errata("run", RUN, "--validate", "--json", client=client).json["publication_id"] == f"{RUN}-p1-3fa9c2"
    assert client.called("publish") == {"by_itself": True, "wait": True, "as_": "ana"}
    client = FakeClient()
    assert errata("run", RUN, "--validate", "--json", client=client).json["passed"]
    assert "publish" not in {name for name, _, _ in client.calls}
    client = FakeClient({"require_unattended": ApprovalRefused("a person releases it")})
    assert errata("run", RUN, "--publish", client=client).code == 3
    assert [name for name, _, _ in client.calls] == ["require_unattended"]


def test_breaking_the_glass_takes_a_reason_to_the_client():
    """On approve and publish alike."""
    client = FakeClient()
    errata("approve", RUN, "--digest", DIGEST, "--break-glass", "market opens", client=client)
    errata("publish", RUN, "--break-glass", "market opens", client=client)
    assert client.called("approve")["break_glass"] == client.called("publish")["break_glass"] == "market opens"


def test_waves_and_names_reach_the_client():
    """--wait and --early belong to a publication, the rest to a name; --dark asks nothing, for readers see nothing."""
    client = FakeClient()
    errata("publish", RUN, "--wait", "--early", "books close", client=client)
    assert (client.called("publish")["wait"], client.called("publish")["early"]) == (True, "books close")
    client = FakeClient()
    result = errata("publish", RUN, "--dark", "--name", "preview", "--compare", client=client, answer="n")
    assert result.code == 0
    assert client.called("dark") == {"name": "preview", "compare": True, "rejected": False, "as_": "ana"}
    assert [name for name, _, _ in client.calls] == ["dark"]


@pytest.mark.parametrize(
    "options, said",
    [
        (("--dark", "--wait"), "expected the whole candidate"),
        (("--dark", "--partitions", "a"), "expected the whole candidate"),
        (("--name", "preview"), "expected them with --dark"),
        (("--rejected",), "expected them with --dark"),
    ],
)
def test_options_of_a_name_and_of_a_publication_do_not_mix(options: tuple[str, ...], said: str):
    """A wish that would be passed over in silence is refused."""
    client = FakeClient()
    result = errata("publish", RUN, *options, client=client)
    assert (result.code, said in result.err, client.calls) == (2, True, [])


DEEDS = {"publish": (), "rollback": ("--reason", "wait"), "cancel": ("--reason", "too late")}


@pytest.mark.parametrize("deed", DEEDS)
def test_a_person_is_shown_what_changes_and_asked(deed: str):
    """On a terminal, what changes comes first; the default answer is no and changes nothing."""
    client = FakeClient()
    result = errata(deed, RUN, *DEEDS[deed], client=client, answer="")
    assert result.code == 1
    assert [name for name, _, _ in client.calls] == ["show", "status"]
    assert "2026-01-01 … 2026-02-14" in result.err
    assert "[y/N]" in result.err
    assert result.out == ""


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("answer", ["y", "YES "])
def test_yes_goes_ahead(deed: str, answer: str):
    """Any spelling of yes."""
    client = FakeClient()
    assert errata(deed, RUN, *DEEDS[deed], client=client, answer=answer).code == 0
    assert client.calls[-1][0] == deed


def test_a_yes_to_publish_is_to_what_was_shown():
    """The release digest of the preview goes along, so that a verdict that arrives meanwhile is not published."""
    client = FakeClient({"show": replace(samples.plan(), release_digest=samples.R)})
    assert errata("publish", RUN, client=client, answer="y").code == 0
    assert client.called("publish")["digest"] == samples.R


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("option", ["--yes", "--json"])
def test_nobody_is_asked_with(deed: str, option: str):
    """--yes and --json go ahead also on a terminal: approval and the state machine are the guard."""
    client = FakeClient()
    assert errata(deed, RUN, *DEEDS[deed], option, client=client, answer="").code == 0
    assert [name for name, _, _ in client.calls] == [deed]


def test_cleanup_shows_first():
    """On a terminal: what would go, a question, and only then the deed."""
    client = FakeClient({"cleanup": samples.cleanup(dry_run=True)})
    result = errata("cleanup", client=client, answer="n")
    assert result.code == 1
    assert [named["dry_run"] for _, _, named in client.calls] == [True]
    assert f"errata_{RUN}" in result.err


def test_watching_ends_with_ctrl_c_and_0():
    """Looking is not work that can be interrupted."""
    looks: list[int] = []

    def look(_: FakeClient, *_arguments: object) -> Any:
        looks.append(1)
        if len(looks) > 1:
            raise KeyboardInterrupt
        return samples.status()

    result = errata("status", RUN, "--watch", client=FakeClient({"status": look}))
    assert (result.code, len(looks)) == (0, 2)


def test_watching_ends_by_itself_when_nothing_is_under_way():
    """A published run does not change any more."""
    client = FakeClient({"status": samples.published_status()})
    assert errata("status", RUN, "--watch", client=client).code == 0
    assert len(client.calls) == 1


def test_init_writes_a_project_and_never_over_one(tmp_path: Path):
    """The starter is written once; a second time is refused."""
    first = errata("init", "shop", "-C", str(tmp_path))
    assert first.code == 0
    assert (tmp_path / "shop" / "errata.yaml").is_file()
    assert "make_lake.py" in first.out
    second = errata("init", "shop", "-C", str(tmp_path), "--json")
    assert (second.code, second.json["error"]["code"]) == (2, "usage")


def test_init_empty_leads_to_a_table_of_your_own(tmp_path: Path):
    """--empty writes no sample, and the next steps adopt a table instead of creating a lake."""
    made = errata("init", "shop", "--empty", "-C", str(tmp_path))
    assert sorted(path.name for path in (tmp_path / "shop").iterdir()) == [".errata", "errata.yaml"]
    assert "errata adopt" in made.out
    assert "make_lake.py" not in made.out


def test_adopt_prints_yaml_or_writes_a_new_file(tmp_path: Path):
    """stdout is the file itself; -o creates the folder products and never overwrites."""
    assert errata("adopt", "lake.fin.t", "-o", "products/p.yaml", "-C", str(tmp_path)).code == 0
    assert (tmp_path / "products" / "p.yaml").is_file()
    assert errata("adopt", "lake.fin.t").out == "product: fin.daily_revenue\n"
    told = errata("adopt", "lake.fin.t", "-o", "p.yaml", "-C", str(tmp_path))
    assert (told.code, told.out) == (0, "")
    assert (tmp_path / "p.yaml").read_text() == "product: fin.daily_revenue\n"
    assert errata("adopt", "lake.fin.t", "-o", "p.yaml", "-C", str(tmp_path)).code == 2


def test_report_is_a_page_a_file_or_json(tmp_path: Path):
    """stdout is the page itself; -o writes it, again and again; --json has the same numbers, whatever else is asked."""
    client = FakeClient()
    assert errata("report", RUN, client=client).out.startswith("<!doctype html>")
    assert client.called("report") == {"partitions": None, "sample": 20}
    for _ in range(2):
        told = errata("report", RUN, "-o", "r.html", "-C", str(tmp_path), "--sample", "5", "--partitions", "a")
        assert told.out.startswith(f"wrote {tmp_path / 'r.html'}")
    assert (tmp_path / "r.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]
    answer = errata("report", RUN, "-o", "r.html", "-C", str(tmp_path), "--json").json
    assert (answer["file"], answer["diff"]["partitions"][0]["partition"]) == ("r.html", "2026-01-01")
    assert errata("report", RUN, "-o", "no/where.html", "-C", str(tmp_path)).code == 2


def test_a_run_validated_in_the_same_process_answers_with_the_verdict():
    """The gate starts when every chunk is done; the answer is its answer, what was computed is narrated."""
    result = errata("run", RUN, "--validate", "--json", client=(client := FakeClient()))
    assert client.called("validate") == {"as_": "ana"}
    assert result.json["passed"] is True
    assert "chunks done" in result.err


def test_a_run_that_left_chunks_to_do_is_not_validated():
    """Half a candidate is not judged."""
    whole = samples.run_view()
    part = replace(whole, state="running", chunks=replace(whole.chunks, done=1, pending=whole.chunks.total - 1))
    result = errata("run", RUN, "--validate", "--json", client=(client := FakeClient({"run": part})))
    assert not any(name == "validate" for name, *_ in client.calls)
    assert result.json["state"] == "running"


def test_the_question_before_publishing_names_warnings_that_someone_accepted():
    """Whoever releases sees for what others took responsibility, and why."""
    accepted = ({"check": "empty", "why": "no trading on New Year's Day", "person": "bo"},)
    client = FakeClient({"status": samples.status(state="validated", accepted=accepted)})
    result = errata("publish", RUN, client=client, answer="n")
    assert "warning empty accepted by bo: no trading on New Year's Day" in " ".join(result.err.split())


def test_narration_goes_to_stderr():
    """What the client says while it works is not data."""

    def work(client: FakeClient, *_: object, **__: object) -> Any:
        client.opened[0]["narrate"]("took over from host-b/992")
        return samples.run_view()

    result = errata("run", RUN, "--json", client=FakeClient({"run": work}))
    assert "took over" in result.err
    assert result.json["state"] == "staged"


FIFTEEN_DAYS = tuple(f"2026-01-{day:02}" for day in range(16, 31))


def test_progress_is_plain_lines_without_a_terminal():
    """One line when a chunk starts, one when its partitions are done."""

    def work(client: FakeClient, *_: object, **__: object) -> Any:
        progress = client.opened[0]["progress"](RUN, 45, "day")
        progress.show("c0001", "2026-01-31 … 2026-02-14  running")
        progress.advance(FIFTEEN_DAYS, 700_000)
        progress.show("c0001", None)
        progress.close()
        return samples.run_view()

    lines = errata("run", RUN, client=FakeClient({"run": work})).err.splitlines()
    assert lines[0] == f"{RUN}  c0001  2026-01-31 … 2026-02-14  running"
    assert lines[1].startswith(f"{RUN}  15/45 days  700 k rows")
    assert len(lines) == 2


def test_a_stream_without_a_checkpoint_is_stopped_only_by_what_was_confirmed():
    """Nothing shows whether it runs, and the page does not say that something does."""
    from errata.cli.render.consumers.check import render_confirmed
    from errata.views.consumers import ConfirmView

    page = render_confirmed(ConfirmView(RUN, "fraud", "stopped", ""), (), 100)
    assert page == ["fraud was confirmed to be stopped"]
    page = render_confirmed(ConfirmView(RUN, "fraud", "stopped", "s3://lake/cp"), (), 100)
    assert page == ["fraud is stopped, as far as its checkpoint shows; publish checks it again"]


def test_progress_is_a_bar_on_a_terminal():
    """Partitions done, the running chunk and an estimate of the rest."""
    import io

    from rich.console import Console

    from errata.cli.app.progress import TerminalProgress

    stream = io.StringIO()
    bar = TerminalProgress(Console(file=stream, force_terminal=True, width=100, color_system=None), RUN, 45, "day")
    bar.show("c0002", "2026-01-16 … 2026-01-30  running")
    bar.advance(FIFTEEN_DAYS, 700_000)
    bar.close()
    page = stream.getvalue()
    assert "15/45 days" in page
    assert "ETA" in page
    assert "c0002  2026-01-16 … 2026-01-30" in page


def test_a_partition_that_is_computed_again_counts_once():
    """What is done never exceeds the whole, in a log and on a terminal."""
    import io

    from rich.console import Console

    from errata.cli.app.progress import LogProgress, TerminalProgress

    stream, said = io.StringIO(), list[str]()
    bar = TerminalProgress(Console(file=stream, force_terminal=True, width=100, color_system=None), RUN, 45, "day")
    for listener in (bar, LogProgress(said.append, RUN, 45, "day")):
        listener.advance(FIFTEEN_DAYS, 0)
        listener.advance([*FIFTEEN_DAYS[:3], "2026-02-15"], 0)
        listener.close()
    assert "16/45 days" in stream.getvalue()
    assert said == [f"{RUN}  15/45 days", f"{RUN}  16/45 days"]


def test_a_terminal_shows_that_spark_starts_and_a_log_does_not():
    """The first seconds of a run show something; the line goes when chunks begin."""
    import io

    from rich.console import Console

    from errata.cli.app.progress import LogProgress, TerminalProgress

    stream, said = io.StringIO(), []
    bar = TerminalProgress(Console(file=stream, force_terminal=True, width=100, color_system=None), RUN, 45, "day")
    bar.prepare("starting Spark…")
    assert "starting Spark…" in stream.getvalue()
    bar.prepare(None)
    stream.truncate(0)
    bar.close()
    assert "starting Spark…" not in stream.getvalue()
    LogProgress(said.append, RUN, 45, "day").prepare("starting Spark…")
    assert said == []


def test_a_plan_that_waits_shows_which_approval_no_longer_counts():
    """Two names and one of two approvals would be a riddle."""
    from errata.cli.render.plan import render_plan
    from errata.views import QuorumView

    void = {"cy": "needs the role approver, now gone"}
    quorum = QuorumView(2, 1, met=False, people=("bo",), told="1 of 2 approvals", may=("dana",), void=void)
    page = "\n".join(render_plan(samples.plan(approvals=samples.decision().approvals, quorum=quorum), 100))
    assert "1 of 2 approvals" in page
    assert "  ! the approval of cy needs the role approver, now gone" in page


def test_a_pause_has_no_estimate():
    """What was published before says nothing about how long the next wave waits."""
    import io

    from rich.console import Console

    from errata.cli.app.progress import LogProgress, TerminalProgress

    stream, said = io.StringIO(), list[str]()
    bar = TerminalProgress(Console(file=stream, force_terminal=True, width=100, color_system=None), RUN, 3, "wave")
    bar.advance(["1"], 0)
    bar.close()
    assert "1/3 waves" in stream.getvalue()
    assert "ETA" not in stream.getvalue()
    LogProgress(said.append, RUN, 3, "wave").advance(["1"], 0)
    assert said == [f"{RUN}  1/3 waves"]


def test_a_yes_to_all_waves_is_to_all_of_them():
    """With --wait the question names every partition that will go, and not only those of the next wave."""
    from errata.cli.render.publish import render_confirmation

    waves, turn = samples.waves(), samples.turn()
    status = samples.status(waves=waves, turn=turn)
    after = waves[(turn.next or 1) - 1 :]
    one = "\n".join(render_confirmation("publish", samples.plan(), status, 100))
    every = "\n".join(render_confirmation("publish", samples.plan(), status, 100, wait=True))
    count = sum(len(wave.partitions) for wave in after)
    assert len(after) > 1
    assert f"{len(after[0].partitions)} partitions: " in one
    assert f"{count} partitions in {len(after)} waves: " in every


def test_colour_is_left_out_on_request():
    """NO_COLOR is honoured even on a terminal."""
    import io

    from errata.cli.app.session import Session

    def page(**environ: str) -> str:
        out = io.StringIO()
        world = CliEnvironment(
            out=out, err=io.StringIO(), environ={"FORCE_COLOR": "1", "TERM": "xterm-256color", **environ}
        )
        Session(world).page(["  ✓ fine"])
        return out.getvalue()

    green = "\x1b[32m"
    assert green in page()
    assert green not in page(NO_COLOR="1")


def test_audit_verify_takes_any_number_of_heads_and_keys():
    """Places are relative to where the command is typed."""
    client = FakeClient()
    result = errata("audit", "verify", "--head", "a.json", "--head", "/w/heads", "--key", "k.pub", client=client)
    assert result.code == 0
    ((_, _, named),) = client.calls
    assert [str(one).rpartition("/")[2] for one in (*named["heads"], *named["keys"])] == ["a.json", "heads", "k.pub"]


def test_keygen_needs_no_project_and_never_replaces(tmp_path: Path):
    """A pair of files, the private one for its owner alone."""
    made = errata("audit", "keygen", "-o", str(tmp_path / "signing"), "--json")
    assert made.code == 0
    assert (tmp_path / "signing").stat().st_mode & 0o777 == 0o600
    assert made.json["public"] == f"{tmp_path}/signing.pub"
    again = errata("audit", "keygen", "-o", str(tmp_path / "signing"), "--json")
    assert (again.code, again.json["error"]["code"]) == (1, "key")


def test_a_head_without_a_place_is_printed_as_it_would_be_kept():
    """So that it can be piped to wherever it is safe."""
    view = replace(samples.head(), files=(), envelope='{"payload":"x"}')
    assert errata("audit", "head", client=FakeClient({"audit_head": view})).out.strip() == view.envelope


def test_roles_are_printed_only():
    """Creating roles is for whoever administers the database."""
    assert errata("ledger", "roles").code == 2
    printed = errata("ledger", "roles", "--print", "--app", "worker")
    granted = next(line for line in printed.out.splitlines() if line.startswith("GRANT SELECT ON "))
    assert "public.audit," in granted
    assert "ALL TABLES" not in printed.out, "a schema may hold tables of others"
    assert errata("ledger", "roles", "--print", "--app", "x; DROP").code == 2
