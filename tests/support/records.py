"""A session with decisions, reports and a gap; what was signed of it; and ways to forge both."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from interlock.core.definition.checks import CommandCheck
from interlock.core.definition.workflow import Workflow
from interlock.core.hashing import check_digest, digest_of, workflow_hash
from interlock.core.run.events import CheckRan
from interlock.ledger.decisions.inbox import answer_question, inbox
from interlock.ledger.evidence.signing import SigningKey, create_key, load_key, public_pem
from interlock.ledger.evidence.standalone import GENESIS, link, log_in, public_keys
from interlock.ledger.evidence.statements import attestation, envelope, receipt, stored_log
from interlock.ledger.ledger import Ledger
from interlock.ledger.transfer.bundle import Bundle, Session, graph_of, manifest, rebuilt_as
from interlock.ledger.transfer.export_import import export_session
from support.harness import Bench, gate, steps, workflow

FLOW = workflow(
    *steps("build"), gate("ship", "yes", "no"), *steps("deploy"), gate("sure", "yes", "no"), *steps("end")
)
HEAD = "1f" * 20
Edit = Callable[[Any], None]


def walked(bench: Bench) -> str:
    """Walk a run that a user decides once, that goes past the user once, and that was blocked once."""
    bench.write(FLOW)
    agent = bench.agent(mode="never-stop")
    first = agent.start("test.flow", goal="Ship it")
    agent.ack("built", artifacts=[{"kind": "test_result", "passed": True}])
    answer_question(agent.ledger, inbox(agent.ledger)[0], "yes", "Looks right.")
    agent.ack()
    agent.ack("deployed")
    bench.clock.pass_seconds(60)
    agent.ack()
    agent.ack("ended")
    session_id: str = first["session"]["sessionId"]
    return session_id


@dataclass
class Record:
    """What somebody is handed: a bundle, an attestation, a receipt; `raw` is what takes their place."""

    bundle: Any
    statement: Any
    receipt: Any
    first: SigningKey
    second: SigningKey
    keys: Mapping[str, bytes]
    raw: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, ledger: Ledger, session_id: str, folder: Path) -> Record:
        """Export and sign a session with a key of its own, and have a stranger's key ready."""
        for name in ("first", "second"):
            if not (folder / f"{name}.pem").exists():
                create_key(folder / f"{name}.pem")
        with ledger.store.reading() as reader:
            session = reader.session(session_id)
        assert session is not None
        bundle = export_session(ledger.store, session, ledger.pins, ledger.clock())
        log = stored_log(ledger.store, session_id)
        return cls(
            json.loads(msgspec.json.encode(bundle)),
            json.loads(attestation(log)),
            json.loads(receipt(log, "ship")),
            load_key(folder / "first.pem"),
            load_key(folder / "second.pem"),
            public_keys(public_pem(folder / "first.pem")),
        )

    def with_check(self) -> Record:
        """The same record of a workflow whose first step has a check, which the server ran."""
        record = self.copied()
        record.bundle = checked(record.bundle)
        log = log_in(record.bundle)
        record.statement, record.receipt = json.loads(attestation(log)), json.loads(receipt(log, "ship"))
        return record

    def copied(self) -> Record:
        statements = copy.deepcopy((self.bundle, self.statement, self.receipt))
        return Record(*statements, self.first, self.second, self.keys, dict(self.raw))

    @property
    def files(self) -> dict[str, bytes]:
        """The three files, the statements signed by the first key unless a test has put others in place."""
        made = {
            "bundle": json.dumps(self.bundle).encode(),
            "attestation": self.signed(self.statement),
            "receipt": self.signed(self.receipt),
        }
        return {**made, **self.raw}

    def signed(self, statement: Any, key: SigningKey | None = None) -> bytes:
        return envelope(json.dumps(statement).encode(), key or self.first)


def resealed(bundle: Any) -> Any:
    """A bundle whose manifest was made again, as by somebody who knows how."""
    decoded = msgspec.convert(bundle, Bundle)
    sealed = replace(decoded, integrity=manifest(decoded.session))
    return json.loads(msgspec.json.encode(sealed))


def rewritten(bundle: Any, edit: Callable[[list[Any]], list[Any]]) -> Any:
    """A bundle whose log was written anew, with every digest and row that follows from it."""
    before, index, session = GENESIS, 0, bundle["session"]
    for commit in session["commits"]:
        principal, entries = json.loads(commit["body"])
        entries = edit(entries)
        commit["body"] = json.dumps([principal, entries], separators=(",", ":"), ensure_ascii=False)
        commit["first"], commit["last"] = index, index + len(entries) - 1
        before = link(before, commit)
        commit["digest"], index = before.hex(), commit["last"] + 1
    session["meta"]["events"] = index
    decoded = msgspec.convert(session, Session)
    session["graph"] = msgspec.to_builtins(graph_of(rebuilt_as(decoded, decoded.meta.session_id)))
    return resealed(bundle)


def checked(bundle: Any) -> Any:
    """A bundle of the same run, as it would be if its first step had a check."""
    check = CommandCheck("tests", "pytest -q")
    ((before, text),) = bundle["session"]["pinnedWorkflows"].items()
    workflow = msgspec.json.decode(text, type=Workflow)
    activity = workflow.activities[0]
    step = replace(activity.items[0], checks=(check,))
    changed = replace(workflow, activities=(replace(activity, items=(step, *activity.items[1:])),))
    after = workflow_hash(changed)
    bundle["session"]["pinnedWorkflows"] = {after: msgspec.json.encode(changed).decode()}
    files = digest_of(b"the files of the project")
    ran = CheckRan(
        "build",
        check.id,
        check_digest(workflow.id, check),
        ("pytest", "-q"),
        ".",
        "exited",
        1_800_000_000_000,
        passed=True,
        exit=0,
        duration_ms=1200,
        output_digest=digest_of(b"3 passed"),
        head=HEAD,
        tree_before=files,
        tree_after=files,
        trusted_by="cli:local",
    )

    def edited(entries: list[Any]) -> list[Any]:
        made: list[Any] = []
        for event, *where in entries:
            if event["kind"] == "run_started":
                assert event["workflow_hash"] == before
                event["workflow_hash"] = after
            if event["kind"] == "step_completed" and event["step"] == "build":
                made.append([json.loads(msgspec.json.encode(ran)), *where])
            made.append([event, *where])
        return made

    return rewritten(bundle, edited)


def in_events(kind: str, edit: Edit) -> Callable[[list[Any]], list[Any]]:
    """Return an edit of all events of a kind."""

    def edited(entries: list[Any]) -> list[Any]:
        for event, *_ in entries:
            if event["kind"] == kind:
                edit(event)
        return entries

    return edited


def without(kind: str) -> Callable[[list[Any]], list[Any]]:
    return lambda entries: [entry for entry in entries if entry[0]["kind"] != kind]
