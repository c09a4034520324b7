"""Forged records: every kind is named by `interlock verify`, and the intact record passes.

A kind with `alone` is seen by the one-file verifier too; the others need the rows, the manifest or the guard.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interlock.core.run.channels import OF_CHANNEL
from interlock.ledger.evidence.signing import create_key
from interlock.ledger.evidence.standalone import (
    GENESIS,
    STRENGTH,
    RecordUnreadable,
    judged_files,
    link,
    path_of,
    public_keys,
    record_of,
    root_from,
    root_of,
)
from interlock.ledger.evidence.standalone import (
    main as verify_alone,
)
from interlock.ledger.evidence.statements import attestation, envelope, stored_log, with_signature
from interlock.ledger.evidence.verification import verified_files
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.chain import link as stored_link
from support.harness import Bench
from support.paths import ROOT, SOURCE
from support.records import HEAD, Record, in_events, resealed, rewritten, walked, without
from support.stored_databases import walk

Forge = Callable[[Record], None]


@dataclass(frozen=True)
class Kind:
    """A way to forge a record: its name, how it is done, and the code by which it is named."""

    name: str
    forge: Forge
    code: str
    alone: str = ""


class World:
    """Two sessions and what was signed of them; the store is another one, so that only files count."""

    def __init__(self, folder: Path) -> None:
        self.bench = Bench(folder / "here")
        ledger = self.bench.ledger()
        self.unchecked, self.other = (Record.of(ledger, walked(self.bench), folder) for _ in range(2))
        self.record = self.unchecked.with_check()
        self.elsewhere = Bench(folder / "elsewhere")
        self.ledger: Ledger = self.elsewhere.ledger()

    def close(self) -> None:
        self.bench.close()
        self.elsewhere.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("records"))
    yield world
    world.close()


def bundle(name: str, edit: Callable[[Any], None], code: str, alone: str = "") -> Kind:
    """Change the session in a bundle, and make its manifest again."""

    def forge(record: Record) -> None:
        edit(record.bundle["session"])
        record.bundle = resealed(record.bundle)

    return Kind(f"bundle: {name}", forge, code, alone)


def log(name: str, edit: Callable[[list[Any]], list[Any]], code: str, alone: str = "LOG_OTHER") -> Kind:
    """Write the whole log anew, with digests and rows."""

    def forge(record: Record) -> None:
        record.bundle = rewritten(record.bundle, edit)

    return Kind(f"log written anew: {name}", forge, code, alone)


def statement(name: str, edit: Callable[[Any], None], code: str = "STATEMENT_DIFFERS") -> Kind:
    """Change what an attestation says, and sign it with the right key."""
    return Kind(f"attestation: {name}", lambda record: edit(record.statement), code, code)


def said(name: str, edit: Callable[[Any], None], code: str = "STATEMENT_DIFFERS") -> Kind:
    return statement(name, lambda stated: edit(stated["predicate"]), code)


def receipt(name: str, edit: Callable[[Any], None], code: str) -> Kind:
    """Change what a receipt says, and sign it with the right key."""
    return Kind(f"receipt: {name}", lambda record: edit(record.receipt["predicate"]), code, code)


def signed(name: str, sign: Callable[[Record, Any], Any], code: str) -> Kind:
    """Change the envelope of an attestation."""

    def forge(record: Record) -> None:
        record.raw["attestation"] = json.dumps(sign(record, json.loads(record.files["attestation"]))).encode()

    return Kind(f"envelope: {name}", forge, code, code)


def event(section: str, number: int = 0, **fields: Any) -> Callable[[Any], None]:
    """Set fields of an entry of a statement."""
    return lambda stated: stated[section][number].update(fields)


def body(commit: int, before: str, after: str) -> Callable[[Any], None]:
    def edit(session: Any) -> None:
        text = session["commits"][commit]["body"]
        assert before in text
        session["commits"][commit]["body"] = text.replace(before, after, 1)

    return edit


def both(field: str, value: str) -> Callable[[list[Any]], list[Any]]:
    """Change a field of the user's answer, and of the decision that it became."""
    answer = in_events("decision_recorded", lambda e: e.update({field: value}))
    decision = in_events("gate_resolved", lambda e: e.update({field: value}))
    return lambda entries: decision(answer(entries))


def swap(items: list[Any], one: int = 0, other: int = 1) -> None:
    items[one], items[other] = items[other], items[one]


def swap_bodies(session: Any) -> None:
    first, second = session["responses"][:2]
    first["body"], second["body"] = second["body"], first["body"]


def shorter(record: Record) -> None:
    """Cut the last command off, cleanly: what is left is a sound session."""
    del record.bundle["session"]["commits"][-1]
    del record.bundle["session"]["responses"][-1]
    record.bundle["session"]["meta"]["updatedAt"] = record.bundle["session"]["commits"][-1]["recordedAt"]
    record.bundle = rewritten(record.bundle, lambda entries: entries)


def called_check(stated: Any) -> None:
    report = next(each for each in stated["reports"] if each["as"] == "artifact")
    passed = {"check": "tests", "argv": ["pytest"], "exit": 0, "passed": True}
    stated["checks"].append(
        {"event": report["event"], "by": "local", "at": report["at"], "run": 0, **passed}
        | {"strength": "run by the server"}
    )


def into_check(entries: list[Any]) -> list[Any]:
    """Put a run of the server in the place of the agent's report, as if it had been one."""
    check = {
        "kind": "check_ran",
        "key": "build",
        "check": "tests",
        "definition": "sha256:0",
        "argv": ["true"],
    }
    check |= {"folder": ".", "ended": "exited", "at": 1, "passed": True, "exit": 0, "trusted_by": "cli"}
    return [[check, 0, 1] if "artifact" in event else [event, *where] for event, *where in entries]


def stranger(record: Record, envelope: Any) -> Any:
    return json.loads(record.signed(record.statement, record.second))


def under_the_first_name(record: Record, envelope: Any) -> Any:
    forged = stranger(record, envelope)
    forged["signatures"][0]["keyid"] = record.first.id
    return forged


def swapped_signatures(record: Record, envelope: Any) -> Any:
    both = json.loads(with_signature(json.dumps(envelope).encode(), record.second))
    one, other = both["signatures"]
    one["sig"], other["sig"] = other["sig"], one["sig"]
    return both


def signature_of_the_receipt(record: Record, envelope: Any) -> Any:
    return {**envelope, "signatures": json.loads(record.files["receipt"])["signatures"]}


def flipped(record: Record, envelope: Any) -> Any:
    signature = bytearray(base64.b64decode(envelope["signatures"][0]["sig"]))
    signature[5] ^= 1
    return {
        **envelope,
        "signatures": [{"keyid": record.first.id, "sig": base64.b64encode(signature).decode()}],
    }


def shortened(record: Record, envelope: Any) -> Any:
    return {**envelope, "signatures": [{"keyid": record.first.id, "sig": "AAAA"}]}


def no_statement(record: Record, envelope: Any) -> Any:
    return json.loads(record.signed(["not", "a", "statement"]))


def unsigned_change(record: Record, envelope: Any) -> Any:
    record.statement["predicate"]["decisions"][0]["option"] = "no"
    changed = base64.b64encode(json.dumps(record.statement).encode()).decode()
    return {**envelope, "payload": changed}


def twice_named(record: Record) -> None:
    raw = record.files["bundle"].decode()
    record.raw["bundle"] = raw.replace('"title":', '"title": "another", "title":', 1).encode()


BUNDLES = [
    bundle(
        "an event is taken out of its command's numbers",
        lambda s: s["commits"][-1].update(last=s["commits"][-1]["last"] + 1),
        "INTEGRITY",
        "LOG_NUMBERING",
    ),
    bundle("a command in the middle is removed", lambda s: s["commits"].pop(2), "ORDER", "LOG_NUMBERING"),
    bundle("the first command is removed", lambda s: s["commits"].pop(0), "ORDER", "LOG_NUMBERING"),
    bundle("the last command is removed", lambda s: s["commits"].pop(), "INTEGRITY", "LOG_TRUNCATED"),
    bundle("all commands are removed", lambda s: s["commits"].clear(), "ORDER", "LOG_NUMBERING"),
    bundle("two commands change places", lambda s: swap(s["commits"], 2, 3), "ORDER", "LOG_NUMBERING"),
    bundle(
        "a command is doubled", lambda s: s["commits"].insert(2, s["commits"][1]), "ORDER", "LOG_NUMBERING"
    ),
    bundle("an option is changed", body(3, '"option":"yes"', '"option":"no"'), "INTEGRITY", "LOG_CHAIN"),
    bundle("a remark is changed", body(2, "Looks right.", "Looks wrong."), "INTEGRITY", "LOG_CHAIN"),
    bundle("who gave a command is changed", body(2, '["local"', '["boss"'), "INTEGRITY", "LOG_CHAIN"),
    bundle("what was shown is changed", body(1, "ship?", "ship it now?"), "INTEGRITY", "LOG_CHAIN"),
    bundle(
        "the time of a command is changed",
        lambda s: s["commits"][2].update(recordedAt=1),
        "INTEGRITY",
        "LOG_CHAIN",
    ),
    bundle(
        "the key of a command is changed",
        lambda s: s["commits"][2].update(key="decision:9:other"),
        "INTEGRITY",
        "LOG_CHAIN",
    ),
    bundle(
        "the digest of a command is changed",
        lambda s: s["commits"][2].update(digest="00" * 32),
        "INTEGRITY",
        "LOG_CHAIN",
    ),
    bundle(
        "a response is changed",
        lambda s: s["responses"][1].update(body="{}"),
        "INTEGRITY",
        "RESPONSE_CHANGED",
    ),
    bundle("a response is removed", lambda s: s["responses"].pop(1), "RESPONSE_MISSING", "RESPONSE_MISSING"),
    bundle(
        "a response is doubled",
        lambda s: s["responses"].append(s["responses"][0]),
        "RESPONSE_WITHOUT_ATTEMPT",
        "RESPONSE_WITHOUT_ATTEMPT",
    ),
    bundle("two responses change places", swap_bodies, "INTEGRITY", "RESPONSE_CHANGED"),
    bundle(
        "a response to no attempt is added",
        lambda s: s["responses"].append({"node": 0, "attempt": 7, "body": "{}"}),
        "INTEGRITY",
        "RESPONSE_WITHOUT_ATTEMPT",
    ),
    bundle("the title is changed", lambda s: s["meta"].update(title="Fine"), "INTEGRITY"),
    bundle("the length is changed", lambda s: s["meta"].update(events=99), "INTEGRITY"),
    bundle("an output is changed", lambda s: s["graph"]["outputs"][0].update(body="x"), "INTEGRITY"),
    bundle("a node is removed", lambda s: s["graph"]["nodes"].pop(), "INTEGRITY"),
    bundle("the status is changed", lambda s: s["graph"]["runs"][0].update(status="complete"), "INTEGRITY"),
    bundle("the workflow is removed", lambda s: s["pinnedWorkflows"].clear(), "MISSING_PINNED"),
    bundle(
        "the workflow is another one",
        lambda s: s["pinnedWorkflows"].update(
            {key: text.replace("ship?", "skip?") for key, text in s["pinnedWorkflows"].items()}
        ),
        "INTEGRITY",
    ),
    Kind(
        "bundle: a part of the manifest is removed",
        lambda r: r.bundle["integrity"]["entries"].pop(),
        "INTEGRITY",
    ),
    Kind("bundle: it has a name twice", twice_named, "FILE_UNREADABLE", "FILE_UNREADABLE"),
]
LOGS = [
    log("without the answer", without("gate_resolved"), "GUARD_REFUSED"),
    log("without the question", without("question_shown"), "GUARD_REFUSED"),
    log("without the gap", without("gap_recorded"), "GUARD_REFUSED"),
    log("without the step", without("step_completed"), "GUARD_REFUSED"),
    log("another option", both("option", "no"), "LOG_OTHER"),
    log("another remark", both("note", "Ship!"), "LOG_OTHER"),
    log(
        "another option than the user's",
        in_events("gate_resolved", lambda e: e.update(option="no")),
        "ANSWER_MISSING",
        "ANSWER_MISSING",
    ),
    log(
        "another remark than the user's",
        in_events("gate_resolved", lambda e: e.update(note="Ship!")),
        "ANSWER_MISSING",
        "ANSWER_MISSING",
    ),
    log(
        "another answer of the user",
        in_events("decision_recorded", lambda e: e.update(option="no")),
        "ANSWER_MISSING",
        "ANSWER_MISSING",
    ),
    log(
        "another channel", in_events("gate_resolved", lambda e: e.update(channel="console")), "GUARD_REFUSED"
    ),
    log(
        "another question",
        in_events("question_shown", lambda e: e.update(question="Fine?")),
        "GUARD_REFUSED",
    ),
    log(
        "another digest of what was shown",
        in_events("gate_resolved", lambda e: e.update(shown="sha256:0")),
        "GUARD_REFUSED",
    ),
    log("a claim called a check", into_check, "GUARD_REFUSED"),
    log("without the check", without("check_ran"), "GUARD_REFUSED"),
    log("a failed check called passed", in_events("check_ran", lambda e: e.update(exit=1)), "GUARD_REFUSED"),
    log(
        "a check that only the agent trusted",
        in_events("check_ran", lambda e: e.update(trusted_by="agent:local")),
        "GUARD_REFUSED",
        "CHECK_UNTRUSTED",
    ),
    log(
        "a check that nobody trusted", in_events("check_ran", lambda e: e.pop("trusted_by")), "GUARD_REFUSED"
    ),
    log(
        "a check of another definition",
        in_events("check_ran", lambda e: e.update(definition="sha256:0")),
        "GUARD_REFUSED",
    ),
    log("a check for another step", in_events("check_ran", lambda e: e.update(key="end")), "GUARD_REFUSED"),
    log("a check on other files", in_events("check_ran", lambda e: e.update(tree_after="")), "LOG_OTHER"),
    Kind("log written anew: it ends earlier", shorter, "LOG_TRUNCATED", "LOG_TRUNCATED"),
]
STATEMENTS = [
    said("another option", event("decisions", option="no")),
    said("another remark", event("decisions", remark="Ship!")),
    said("another person", event("decisions", by="boss")),
    said("another time", event("decisions", at=1)),
    said("another question", event("decisions", question="sha256:0")),
    said("another channel", event("decisions", channel="console")),
    said("more strength than the channel has", event("decisions", 1, strength="user")),
    said("another policy", event("decisions", policy="user")),
    said("a default called an answer", event("decisions", 1, how="chosen")),
    said("another instance of the gate", event("decisions", instance="each@1::ship")),
    said("a decision is dropped", lambda s: s["decisions"].pop(), "STATEMENT_OMITS"),
    said("a decision is doubled", lambda s: s["decisions"].insert(0, s["decisions"][0])),
    said("decisions are reordered", lambda s: swap(s["decisions"])),
    said(
        "a decision is invented",
        lambda s: s["decisions"].insert(0, {**s["decisions"][0], "event": 2}),
        "STATEMENT_INVENTS",
    ),
    said("a gap is dropped", lambda s: s["gaps"].clear(), "STATEMENT_OMITS"),
    said("a gap is called minor", event("gaps", severity="info")),
    said(
        "a gap is called closed",
        lambda s: s["closedGaps"].append({**s["gaps"][0], "gap": 1}),
        "STATEMENT_INVENTS",
    ),
    said("a report is dropped", lambda s: s["reports"].pop(), "STATEMENT_OMITS"),
    said("a claim called a check", called_check, "CLAIM_CALLED_CHECK"),
    said("a check is dropped", lambda s: s["checks"].clear(), "STATEMENT_OMITS"),
    said("another exit status", event("checks", exit=1)),
    said("another command", event("checks", argv=["true"])),
    said("another output", event("checks", output="sha256:0")),
    said("other files", event("checks", treeAfter="sha256:0")),
    said("trusted by somebody else", event("checks", trustedBy="console")),
    said("a check on another commit", event("checks", gitCommit="0" * 40), "SUBJECT"),
    said("a claim called run by the server", event("reports", strength="run by the server")),
    said("another workflow", lambda s: s["runs"][0].update(workflow="team.other")),
    said("another hash of the workflow", lambda s: s["runs"][0].update(workflowHash="sha256:0")),
    said("a run with gaps called complete", lambda s: s["runs"][0].update(status="complete")),
    said("a run is dropped", lambda s: s["runs"].pop()),
    said("another root", lambda s: s["log"].update(root="00" * 32), "LOG_OTHER"),
    said("more events", lambda s: s["log"].update(events=99), "LOG_OTHER"),
    said("a head that is cut off", lambda s: s["log"].update(commits=3), "LOG_OTHER"),
    said("a head of another log", lambda s: s["log"].update(head="00" * 32), "LOG_OTHER"),
    said("a longer log", lambda s: s["log"].update(commits=99, events=999), "LOG_TRUNCATED"),
    said("another session", lambda s: s.update(session="sess_" + "a" * 26), "OTHER_SESSION"),
    said("another owner", lambda s: s.update(owner="boss")),
    said("stricter terms", lambda s: s["runs"][0].update(policy="user")),
    said("another git commit", lambda s: s.update(git="0" * 40)),
    said("a section is dropped", lambda s: s.pop("gaps"), "STATEMENT_UNREADABLE"),
    statement("another subject", lambda s: s["subject"][0]["digest"].update(gitCommit="00" * 20), "SUBJECT"),
    statement("no subject", lambda s: s["subject"].clear(), "SUBJECT"),
    statement(
        "another type", lambda s: s.update(_type="https://in-toto.io/Statement/v0.1"), "STATEMENT_TYPE"
    ),
    statement("another predicate", lambda s: s.update(predicateType="urn:other"), "PREDICATE_TYPE"),
]
ENVELOPES = [
    signed(
        "the payload is called something else",
        lambda r, e: {**e, "payloadType": "text/plain"},
        "PAYLOAD_TYPE",
    ),
    signed("the signature is removed", lambda r, e: {**e, "signatures": []}, "SIGNATURE_MISSING"),
    signed("a bit of the signature is changed", flipped, "SIGNATURE_INVALID"),
    signed("the statement is changed and not signed", unsigned_change, "SIGNATURE_INVALID"),
    signed("it is signed by a stranger", stranger, "KEY_UNKNOWN"),
    signed("it is signed by a stranger under the right name", under_the_first_name, "SIGNATURE_INVALID"),
    signed("the signature is shorter", shortened, "SIGNATURE_INVALID"),
    signed("the payload has no type", lambda r, e: {**e, "payloadType": 5}, "ENVELOPE_UNREADABLE"),
    signed("the payload is no statement", no_statement, "STATEMENT_UNREADABLE"),
    signed("two signatures change places", swapped_signatures, "SIGNATURE_INVALID"),
    signed(
        "the signature is doubled", lambda r, e: {**e, "signatures": e["signatures"] * 2}, "SIGNATURE_DOUBLED"
    ),
    signed("the signature of another statement", signature_of_the_receipt, "SIGNATURE_INVALID"),
    signed("the payload is not base64", lambda r, e: {**e, "payload": "~"}, "ENVELOPE_UNREADABLE"),
    signed("the payload is not JSON", lambda r, e: {**e, "payload": "AAAA"}, "STATEMENT_UNREADABLE"),
    signed("the signatures are gone", lambda r, e: {k: e[k] for k in ("payload", "payloadType")}, "ENVELOPE"),
]
RECEIPTS = [
    receipt("another option", lambda p: p["decision"].update(option="no"), "STATEMENT_DIFFERS"),
    receipt("another remark", lambda p: p["decision"].update(remark="Ship!"), "STATEMENT_DIFFERS"),
    receipt("another person", lambda p: p["decision"].update(by="boss"), "STATEMENT_DIFFERS"),
    receipt("another time", lambda p: p["decision"].update(at=1), "STATEMENT_DIFFERS"),
    receipt("another policy", lambda p: p["decision"].update(policy="user"), "STATEMENT_DIFFERS"),
    receipt("another text was shown", lambda p: p["shown"].update(text="Fine?"), "RECEIPT_SHOWN"),
    receipt("other options were shown", lambda p: p["shown"].update(options=["yes"]), "RECEIPT_SHOWN"),
    receipt("another digest of what was shown", lambda p: p["shown"].update(digest="0"), "RECEIPT_SHOWN"),
    receipt(
        "an event that is no decision",
        lambda p: p["decision"].update(event=p["decision"]["event"] + 1),
        "RECEIPT_DECISION",
    ),
    receipt("another path", lambda p: p["proofs"][0]["path"].__setitem__(0, "00" * 32), "RECEIPT_PATH"),
    receipt("a shorter path", lambda p: p["proofs"][0]["path"].pop(), "RECEIPT_PATH"),
    receipt("another place in the log", lambda p: p["proofs"][0].update(number=2), "RECEIPT_PATH"),
    receipt("a command that was changed", lambda p: p["proofs"][0].update(body="[]"), "RECEIPT_CHAIN"),
    receipt("another command before it", lambda p: p["proofs"][0].update(before="00" * 32), "RECEIPT_CHAIN"),
    receipt("without the user's own answer", lambda p: p["proofs"].pop(), "STATEMENT_DIFFERS"),
    receipt("another root", lambda p: p["log"].update(root="00" * 32), "RECEIPT_PATH"),
    receipt("another workflow", lambda p: p["run"].update(workflowHash="sha256:0"), "STATEMENT_DIFFERS"),
    receipt("a shorter log", lambda p: p["log"].update(commits=3), "RECEIPT_PATH"),
    Kind(
        "receipt: the subject is another command",
        lambda r: r.receipt["subject"][0]["digest"].update(sha256="00" * 32),
        "SUBJECT",
        "SUBJECT",
    ),
]
KINDS = [*BUNDLES, *LOGS, *STATEMENTS, *ENVELOPES, *RECEIPTS]


def named(world: World, record: Record) -> tuple[str, str]:
    """Return what Interlock and the one-file verifier say of a record."""
    files, keys = record.files, record.keys
    ours = [line for each in verified_files(world.ledger, files, keys) for line in each.wrong]
    alone = [str(wrong) for each in judged_files(files, keys) for wrong in each.wrong]
    return "\n".join(ours), "\n".join(alone)


def test_an_intact_record_passes(world: World) -> None:
    assert named(world, world.record) == ("", "")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_forged_record_is_named(world: World, kind: Kind) -> None:
    record = world.record.copied()
    kind.forge(record)
    ours, alone = named(world, record)
    assert kind.code in ours
    assert kind.alone in alone
    assert bool(kind.alone) is bool(alone), alone


@pytest.mark.parametrize("which", ["attestation", "receipt", "bundle"])
def test_what_belongs_to_another_run_is_named(world: World, which: str) -> None:
    record = world.record.copied()
    record.raw[which] = world.other.files[which]
    ours, alone = named(world, record)
    assert "OTHER_SESSION" in ours
    assert "OTHER_SESSION" in alone


def test_a_receipt_is_checked_without_the_rest_of_the_log(world: World) -> None:
    for kind in RECEIPTS:
        record = world.record.copied()
        kind.forge(record)
        (alone,) = judged_files({"receipt": record.files["receipt"]}, record.keys)
        only_beside_the_log = kind.name in ("receipt: another policy", "receipt: another workflow")
        assert bool(alone.wrong) is not only_beside_the_log, kind.name


def test_a_receipt_that_says_otherwise_than_an_attestation_is_named(world: World) -> None:
    record = world.record.copied()
    record.receipt["predicate"]["decision"]["policy"] = "user"
    files = {name: record.files[name] for name in ("attestation", "receipt")}
    (_, receipt) = judged_files(files, record.keys)
    assert "has policy 'auto', and the statement says 'user'" in str(receipt.wrong)


def test_a_rewritten_log_is_named_though_the_intact_one_comes_with_it(world: World) -> None:
    record = world.record.copied()
    intact = record.files["bundle"]
    record.bundle = rewritten(record.bundle, in_events("node_created", lambda e: e.update(created_at=7)))
    both = {"intact": intact, "rewritten": record.files["bundle"]}
    assert both["intact"] != both["rewritten"]
    for files in (both, dict(reversed(both.items()))):
        ours, alone = named(world, replaced(record, files))
        assert "LOG_OTHER" in ours
        assert "LOG_OTHER" in alone


def replaced(record: Record, bundles: dict[str, bytes]) -> Record:
    """A record with several bundles, each under its own name."""
    record = record.copied()
    record.raw |= {**bundles, "bundle": next(iter(bundles.values()))}
    return record


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (lambda raw: b"\xef\xbb\xbf" + raw, "FILE_UNREADABLE"),
        (lambda raw: raw.decode().encode("utf-16"), "FILE_UNREADABLE"),
        (lambda raw: raw[:-1] + b', "more": NaN}', "FILE_UNREADABLE"),
        (lambda raw: raw + b"\0", "FILE_UNREADABLE"),
        (lambda raw: raw + raw, "FILE_UNREADABLE"),
    ],
)
def test_what_only_some_readers_take_for_json_is_refused(
    world: World, changed: Callable[[bytes], bytes], code: str
) -> None:
    record = world.record.copied()
    record.raw["bundle"] = changed(record.files["bundle"])
    ours, alone = named(world, record)
    assert code in ours
    assert code in alone


def test_a_log_without_events_is_named_as_one_that_was_cut(world: World) -> None:
    record = world.record.copied()
    record.bundle["session"] |= {"commits": [], "responses": []}
    _, alone = named(world, record)
    assert "LOG_TRUNCATED" in alone


def test_a_path_without_end_stops_no_verifier(world: World) -> None:
    record = world.record.copied()
    record.receipt["predicate"]["proofs"][0]["path"] = ["00" * 32] * 5_000
    record.receipt["predicate"]["log"]["commits"] = 2**6_000
    ours, alone = named(world, record)
    assert "RECEIPT_PATH" in ours
    assert "RECEIPT_PATH" in alone


@pytest.mark.parametrize("inside", ["AAA", "====", "MCowBQYDK2VwAyEA"])
def test_a_damaged_key_is_said_to_be_one(inside: str) -> None:
    pem = f"-----BEGIN PUBLIC KEY-----\n{inside}\n-----END PUBLIC KEY-----\n"
    with pytest.raises(RecordUnreadable) as refused:
        public_keys(pem.encode())
    assert refused.value.wrong.code == "KEY_UNREADABLE"


def test_nobody_asks_for_no_signature_at_all(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        verify_alone(["--at-least", "0", str(tmp_path / "bundle.json")])


def test_a_log_that_goes_on_after_the_statement_is_no_forgery_and_is_told(world: World) -> None:
    record = world.record.copied()
    commits = record.bundle["session"]["commits"]
    note = json.dumps(["local", [[{"kind": "session_titled", "title": "Later"}, None, None]]])
    more = {"first": commits[-1]["last"] + 1, "last": commits[-1]["last"] + 1, "recordedAt": 2, "body": note}
    more["digest"] = link(bytes.fromhex(commits[-1]["digest"]), more).hex()
    commits.append(more)
    _, attestation, receipt = judged_files(record.files, record.keys)
    assert (attestation.wrong, receipt.wrong) == ((), ())
    assert any("1 events are not in the statement" in note for note in attestation.notes)


def test_two_of_two_keys_must_have_signed_where_that_is_asked(world: World) -> None:
    record, one = world.record, world.record.files["attestation"]
    both = {**record.keys, **public_of(record)}
    two = with_signature(one, record.second)
    for raw, keys, wrong in (
        (one, both, "1 of 2 trusted keys"),
        (two, both, ""),
        (two, record.keys, "1 of 2"),
    ):
        (judged,) = judged_files({"file": raw}, keys, at_least=2)
        assert wrong in str(judged.wrong)
        assert bool(judged.wrong) is bool(wrong)
    (judged,) = judged_files({"file": two}, record.keys)
    assert any("also signed by" in note for note in judged.notes)


def public_of(record: Record) -> dict[str, bytes]:
    return {record.second.id: record.second.private.public_key().public_bytes_raw()}


def test_the_same_log_is_always_attested_in_the_same_words(world: World) -> None:
    session = world.record.statement["predicate"]["session"]
    again = Record.of(world.bench.ledger(), session, world.bench.folder.parent)
    assert again.statement == world.unchecked.statement


def test_what_a_decision_says_of_itself(world: World) -> None:
    ship, sure = world.record.statement["predicate"]["decisions"]
    assert (ship["by"], ship["channel"], ship["strength"], ship["policy"]) == ("local", "cli", "user", "auto")
    assert (ship["option"], ship["remark"], ship["how"]) == ("yes", "Looks right.", "chosen")
    assert (sure["channel"], sure["strength"], sure["how"]) == ("server", "none", "auto_advanced")
    (check,) = world.record.statement["predicate"]["checks"]
    assert (check["strength"], check["passed"], check["gitCommit"]) == ("run by the server", True, HEAD)
    assert world.record.statement["subject"] == [{"name": "git", "digest": {"gitCommit": HEAD}}]
    (subject,) = world.unchecked.statement["subject"]
    assert subject["digest"] == {"sha256": world.unchecked.statement["predicate"]["log"]["head"]}
    assert [gap["instance"] for gap in world.record.statement["predicate"]["gaps"]] == ["sure"]


def test_sessions_of_every_surface_are_attested(bench: Bench, tmp_path: Path) -> None:
    walk(bench)
    ledger = bench.ledger()
    with ledger.store.reading() as reader:
        sessions = reader.session_ids("", 50)
    surfaces = set()
    for session in sessions:
        log = stored_log(ledger.store, session)
        key = create_key(tmp_path / session)
        files = {"attestation": envelope(attestation(log), key)}
        keys = {key.id: key.private.public_key().public_bytes_raw()}
        (told,) = verified_files(ledger, files, keys)
        assert told.wrong == ()
        surfaces |= {run["surface"] for run in record_of(log)["runs"]}
    assert surfaces >= {"execution", "navigation", "session"}


def test_the_verifier_knows_the_strength_of_every_channel() -> None:
    assert dict(OF_CHANNEL) == STRENGTH


def test_the_verifier_links_commits_as_the_store_does(world: World) -> None:
    session = world.record.statement["predicate"]["session"]
    before = GENESIS
    for commit in stored_log(world.bench.ledger().store, session).commits:
        linked = stored_link(
            before, commit["first"], commit["recordedAt"], commit["key"], commit["body"].encode()
        )
        assert link(before, commit) == linked
        before = linked


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9])
def test_every_command_has_a_path_to_the_root(size: int) -> None:
    leaves = [bytes([number]) * 32 for number in range(size)]
    for number, leaf in enumerate(leaves):
        path = path_of(leaves, number)
        assert root_from(leaf, number, size, path) == root_of(leaves)
        others = [root_from(leaf, other, size, path) for other in range(size) if other != number]
        assert root_of(leaves) not in others


def test_every_code_is_on_the_page() -> None:
    source = (SOURCE / "ledger" / "evidence" / "standalone.py").read_text("utf-8")
    codes = set(re.findall(r'"((?:[A-Z]+_)+[A-Z]+)"', source)) | {"SUBJECT"}
    page = (ROOT / "docs" / "evidence.md").read_text("utf-8")
    assert [code for code in sorted(codes) if f"`{code}`" not in page] == []
