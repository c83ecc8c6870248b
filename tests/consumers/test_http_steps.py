"""HTTP steps: what a request carries, and what counts as an answer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from consumers.receiver import Answer, Received, Receiver
from errata.engines.consumers.systems import DeclaredSystems
from errata.errors import EngineError, UsageError
from errata.model.consumer.declaration import HttpCall, Refresh, Verify

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


def test_a_server_that_hangs_costs_the_time_limit(receive: Receive) -> None:
    """Both one that never answers and one that sends a byte now and then."""
    at = receive(lambda _: (time.sleep(3), Answer())[1])
    started = time.monotonic()
    with pytest.raises(EngineError, match="did not answer within 1 s"):
        SYSTEMS.refresh(Refresh(http=HttpCall(at.url), timeout_seconds=1), ["1"], KEY)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_drip, args=(listening,), daemon=True).start()
        drip = HttpCall(f"http://127.0.0.1:{listening.getsockname()[1]}/")
        with pytest.raises(EngineError, match="did not answer within 1 s"):
            SYSTEMS.refresh(Refresh(http=drip, timeout_seconds=1), ["1"], KEY)
    assert time.monotonic() - started < 5


def _drip(listening: socket.socket) -> None:
    client, _ = listening.accept()
    with client:
        client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        for _ in range(20):
            try:
                client.sendall(b" ")
            except OSError:
                return
            time.sleep(0.2)


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
