"""What `interlock verify` judges: sessions of the store, bundles, and signed statements beside their logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.ledger.evidence.signing import serialization_library
from interlock.ledger.evidence.standalone import (
    Envelope,
    Judgement,
    Log,
    RecordUnreadable,
    Wrong,
    attested_by,
    authority_errors,
    is_envelope,
    judgement,
    log_in,
    logs_of,
    opened,
    read_json,
    record_of,
    response_errors,
    session_of,
    summary_of,
)
from interlock.ledger.evidence.statements import stored_log
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.repair import inspect
from interlock.ledger.transfer.bundle import BundleRefused, read_bundle
from interlock.store.protocol import TombstoneRow


class Verified(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What came of verifying one session or file: empty `wrong` if it is sound.

    Of a statement whose log was not there only the `signature` could be verified.
    """

    subject: str
    what: Literal["session", "bundle", "statement", "signature", "unreadable"]
    wrong: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def verified_session(ledger: Ledger, session_id: str) -> Verified:
    """Judge a session of the store: chain, rows, recorded responses, and every command by the guard."""
    finding = inspect(ledger.store, session_id, ledger.pins)
    if finding is None:
        unfounded = authority_errors(stored_log(ledger.store, session_id).commits)
        return Verified(session_id, "session", tuple(map(str, unfounded)))
    return Verified(session_id, "session", (finding.reason, *finding.rows, *finding.violations))


def summarized(ledger: Ledger, verified: Verified) -> Verified:
    """Add to a sound session how strong what it records is."""
    if verified.wrong:
        return verified
    return replace(verified, notes=(summary_of(record_of(stored_log(ledger.store, verified.subject))),))


def verified_files(
    ledger: Ledger, files: Mapping[str, bytes], keys: Mapping[str, bytes], at_least: int = 1
) -> Iterator[Verified]:
    """Judge bundles, then statements beside the bundles that came with them or the store's own sessions."""
    logs, envelopes = list[Log](), dict[str, Envelope]()
    for file, raw in files.items():
        try:
            content = read_json(raw, "FILE_UNREADABLE")
            if is_envelope(content):
                serialization_library()
                envelopes[file] = opened(raw, keys, at_least)
            else:
                yield _bundle(file, raw)
                with suppress(RecordUnreadable):
                    logs.append(log_in(content))
        except RecordUnreadable as error:
            yield Verified(file, "unreadable", (str(error.wrong),))
    attested = [record for each in envelopes.values() if (record := attested_by(each)) is not None]
    for file, envelope in envelopes.items():
        yield _statement(ledger, file, envelope, logs, attested)


def _bundle(file: str, raw: bytes) -> Verified:
    """Judge a bundle as an import does, and miss every response that it should have."""
    bundle = read_bundle(raw)
    if isinstance(bundle, BundleRefused):
        return Verified(file, "bundle", (f"{bundle.code}: {bundle.message}",))
    commits, responses = msgspec.to_builtins((bundle.session.commits, bundle.session.responses))
    wrong = (*authority_errors(commits), *response_errors(commits, responses))
    summary = summary_of(record_of(Log(bundle.session.meta.session_id, commits)))
    return Verified(file, "bundle", tuple(map(str, wrong)), (summary,))


def _statement(
    ledger: Ledger, file: str, envelope: Envelope, logs: Sequence[Log], attested: Sequence[object]
) -> Verified:
    session_id = session_of(envelope)
    if own := logs_of(session_id, logs):
        return _told(judgement(file, envelope, own, attested))
    with ledger.store.reading() as reader:
        session, removed = reader.session(session_id), reader.tombstone(session_id)
    if session is not None:
        told = _told(judgement(file, envelope, [stored_log(ledger.store, session_id)], attested))
        return replace(told, wrong=(*told.wrong, *verified_session(ledger, session_id).wrong))
    told = replace(_told(judgement(file, envelope, [], attested)), what="signature")
    if removed is None or not removed.head_digest or told.wrong:
        return told
    return _beside_tombstone(told, envelope.statement["predicate"]["log"], removed)


def _beside_tombstone(told: Verified, stated: Mapping[str, object], removed: TombstoneRow) -> Verified:
    """Compare a statement with all that is left of its log."""
    kept = {"events": removed.head_index + 1, "head": removed.head_digest.hex()}
    if stated["events"] != kept["events"]:
        note = f"its log was removed here after event {removed.head_index}, and went on after the statement"
        return replace(told, notes=(*told.notes, note))
    if stated["head"] == kept["head"]:
        note = "its log was removed here; the head that was kept is the one that it names"
        return replace(told, notes=(*told.notes, note))
    wrong = Wrong("LOG_OTHER", "its log was removed here, and the head that was kept is another one")
    return replace(told, wrong=(str(wrong),))


def _told(judgement: Judgement) -> Verified:
    return Verified(judgement.file, "statement", tuple(map(str, judgement.wrong)), judgement.notes)
