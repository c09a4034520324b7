"""Mail over SMTP: plain text, with the message's id, so that mail programs drop repeats."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Literal

from msgspec import Struct

from interlock.core.message import Message, Undelivered

SECONDS = 10.0
REFUSED = 500  # from here on a server's answer is final

Security = Literal["tls", "starttls", "none"]


class Mailbox(Struct, frozen=True):
    """Where mail is handed in, as whom, and to whom it goes."""

    host: str
    port: int
    sender: str
    to: tuple[str, ...]
    security: Security = "starttls"
    user: str = ""
    password: str = ""


class Mail:
    """Sends to one mailbox."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox

    def __call__(self, message: Message) -> None:
        try:
            with _connected(self._mailbox) as server:
                server.send_message(mail_of(message, self._mailbox))
        except smtplib.SMTPResponseException as error:
            reason = f"{self._mailbox.host} answered {error.smtp_code}"
            raise Undelivered(reason, final=error.smtp_code >= REFUSED) from error
        except (smtplib.SMTPException, OSError, ValueError) as error:
            raise Undelivered(f"{self._mailbox.host}: {type(error).__name__}") from error


@contextmanager
def _connected(mailbox: Mailbox) -> Iterator[smtplib.SMTP]:
    """Log in over an encrypted connection; a password is never sent over a plain one."""
    context = ssl.create_default_context()
    if mailbox.security == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(mailbox.host, mailbox.port, timeout=SECONDS, context=context)
    else:
        server = smtplib.SMTP(mailbox.host, mailbox.port, timeout=SECONDS)
    with server:
        if mailbox.security == "starttls":
            server.starttls(context=context)
        if mailbox.user and mailbox.security != "none":
            server.login(mailbox.user, mailbox.password)
        yield server


def mail_of(message: Message, mailbox: Mailbox) -> EmailMessage:
    """Write the mail; a line break in a title would begin another header."""
    mail = EmailMessage()
    mail["Subject"] = " ".join(message.title.split())
    mail["From"] = mailbox.sender
    mail["To"] = ", ".join(mailbox.to)
    mail["Date"] = format_datetime(datetime.fromtimestamp(message.at / 1000, UTC))
    mail["Message-ID"] = f"<{message.id}@interlock>"
    mail["Auto-Submitted"] = "auto-generated"
    links = "".join(f"\n{link.label}: {link.url}" for link in message.links)
    mail.set_content(f"{message.text}\n{links}\n")
    return mail
