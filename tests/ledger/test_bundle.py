"""Bundles: everything travels, nothing secret does, and what was tampered with stays out (rules 4 and 7)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.core.hashing import canonical
from interlock.core.run.commands import Terms
from interlock.core.run.preferences import PRESETS, SessionTerms, stricter
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.rebuild import differences, rebuild
from interlock.ledger.log.records import ObservationRecorded
from interlock.ledger.runs.position import Position
from interlock.ledger.tokens.tokens import NAMES
from interlock.ledger.transfer.bundle import Bundle, BundleRefused, Session, read_bundle
from interlock.ledger.transfer.bundle import manifest as digests
from interlock.ledger.transfer.export_import import export_session, import_bundle
from support.harness import Agent, Bench, gate, steps, workflow
from support.session_agents import answer_checkpoint, join_session, manifest, session, start_flow

FLOW = workflow(*steps("one"), gate("fork", "left", "right"), *steps("two", "three"))


def exported(ledger: Ledger, session_id: str) -> bytes:
    with ledger.store.reading() as reader:
        session = reader.session(session_id)
    assert session is not None
    return msgspec.json.encode(export_session(ledger.store, session, ledger.pins, ledger.clock()))


def checked(raw: bytes) -> Bundle:
    bundle = read_bundle(raw)
    assert isinstance(bundle, Bundle), bundle
    return bundle


def imported(ledger: Ledger, raw: bytes) -> str:
    return import_bundle(ledger, checked(raw)).session_id


def travelled(agent: Agent) -> str:
    """A run with a fork, a checkpoint, a blocked attempt and notes in several scripts."""
    first = agent.start("test.flow", goal="travel light", size=3)
    agent.ack("With “quotes”, ümlauts, 漢字 and a\ttab.", artifacts=[{"kind": "x", "n": 1}])
    agent.call(
        "checkpoint_workflow",
        stateToken=agent.last["stateToken"],
        checkpointToken=agent.last["checkpointToken"],
        output={"notesMarkdown": "kept"},
    )
    agent.ack("another way", at=agent.look(first))
    agent.ack("forgot to decide")
    session: str = first["session"]["sessionId"]
    return session


@pytest.fixture
def agent(bench: Bench) -> Agent:
    bench.write(FLOW)
    return bench.agent()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Agent:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return Bench(folder).agent()


def anonymous(raw: bytes) -> Any:
    """A bundle without what may differ between two exports: identity and time."""
    text = re.sub(r"(sess|run|bundle)_[a-z2-7]{26}", r"\1_x", raw.decode())
    bundle = json.loads(text)
    del bundle["exportedAt"], bundle["integrity"]
    return bundle


def without_import(raw: bytes) -> Any:
    """An anonymous bundle without the one event that an import adds (rule 27)."""
    bundle = anonymous(raw)
    session = bundle["session"]
    session["commits"] = [commit for commit in session["commits"] if "session_imported" not in commit["body"]]
    del session["meta"]["events"], session["meta"]["updatedAt"]
    return bundle


def test_an_imported_run_goes_on_where_the_workflow_was_never_installed(
    agent: Agent, elsewhere: Agent
) -> None:
    session = travelled(agent)
    assert imported(elsewhere.ledger, exported(agent.ledger, session)) == session
    found = elsewhere.call("resume_session", query="travel light")["candidates"][0]
    assert found["sessionId"] == session
    elsewhere.look(found)
    assert elsewhere.pending == "fork"
    assert "another way" in elsewhere.text
    elsewhere.decide("left")
    assert elsewhere.pending == "two"


def test_what_work_is_found_by_travels_with_it_also_without_a_run(
    bench: Bench, tmp_path: Path, elsewhere: Agent
) -> None:
    (tmp_path / "checkout" / ".git").mkdir(parents=True)
    (tmp_path / "checkout" / ".git" / "HEAD").write_text("ref: refs/heads/topic\n")
    bench.write(FLOW)
    agent = bench.agent(project=tmp_path / "checkout")
    run = agent.start("test.flow")["session"]["sessionId"]
    agent.ack("See below.", artifacts=[{"kind": "x", "finding": "a loose valve"}])
    notes = agent.call("start_session", title="Only notes")
    agent.call("checkpoint_workflow", sessionToken=notes["sessionToken"], output={"notesMarkdown": "an idea"})
    noted = notes["session"]["sessionId"]
    for travelling in (run, noted):
        assert imported(elsewhere.ledger, exported(agent.ledger, travelling)) == travelling
    for words, found in (("topic", run), ("valve", run), ("idea", noted)):
        best = elsewhere.call("resume_session", query=words)["candidates"][0]
        assert (best["sessionId"], best["whyMatched"] != "recency_fallback") == (found, True)


def test_tokens_of_the_store_it_came_from_open_nothing(agent: Agent, elsewhere: Agent) -> None:
    session = travelled(agent)
    before = agent.last
    imported(elsewhere.ledger, exported(agent.ledger, session))
    assert elsewhere.look(before)["code"] == "TOKEN_BAD_SIGNATURE"


def test_a_taken_id_is_imported_as_a_new_session(agent: Agent) -> None:
    session = travelled(agent)
    raw = exported(agent.ledger, session)
    other = imported(agent.ledger, raw)
    assert other != session
    assert without_import(exported(agent.ledger, other)) == without_import(raw)
    with agent.ledger.store.reading() as reader:
        rows = rebuild(other, reader.commits(other))
        assert list(differences(reader, rows)) == []


def test_a_removed_session_comes_back_under_a_new_id(agent: Agent) -> None:
    session = travelled(agent)
    raw = exported(agent.ledger, session)
    with agent.ledger.store.writing() as tx:
        tx.remove_session(session, 1)
    assert imported(agent.ledger, raw) != session


def test_a_replay_after_import_answers_as_recorded_with_tokens_and_ids_of_its_own(agent: Agent) -> None:
    session = travelled(agent)
    blocked = agent.last
    other = imported(agent.ledger, exported(agent.ledger, session))
    with agent.ledger.store.reading() as reader:
        handle = reader.handles(other)[0].handle
    tokens = {
        "stateToken": agent.ledger.mint("st", handle, 3),
        "ackToken": agent.ledger.mint("ack", handle, 3),
    }
    replayed = agent.ack("forgot to decide", at=tokens)
    assert replayed["blockers"] == blocked["blockers"]
    assert replayed["session"]["sessionId"] == other
    assert replayed["session"]["runId"] != blocked["session"]["runId"]
    agent.decide("left", at=replayed)
    assert agent.pending == "two"


def test_a_bundle_holds_no_handle_and_no_token(agent: Agent) -> None:
    session = travelled(agent)
    raw = exported(agent.ledger, session)
    with agent.ledger.store.reading() as reader:
        handles = [row.handle for row in reader.handles(session)]
    assert handles
    assert not any(handle.hex().encode() in raw or handle in raw for handle in handles)
    assert not re.search(rb"\b(%s)\.v1\.[\w-]{36}" % "|".join(NAMES).encode(), raw)


def test_an_activity_workflow_travels_with_its_documents(bench: Bench, elsewhere: Agent) -> None:
    agent = bench.agent()
    session = agent.start("work-package", goal="documents")["session"]["sessionId"]
    bundle = checked(exported(agent.ledger, session))
    assert bundle.session.documents
    imported(elsewhere.ledger, msgspec.json.encode(bundle))
    with elsewhere.ledger.store.reading() as reader:
        texts = {key: reader.content(key) for key in bundle.session.documents}
    assert texts == {key: text.encode() for key, text in bundle.session.documents.items()}


def test_a_session_of_agents_travels_and_is_taken_up_at_its_own_surface(
    bench: Bench, elsewhere: Agent, tmp_path: Path
) -> None:
    lead = start_flow(bench)
    answer_checkpoint(join_session(lead), lead, "scope", "yes", variables={"goal": "bread"})
    with lead.ledger.store.reading() as reader:
        session_id = reader.session_ids("", 1)[0]
    raw = exported(lead.ledger, session_id)
    assert imported(elsewhere.ledger, raw) == session_id
    token = elsewhere.call("resume_session", resumeRef=session_id)["candidates"][0]["stateToken"]
    agent = session(Bench(tmp_path / "elsewhere"))
    agent.call("start_session", agent_id="newcomer", session_token=token)
    answer = agent.go("build", step_manifest=manifest("look", "weigh"), variables={"parts": ["crust"]})
    assert not answer.error, answer.text


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.tuples(st.text(max_size=40), st.booleans()), max_size=5))
def test_export_then_import_then_export_is_the_identity(
    agent: Agent, elsewhere: Agent, moves: list[tuple[str, bool]]
) -> None:
    first = agent.start("test.flow", goal="identity")
    for notes, back in moves:
        agent.ack(notes, at=agent.look(first) if back else None, said=notes)
        if "ackToken" not in agent.last:
            agent.look(first)
    raw = exported(agent.ledger, first["session"]["sessionId"])
    again = exported(elsewhere.ledger, imported(elsewhere.ledger, raw))
    assert "session_imported" in again.decode()
    assert without_import(again) == without_import(raw)


def tampered(raw: bytes, change: Callable[[dict[str, Any]], None], *, sign: bool) -> bytes:
    """Change a bundle, with a manifest that fits the change if `sign`."""
    bundle = json.loads(raw)
    change(bundle["session"])
    if sign:
        body = msgspec.convert(bundle["session"], Session)
        bundle["integrity"] = msgspec.to_builtins(digests(body))
    return json.dumps(bundle).encode()


def without_snapshot(session: dict[str, Any]) -> None:
    session["graph"]["snapshots"].popitem()


def without_workflow(session: dict[str, Any]) -> None:
    session["pinnedWorkflows"].clear()


def without_an_event(session: dict[str, Any]) -> None:
    del session["commits"][1]


def swapped(session: dict[str, Any]) -> None:
    session["commits"][1:3] = reversed(session["commits"][1:3])


def other_notes(session: dict[str, Any]) -> None:
    session["graph"]["outputs"][0]["body"] = "never said"


def other_event(session: dict[str, Any]) -> None:
    commit = next(commit for commit in session["commits"] if "travel light" in commit["body"])
    commit["body"] = commit["body"].replace("travel light", "travel heavy")


def other_time(session: dict[str, Any]) -> None:
    session["commits"][1]["recordedAt"] += 1


def other_length(session: dict[str, Any]) -> None:
    session["commits"][-1]["last"] += 1


def other_state(session: dict[str, Any]) -> None:
    snapshots = session["graph"]["snapshots"]
    key = next(iter(snapshots))
    snapshots[key] = snapshots[key].replace("travel light", "travel heavy")


def other_workflow(session: dict[str, Any]) -> None:
    pinned = session["pinnedWorkflows"]
    key = next(iter(pinned))
    pinned[key] = pinned[key].replace("Do two.", "Do evil.")


def other_response(session: dict[str, Any]) -> None:
    session["responses"][0]["body"] = "{}"


@pytest.mark.parametrize("sign", [False, True])
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (without_snapshot, "BUNDLE_MISSING_SNAPSHOT"),
        (without_workflow, "BUNDLE_MISSING_PINNED_WORKFLOW"),
        (without_an_event, "BUNDLE_EVENT_ORDER_INVALID"),
        (swapped, "BUNDLE_EVENT_ORDER_INVALID"),
        (other_notes, "BUNDLE_INTEGRITY_FAILED"),
        (other_event, "BUNDLE_INTEGRITY_FAILED"),
        (other_time, "BUNDLE_INTEGRITY_FAILED"),
        (other_length, "BUNDLE_INTEGRITY_FAILED"),
        (other_state, "BUNDLE_INTEGRITY_FAILED"),
        (other_workflow, "BUNDLE_INTEGRITY_FAILED"),
        (other_response, "BUNDLE_INTEGRITY_FAILED"),
    ],
)
def test_a_changed_bundle_is_refused_even_with_a_manifest_to_match(
    agent: Agent, change: Callable[[dict[str, Any]], None], code: str, sign: bool
) -> None:
    raw = exported(agent.ledger, travelled(agent))
    found = read_bundle(tampered(raw, change, sign=sign))
    assert isinstance(found, BundleRefused)
    assert found.code == code


@pytest.mark.parametrize("field", ["sessionId", "parentSession"])
@pytest.mark.parametrize(
    "name",
    ["", "sess_", "../../etc/passwd", "sess_\x1b[2J" + "a" * 20, "sess_" + "a" * 27, "run_" + "a" * 26],
)
def test_a_session_has_an_id_of_ours(agent: Agent, field: str, name: str) -> None:
    """Rule 39: an id is stored, printed and looked up as it is."""

    def renamed(session: dict[str, Any]) -> None:
        session["meta"][field] = name

    refused = read_bundle(tampered(exported(agent.ledger, travelled(agent)), renamed, sign=False))
    assert isinstance(refused, BundleRefused)
    assert refused.code == "BUNDLE_INVALID_FORMAT"
    assert "\x1b" not in refused.message


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "BUNDLE_INVALID_FORMAT"),
        (b"{", "BUNDLE_INVALID_FORMAT"),
        (b'{"bundleSchemaVersion": 1}', "BUNDLE_INVALID_FORMAT"),
        (b"\xff\xfe", "BUNDLE_INVALID_FORMAT"),
        (b'{"bundleSchemaVersion": 2, "session": {}}', "BUNDLE_UNSUPPORTED_VERSION"),
    ],
)
def test_what_is_no_bundle_of_this_version_is_refused(raw: bytes, code: str) -> None:
    found = read_bundle(raw)
    assert isinstance(found, BundleRefused)
    assert found.code == code


def test_a_number_without_a_canonical_form_is_refused(agent: Agent) -> None:
    def later(session: dict[str, Any]) -> None:
        session["meta"]["updatedAt"] = 2**70

    refused = read_bundle(tampered(exported(agent.ledger, travelled(agent)), later, sign=False))
    assert isinstance(refused, BundleRefused)
    assert refused.code == "BUNDLE_INVALID_FORMAT"


@pytest.mark.parametrize(
    ("title", "observed"), [("a\0b", "main"), ("title", "a\0b"), ("title", "x" * 3000)], ids=repr
)
def test_what_no_store_of_ours_would_have_written_is_refused_though_it_is_chained(
    agent: Agent, title: str, observed: str
) -> None:
    """A NUL delimits the slots of tokens, and PostgreSQL stores neither it nor a long key of an index."""
    new = agent.ledger.start_session(title)
    new.commit.add(ObservationRecorded("git_branch", observed))
    agent.ledger.record_session(new, b"", None)
    refused = read_bundle(exported(agent.ledger, new.session_id))
    assert isinstance(refused, BundleRefused)
    assert refused.code == "BUNDLE_INTEGRITY_FAILED"


def test_a_text_that_spells_an_escaped_nul_travels(agent: Agent, elsewhere: Agent) -> None:
    first = agent.start("test.flow", goal="write \\\\u0000 and \\u0000")
    session_id = imported(elsewhere.ledger, exported(agent.ledger, first["session"]["sessionId"]))
    with elsewhere.ledger.store.reading() as reader:
        session = reader.session(session_id)
    assert session is not None
    assert session.title == "write \\\\u0000 and \\u0000"


def test_digests_of_the_manifest_are_over_canonical_json(agent: Agent) -> None:
    from hashlib import sha256

    bundle = json.loads(exported(agent.ledger, travelled(agent)))
    entries = {entry["path"]: entry for entry in bundle["integrity"]["entries"]}
    body = canonical(bundle["session"]["commits"])
    assert bundle["integrity"]["kind"] == "sha256_manifest_v1"
    assert entries["session/commits"]["sha256"] == sha256(body).hexdigest()
    assert entries["session/commits"]["bytes"] == len(body)


LOOSE = Terms(decisions="agent", enforcement="advisory")
TIGHT = Terms(decisions="client", enforcement="strict")


def test_a16_an_import_takes_the_tighter_terms(bench: Bench, tmp_path: Path) -> None:
    bench.write(FLOW)
    loose = bench.agent("never-stop", LOOSE)
    made = travelled(loose)
    (tmp_path / "tighter").mkdir()
    here = Bench(tmp_path / "tighter")
    importer, later = here.ledger("stop", TIGHT), here.ledger("never-stop", LOOSE)
    session_id = imported(importer, exported(loose.ledger, made))
    with later.store.reading() as reader:
        nodes = [node.node for node in reader.nodes(session_id)]
        assert not list(differences(reader, rebuild(session_id, reader.commits(session_id))))
    wanted = SessionTerms(stricter(PRESETS["stop"], PRESETS["never-stop"]), "client", "strict")
    for node in nodes:
        position = later.position(session_id, node)
        assert isinstance(position, Position)
        assert position.state.finished or position.state.terms == wanted
    assert later.terms_within(session_id) == wanted


def test_an_import_keeps_terms_that_are_tighter_than_the_importers(bench: Bench, tmp_path: Path) -> None:
    bench.write(FLOW)
    tight = bench.agent("guided", TIGHT)
    (tmp_path / "looser").mkdir()
    importer = Bench(tmp_path / "looser").ledger("never-stop", LOOSE)
    session_id = imported(importer, exported(tight.ledger, travelled(tight)))
    assert importer.terms_within(session_id) == SessionTerms(PRESETS["guided"], "client", "strict")
    position = importer.position(session_id)
    assert isinstance(position, Position)
    assert position.state.terms == importer.terms_within(session_id)
