"""`interlock verify`: check what a session or a bundle says about itself, and say what that proves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
from msgspec import Struct, to_builtins

from interlock.cli.options import EVERYBODY, json_option, with_ledger
from interlock.cli.references import session_of
from interlock.cli.screen import CHECK_FAILED, USAGE, line_of, paint, print_json, say, stop
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.repair import inspect, session_batches
from interlock.ledger.transfer.bundle import BundleRefused, read_bundle

PROVES = (
    "Verified: no event was changed, removed or moved since the newest digest was written; what is stored is "
    "what the events make; no command went past a gate without the decision, condition or gap that it names."
)
DOES_NOT_PROVE = (
    "Not verified: that the whole log was not written anew by someone who can write to the store; who sat at "
    "a user's channel; and whether what an agent reported was done."
)


class Verified(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What came of verifying one session or file: empty `wrong` if it is sound."""

    subject: str
    wrong: tuple[str, ...] = ()


@click.command(epilog="Example: interlock verify hmc3gzdk")
@click.argument("subject", metavar="[ID|FILE]", required=False)
@click.option("--all", "everything", is_flag=True, help="Verify every session of the store.")
@json_option
@with_ledger
def command(ledger: Ledger, subject: str | None, everything: bool, as_json: bool) -> None:
    """Check the log of a session or bundle, and judge it by the guard.

    It checks the chain of digests, the rows, and every command.

    Exits with 1 if something is wrong.
    """
    if (subject is None) is not everything:
        stop(USAGE, "Name a session or a file, or say --all.")
    results = list(_stored(ledger) if subject is None else _named(ledger, subject))
    is_sound = not any(result.wrong for result in results)
    if as_json:
        print_json({"ok": is_sound, "verified": to_builtins(results)})
    for result in results if not as_json else ():
        verdict = paint("WRONG", "bad") if result.wrong else paint("ok   ", "good")
        say(f"{verdict}  {result.subject}")
        for wrong in result.wrong:
            say(f"       {line_of(wrong)}")
    if not as_json:
        say("\n".join([*([PROVES] if is_sound else []), DOES_NOT_PROVE]))
    if not is_sound:
        raise click.exceptions.Exit(CHECK_FAILED)


def _named(ledger: Ledger, subject: str) -> Iterator[Verified]:
    if not Path(subject).is_file():
        yield _session(ledger, session_of(ledger, subject, EVERYBODY).session_id)
        return
    bundle = read_bundle(Path(subject).read_bytes())
    wrong = (f"{bundle.code}: {bundle.message}",) if isinstance(bundle, BundleRefused) else ()
    yield Verified(subject, wrong)


def _stored(ledger: Ledger) -> Iterator[Verified]:
    for batch in session_batches(ledger.store, 500):
        yield from (_session(ledger, session_id) for session_id in batch)


def _session(ledger: Ledger, session_id: str) -> Verified:
    finding = inspect(ledger.store, session_id, ledger.pins)
    if finding is None:
        return Verified(session_id)
    return Verified(session_id, (finding.reason, *finding.rows, *finding.violations))
