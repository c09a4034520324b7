"""Signed statements of what a log says: an attestation of a session, a receipt for one decision."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.ledger.evidence import standalone
from interlock.ledger.evidence.signing import SigningKey
from interlock.ledger.evidence.standalone import (
    DECISION,
    GENESIS,
    PAYLOAD_TYPE,
    RUN,
    STATEMENT,
    Log,
    answer_to,
    log_of,
    logged_in,
    opened,
    path_of,
    record_of,
    shown_with,
    subject_of,
)
from interlock.ledger.transfer.bundle import bundled
from interlock.store.protocol import Store

VERIFIER = Path(standalone.__file__)


def stored_log(store: Store, session_id: str) -> Log:
    """Return the log of a session as a bundle holds it, which is how the verifier reads it."""
    with store.reading() as reader:
        return Log(session_id, msgspec.to_builtins([bundled(row) for row in reader.commits(session_id)]))


def attestation(log: Log) -> bytes:
    """Return the statement of a session: everything in its log that matters to somebody who was not there."""
    record = record_of(log)
    return _statement(RUN, subject_of(record), record)


def receipt(log: Log, decision: str) -> bytes:
    """Return the statement of one decision, which can be checked without the rest of the log.

    The decision is named by the number of its event, or by its gate: then the last one is meant.
    """
    record = record_of(log)
    named = [d for d in record["decisions"] if decision in (str(d["event"]), d["gate"], d["instance"])]
    if not named:
        known = ", ".join(f"{d['event']} ({d['instance']})" for d in record["decisions"]) or "none"
        message = f"The session has no decision '{decision}'."
        raise LedgerError("NOT_FOUND", message, f"Its decisions, by event and gate: {known}.")
    events = list(logged_in(log.commits))
    made = events[named[-1]["event"]]
    answer = answer_to(made, [event for event in events if event.kind == "decision_recorded"])
    numbers = [made.commit] if answer is None else [made.commit, answer.commit]
    proofs = [_proof(log, number) for number in dict.fromkeys(numbers)]
    body = {
        "session": log.session,
        "run": next(run for run in record["runs"] if run["run"] == made.run),
        "decision": named[-1],
        "shown": shown_with(made),
        "log": log_of(log.commits),
        "proofs": proofs,
    }
    subject: list[Json] = [{"name": log.session, "digest": {"sha256": log.commits[made.commit]["digest"]}}]
    return _statement(DECISION, subject, body)


def envelope(statement: bytes, key: SigningKey) -> bytes:
    """Sign a statement."""
    return _enveloped(base64.b64encode(statement).decode(), [_signature(statement, key)])


def with_signature(raw: bytes, key: SigningKey) -> bytes:
    """Add a second signature beside those that an envelope has, over the very same bytes."""
    opened(raw, {})  # raises where it is none
    before = msgspec.json.decode(raw)
    if any(signature["keyid"] == key.id for signature in before["signatures"]):
        raise LedgerError("CONFLICT", f"{key.id} has signed it already.", "Name another key with --key.")
    statement = base64.b64decode(before["payload"])
    return _enveloped(before["payload"], [*before["signatures"], _signature(statement, key)])


def _statement(kind: str, subject: Sequence[Json], predicate: Mapping[str, Json]) -> bytes:
    return msgspec.json.encode(
        {"_type": STATEMENT, "subject": subject, "predicateType": kind, "predicate": predicate}
    )


def _proof(log: Log, number: int) -> dict[str, Json]:
    """Return a command with what is needed to find it under the head: the digest before it, and its path."""
    leaves = [bytes.fromhex(commit["digest"]) for commit in log.commits]
    before = leaves[number - 1] if number else GENESIS
    place = {"before": before.hex(), "number": number, "path": path_of(leaves, number)}
    return {**log.commits[number], **place}


def _signature(statement: bytes, key: SigningKey) -> dict[str, Json]:
    signature = key.signature(PAYLOAD_TYPE, statement)
    return {"keyid": key.id, "sig": base64.b64encode(signature).decode()}


def _enveloped(payload: str, signatures: Sequence[Json]) -> bytes:
    return msgspec.json.encode({"payload": payload, "payloadType": PAYLOAD_TYPE, "signatures": signatures})
