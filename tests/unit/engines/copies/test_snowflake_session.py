"""Sessions with Snowflake: how they are opened, and what their errors say and do not say."""

from __future__ import annotations

import json
import sys

import pytest

from copies.snowflake_subject import make_key
from errata.engines.copies import snowflake_session
from errata.engines.copies.snowflake_copies import SnowflakeCopies
from errata.engines.copies.snowflake_session import (
    NETWORK_SECONDS,
    AnswerLost,
    StatementRefused,
    build_options,
    translate_error,
)
from errata.errors import EngineError, MissingDriver, UsageError
from errata.model.copy.snowflake_account import SnowflakeAccount
from support.postgres import free_port

SECRET = "TUlJRXZRSUJBREFOQmdr"
PEM = f"-----BEGIN PRIVATE KEY-----\n{SECRET}\nqhkiG9w0\n-----END PRIVATE KEY-----\n"


def make_account(key: str = PEM, host: str | None = None) -> SnowflakeAccount:
    return SnowflakeAccount("acme-fin", "SVC_ERRATA", key, "BACKFILL", "BACKFILL_WH", "FIN", "PUBLIC", host=host)


def test_a_session_commits_nothing_by_itself_and_waits_for_nothing_for_ever() -> None:
    """Autocommit is off, locks and requests have limits, times are UTC, and the tag is there from the beginning."""
    options = build_options(make_account(), 2.5, {"publication": "bf-1-p1", "attempt": 3})
    assert options["autocommit"] is False
    assert options["network_timeout"] == NETWORK_SECONDS
    assert options["login_timeout"]
    settings = options["session_parameters"]
    assert settings["AUTOCOMMIT"] is False
    assert settings["LOCK_TIMEOUT"] == 3
    assert settings["TIMEZONE"] == "UTC"
    assert json.loads(settings["QUERY_TAG"]) == {"errata": {"publication": "bf-1-p1", "attempt": 3}}
    assert "host" not in options


@pytest.mark.parametrize("text", [PEM, PEM.replace("\n", "\\n"), f"\n  {PEM}"])
def test_a_key_is_taken_as_people_have_it(text: str) -> None:
    """With line breaks, or with the two characters that variables have in their place."""
    assert make_account(text).read_key() == f"{SECRET}qhkiG9w0"


@pytest.mark.parametrize("text", ["", "secret", PEM.replace("PRIVATE", "ENCRYPTED PRIVATE"), SECRET])
def test_another_key_is_refused_without_being_quoted(text: str) -> None:
    """The error says what to do."""
    with pytest.raises(UsageError) as refused:
        make_account(text).read_key()
    assert SECRET not in f"{refused.value}{refused.value.hint}"
    assert "openssl" in (refused.value.hint or "")


def test_an_account_does_not_show_its_key() -> None:
    """In no log, no traceback and no debugger."""
    assert SECRET not in repr(make_account())
    assert SECRET not in repr(SnowflakeCopies({"snow": make_account()}))


def test_plain_http_is_for_this_machine_only() -> None:
    """A key must not travel in the clear."""
    with pytest.raises(UsageError):
        make_account(host="http://warehouse.example:80").split_host()
    with pytest.raises(UsageError):
        make_account(host="a host").split_host()
    assert make_account(host="https://a.privatelink.example").split_host()["port"] == 443


def test_an_account_that_cannot_be_reached_is_named_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the key nor the address is in the error."""
    pytest.importorskip("snowflake.connector")
    monkeypatch.setattr(snowflake_session, "LOGIN_SECONDS", 1)
    key = make_key()
    copies = SnowflakeCopies({"snow": make_account(key, host=f"http://127.0.0.1:{free_port()}")})
    with pytest.raises(EngineError) as refused:
        copies.describe("snow", "DAILY")
    told = f"{refused.value} {refused.value.fields} {refused.value.__cause__} {refused.value.__context__}"
    assert "snow cannot be reached as SVC_ERRATA" in told
    assert "127.0.0.1" not in str(refused.value)
    assert key.splitlines()[1] not in told


def test_messages_of_snowflake_are_passed_on_only_if_they_are_about_names() -> None:
    """Others may quote a value of a row; the number and the id of the query are always there."""
    errors = pytest.importorskip("snowflake.connector.errors")
    quoting = "Numeric value 'top secret' is not recognized"
    found = translate_error(errors.ProgrammingError(msg=quoting, errno=100_038, sqlstate="22018", sfqid="01b-7"))
    assert isinstance(found, StatementRefused)
    assert "top secret" not in str(found)
    assert "100038" in str(found)
    assert "01b-7" in str(found)
    naming = "SQL compilation error:\nObject 'X' does not exist or not authorized."
    missing = translate_error(errors.ProgrammingError(msg=naming, errno=2003, sqlstate="42S02"))
    assert isinstance(missing, StatementRefused)
    assert missing.is_missing_table
    assert "Object 'X' does not exist" in str(missing)


def test_a_lock_names_the_transaction_that_holds_it() -> None:
    """As far as Snowflake says so."""
    errors = pytest.importorskip("snowflake.connector.errors")
    text = (
        "Statement '01b-1' has locked table 'DAILY' in transaction 1725239781553000000 and this lock has not yet been"
    )
    found = translate_error(errors.ProgrammingError(msg=text, errno=625, sqlstate="57014", sfqid="01b-2"))
    assert isinstance(found, StatementRefused)
    assert found.is_locked
    assert found.blocked_by == ("1725239781553000000",)


@pytest.mark.parametrize("kind", ["OperationalError", "InterfaceError", "InternalServerError", "DatabaseError"])
def test_what_is_no_answer_of_snowflake_is_a_lost_answer(kind: str) -> None:
    """Nobody knows then whether the statement ran."""
    errors = pytest.importorskip("snowflake.connector.errors")
    assert isinstance(translate_error(getattr(errors, kind)(msg="gone", errno=250_003)), AnswerLost)
    # a session that is over refuses everything: also that says nothing about what was sent before
    assert isinstance(translate_error(errors.ProgrammingError(msg="Session is gone", errno=390_111)), AnswerLost)


def test_a_missing_driver_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    for name in [name for name in sys.modules if name.startswith("snowflake")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "snowflake", None)
    with pytest.raises(MissingDriver) as refused:
        SnowflakeCopies({"snow": make_account()}).describe("snow", "DAILY")
    assert refused.value.hint == 'pip install "errata[snowflake]"'


def test_an_account_that_is_not_declared_is_named() -> None:
    """A misspelt warehouse is an error of the file."""
    with pytest.raises(UsageError, match="expected one of snow"):
        SnowflakeCopies({"snow": make_account()}).describe("snowy", "DAILY")
