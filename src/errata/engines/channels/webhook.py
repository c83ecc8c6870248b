"""Post messages to webhooks, signed in the way of Standard Webhooks, and to Slack-compatible ones."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from datetime import datetime
from typing import Any

from errata.engines.http_request import send_request
from errata.errors import EngineError
from errata.model.consumer.declaration import Webhook
from errata.model.consumer.message import Message
from errata.model.consumer.message_formats import to_json, to_slack

ID, TIME, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_PREFIX = "whsec_"
_REASON = re.compile(rb"[a-z][a-z0-9_ ]{0,60}")


def sign(secret: str, id_: str, timestamp: int, body: bytes) -> str:
    """The signature: base64 of HMAC-SHA256 over ``id.timestamp.body``, after the version of the scheme.

    A secret that begins with ``whsec_`` is the key in base64, as Standard Webhooks has it; any other is the key itself.
    """
    key = secret.encode()
    if secret.startswith(_PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        except binascii.Error:
            raise EngineError("the secret of the webhook begins with whsec_ and is not base64") from None
    signed = b".".join((id_.encode(), str(timestamp).encode(), body))
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def post_webhook(webhook: Webhook, message: Message, at: datetime, timeout_seconds: float) -> dict[str, Any]:
    """Post a message; any answer other than success raises ``EngineError``."""
    body = encode(to_json(message))
    timestamp = int(at.timestamp())
    headers = {"content-type": "application/json", ID: message.id, TIME: str(timestamp)}
    if webhook.secret is not None:
        headers[SIGNATURE] = sign(webhook.secret, message.id, timestamp, body)
    return _post(webhook.url, body, headers, timeout_seconds)


def post_slack(url: str, message: Message, timeout_seconds: float) -> dict[str, Any]:
    """Post a message to a Slack-compatible incoming webhook."""
    return _post(url, encode(to_slack(message)), {"content-type": "application/json"}, timeout_seconds)


def encode(document: Any) -> bytes:
    """A JSON document as it is sent."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _post(url: str, body: bytes, headers: dict[str, str], timeout_seconds: float) -> dict[str, Any]:
    headers = headers | {"user-agent": "errata"}
    answer = send_request("POST", url, body, headers, timeout_seconds, reads_body=False)
    if 200 <= answer.status < 300:
        return {"status": answer.status}
    if 300 <= answer.status < 400:
        raise EngineError(f"the address answered HTTP {answer.status}, a redirect, which is not followed")
    # Slack says in a word what is wrong; anything longer may quote the message or the address
    word = answer.body.strip()
    why = f" ({word.decode()})" if _REASON.fullmatch(word) else ""
    raise EngineError(f"the address answered HTTP {answer.status}{why}")
