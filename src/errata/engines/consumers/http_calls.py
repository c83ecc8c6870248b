"""HTTP requests to consumers: a total time limit, no redirect to another host, and no address in messages."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from typing import IO, Any
from urllib.parse import urlsplit

from errata.errors import EngineError
from errata.model.consumer.declaration import HttpCall

_MAX_BODY_BYTES = 1024 * 1024
_SCHEMES = ("http", "https")


def send_request(call: HttpCall, url: str, body: Any, key: str, timeout_seconds: float) -> bytes:
    """Send one request and return the body of its answer; anything but success raises ``EngineError``.

    ``body`` is sent as JSON, except with GET. The key is the same for every repetition of the same work.
    """
    content = None if call.method == "GET" else json.dumps(body).encode()
    headers = {"accept": "application/json", "idempotency-key": key}
    if content is not None:
        headers["content-type"] = "application/json"
    if urlsplit(url).scheme not in _SCHEMES:
        raise EngineError("an address was not called; expected http or https")
    headers |= {name.lower(): value for name, value in call.headers.items()}
    request = urllib.request.Request(url, data=content, headers=headers, method=call.method)  # noqa: S310
    until = time.monotonic() + timeout_seconds
    try:
        with urllib.request.build_opener(_SameHost).open(request, timeout=timeout_seconds) as answer:
            return _read_body(answer, until)
    except urllib.error.HTTPError as error:
        error.close()
        raise EngineError(f"the address answered HTTP {error.code}") from None
    except TimeoutError:
        raise EngineError(f"the address did not answer within {timeout_seconds:g} s") from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise EngineError(f"the address did not answer within {timeout_seconds:g} s") from None
        # only the type: messages may quote the address, which may contain a secret
        raise EngineError(f"the address cannot be reached: {type(error.reason).__name__}") from None
    except (http.client.HTTPException, OSError, ValueError) as error:
        raise EngineError(f"the address cannot be reached: {type(error).__name__}") from None


def read_field(body: bytes, field: str | None) -> str | None:
    """The value in an answer: the text of the whole answer, or what a dotted key of its JSON has; None is null."""
    if field is None:
        return body.decode("utf-8", "replace").strip()
    try:
        found = json.loads(body, parse_float=str, parse_int=str)
        for name in field.split("."):
            found = found[int(name)] if isinstance(found, list) else found[name]
    except (ValueError, KeyError, TypeError, IndexError):
        raise EngineError(f"the answer has no field {field}") from None
    if isinstance(found, (dict, list)):
        raise EngineError(f"the field {field} of the answer is not one value")
    return None if found is None else str(found)


def _read_body(answer: http.client.HTTPResponse, until: float) -> bytes:
    """Read the body; a server that sends a byte now and then does not hold us longer than the time limit."""
    found = bytearray()
    while piece := answer.read1(65_536):
        found += piece
        if len(found) > _MAX_BODY_BYTES:
            raise EngineError("the answer is too long")
        if time.monotonic() > until:
            raise TimeoutError
    return bytes(found)


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follows redirects on the same host only: headers may hold credentials."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        here, there = urlsplit(req.full_url), urlsplit(newurl)
        if (here.scheme, here.netloc) != (there.scheme, there.netloc):
            raise EngineError(
                f"the address answered HTTP {code} with a redirect to another host, which was not followed"
            )
        if req.get_method() != "GET":
            raise EngineError(f"the address answered HTTP {code}; only GET follows a redirect")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
