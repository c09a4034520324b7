"""`interlock notify`: channels are tried before they are needed, and what they did not take is listed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from interlock.cli.main import cli
from interlock.core.run.commands import Terms
from interlock.ledger.outbox.announcements import Recipient
from interlock.ledger.outbox.wording import equip
from interlock.transport.notify.webhook import Webhook
from support.harness import Agent, Bench, ExecutionSurface, gate, steps, workflow
from support.receivers import SECRET, Receiver, receiver


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as opened:
        yield opened


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--data-dir", str(folder)])


def configure(bench: Bench, url: str, secret: str = SECRET) -> None:
    lines = f'[channels.ops]\nkind = "webhook"\nurl = "{url}"\nsecret = "{secret}"\n'
    (bench.folder / "notify.toml").write_text(lines)


def test_a_channel_is_tried(bench: Bench, hook: Receiver) -> None:
    configure(bench, hook.url)
    assert run(bench.folder, "notify", "test").exit_code == 0
    assert hook.received[0].is_signed
    hook.status = 404
    failed = run(bench.folder, "notify", "test", "ops")
    assert (failed.exit_code, "answered 404" in failed.output) == (1, True)
    assert run(bench.folder, "notify", "test", "nobody").exit_code == 3


@pytest.mark.parametrize(
    ("url", "secret", "said"),
    [
        ("ftp://x", SECRET, "url"),
        ("http://x.example", "secret", "whsec_"),
        ("http://x.example", "$NOT_SET_HERE", "NOT_SET_HERE"),
    ],
)
def test_a_channel_that_cannot_be_used_is_refused_with_the_reason(
    bench: Bench, url: str, secret: str, said: str
) -> None:
    configure(bench, url, secret)
    refused = run(bench.folder, "notify", "test")
    assert (refused.exit_code, said in refused.output) == (2, True), refused.output


def test_without_the_file_nothing_is_sent_and_the_command_says_so(bench: Bench) -> None:
    assert run(bench.folder, "notify", "test").exit_code == 3


def test_dead_messages_are_listed_and_can_be_tried_again(bench: Bench, hook: Receiver) -> None:
    bench.write(workflow(gate("ship", "yes", "no"), *steps("last")))
    recipients = {"ops": Recipient(Webhook(hook.url, SECRET))}
    ledger = bench.ledger(terms=Terms(decisions="user"), recipients=recipients)
    hook.status = 410
    Agent(ExecutionSurface(ledger)).start("test.flow")
    equip(ledger).send_due()
    bench.pause()
    listed = run(bench.folder, "notify", "status")
    assert (listed.exit_code, "dead" in listed.output, "answered 410" in listed.output) == (1, True, True)
    (message,) = msgspec.json.decode(run(bench.folder, "notify", "status", "--json").stdout)["messages"]
    assert (message["state"], message["tries"], message["nextTryAt"]) == ("dead", 1, None)
    doctor = run(bench.folder, "doctor")
    assert (doctor.exit_code, "1 undeliverable" in doctor.output) == (1, True)
    assert "1 to be tried again" in run(bench.folder, "notify", "retry").output
    assert run(bench.folder, "notify", "status").exit_code == 0
