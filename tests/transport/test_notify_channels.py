"""Each channel against a real receiver on loopback: what arrives, and what a refusal comes to."""

from __future__ import annotations

from collections.abc import Iterator
from email import message_from_string, policy
from importlib.util import find_spec
from pathlib import Path

import pytest

from interlock.cli.config import BadConfig
from interlock.cli.notify.notify_file import recipients_in
from interlock.core.message import Link, Message, Send, Undelivered
from interlock.transport.notify.extra import Apprise
from support.receivers import MailReceiver, Receiver, receiver

MESSAGE = Message(
    "msg_1",
    "opened",
    1_800_000_000_000,
    "A decision waits: Ship <it>",
    "Ship «[it](x)»?\n- Yes",
    "https://desk.example/inbox?shown=1",
    (Link("Open", "https://desk.example/inbox?shown=1"), Link("Yes", "https://desk.example/answer/x")),
)


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as opened:
        yield opened


@pytest.fixture
def post_office() -> Iterator[MailReceiver]:
    opened = MailReceiver()
    yield opened
    opened.close()


def channel(folder: Path, **fields: object) -> Send:
    """Configure one channel as a user does."""
    lines = (f"{name} = {value!r}".replace("'", '"') for name, value in fields.items())
    (folder / "notify.toml").write_text("[channels.one]\n" + "\n".join(lines))
    return recipients_in(folder)["one"].send


def test_ntfy_gets_a_title_a_click_and_buttons(tmp_path: Path, hook: Receiver) -> None:
    channel(tmp_path, kind="ntfy", topic="ship", url=hook.url, token="tk_1")(MESSAGE)
    (arrived,) = hook.received
    assert arrived.headers["authorization"] == "Bearer tk_1"
    assert (arrived.json["topic"], arrived.json["title"]) == ("ship", MESSAGE.title)
    assert arrived.json["click"] == MESSAGE.url
    assert [action["label"] for action in arrived.json["actions"]] == ["Open", "Yes"]


def test_slack_reads_no_link_into_the_text(tmp_path: Path, hook: Receiver) -> None:
    channel(tmp_path, kind="slack", url=hook.url)(MESSAGE)
    text = hook.received[0].json["text"]
    assert text.startswith("*A decision waits: Ship &lt;it&gt;*\nShip «[it](x)»?")
    assert "<https://desk.example/answer/x|Yes>" in text


def test_teams_gets_a_card_without_hidden_links(tmp_path: Path, hook: Receiver) -> None:
    channel(tmp_path, kind="teams", url=hook.url)(MESSAGE)
    (attachment,) = hook.received[0].json["attachments"]
    texts = [block["text"] for block in attachment["content"]["body"]]
    assert texts[1] == "Ship «\\[it\\]\\(x\\)»?"
    assert [action["title"] for action in attachment["content"]["actions"]] == ["Open", "Yes"]


@pytest.mark.parametrize("kind", ["ntfy", "slack", "teams"])
def test_a_chat_that_fails_is_tried_again(tmp_path: Path, hook: Receiver, kind: str) -> None:
    more = {"topic": "ship"} if kind == "ntfy" else {}
    send = channel(tmp_path, kind=kind, url=hook.url, **more)
    hook.status = 429
    with pytest.raises(Undelivered) as refused:
        send(MESSAGE)
    assert not refused.value.final


def mailing(folder: Path, port: int, **more: object) -> Send:
    to = ["ada@example.org", "ben@example.org"]
    fields = {
        "host": "127.0.0.1",
        "port": port,
        "from": "interlock@example.org",
        "to": to,
        "security": "none",
    }
    return channel(folder, kind="smtp", **{**fields, **more})


def test_mail_has_one_subject_an_id_and_the_links(tmp_path: Path, post_office: MailReceiver) -> None:
    mailing(tmp_path, post_office.port)(MESSAGE)
    mail = message_from_string(post_office.received[0], policy=policy.default)
    assert (mail["Subject"], mail["To"]) == (MESSAGE.title, "ada@example.org, ben@example.org")
    assert mail["Message-ID"] == "<msg_1@interlock>"
    assert "Yes: https://desk.example/answer/x" in mail.get_content()


@pytest.mark.parametrize(("answer", "final"), [("450 later", False), ("550 never", True)])
def test_mail_that_is_refused_for_good_is_not_tried_again(
    tmp_path: Path, post_office: MailReceiver, answer: str, final: bool
) -> None:
    post_office.refuses = answer
    with pytest.raises(Undelivered) as refused:
        mailing(tmp_path, post_office.port)(MESSAGE)
    assert refused.value.final is final


def test_nobody_listens(tmp_path: Path, post_office: MailReceiver) -> None:
    send = mailing(tmp_path, post_office.port)
    post_office.close()
    with pytest.raises(Undelivered, match="ConnectionRefusedError"):
        send(MESSAGE)


def test_a_password_is_not_sent_over_a_plain_connection(tmp_path: Path, post_office: MailReceiver) -> None:
    with pytest.raises(BadConfig, match="needs security"):
        mailing(tmp_path, post_office.port, user="ada", password="secret")


def test_an_unknown_kind_and_an_unknown_key_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="pigeon"):
        channel(tmp_path, kind="pigeon")
    with pytest.raises(BadConfig, match="colour"):
        channel(tmp_path, kind="slack", url="https://x.example", colour="red")


@pytest.mark.skipif(find_spec("apprise") is not None, reason="apprise is installed")
def test_apprise_is_named_where_it_is_missing() -> None:
    with pytest.raises(Undelivered, match="interlock"):
        Apprise("json://nowhere.invalid")(MESSAGE)
