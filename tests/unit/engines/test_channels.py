"""Messages arrive through real webhooks, mail servers, files and commands, or fail without quoting an address."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from errata.engines.channels.message_file import append_message
from errata.engines.channels.sender import ChannelSender
from errata.engines.channels.webhook import sign
from errata.errors import EngineError
from errata.model.consumer.declaration import Channel, Email, Webhook
from errata.testing.contracts.sending import NOW, SECRET, MessageContract, build_message
from support import http_receiver
from support.http_receiver import HttpReceiver
from support.mail_server import MailServer

ROOT = Path(__file__).resolve().parents[3]


@dataclass
class WebSubject:
    receiver: HttpReceiver
    channel: Channel
    sender: ChannelSender = field(default_factory=lambda: ChannelSender(Path("/")))

    def received(self) -> list[str]:
        return [post.body.decode() for post in self.receiver.posts if post.path.endswith(SECRET)]

    def break_down(self) -> None:
        self.receiver.behave = http_receiver.refuse(500, SECRET.encode())


@dataclass
class MailSubject:
    server: MailServer
    channel: Channel
    sender: ChannelSender = field(default_factory=lambda: ChannelSender(Path("/")))

    def received(self) -> list[str]:
        return [
            f"{one['X-Errata-Id']} {one['Subject']} {body.get_content()}"
            for one in self.server.mails
            if (body := one.get_body(("plain",))) is not None
        ]

    def break_down(self) -> None:
        self.server.refuse["MAIL"] = f"451 {SECRET} try later"


@dataclass
class FileSubject:
    place: Path
    channel: Channel
    sender: ChannelSender = field(default_factory=lambda: ChannelSender(Path("/")))

    def received(self) -> list[str]:
        return [json.dumps(json.loads(line), ensure_ascii=False) for line in self.place.read_text("utf-8").splitlines()]

    def break_down(self) -> None:
        self.place.unlink()
        self.place.mkdir()


class TestWebhook(MessageContract):
    """A webhook."""

    @pytest.fixture
    def message_subject(self) -> Iterator[WebSubject]:
        with HttpReceiver() as receiver:
            webhook = Webhook(f"{receiver.url}/{SECRET}", SECRET)
            yield WebSubject(receiver, Channel("desk", webhook=webhook))


class TestSlack(MessageContract):
    """A Slack-compatible webhook."""

    @pytest.fixture
    def message_subject(self) -> Iterator[WebSubject]:
        with HttpReceiver() as receiver:
            yield WebSubject(receiver, Channel("desk", slack=f"{receiver.url}/{SECRET}"))


class TestMail(MessageContract):
    """E-mail."""

    @pytest.fixture
    def message_subject(self) -> Iterator[MailSubject]:
        with MailServer(user="errata", password=SECRET) as server:
            address = f"smtp://errata:{SECRET}@127.0.0.1:{server.port}"
            yield MailSubject(server, Channel("desk", email=Email(address, "errata@x.example", ("desk@x.example",))))


class TestFile(MessageContract):
    """A file."""

    @pytest.fixture
    def message_subject(self, tmp_path: Path) -> FileSubject:
        place = tmp_path / SECRET / "messages.jsonl"
        return FileSubject(place, Channel("desk", file=str(place)))


class TestCommand(MessageContract):
    """A command."""

    @pytest.fixture
    def message_subject(self, tmp_path: Path) -> FileSubject:
        place = tmp_path / "messages.jsonl"
        code = "import sys; open(sys.argv[1], 'ab').write(sys.stdin.buffer.read() + b'\\n')"
        channel = Channel("desk", command=(sys.executable, "-c", code, str(place), SECRET))
        return FileSubject(place, channel, ChannelSender(tmp_path))


def webhook(receiver: HttpReceiver, secret: str | None = None, timeout: int = 10) -> Channel:
    return Channel("bi", webhook=Webhook(f"{receiver.url}/hook/{SECRET}", secret), timeout_seconds=timeout)


def send(channel: Channel, n: int = 1) -> None:
    ChannelSender(Path("/")).send(channel, build_message(n), NOW)


def test_a_webhook_is_signed_over_id_time_and_body():
    """A receiver that computes the same HMAC knows that nobody changed any of the three."""
    with HttpReceiver() as receiver:
        send(webhook(receiver, "a secret of both"))
        send(webhook(receiver))
    signed, unsigned = receiver.posts
    content = f"{build_message().id}.{int(NOW.timestamp())}.".encode() + signed.body
    expected = base64.b64encode(hmac.new(b"a secret of both", content, hashlib.sha256).digest()).decode()
    assert signed.headers["webhook-signature"] == f"v1,{expected}"
    assert signed.headers["webhook-id"] == signed.json["id"] == build_message().id
    assert signed.headers["webhook-timestamp"] == str(int(NOW.timestamp()))
    assert "webhook-signature" not in unsigned.headers


def test_a_secret_in_the_form_of_standard_webhooks_is_decoded():
    """The vector of their own test suite, so that their libraries verify our messages."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    found = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    with pytest.raises(EngineError, match="is not base64"):
        sign("whsec_!", "a", 1, b"")


def test_the_recipe_of_the_guide_verifies_what_was_sent():
    """The Python that the guide shows accepts a message, and refuses a changed or an old one."""
    page = (ROOT / "docs" / "guides" / "tell-consumers.md").read_text("utf-8")
    [code] = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "def is_genuine" in block]
    names: dict[str, object] = {}
    exec(code, names)  # noqa: S102 - the page is ours
    is_genuine = names["is_genuine"]
    assert callable(is_genuine)
    with HttpReceiver() as receiver:
        send(webhook(receiver, "a secret of both"))
    [post] = receiver.posts
    now = int(NOW.timestamp())
    assert is_genuine("a secret of both", post.headers, post.body, now)
    assert not is_genuine("another secret", post.headers, post.body, now)
    assert not is_genuine("a secret of both", post.headers, post.body + b" ", now)
    assert not is_genuine("a secret of both", post.headers | {"webhook-id": "x"}, post.body, now)
    assert not is_genuine("a secret of both", post.headers, post.body, now + 3600)


FAULTS = {
    "500": (http_receiver.refuse(500), "the address answered HTTP 500"),
    "404 of Slack": (http_receiver.refuse(404, b"no_service"), "the address answered HTTP 404 (no_service)"),
    "an answer that quotes": (http_receiver.refuse(400, f"bad {SECRET}".encode()), "the address answered HTTP 400"),
    "hang": (http_receiver.hang, "the address did not answer within 1 s"),
    "dribble": (http_receiver.dribble(), "the address did not answer within 1 s"),
    "late": (http_receiver.answer_late(1.5), "the address did not answer within 1 s"),
    "reset": (http_receiver.reset, "the address cannot be reached: ConnectionResetError"),
    "nonsense": (http_receiver.answer(b"SSH-2.0-x\r\n"), "the address cannot be reached: BadStatusLine"),
    "nothing": (http_receiver.answer(b""), "the address cannot be reached: RemoteDisconnected"),
    "redirect": (
        http_receiver.refuse(307, b"", "location: http://127.0.0.1:1/"),
        "the address answered HTTP 307, a redirect, which is not followed",
    ),
    "redirect to see": (
        http_receiver.refuse(302, b"", "location: /other"),
        "the address answered HTTP 302, a redirect, which is not followed",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_receiver_that_does_not_take_a_message_is_an_error_in_time(fault: str):
    """Each fault is named in a few words, without address and body, within the time limit."""
    behave, expected = FAULTS[fault]
    with HttpReceiver(behave) as receiver:
        started = time.monotonic()
        with pytest.raises(EngineError) as failed:
            send(webhook(receiver, timeout=1))
        assert time.monotonic() - started < 5
    assert failed.value.message == f"channel bi (127.0.0.1): {expected}"
    assert len(receiver.posts) == 1
    assert SECRET not in repr(failed.value)


def test_an_answer_that_comes_twice_is_one_answer():
    """What follows the first answer is not read."""
    with HttpReceiver(http_receiver.answer(http_receiver.OK * 2)) as receiver:
        send(webhook(receiver))
        send(webhook(receiver), 2)
    assert [post.json["sequence"] for post in receiver.posts] == [1, 2]


AFTER_STATUS = {
    "10 MB": b"HTTP/1.1 200 OK\r\ncontent-length: 10485760\r\nconnection: close\r\n\r\n" + b"x" * 10_485_760,
    "half an answer": b"HTTP/1.1 202 Accepted\r\ncontent-length: 100\r\n\r\n{",
    "half a chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
}


@pytest.mark.parametrize("fault", AFTER_STATUS)
def test_a_message_is_sent_when_the_status_says_so(fault: str):
    """Whatever follows it: the receiver has the message, and would get it again for nothing."""
    with HttpReceiver(http_receiver.answer(AFTER_STATUS[fault])) as receiver:
        send(webhook(receiver))
    assert len(receiver.posts) == 1


def test_a_webhook_that_is_not_there_is_an_error():
    """Nobody listens."""
    with HttpReceiver() as receiver:
        channel = webhook(receiver)
    with pytest.raises(
        EngineError, match=r"^channel bi \(127.0.0.1\): the address cannot be reached: ConnectionRefused"
    ):
        send(channel)


def test_slack_gets_blocks_and_text_without_mentions():
    """Nothing that a person wrote becomes a mention of everyone."""
    with HttpReceiver() as receiver:
        send(Channel("desk", slack=f"{receiver.url}/x"))
    sent = receiver.posts[0].json
    assert sent["blocks"][0] == {"type": "header", "text": {"type": "plain_text", "text": build_message().title}}
    assert "<!channel>" not in receiver.posts[0].body.decode()
    assert "&lt;!channel&gt; &amp; 'Einheit'" in sent["text"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 that only we trust."""
    place = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", str(place / "key"), "-out", str(place / "cert")],
        check=True, capture_output=True,
    )  # fmt: skip
    (place / "pem").write_text((place / "key").read_text() + (place / "cert").read_text())
    return place / "pem"


def mail(server: MailServer, scheme: str = "smtp", user: str = "", timeout: int = 10) -> Channel:
    address = f"{scheme}://{user}127.0.0.1:{server.port}"
    return Channel(
        "desk", email=Email(address, "errata@x.example", ("a@x.example", "b@x.example")), timeout_seconds=timeout
    )


def test_mail_has_text_html_and_an_id_that_stays():
    """Two attempts are one mail for programs that compare ids; control characters cannot add a header."""
    with MailServer() as server:
        send(mail(server))
        send(mail(server))
    first, second = server.mails
    assert first["Message-ID"] == second["Message-ID"]
    assert first["Subject"] == build_message().title
    assert first["Auto-Submitted"] == "auto-generated"
    assert server.recipients[0] == ("a@x.example", "b@x.example")
    html = first.get_body(("html",))
    assert html is not None
    assert "Größe &lt;!channel&gt; &amp; 'Einheit'" in html.get_content()


def test_mail_is_encrypted_before_the_password_is_sent(certificate: Path, monkeypatch: pytest.MonkeyPatch):
    """STARTTLS with a certificate that is checked; a server that is not trusted gets no password."""
    with MailServer(certificate, user="errata", password="p@ss w:rd") as server:
        channel = mail(server, "smtp+starttls", "errata:p%40ss%20w%3Ard@")
        with pytest.raises(EngineError, match="cannot be used: SSLCertVerificationError"):
            send(channel)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        send(channel)
        assert server.encrypted == [True]
        server.password = "another"
        with pytest.raises(EngineError, match=r"^channel desk \(127.0.0.1\): the mail server answered 535$"):
            send(channel)


MAIL_FAULTS = {
    "greeting": ({"CONNECT": "554 no"}, "the mail server answered 554"),
    "sender": ({"MAIL": f"550 {SECRET}"}, "the mail server answered 550"),
    "recipients": ({"RCPT": f"550 {SECRET}"}, "the mail server refused every recipient: 550"),
    "content": ({"TAKEN": "554 spam"}, "the mail server answered 554"),
    "drop": ({"DATA": "drop"}, "the mail server cannot be used: SMTPServerDisconnected"),
    "no starttls": ({}, "the mail server does not offer what the address asks for: STARTTLS or a login"),
}


@pytest.mark.parametrize("fault", MAIL_FAULTS)
def test_a_mail_server_that_refuses_is_an_error_by_its_code(fault: str):
    """Servers quote addresses and user names; only the code is repeated."""
    refuse, expected = MAIL_FAULTS[fault]
    with MailServer(refuse=refuse) as server, pytest.raises(EngineError) as failed:
        send(mail(server, "smtp+starttls" if fault == "no starttls" else "smtp"))
    assert failed.value.message == f"channel desk (127.0.0.1): {expected}"


def test_a_recipient_that_is_refused_does_not_keep_the_others_from_their_mail():
    """How many were refused is on record; sending again would send it twice to the others."""
    with MailServer(refuse={"rcpt to:<a@x.example>": "550 no"}) as server:
        record = ChannelSender(Path("/")).send(mail(server), build_message(), NOW)
    assert record == {"recipients": 1, "refused": 1}
    assert server.recipients == [("b@x.example",)]


@pytest.mark.parametrize("behave", [http_receiver.hang, http_receiver.dribble(b"220 ")], ids=["hang", "dribble"])
def test_a_mail_server_that_hangs_is_an_error_in_time(behave: http_receiver.Behave):
    """Silence and single bytes end at the same limit."""
    with HttpReceiver(behave, reads=False) as receiver:
        channel = Channel("desk", email=Email(receiver.url.replace("http", "smtp"), "a@x", ("b@x",)), timeout_seconds=1)
        started = time.monotonic()
        with pytest.raises(EngineError, match="did not answer within 1 s"):
            send(channel)
        assert time.monotonic() - started < 5


def test_a_file_has_each_message_once(tmp_path: Path):
    """Sent again after a crash, it is found; a line that was cut off stays alone."""
    place = tmp_path / "messages.jsonl"
    for n in (1, 2, 1, 2, 11):
        append_message(str(place), build_message(n))
    assert [json.loads(line)["sequence"] for line in place.read_text("utf-8").splitlines()] == [1, 2, 11]
    with place.open("a") as file:
        file.write('{"id":"half a li')
    assert append_message(str(place), build_message(3)) == {"appended": True}
    assert append_message(str(place), build_message(3)) == {"appended": False}
    assert json.loads(place.read_text("utf-8").splitlines()[-1])["sequence"] == 3


def test_a_second_sender_waits_until_the_first_has_written(tmp_path: Path):
    """The file is locked from the look to the write, so that two processes do not both find nothing."""
    place = tmp_path / "messages.jsonl"
    append_message(str(tmp_path / "other"), build_message())
    other = threading.Thread(target=append_message, args=(str(place), build_message()))
    with place.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        other.start()
        other.join(0.5)
        assert other.is_alive()
        file.write((tmp_path / "other").read_bytes())
    other.join(30)
    assert not other.is_alive()
    assert place.read_bytes() == (tmp_path / "other").read_bytes()


def test_a_full_disk_leaves_no_half_a_line():
    """What was written of the line is taken out again."""
    with pytest.raises(EngineError, match="the file cannot be written: No space left on device"):
        append_message("/dev/full", build_message())


def test_a_command_gets_one_json_document_and_nothing_of_it_is_quoted(tmp_path: Path):
    """Its arguments may hold a secret, its output too."""
    code = "import json, sys; print(json.load(sys.stdin)['id'], file=open('heard', 'w')); sys.exit(3)"
    channel = Channel("pager", command=(sys.executable, "-c", code, SECRET))
    with pytest.raises(EngineError) as failed:
        ChannelSender(tmp_path).send(channel, build_message(), NOW)
    assert failed.value.message == "channel pager: the command ended with 3"
    assert (tmp_path / "heard").read_text().strip() == build_message().id
