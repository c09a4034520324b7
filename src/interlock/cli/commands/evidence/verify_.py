"""`interlock verify`: check what a session, a bundle or a statement says, and say what that proves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
from msgspec import to_builtins

from interlock.cli.options import EVERYBODY, json_option, with_ledger
from interlock.cli.references import session_named
from interlock.cli.screen import CHECK_FAILED, USAGE, line_of, paint, print_json, say, stop
from interlock.cli.signing_key import trusted_keys
from interlock.ledger.evidence.verification import Verified, summarized, verified_files, verified_session
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.repair import session_batches

PROVES = (
    "Verified: no event was changed, removed or moved since the newest digest was written; what is stored is "
    "what the events make; each recorded response is the one that its attempt was given; no command went "
    "past a gate without the decision, condition or gap that it names."
)
SIGNATURES = (
    "A statement was signed by the keys that it names, and says what its log says where the log was given."
)
DOES_NOT_PROVE = (
    "Not verified: that the whole log was not written anew by someone who can write to the store, unless a "
    "statement of it was signed before; who sat at a user's channel; and whether what an agent reported was "
    "done. See docs/evidence.md."
)


@click.command(epilog="Example: interlock verify hmc3gzdk")
@click.argument("subjects", metavar="[ID|FILE]…", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Verify every session of the store.")
@click.option(
    "--signed-by",
    "signers",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="Public keys (PEM) whose signatures count; repeatable. Default: your own.",
)
@click.option("--at-least", type=click.IntRange(1), default=1, help="How many of them must have signed.")
@json_option
@with_ledger
def command(
    ledger: Ledger,
    subjects: tuple[str, ...],
    everything: bool,
    signers: tuple[Path, ...],
    at_least: int,
    as_json: bool,
) -> None:
    """Check a session, a bundle, or a signed statement of one.

    It checks the chain of digests, the rows, recorded responses, and every command by the guard. A statement
    is compared with the bundle that is named beside it, or with the session here.

    Exits with 1 if something is wrong.
    """
    if bool(subjects) is everything:
        stop(USAGE, "Name a session or files, or say --all.")
    results = list(_stored(ledger) if everything else _named(ledger, subjects, signers, at_least))
    is_sound = not any(result.wrong for result in results)
    if as_json:
        print_json({"ok": is_sound, "verified": to_builtins(results)})
    for result in results if not as_json else ():
        verdict = paint("WRONG", "bad") if result.wrong else paint("ok   ", "good")
        say(f"{verdict}  {result.subject}")
        for line in (*result.wrong, *result.notes):
            say(f"       {line_of(line)}")
    if not as_json:
        proved = _proved({result.what for result in results}) if is_sound else []
        say("\n".join([*proved, DOES_NOT_PROVE]))
    if not is_sound:
        raise click.exceptions.Exit(CHECK_FAILED)


def _proved(judged: set[str]) -> list[str]:
    """Say what sound results prove."""
    signed = [SIGNATURES] if judged & {"statement", "signature"} else []
    return [*([PROVES] if judged != {"signature"} else []), *signed]


def _named(
    ledger: Ledger, subjects: tuple[str, ...], signers: tuple[Path, ...], at_least: int
) -> Iterator[Verified]:
    files = {subject: Path(subject).read_bytes() for subject in subjects if Path(subject).is_file()}
    for subject in subjects:
        if subject not in files:
            session_id = session_named(ledger, subject, EVERYBODY).session_id
            yield summarized(ledger, verified_session(ledger, session_id))
    yield from verified_files(ledger, files, trusted_keys(ledger, signers), at_least)


def _stored(ledger: Ledger) -> Iterator[Verified]:
    for batch in session_batches(ledger.store, 500):
        yield from (verified_session(ledger, session_id) for session_id in batch)
