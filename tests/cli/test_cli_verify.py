"""`interlock verify`: a session or a bundle that was changed is named, with the promise that it breaks."""

from __future__ import annotations

from pathlib import Path

import msgspec
from click.testing import CliRunner
from msgspec.structs import replace

from interlock.cli.main import cli
from interlock.core.run import events as e
from interlock.ledger.log.chain import GENESIS, body_of, commit_of
from interlock.ledger.transfer.bundle import (
    Bundle,
    BundleRefused,
    bundled,
    commit_rows,
    manifest,
    read_bundle,
)
from interlock.ledger.transfer.export_import import export_session
from interlock.store.protocol import SessionRow
from support.harness import Agent, Bench, decision, gate, steps, workflow


def shipped(bench: Bench) -> tuple[Agent, SessionRow]:
    """A run that was asked and has ended, and its session."""
    bench.write(workflow(*steps("build"), gate("ship", "yes", "no"), *steps("deploy")))
    agent = bench.agent()
    agent.start("test.flow")
    agent.ack("built")
    agent.ack(artifacts=[decision("ship", "yes")])
    agent.ack("deployed")
    with agent.ledger.store.reading() as reader:
        session = reader.session(reader.session_ids("", 1)[0])
    assert session is not None
    return agent, session


def verify(folder: Path, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["verify", *arguments, "--data-dir", str(folder)])
    return result.exit_code, result.output


def test_a_sound_session_is_verified_by_id_and_with_all(bench: Bench) -> None:
    _, session = shipped(bench)
    for arguments in ([session.session_id], ["--all"]):
        code, output = verify(bench.folder, *arguments)
        assert (code, session.session_id in output) == (0, True)
        assert "Verified:" in output
        assert "Not verified:" in output


def test_a_subject_or_all_is_named(bench: Bench) -> None:
    assert verify(bench.folder)[0] == 2


def forged(bundle: Bundle) -> Bundle:
    """A bundle whose log was written anew, without the answer to its gate: only the guard notices."""
    session, before, index, commits = bundle.session, GENESIS, -1, []
    for row in commit_rows(session, session.meta.session_id):
        body = body_of(row)
        entries = [entry for entry in body.entries if not isinstance(entry.event, e.GateResolved)]
        made = commit_of(row.session_id, index, before, body.principal, entries, row.recorded_at, row.key)
        commits.append(made)
        before, index = made.digest, made.last
    from interlock.ledger.transfer.bundle import graph_of, rebuilt_as

    changed = replace(session, commits=tuple(map(bundled, commits)), responses=())
    changed = replace(changed, graph=graph_of(rebuilt_as(changed, session.meta.session_id)))
    changed = replace(changed, meta=replace(session.meta, events=index + 1))
    return replace(bundle, session=changed, integrity=manifest(changed))


def test_a_bundle_without_the_answer_to_its_gate_is_refused(bench: Bench, tmp_path: Path) -> None:
    agent, session = shipped(bench)
    bundle = export_session(agent.ledger.store, session, agent.ledger.pins, agent.ledger.clock())
    file = tmp_path / "session.json"
    file.write_bytes(msgspec.json.encode(bundle))
    assert verify(bench.folder, str(file))[0] == 0
    file.write_bytes(msgspec.json.encode(forged(bundle)))
    code, output = verify(bench.folder, str(file))
    assert code == 1
    assert "BUNDLE_GUARD_REFUSED" in output
    assert "I1" in output
    assert isinstance(read_bundle(file.read_bytes()), BundleRefused)
