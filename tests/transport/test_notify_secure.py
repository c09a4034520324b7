"""Mail over TLS and STARTTLS, and Apprise, against real receivers on loopback."""

from __future__ import annotations

import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest

from interlock.core.message import Link, Message, Undelivered
from interlock.transport.notify.extra import Apprise
from interlock.transport.notify.mail import Mail, Mailbox, Security
from support.receivers import Receiver, receiver

MESSAGE = Message(
    "msg_1",
    "opened",
    1_800_000_000_000,
    "A decision waits: Übergabe",
    "Ship 2.0?\n│ Grüße",
    "https://desk.example/console/inbox",
    (Link("Yes", "https://desk.example/answer/x"),),
)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of packages that are not ours
USER, PASSWORD = "interlock", "pass phrase"


class PostOffice:
    """A real SMTP server with a certificate of its own, and what it has received."""

    def __init__(self, certificate: Path) -> None:
        self.certificate = certificate
        self.received: list[bytes] = []
        self.logins: list[tuple[bytes, bytes, bool]] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.received.append(envelope.content)
        return "250 taken"

    @contextmanager
    def open(self, security: Security) -> Iterator[int]:
        """Listen; with `none` it offers no encryption."""
        from aiosmtpd.controller import Controller
        from aiosmtpd.smtp import AuthResult

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.certificate.with_suffix(".key"))

        def log_in(server: Any, session: Any, envelope: Any, mechanism: str, given: Any) -> Any:
            self.logins.append(
                (given.login, given.password, server.transport.get_extra_info("ssl_object") is not None)
            )
            return AuthResult(success=given.password == PASSWORD.encode(), handled=False)

        more: dict[str, Any] = {
            "tls": {"ssl_context": context},
            "starttls": {"tls_context": context, "require_starttls": True},
            "none": {},
        }[security]
        allowed = {"authenticator": log_in, "auth_require_tls": security == "starttls"}
        with socket.create_server(("127.0.0.1", 0)) as free:
            port: int = free.getsockname()[1]
        controller = Controller(self, hostname="127.0.0.1", port=port, **more, **allowed)
        controller.start()
        try:
            yield port
        finally:
            controller.stop()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("certificate") / "loopback.pem"
    subject = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    made = ("-keyout", str(path.with_suffix(".key")), "-out", str(path), "-days", "2")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject, *made],
        check=True,
        capture_output=True,
    )
    return path


@pytest.fixture
def post_office(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> PostOffice:
    pytest.importorskip("aiosmtpd", reason="aiosmtpd is not installed; run pip install aiosmtpd")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return PostOffice(certificate)


def mailbox(port: int, security: Security, **more: Any) -> Mailbox:
    fields = {"user": USER, "password": PASSWORD, **more}
    return Mailbox("127.0.0.1", port, "interlock@example.org", ("ada@example.org",), security, **fields)


@pytest.mark.parametrize("security", ["tls", "starttls"])
def test_mail_goes_over_an_encrypted_connection(post_office: PostOffice, security: Security) -> None:
    with post_office.open(security) as port:
        Mail(mailbox(port, security))(MESSAGE)
    (content,) = post_office.received
    mail = message_from_bytes(content, policy=policy.default)
    assert (mail["Subject"], mail["Message-ID"]) == (MESSAGE.title, "<msg_1@interlock>")
    assert "Ship 2.0?\n│ Grüße" in mail.get_content().replace("\r\n", "\n")
    assert "Yes: https://desk.example/answer/x" in mail.get_content()
    assert post_office.logins == [(USER.encode(), PASSWORD.encode(), True)]


@pytest.mark.parametrize("security", ["tls", "starttls"])
def test_a_wrong_password_is_final(post_office: PostOffice, security: Security) -> None:
    with post_office.open(security) as port, pytest.raises(Undelivered, match="535") as refused:
        Mail(mailbox(port, security, password="wrong"))(MESSAGE)
    assert refused.value.final
    assert post_office.received == []


@pytest.mark.parametrize("security", ["tls", "starttls"])
def test_nothing_is_sent_to_a_server_that_nobody_vouches_for(
    post_office: PostOffice, security: Security, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with (
        post_office.open(security) as port,
        pytest.raises(Undelivered, match="SSLCertVerificationError") as refused,
    ):
        Mail(mailbox(port, security))(MESSAGE)
    assert not refused.value.final  # somebody may put the certificate right
    assert (post_office.received, post_office.logins) == ([], [])


@pytest.mark.parametrize("security", ["tls", "starttls"])
def test_nothing_is_sent_to_a_server_without_encryption(post_office: PostOffice, security: Security) -> None:
    with post_office.open("none") as port, pytest.raises(Undelivered):
        Mail(mailbox(port, security))(MESSAGE)
    assert (post_office.received, post_office.logins) == ([], [])


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as opened:
        yield opened


@pytest.fixture
def apprise(hook: Receiver) -> Callable[[], None]:
    pytest.importorskip("apprise", reason="apprise is not installed; run pip install 'interlock[notify]'")
    return lambda: Apprise(hook.url.replace("http://", "json://"))(MESSAGE)


def test_apprise_delivers_the_text_and_the_links(apprise: Callable[[], None], hook: Receiver) -> None:
    apprise()
    (sent,) = hook.received
    assert sent.json["title"] == MESSAGE.title
    assert "│ Grüße" in sent.json["message"]
    assert "Yes: https://desk.example/answer/x" in sent.json["message"]


def test_what_apprise_could_not_deliver_is_tried_again(apprise: Callable[[], None], hook: Receiver) -> None:
    hook.status = 500
    with pytest.raises(Undelivered, match="could not deliver") as failed:
        apprise()
    assert not failed.value.final


def test_an_address_that_apprise_does_not_know_is_final(apprise: Callable[[], None]) -> None:
    with pytest.raises(Undelivered, match="does not know") as refused:
        Apprise("pigeon://nowhere.invalid")(MESSAGE)
    assert refused.value.final
