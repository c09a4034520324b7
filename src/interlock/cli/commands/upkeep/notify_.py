"""`interlock notify`: try the channels that notifications go to, and see what they did not take."""

from __future__ import annotations

import time

import click
import msgspec
from msgspec.structs import replace

from interlock.cli.notify.notify_file import FILE, recipients_in
from interlock.cli.options import config_of, data_dir_option, json_option, with_ledger
from interlock.cli.screen import CHECK_FAILED, NOT_FOUND, age, inform, paint, print_json, say, stop, table
from interlock.core.message import Message, Undelivered
from interlock.ledger.ids import new_id
from interlock.ledger.ledger import Ledger
from interlock.ledger.outbox.announcements import Recipient
from interlock.ledger.outbox.courier import Sending
from interlock.ledger.outbox.unsent import MOST, outbox_status


@click.group()
def command() -> None:
    """Test the channels for messages; list what was not delivered.

    Channels are in notify.toml in the data directory. Without it nothing is sent.
    """


@command.command(epilog="Example: interlock notify test")
@click.argument("name", required=False)
@data_dir_option
def test(name: str | None, data_dir: str | None) -> None:
    """Send a test message to one channel, or to all. Exits with 1 if one does not take it."""
    folder = config_of(data_dir).folder
    if not (folder / FILE).is_file():
        stop(NOT_FOUND, f"There is no {folder / FILE}. See docs/notifications.md.")
    recipients = recipients_in(folder)
    if name is not None and name not in recipients:
        stop(NOT_FOUND, f"{FILE} has no channel '{name}'. Channels: {', '.join(recipients)}.")
    failed = [each for each in ([name] if name else recipients) if not _tried(each, recipients[each])]
    if failed:
        raise click.exceptions.Exit(CHECK_FAILED)


def _tried(name: str, recipient: Recipient) -> bool:
    now = time.time_ns() // 1_000_000
    text = "Interlock sends notifications here."
    try:
        message = Message(new_id("msg"), "opened", now, "A test message", text, data={"test": True})
        Sending(recipient.send, message).wait()
    except Undelivered as error:
        say(f"{paint('WRONG', 'bad')}  {name}  {error.reason}")
        return False
    say(f"{paint('ok   ', 'good')}  {name}")
    return True


@command.command(epilog="Example: interlock notify status")
@json_option
@with_ledger
def status(ledger: Ledger, as_json: bool) -> None:
    """List the messages that were not delivered yet. Exits with 1 if some never will be."""
    unsent = outbox_status(ledger.store)
    if as_json:
        print_json(msgspec.to_builtins(unsent))
    elif not unsent.messages:
        say("Nothing waits to be sent.")
    else:
        lines = [
            (each.state, each.channel, each.event, each.id, f"{each.tries} tries", age(each.created_at))
            for each in unsent.messages
        ]
        table(lines, [("strong", "accent", "plain", "quiet", "quiet", "quiet")] * len(lines))
        for reason in dict.fromkeys(each.error for each in unsent.messages if each.error):
            inform(reason)
    if unsent.dead:
        inform("Try dead ones again with: interlock notify retry")
        raise click.exceptions.Exit(CHECK_FAILED)


@command.command(epilog="Example: interlock notify retry")
@with_ledger
def retry(ledger: Ledger) -> None:
    """Let dead messages be tried again from the start. A running server sends them."""
    with ledger.store.writing() as writer:
        dead = [row for row in writer.messages(MOST) if row.state == "dead"]
        for row in dead:
            writer.change_message(row, replace(row, state="waiting", attempts=0, due_at=ledger.clock()))
    say(f"{len(dead)} to be tried again")
