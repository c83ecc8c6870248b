"""HTTP steps: what a request carries, and what counts as an answer."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest

from consumers.receiver import Answer, Received, Receiver
from errata.engines.consumers.systems import DeclaredSystems
from errata.errors import EngineError, UsageError
from errata.model.consumer.declaration import HttpCall, Refresh, Verify
from support import http_receiver

KEY = "bf-1-p1/published/recover/exec-dashboard"
Receive = Callable[..., Receiver]
SYSTEMS = DeclaredSystems(Path(), {})


def test_one_request_tells_all_partitions(receive: Receive) -> None:
    """Without {partition} there is one request, with the partitions as JSON, the key and the declared headers."""
    at = receive()
    call = HttpCall(f"{at.url}/refresh", headers={"Authorization": "Bearer s3cret"})
    SYSTEMS.refresh(Refresh(http=call), ["2026-01-03", "2026-01-04"], KEY)
    (told,) = at.received
    assert (told.method, told.path, told.body) == ("POST", "/refresh", {"partitions": ["2026-01-03", "2026-01-04"]})
    assert (told.headers["idempotency-key"], told.headers["authorization"]) == (KEY, "Bearer s3cret")


def test_partitions_are_percent_encoded_in_addresses(receive: Receive) -> None:
    """With {partition} there is one request for each, with a key of its own, and no value changes the address."""
    at = receive()
    call = HttpCall(f"{at.url}/t/{{partition}}/refresh?day={{partition}}", "PUT")
    SYSTEMS.refresh(Refresh(http=call), ["a/../b?x=1", "é"], KEY)
    assert [(told.method, told.path) for told in at.received] == [
        ("PUT", "/t/a%2F..%2Fb%3Fx%3D1/refresh?day=a%2F..%2Fb%3Fx%3D1"),
        ("PUT", "/t/%C3%A9/refresh?day=%C3%A9"),
    ]
    assert len({told.headers["idempotency-key"] for told in at.received}) == 2
    with pytest.raises(UsageError, match="cannot be a segment"):
        SYSTEMS.refresh(Refresh(http=call), [".."], KEY)


@pytest.mark.parametrize("name", ["東京", "Zürich\n", 'a"b', "x\r\nX-Admin: 1", "\x7f"])
def test_every_value_has_a_key_that_a_header_can_carry(receive: Receive, name: str) -> None:
    """Headers are one line of Latin-1: a value is percent-encoded there, and adds no header."""
    at = receive()
    for _ in range(2):
        SYSTEMS.refresh(Refresh(http=HttpCall(f"{at.url}/{{partition}}")), [name], KEY)
    (key,) = {told.headers["idempotency-key"] for told in at.received}
    assert unquote(key) == f"{KEY}/{name}"
    assert "x-admin" not in at.received[0].headers


LONG = b"HTTP/1.1 200 OK\r\ncontent-length: 10485760\r\nconnection: close\r\n\r\n" + b"1" * 10_485_760
CUT = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\nconnection: close\r\n\r\n12"
CHUNK = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n5\r\n12"


def _answer_slowly(client: socket.socket) -> None:
    client.sendall(CUT)
    http_receiver.dribble(b"")(client)


AFTER_STATUS = {
    "long": (http_receiver.answer(LONG), "the answer is too long"),
    "cut off": (http_receiver.answer(CUT), "the answer was cut off"),
    "cut off in a chunk": (http_receiver.answer(CHUNK), "the answer was cut off"),
    "slow": (_answer_slowly, "the address did not answer within 1 s"),
}


@pytest.mark.parametrize("fault", AFTER_STATUS)
def test_a_refresh_needs_the_status_and_a_read_back_the_whole_answer(fault: str) -> None:
    """What follows the status undoes nothing; half of a number would be another number."""
    behave, expected = AFTER_STATUS[fault]
    with http_receiver.HttpReceiver(behave) as at:
        SYSTEMS.refresh(Refresh(http=HttpCall(at.url), timeout_seconds=1), ["2026-01-03"], KEY)
        call = HttpCall(f"{at.url}/{{partition}}", "GET")
        with pytest.raises(EngineError, match=f"^{expected}$"):
            SYSTEMS.read_shown(Verify("count(*)", http=call, timeout_seconds=1), ["2026-01-03"], KEY)


@pytest.mark.parametrize("status", [400, 404, 500, 503])
def test_an_error_is_a_failed_attempt_without_the_address(receive: Receive, status: int) -> None:
    """Errors name the status and nothing of the address."""
    at = receive(lambda _: Answer(status, b"token=abc"))
    with pytest.raises(EngineError, match=rf"^the address answered HTTP {status}$"):
        SYSTEMS.refresh(Refresh(http=HttpCall(f"{at.url}/s3cret")), ["2026-01-03"], KEY)


def test_redirects_stay_on_the_host(receive: Receive) -> None:
    """Another host would get the headers; on the same host only GET follows."""
    other = receive()

    def lead(told: Received) -> Answer:
        places = {"/away": f"{other.url}/", "/here": "/there"}
        return Answer(302, headers={"location": places[told.path]}) if told.path in places else Answer(200, b'{"v": 7}')

    at = receive(lead)
    with pytest.raises(EngineError, match="HTTP 302, a redirect that is not followed"):
        SYSTEMS.refresh(Refresh(http=HttpCall(f"{at.url}/away")), ["1"], KEY)
    with pytest.raises(EngineError, match="HTTP 302, a redirect that is not followed"):
        SYSTEMS.refresh(Refresh(http=HttpCall(f"{at.url}/here")), ["1"], KEY)
    verify = Verify("count(*)", http=HttpCall(f"{at.url}/here", "GET"), answer="v")
    assert SYSTEMS.read_shown(verify, ["1"], KEY) == {"1": "7"}
    assert other.received == []


@pytest.mark.parametrize("behave", [http_receiver.hang, http_receiver.dribble()], ids=["silent", "byte by byte"])
def test_a_server_that_hangs_costs_the_time_limit(behave: http_receiver.Behave) -> None:
    """Both one that never answers and one that sends a byte of its head now and then."""
    started = time.monotonic()
    with (
        http_receiver.HttpReceiver(behave) as at,
        pytest.raises(EngineError, match="did not answer within 1 s"),
    ):
        SYSTEMS.refresh(Refresh(http=HttpCall(at.url), timeout_seconds=1), ["1"], KEY)
    assert time.monotonic() - started < 5


def test_values_are_read_from_a_field_digit_by_digit(receive: Receive) -> None:
    """Numbers keep all digits; null is nothing; a missing field is an error."""
    bodies = {"/1": b'{"data": [{"usd": 12345678901234567.10}]}', "/2": b'{"data": [{"usd": null}]}', "/3": b"{}"}
    at = receive(lambda told: Answer(200, bodies[told.path]))
    verify = Verify("sum(usd)", http=HttpCall(f"{at.url}/{{partition}}", "GET"), answer="data.0.usd")
    assert SYSTEMS.read_shown(verify, ["1", "2"], KEY) == {"1": "12345678901234567.10", "2": None}
    with pytest.raises(EngineError, match=r"the answer has no field data\.0\.usd"):
        SYSTEMS.read_shown(verify, ["3"], KEY)


def test_nobody_there_is_an_error_without_the_address() -> None:
    """A refused connection names its kind only."""
    with pytest.raises(EngineError, match=r"^the address cannot be reached: ConnectionRefusedError$"):
        SYSTEMS.refresh(Refresh(http=HttpCall("http://127.0.0.1:9/s3cret")), ["1"], KEY)
