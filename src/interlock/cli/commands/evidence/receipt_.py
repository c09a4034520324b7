"""`interlock receipt ID DECISION`: a signed receipt for one decision."""

from __future__ import annotations

from pathlib import Path

import click

from interlock.cli.options import owner_option, session_argument, with_ledger
from interlock.cli.signing_key import key_option, out_option, signing_key, sound_log, write_out
from interlock.ledger.evidence.statements import envelope, receipt
from interlock.ledger.ledger import Ledger


@click.command(epilog="Example: interlock receipt hmc3gzdk confirm-scope --out receipt.json")
@session_argument
@click.argument("decision", metavar="GATE|EVENT")
@key_option
@out_option
@owner_option
@with_ledger
def command(
    ledger: Ledger, ref: str, decision: str, key_file: Path | None, out: Path | None, owner: str
) -> None:
    """Sign a receipt for one decision.

    It names the question as it was shown, who decided, when, and by which channel, and proves that the
    decision is in the log without the rest of it. A gate that was answered often means its last answer.
    """
    key = signing_key(ledger, key_file)
    write_out(envelope(receipt(sound_log(ledger, ref, owner), decision), key) + b"\n", out)
