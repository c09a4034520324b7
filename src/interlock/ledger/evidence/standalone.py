"""Check an Interlock record by itself: chain, signatures, and that a statement says what the log says.

This file is the whole verifier. It needs Python 3.11 and `cryptography`, and nothing of Interlock:

    python verify_interlock.py --key signer.pub.pem attestation.json session.json

A log is read as it is stored: JSON texts, linked by SHA-256. `record_of` lists what matters in a log to
somebody who was not there; Interlock signs that list, and here it is made again and compared. What this file
cannot judge is whether the run followed its workflow: `interlock verify` does, with the guard.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
RUN = "urn:interlock:attestation:run:v1"
DECISION = "urn:interlock:attestation:decision:v1"
GENESIS = bytes(32)
STRENGTH = {
    "server": "none",
    "time": "none",
    "agent": "agent",
    "elicitation": "client",
    "console": "user",
    "cli": "user",
    "inbox": "user",
    "link": "user",
    "approvers": "user",
}

Json = Any
Commit = Mapping[str, Json]

# What a statement lists of a log: the kind of event, and the names that its fields have in the statement.
SECTIONS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "decisions": (
        "gate_resolved",
        {
            "gate": "gate",
            "key": "instance",
            "how": "how",
            "option": "option",
            "note": "remark",
            "shown": "question",
            "channel": "channel",
            "client": "client",
            "agent": "agent",
        },
    ),
    "declined": (
        "question_declined",
        {"gate": "gate", "key": "instance", "shown": "question", "channel": "channel", "client": "client"},
    ),
    "passed": ("gate_passed", {"gate": "gate", "key": "instance", "because": "because"}),
    "checks": (
        "check_ran",
        {
            "key": "instance",
            "check": "check",
            "definition": "definition",
            "argv": "argv",
            "folder": "folder",
            "ended": "ended",
            "exit": "exit",
            "passed": "passed",
            "duration_ms": "durationMs",
            "output_digest": "output",
            "head": "gitCommit",
            "tree_before": "treeBefore",
            "tree_after": "treeAfter",
            "trusted_by": "trustedBy",
        },
    ),
    "reports": ("node_output_appended", {"step": "step", "channel": "as"}),
    "gaps": (
        "gap_recorded",
        {"severity": "severity", "category": "category", "summary": "summary", "key": "instance"},
    ),
    "closedGaps": ("gap_resolved", {"gap": "gap", "summary": "summary", "channel": "channel"}),
    "terms": (
        "preferences_changed",
        {"effective": "preferences", "policy": "policy", "enforcement": "enforcement", "channel": "channel"},
    ),
    "divergences": ("divergence_recorded", {"reason": "reason", "summary": "summary"}),
    "children": ("child_started", {"workflow": "workflow", "session": "session"}),
    "returned": ("child_returned", {"session": "session", "outcome": "outcome"}),
    "imports": ("session_imported", {"up_to": "upTo"}),
    "repairs": ("repair_recorded", {"cut_events": "cutEvents", "kept_as": "keptAs", "reason": "reason"}),
}
LONGEST_PATH = 64  # of a log with more commands than anybody writes


class Wrong(NamedTuple):
    """Something that does not hold, with a code for programs."""

    code: str
    text: str

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"


class RecordUnreadable(Exception):
    """A file or a log that cannot be read as what it says it is."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.wrong = Wrong(code, text)


@dataclass(frozen=True)
class LoggedEvent:
    """One event, with the position, commit and principal that it was recorded with."""

    index: int
    commit: int
    at: int
    principal: str
    event: Mapping[str, Json]
    run: int | None
    node: int | None

    @property
    def kind(self) -> str:
        return str(self.event.get("kind"))


class Envelope(NamedTuple):
    """A signed statement, and what is wrong with its signatures; `signers` are the keys that hold."""

    statement: Mapping[str, Json]
    signers: tuple[str, ...]
    wrong: tuple[Wrong, ...]
    strangers: tuple[str, ...]


class Log(NamedTuple):
    """A session's commits, as a bundle holds them."""

    session: str
    commits: Sequence[Commit]


# --- the log


def link(before: bytes, commit: Commit) -> bytes:
    """Return the digest that a commit must have after another."""
    prefix = f"{commit['first']}:{commit['recordedAt']}:{commit.get('key') or ''}:"
    return sha256(before + prefix.encode() + commit["body"].encode()).digest()


def chain_errors(commits: Sequence[Commit]) -> Iterator[Wrong]:
    """Yield the first break of a log's numbering or of its chain of digests."""
    before, following = GENESIS, 0
    for commit in commits:
        if commit["first"] != following or commit["last"] != following + len(_body(commit)[1]) - 1:
            yield Wrong("LOG_NUMBERING", f"event {following} is missing, or is not where it should be")
            return
        if link(before, commit).hex() != commit["digest"]:
            yield Wrong("LOG_CHAIN", f"the events from {following} on do not have the digest that they name")
            return
        before, following = bytes.fromhex(commit["digest"]), commit["last"] + 1
    if not commits:
        yield Wrong("LOG_NUMBERING", "the log has no events")


def response_errors(commits: Sequence[Commit], responses: Iterable[Mapping[str, Json]]) -> Iterator[Wrong]:
    """Yield the recorded responses that are not what their attempts were answered, or are missing."""
    digests: dict[tuple[int, int], str] = {}
    for logged in logged_in(commits):
        if logged.kind in ("advance_recorded", "response_restored"):
            digests[logged.event["node"], logged.event["attempt"]] = logged.event["response"]
    for response in responses:
        at = response["node"], response["attempt"]
        which = f"attempt {at[1]} on node {at[0]}"
        if at not in digests:
            yield Wrong("RESPONSE_WITHOUT_ATTEMPT", f"the response to {which} is doubled, or answers nothing")
        elif sha256(response["body"].encode()).hexdigest() != digests.pop(at):
            yield Wrong("RESPONSE_CHANGED", f"the response to {which} is not the one that was recorded")
    for node, attempt in (at for at, digest in digests.items() if digest):
        yield Wrong("RESPONSE_MISSING", f"the response to attempt {attempt} on node {node} is missing")


def authority_errors(commits: Sequence[Commit]) -> Iterator[Wrong]:
    """Yield what counts as a user's and is not: answers that nobody recorded, checks that no user trusted."""
    events = list(logged_in(commits))
    answers = [logged for logged in events if logged.kind == "decision_recorded"]
    calls = {logged.commit for logged in events if logged.kind == "advance_recorded"}
    for logged in events:
        event, where = logged.event, f"event {logged.index}"
        if logged.kind == "check_ran" and event.get("ended") != "not_started":
            channel = str(event.get("trusted_by", "")).partition(":")[0]
            if STRENGTH.get(channel) != "user":
                yield Wrong(
                    "CHECK_UNTRUSTED", f"{where}: check '{event['check']}' ran without a user's trust"
                )
        if logged.kind == "gate_resolved" and logged.commit in calls:
            is_users = STRENGTH.get(event["channel"]) == "user"
            if is_users and answer_to(logged, answers) is None:
                text = f"{where}: the answer by '{event['channel']}' was not recorded before it was used"
                yield Wrong("ANSWER_MISSING", text)


def logged_in(commits: Iterable[Commit]) -> Iterator[LoggedEvent]:
    """Yield the events of commits in their order."""
    for number, commit in enumerate(commits):
        principal, entries = _body(commit)
        for offset, (event, *place) in enumerate(entries):
            run, node = [*place, None, None][:2]
            at = commit["recordedAt"]
            yield LoggedEvent(commit["first"] + offset, number, at, principal, event, run, node)


def _body(commit: Commit) -> tuple[str, list[list[Json]]]:
    principal, entries = read_json(commit["body"].encode(), "LOG_UNREADABLE")
    return principal, entries


# --- what a log says


def record_of(log: Log) -> dict[str, Json]:
    """Return what a log says about its runs: the predicate of an attestation."""
    events = list(logged_in(log.commits))
    policies, answers = dict(_policies(events)), [e for e in events if e.kind == "decision_recorded"]
    record: dict[str, Json] = {
        "session": log.session,
        "owner": events[0].event.get("owner", ""),
        "parent": events[0].event.get("parent_session") or "",
        "git": _git_commit(events),
        "log": log_of(log.commits),
        "runs": [run_of(events, e) for e in events if e.kind == "run_started"],
    }
    for section in SECTIONS:
        record[section] = [entry_of(section, e, answers, policies) for e in events if _is_in(section, e)]
    return record


def log_of(commits: Sequence[Commit]) -> dict[str, Json]:
    """Return what identifies a log: its size, the digest of its last commit, and the root over all."""
    return {
        "events": commits[-1]["last"] + 1,
        "commits": len(commits),
        "head": commits[-1]["digest"],
        "root": root_of([bytes.fromhex(commit["digest"]) for commit in commits]).hex(),
    }


def run_of(events: Sequence[LoggedEvent], started: LoggedEvent) -> dict[str, Json]:
    """Return a run with its workflow, and how it stands or ended."""
    ends = ("run_completed", "run_abandoned")
    ended = [e.event for e in events if e.run == started.run and e.kind in ends]
    return {
        "run": started.run,
        "workflow": started.event["workflow_id"],
        "workflowHash": started.event["workflow_hash"],
        "surface": started.event.get("surface", "execution"),
        "policy": started.event.get("policy", "auto"),
        "enforcement": started.event.get("enforcement", "strict"),
        "autonomy": started.event["preferences"].get("autonomy", "guided"),
        "startedAt": started.event["at"],
        "status": ended[-1].get("status", "abandoned") if ended else "in_progress",
    }


def entry_of(
    section: str, logged: LoggedEvent, answers: Sequence[LoggedEvent], policies: Mapping[int, str]
) -> dict[str, Json]:
    """Return an event as a statement lists it: who, when, by which channel, and how strong that is."""
    event, names = logged.event, SECTIONS[section][1]
    entry: dict[str, Json] = {"event": logged.index, "by": logged.principal, "at": event.get("at", logged.at)}
    if logged.run is not None:
        entry["run"] = logged.run
    entry |= {name: event[field] for field, name in names.items() if event.get(field) not in (None, "")}
    if section == "checks":
        entry |= {"passed": event.get("passed", False), "strength": "run by the server"}
    elif section == "reports":
        body = event.get("notes") or event.get("artifact") or ""
        entry |= {"digest": _digest_of(body), "strength": "claimed by the agent"}
    elif "channel" in entry:
        entry["strength"] = STRENGTH.get(entry["channel"], "none")
    if section == "decisions":
        entry["policy"] = policies.get(logged.index, "")
        if (answer := answer_to(logged, answers)) is not None:
            entry |= {"by": answer.principal, "at": answer.event["at"], "answered": answer.index}
    return entry


def answer_to(decision: LoggedEvent, answers: Sequence[LoggedEvent]) -> LoggedEvent | None:
    """Find the answer that the user recorded before the call that used it; a form's came with the call."""
    fields = ("gate", "shown", "option", "channel", "note")
    wanted = [decision.event.get(field) for field in fields]
    earlier = (answer for answer in reversed(answers) if answer.index < decision.index)
    return next((a for a in earlier if [a.event.get(field) for field in fields] == wanted), None)


def _git_commit(events: Iterable[LoggedEvent]) -> str:
    """Return the git commit that was seen when the session began."""
    seen = [e.event for e in events if e.kind == "observation_recorded"]
    return next((str(event["value"]) for event in seen if event["key"] == "git_head_sha"), "")


def _is_in(section: str, logged: LoggedEvent) -> bool:
    return logged.kind == SECTIONS[section][0] and logged.event.get("because") != "answered"


def _policies(events: Sequence[LoggedEvent]) -> Iterator[tuple[int, str]]:
    """Yield the policy that each event was decided under: terms follow the branches of a run."""
    parents = {e.event["node"]: e.event.get("parent") for e in events if e.kind == "node_created"}
    attempted = {e.commit: e.event["node"] for e in events if e.kind == "advance_recorded"}
    at_node: dict[int | None, str] = {}
    for logged in events:
        node = logged.node if logged.node is not None else attempted.get(logged.commit)
        if node not in at_node:
            at_node[node] = at_node.get(parents.get(node), "auto")
        if logged.node is not None:
            if logged.kind in ("run_started", "preferences_changed"):
                at_node[node] = logged.event.get("policy", "auto")
            elif logged.kind == "terms_applied":
                at_node[node] = logged.event["decisions"]
        yield logged.index, at_node[node]


def _digest_of(value: Json) -> str:
    raw = value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"))
    return "sha256:" + sha256(raw.encode()).hexdigest()


# --- one root over all commits, so that one of them can be proved without the others (RFC 6962)


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root of the Merkle tree over the digests of commits."""
    if len(leaves) == 1:
        return sha256(b"\0" + leaves[0]).digest()
    half = _half(len(leaves))
    return sha256(b"\1" + root_of(leaves[:half]) + root_of(leaves[half:])).digest()


def path_of(leaves: Sequence[bytes], number: int) -> list[str]:
    """Return what is needed to compute the root from one leaf, from the leaf up."""
    if len(leaves) == 1:
        return []
    half = _half(len(leaves))
    if number < half:
        return [*path_of(leaves[:half], number), root_of(leaves[half:]).hex()]
    return [*path_of(leaves[half:], number - half), root_of(leaves[:half]).hex()]


def root_from(leaf: bytes, number: int, size: int, path: Sequence[str]) -> bytes | None:
    """Compute the root that a leaf and its path lead to; None if the path has another length."""
    if size == 1:
        return sha256(b"\0" + leaf).digest() if not path and number == 0 else None
    if len(path) > LONGEST_PATH:
        return None
    if not path or not 0 <= number < size:
        return None
    half, sibling = _half(size), bytes.fromhex(path[-1])
    if number < half:
        below = root_from(leaf, number, half, path[:-1])
        return None if below is None else sha256(b"\1" + below + sibling).digest()
    below = root_from(leaf, number - half, size - half, path[:-1])
    return None if below is None else sha256(b"\1" + sibling + below).digest()


def _half(size: int) -> int:
    return 1 << (size - 1).bit_length() - 1


# --- statements and their signatures (in-toto in DSSE)


def signed_bytes(payload_type: str, payload: bytes) -> bytes:
    """Return what a signature covers: DSSE's pre-authentication encoding."""
    name = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(name), name, len(payload), payload)


def key_id(public: bytes) -> str:
    """Name a public key by the digest of its 32 bytes."""
    return "ed25519:" + sha256(public).hexdigest()[:32]


def public_keys(pem: bytes) -> dict[str, bytes]:
    """Read the Ed25519 keys of a PEM file, by their names."""
    keys: dict[str, bytes] = {}
    end = b"-----END PUBLIC KEY-----"
    for block in pem.split(end)[:-1]:
        try:
            der = base64.b64decode(block.partition(b"-----BEGIN PUBLIC KEY-----")[2])
        except ValueError:
            der = b""
        if len(der) != 44 or not der.startswith(bytes.fromhex("302a300506032b6570032100")):
            raise RecordUnreadable("KEY_UNREADABLE", "a key is not an Ed25519 public key")
        keys[key_id(der[12:])] = der[12:]
    if not keys:
        raise RecordUnreadable("KEY_UNREADABLE", "the file holds no public key")
    return keys


def is_signed(public: bytes, signature: bytes, message: bytes) -> bool:
    """Say whether a signature is that of a key."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def opened(raw: bytes, keys: Mapping[str, bytes], at_least: int = 1) -> Envelope:
    """Read an envelope and check its signatures with the keys of those whom the reader trusts."""
    envelope = read_json(raw, "ENVELOPE_UNREADABLE")
    try:
        payload, payload_type = _decoded(envelope["payload"]), envelope["payloadType"]
        message = signed_bytes(payload_type, payload)
        signed = [(str(each["keyid"]), _decoded(each["sig"])) for each in envelope["signatures"]]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RecordUnreadable("ENVELOPE_UNREADABLE", f"this is no DSSE envelope ({error!r})") from error
    statement = read_json(payload, "STATEMENT_UNREADABLE")
    if not isinstance(statement, dict) or not isinstance(statement.get("predicate"), dict):
        raise RecordUnreadable("STATEMENT_UNREADABLE", "what was signed is not a statement")
    names = [key for key, _ in signed]
    bad = {key for key, signature in signed if key in keys and not is_signed(keys[key], signature, message)}
    signers = tuple(sorted({*names} & keys.keys() - bad))
    strangers = tuple(sorted({*names} - keys.keys()))
    wrong = [Wrong("SIGNATURE_INVALID", f"{key} has not signed this statement") for key in sorted(bad)]
    if payload_type != PAYLOAD_TYPE:
        wrong.append(Wrong("PAYLOAD_TYPE", f"the payload is called '{payload_type}', not '{PAYLOAD_TYPE}'"))
    if len({*names}) != len(names):
        wrong.append(Wrong("SIGNATURE_DOUBLED", "one key has signed twice"))
    if not names:
        wrong.append(Wrong("SIGNATURE_MISSING", "nobody has signed it"))
    elif len(signers) < at_least:
        others = f"; it names {', '.join(strangers)}, whose key was not given" if strangers else ""
        wrong.append(Wrong("KEY_UNKNOWN", f"{len(signers)} of {at_least} trusted keys signed it{others}"))
    return Envelope(statement, signers, tuple(wrong), strangers)


def _decoded(text: str) -> bytes:
    """Decode base64 in either alphabet; DSSE allows both."""
    return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)


def judged(envelope: Envelope, log: Log | None, attested: Iterable[Json] = ()) -> Iterator[Wrong]:
    """Yield what is wrong with a statement: in itself, beside its log, and beside what was attested."""
    statement = envelope.statement
    try:
        if statement["_type"] != STATEMENT:
            yield Wrong("STATEMENT_TYPE", f"its type is '{statement['_type']}', not '{STATEMENT}'")
        if statement["predicateType"] == RUN:
            yield from _run_errors(statement, log)
        elif statement["predicateType"] == DECISION:
            yield from _receipt_errors(statement, log, attested)
        else:
            yield Wrong("PREDICATE_TYPE", f"'{statement['predicateType']}' is not a statement of Interlock")
    except RecordUnreadable as error:
        yield error.wrong
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        yield Wrong("STATEMENT_UNREADABLE", f"the statement lacks a part, or has another form ({error!r})")


def subject_of(record: Mapping[str, Json]) -> list[dict[str, Json]]:
    """Return what a statement is about: the newest git commit that the log knows, else the log itself."""
    checked = [check["gitCommit"] for check in record["checks"] if "gitCommit" in check]
    if commit := (checked or [record["git"]])[-1]:
        return [{"name": "git", "digest": {"gitCommit": commit}}]
    return [{"name": record["session"], "digest": {"sha256": record["log"]["head"]}}]


def _run_errors(statement: Mapping[str, Json], log: Log | None) -> Iterator[Wrong]:
    stated = statement["predicate"]
    if statement["subject"] != subject_of(stated):
        yield Wrong("SUBJECT", "the subject is not the git commit or the log that the statement is about")
    if log is not None:
        part = _stated_part(stated, log)
        yield from differences(stated, record_of(part), part) if isinstance(part, Log) else (part,)


def _stated_part(stated: Mapping[str, Json], log: Log) -> Log | Wrong:
    """Return the part of a log that a statement was made of; a log may have gone on since."""
    if stated["session"] != log.session:
        return Wrong(
            "OTHER_SESSION", f"it is about {stated['session']}, and the log is that of {log.session}"
        )
    size, part = stated["log"]["commits"], log.commits[: stated["log"]["commits"]]
    if size > len(log.commits):
        missing = stated["log"]["events"] - (log_of(log.commits)["events"] if log.commits else 0)
        return Wrong("LOG_TRUNCATED", f"the log ends {missing} events before the statement was made")
    if not part or part[-1]["digest"] != stated["log"]["head"]:
        return Wrong("LOG_OTHER", "the log has another digest where the statement was made: it was rewritten")
    if log_of(part) != stated["log"]:
        return Wrong("LOG_OTHER", "size or root of the log are not what the statement says")
    return Log(log.session, part)


def differences(stated: Mapping[str, Json], recorded: Mapping[str, Json], log: Log) -> Iterator[Wrong]:
    """Yield where a statement and the log that it was made of say different things."""
    for name in sorted({*stated, *recorded} - set(SECTIONS)):
        if stated.get(name) != recorded.get(name):
            yield Wrong("STATEMENT_DIFFERS", f"{name} is not what the log says")
    kinds = {e.index: e.kind for e in logged_in(log.commits)}
    for section in SECTIONS:
        said = {entry["event"]: entry for entry in stated[section]}
        made = {entry["event"]: entry for entry in recorded[section]}
        if len(said) != len(stated[section]) or list(said) != sorted(said):
            yield Wrong("STATEMENT_DIFFERS", f"{section}: an event is listed twice, or not in order")
        for event in sorted({*said, *made}):
            yield from _difference(section, event, said.get(event), made.get(event), kinds)


def _difference(
    section: str, event: int, said: Json, made: Json, kinds: Mapping[int, str]
) -> Iterator[Wrong]:
    where = f"{section}: event {event}"
    if said is None:
        yield Wrong("STATEMENT_OMITS", f"{where} is in the log and not in the statement")
    elif made is None and section == "checks":
        yield Wrong(
            "CLAIM_CALLED_CHECK", f"{where} is called a check, and the log has {kinds.get(event)} there"
        )
    elif made is None:
        yield Wrong(
            "STATEMENT_INVENTS", f"{where} is not in the log as such: it has {kinds.get(event)} there"
        )
    else:
        for name in sorted({*said, *made}):
            if said.get(name) != made.get(name):
                text = f"{where} has {name} {made.get(name)!r}, and the statement says {said.get(name)!r}"
                yield Wrong("STATEMENT_DIFFERS", text)


# --- receipts


def _receipt_errors(
    statement: Mapping[str, Json], log: Log | None, attested: Iterable[Json]
) -> Iterator[Wrong]:
    """Check a receipt by what it carries, then beside its log and what was attested of it."""
    receipt = statement["predicate"]
    decision, proofs = receipt["decision"], receipt["proofs"]
    if statement["subject"] != [{"name": receipt["session"], "digest": {"sha256": proofs[0]["digest"]}}]:
        yield Wrong("SUBJECT", "the subject is not the command that the decision was recorded with")
    for proof in proofs:
        yield from _proof_errors(proof, receipt["log"])
    carried = list(logged_in(proofs))
    recorded = next((e for e in carried if (e.index, e.kind) == (decision["event"], "gate_resolved")), None)
    if recorded is None:
        yield Wrong("RECEIPT_DECISION", f"event {decision['event']} of its command is not a decision")
        return
    answers = [e for e in carried if e.kind == "decision_recorded"]
    made = {**entry_of("decisions", recorded, answers, {}), "policy": decision["policy"]}
    yield from _difference("decisions", recorded.index, decision, made, {})
    if receipt["shown"] != shown_with(recorded):
        yield Wrong("RECEIPT_SHOWN", "what it says was shown is not what the command recorded")
    for record in attested:
        if record["session"] == receipt["session"] and record["log"]["events"] > recorded.index:
            listed = next((e for e in record["decisions"] if e["event"] == recorded.index), None)
            yield from _difference("decisions", recorded.index, decision, listed, {})
    if log is not None:
        part = _stated_part(receipt, log)
        yield from _receipt_in(receipt, part) if isinstance(part, Log) else (part,)


def shown_with(decision: LoggedEvent) -> dict[str, Json]:
    """Return the question as it was shown to whoever decided."""
    event = decision.event
    return {"digest": event["shown"], "text": event.get("question", ""), "options": event.get("options", [])}


def _receipt_in(receipt: Mapping[str, Json], log: Log) -> Iterator[Wrong]:
    record, event = record_of(log), receipt["decision"]["event"]
    listed = next((entry for entry in record["decisions"] if entry["event"] == event), None)
    yield from _difference("decisions", event, receipt["decision"], listed, {})
    if receipt["run"] not in record["runs"]:
        yield Wrong("STATEMENT_DIFFERS", "the run and its workflow are not what the log says")


def _proof_errors(proof: Mapping[str, Json], log: Mapping[str, Json]) -> Iterator[Wrong]:
    """A command has its digest after the one before it, and is one of those under the root."""
    digest = link(bytes.fromhex(proof["before"]), proof)
    if digest.hex() != proof["digest"]:
        yield Wrong(
            "RECEIPT_CHAIN", f"the command at event {proof['first']} does not have the digest it names"
        )
    elif (root := root_from(digest, proof["number"], log["commits"], proof["path"])) is None:
        yield Wrong("RECEIPT_PATH", f"the path of the command at event {proof['first']} has another length")
    elif root.hex() != log["root"]:
        yield Wrong(
            "RECEIPT_PATH", f"the command at event {proof['first']} is not one of the log under its head"
        )


# --- files


class Judgement(NamedTuple):
    """What came of one file: what it is, what is wrong with it, and what a reader should know besides."""

    file: str
    what: str
    wrong: tuple[Wrong, ...]
    notes: tuple[str, ...]


def read_json(raw: bytes, code: str) -> Json:
    """Decode JSON, and refuse a name that occurs twice: readers differ in which of the two they take."""

    def plain(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        if len(dict(pairs)) != len(pairs):
            raise RecordUnreadable(code, "a name occurs twice in one object")
        return dict(pairs)

    def no_number(text: str) -> Json:
        raise RecordUnreadable(code, f"this is not JSON ({text} is not a number)")

    try:
        return json.loads(raw.decode(), object_pairs_hook=plain, parse_constant=no_number)
    except (ValueError, RecursionError) as error:
        raise RecordUnreadable(code, f"this is not JSON ({error})") from error


def is_envelope(content: Json) -> bool:
    """Say whether a file is a signed statement."""
    return isinstance(content, dict) and "payloadType" in content


def log_in(bundle: Json) -> Log:
    """Return the log of a bundle."""
    try:
        return Log(bundle["session"]["meta"]["sessionId"], bundle["session"]["commits"])
    except (KeyError, TypeError) as error:
        raise RecordUnreadable("BUNDLE_UNREADABLE", f"this is not a bundle ({error!r})") from error


def judged_files(
    files: Mapping[str, bytes], keys: Mapping[str, bytes], at_least: int = 1
) -> Iterator[Judgement]:
    """Judge bundles, and statements beside the log and the attestations of their session."""
    logs, envelopes = list[Log](), dict[str, Envelope]()
    for file, raw in files.items():
        try:
            content = read_json(raw, "FILE_UNREADABLE")
            if is_envelope(content):
                envelopes[file] = opened(raw, keys, at_least)
                continue
            log = log_in(content)
            logs.append(log)
            wrong = (
                *chain_errors(log.commits),
                *authority_errors(log.commits),
                *response_errors(log.commits, content["session"]["responses"]),
            )
            yield Judgement(file, "bundle", wrong, ())
        except RecordUnreadable as error:
            yield Judgement(file, "unreadable", (error.wrong,), ())
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            yield Judgement(file, "unreadable", (Wrong("BUNDLE_UNREADABLE", repr(error)),), ())
    attested = [record for each in envelopes.values() if (record := attested_by(each)) is not None]
    for file, envelope in envelopes.items():
        yield judgement(file, envelope, logs_of(session_of(envelope), logs), attested)


def logs_of(session: str, logs: Sequence[Log]) -> list[Log]:
    """Return the logs that a statement is compared with: each of its session that no other one continues."""
    own = [log for log in logs if log.session == session]
    return [log for log in own if not any(is_continued(log, by=other) for other in own)] or list(logs[:1])


def is_continued(log: Log, by: Log) -> bool:
    """Say whether a log is the beginning of another one."""
    size = len(log.commits)
    return 0 < size < len(by.commits) and by.commits[size - 1]["digest"] == log.commits[-1]["digest"]


def judgement(file: str, envelope: Envelope, logs: Sequence[Log], attested: Sequence[Json]) -> Judgement:
    """Judge one statement, beside every log that there is of its session."""
    compared: Sequence[Log | None] = logs or [None]
    found = [wrong for log in compared for wrong in judged(envelope, log, attested)]
    wrong, log = tuple(dict.fromkeys((*envelope.wrong, *found))), logs[0] if logs else None
    notes = [f"signed by {key}" for key in envelope.signers]
    if envelope.signers:
        notes += (f"also signed by {key}, whose key was not given" for key in envelope.strangers)
    if log is None:
        notes.append("its log was not given, so nothing was compared with it")
    elif not wrong and (later := later_events(envelope.statement["predicate"], log)):
        notes.append(f"the log has gone on since: {later} events are not in the statement")
    if not wrong and envelope.statement["predicateType"] == RUN:
        notes.append(summary_of(envelope.statement["predicate"]))
    return Judgement(file, "statement", wrong, tuple(notes))


def later_events(stated: Mapping[str, Json], log: Log) -> int:
    """Count the events that a log has had since a statement was made of it."""
    return int(log.commits[-1]["last"]) + 1 - int(stated["log"]["events"])


def summary_of(record: Mapping[str, Json]) -> str:
    """Say in a line how strong what a record says is."""
    strengths = [decision["strength"] for decision in record["decisions"]]
    by = ", ".join(f"{strengths.count(each)} {each}" for each in ("user", "client", "agent", "none"))
    passed = sum(check["passed"] for check in record["checks"])
    return (
        f"decisions by strength: {by}; checks run by the server: {len(record['checks'])}, passed: {passed}; "
        f"reports claimed by the agent: {len(record['reports'])}; gaps: {len(record['gaps'])}"
    )


def session_of(envelope: Envelope) -> str:
    """Return the session that a statement is about, as far as it says."""
    return str(envelope.statement["predicate"].get("session"))


def attested_by(envelope: Envelope) -> Json | None:
    """Return what an attestation with a trusted signature says of a run."""
    is_run = not envelope.wrong and envelope.statement.get("predicateType") == RUN
    return envelope.statement["predicate"] if is_run else None


def _at_least_one(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the files that are named; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(description="Check Interlock bundles, attestations and receipts.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--key", action="append", type=Path, default=[], help="public keys (PEM) to trust")
    parser.add_argument(
        "--at-least", type=_at_least_one, default=1, help="how many trusted keys must have signed"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    try:
        keys = {name: key for path in options.key for name, key in public_keys(path.read_bytes()).items()}
        files = {str(path): path.read_bytes() for path in options.files}
        results = list(judged_files(files, keys, options.at_least))
    except (OSError, ImportError, RecordUnreadable) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    if options.json:
        print(
            json.dumps(
                [{**each._asdict(), "wrong": list(map(str, each.wrong))} for each in results], indent=2
            )
        )
    for each in results if not options.json else ():
        print(f"{'WRONG' if each.wrong else 'ok   '}  {each.file}")
        for line in (*each.wrong, *each.notes):
            print(f"       {line}")
    return 1 if any(each.wrong for each in results) else 0


if __name__ == "__main__":
    sys.exit(main())
