"""How commands end: exit codes, the shape of errors, interruption, and no traceback for people."""

from __future__ import annotations

import pytest

from errata import errors
from errata.cli.app.failure import error_to_data
from unit.cli import samples
from unit.cli.sample_client import FakeClient, errata

RUN = samples.RUN


def tree(kind: type[errors.ErrataError]) -> list[type[errors.ErrataError]]:
    below = [found for child in kind.__subclasses__() for found in tree(child)]
    return [kind, *below] if kind.__module__ == "errata.errors" else below


@pytest.mark.parametrize("kind", tree(errors.ErrataError), ids=lambda kind: kind.__name__)
def test_exit_code_and_code_are_those_of_the_error(kind: type[errors.ErrataError]):
    """Every error class keeps its exit code, as text and as JSON."""
    error = kind("what was refused", hint="errata status", state="nothing was changed")
    text = errata("publish", RUN, client=FakeClient({"publish": error}))
    data = errata("publish", RUN, "--json", client=FakeClient({"publish": error}))
    assert text.code == data.code == kind.exit_code
    assert text.err == f"error[{kind.code}]: what was refused\nnothing was changed\n\nhint: errata status\n"
    assert data.json["error"]["code"] == kind.code


def test_text_errors_leave_stdout_alone():
    """Data is on stdout; an error without data leaves it empty."""
    assert errata("publish", RUN, client=FakeClient({"publish": errors.StateRefused("no")})).out == ""


def test_message_of_several_lines_is_indented():
    """The details stand under the sentence."""
    result = errata("publish", RUN, client=FakeClient({"publish": errors.PublishConflict("a\nb\n  c")}))
    assert result.err == "error[publish-conflict]: a\n  b\n  c\n"


def test_fixed_keys_of_an_error_cannot_be_taken_by_fields():
    """A field named code does not hide the code."""
    error = errors.StateRefused("no")
    error.fields["code"] = "other"
    assert error_to_data(error)["error"]["code"] == "state"


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("plan",),
        ("plan", "p", "--reason", "x"),
        ("plan", "p", "--reason", "x", "--from", "2026-01-01"),
        ("plan", "p", "--reason", "x", "--from", "a", "--to", "b", "--partitions", "c"),
        ("plan", "p", "--reason", "x", "--partitions", "a", "--order", "sideways"),
        ("plan", "p", "--reason", "x", "--partitions", "a", "--override", "recent"),
        ("plan", "p", "--reason", "x", "--partitions", "a", "--override", "recent="),
        ("plan", "p", "--reason", "x", "--partitions", "a", "--override", "a=b", "--override", "a=c"),
        ("run", RUN, "--parallel", "0"),
        ("run", RUN, "--parallel", "two"),
        ("approve", RUN),
        ("erase", "add", "A-17", "--reason", "x"),
        ("rollback", RUN),
        ("audit",),
        ("diff", RUN, "--unknown"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2_in_the_same_shape(arguments: tuple[str, ...]):
    """What typer refuses and what we refuse look alike, and nothing is opened."""
    client = FakeClient()
    text, data = errata(*arguments, client=client), errata("--json", *arguments, client=client)
    assert text.code == data.code == 2
    assert text.err.startswith("error[usage]: ")
    assert len(text.err.splitlines()[0]) > len("error[usage]: ")
    assert data.json["error"]["code"] == "usage"
    assert client.calls == []


def test_watching_has_no_json():
    """A page that is redrawn is not a document."""
    result = errata("status", "--watch", "--json")
    assert (result.code, result.json["error"]["code"]) == (2, "usage")


@pytest.mark.parametrize(
    "words, state",
    [
        (("run", RUN, "--parallel", "4"), "main is unchanged; finished work is recorded"),
        (("run", RUN, "--publish"), "a commit to main landed whole or not at all"),
        (("rollback", RUN, "--reason", "wrong", "--yes"), "a commit to main landed whole or not at all"),
    ],
)
def test_interruption_is_130_and_says_how_to_go_on(words: tuple[str, ...], state: str):
    """Ctrl-C: main is unchanged unless the command commits to it, and the same command goes on."""
    interrupted = KeyboardInterrupt()
    result = errata(*words, client=FakeClient(dict.fromkeys(("run", "rollback", "rollback_plan"), interrupted)))
    assert result.code == 130
    assert state in result.err
    assert f"errata {' '.join(words)}" in result.err


def test_interruption_is_told_in_json_too():
    """A program gets the code as data."""
    result = errata("run", RUN, "--json", client=FakeClient({"run": KeyboardInterrupt()}))
    assert (result.code, result.json["error"]["code"]) == (130, "interrupted")


def test_unexpected_error_is_one_sentence():
    """No traceback unless asked for, and no password from an address."""
    broken = RuntimeError("cannot reach postgresql://bo:secret@db/ledger\nmore")
    result = errata("status", client=FakeClient({"status": broken}))
    assert result.code == 1
    assert result.err.startswith("error[internal]: unexpected RuntimeError: cannot reach postgresql://…@db/ledger")
    assert "ERRATA_DEBUG=1" in result.err
    assert "secret" not in result.err
    assert "Traceback" not in result.err


def test_debugging_shows_the_traceback():
    """ERRATA_DEBUG=1 is for whoever mends it."""
    result = errata("status", client=FakeClient({"status": RuntimeError("x")}), environ={"ERRATA_DEBUG": "1"})
    assert "Traceback" in result.err


def test_broken_audit_chain_is_1():
    """The answer is data, the exit code says no."""
    result = errata("audit", "verify", "--json", client=FakeClient({"audit_verify": samples.audit(ok=False)}))
    assert (result.code, result.json["first_bad"]) == (1, 17)


def test_client_is_closed_however_a_command_ends():
    """Connections are given back also after an error."""
    client = FakeClient({"publish": errors.StateRefused("no")})
    errata("publish", RUN, client=client)
    assert client.closed == 1


def test_doctor_speaks_when_the_project_does_not_open():
    """The doctor is for when things are wrong."""
    client = FakeClient({"doctor": errors.ProjectFileError("no errata.yaml in .", hint="errata init")})
    result = errata("doctor", "--json", client=client)
    assert result.code == 1
    assert result.json["checks"][0] == {
        "name": "project", "ok": False, "found": "no errata.yaml in .", "hint": "errata init", "waiting": False,
    }  # fmt: skip
