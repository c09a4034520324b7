"""Events and spans for other systems: resumable by position, anchored by digests, on both stores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interlock.cli.main import cli
from interlock.ledger.decisions.inbox import answer_question, inbox
from interlock.ledger.evidence.event_stream import StreamedLog, streamed_log
from interlock.ledger.evidence.spans import spans_of
from interlock.store.protocol import Store
from interlock.store.sqlite.store import open_store
from support import postgres_server
from support.attacker import USER
from support.harness import Agent, Bench, gate, steps, workflow

STORES: dict[str, Callable[[Path], Store]] = {"sqlite": open_store, "postgres": postgres_server.open_in}


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path, STORES[request.param])
    yield bench
    bench.close()


def at_the_gate(bench: Bench) -> tuple[Agent, str]:
    """Work for ten seconds, and wait at a gate for the user."""
    bench.write(workflow(*steps("build"), gate("ship", "yes", "no"), *steps("deploy")))
    agent = bench.agent(terms=USER)
    session: str = agent.start("test.flow")["session"]["sessionId"]
    bench.clock.pass_seconds(10)
    agent.ack("built")
    return agent, session


def to_the_end(bench: Bench, agent: Agent) -> None:
    """Decide after a minute; the agent asks two seconds later, and works for five."""
    bench.clock.pass_seconds(60)
    answer_question(agent.ledger, inbox(agent.ledger)[0], "yes")
    bench.clock.pass_seconds(2)
    agent.ack()
    bench.clock.pass_seconds(5)
    agent.ack("deployed")


def log_of(agent: Agent, session: str) -> StreamedLog:
    log = streamed_log(agent.ledger.store, session)
    assert log is not None
    return log


def test_events_come_once_from_a_position_on(place: Bench) -> None:
    agent, session = at_the_gate(place)
    first = list(log_of(agent, session).events_after(-1))
    position = log_of(agent, session).position
    assert list(log_of(agent, session).events_after(position)) == []
    to_the_end(place, agent)
    later = list(log_of(agent, session).events_after(position))
    assert [event["index"] for event in (*first, *later)] == [*range(log_of(agent, session).position + 1)]
    assert first + later == list(log_of(agent, session).events_after(-1))
    assert {event["sessionId"] for event in later} == {session}
    decided = next(event for event in later if event["kind"] == "gate_resolved")
    assert decided["event"]["strength"] == "user"  # type: ignore[index, call-overload]


def test_every_event_has_the_digest_of_its_commit(place: Bench) -> None:
    agent, session = at_the_gate(place)
    with agent.ledger.store.reading() as reader:
        digests = {row.first: row.digest.hex() for row in reader.commits(session)}
    exported = {event["index"]: event["digest"] for event in log_of(agent, session).events_after(-1)}
    assert {first: exported[first] for first in digests} == digests


def test_steps_and_waiting_are_apart(place: Bench) -> None:
    agent, session = at_the_gate(place)
    to_the_end(place, agent)
    spans = list(spans_of(log_of(agent, session).log.commits))
    assert [(span.name, (span.end - span.start) // 1000) for span in spans] == [
        ("step build", 10),
        ("wait ship", 60),
        ("step deploy", 5),
        ("run test.flow", 77),
    ]
    assert spans[1].about["strength"] == "user"


def spans_in(requests: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        span
        for request in requests
        for resource in request["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def test_spans_come_once_when_they_end_and_hang_together(place: Bench) -> None:
    agent, session = at_the_gate(place)
    first = spans_in(log_of(agent, session).spans_after(-1))
    position = log_of(agent, session).position
    to_the_end(place, agent)
    later = spans_in(log_of(agent, session).spans_after(position))
    assert [span["name"] for span in first] == ["step build"]
    assert [span["name"] for span in later] == ["wait ship", "step deploy", "run test.flow"]
    assert first + later == spans_in(log_of(agent, session).spans_after(-1))
    run = later[-1]
    assert "parentSpanId" not in run
    assert {span["parentSpanId"] for span in (*first, *later[:-1])} == {run["spanId"]}
    assert {span["traceId"] for span in (*first, *later)} == {run["traceId"]}
    assert (len(run["traceId"]), len(run["spanId"])) == (32, 16)
    assert run["endTimeUnixNano"] == str(place.clock() * 1_000_000)


def export(bench: Bench, code: int, *arguments: str) -> str:
    result = CliRunner().invoke(cli, ["export", *arguments, "--data-dir", str(bench.folder)])
    assert result.exit_code == code, result.output
    return result.stdout


def test_the_command_goes_on_after_a_position(bench: Bench) -> None:
    agent, session = at_the_gate(bench)
    lines = export(bench, 0, session, "--events").splitlines()
    assert [json.loads(line)["index"] for line in lines] == [*range(len(lines))]
    assert export(bench, 0, session, "--events", "--after", str(len(lines) - 1)) == ""
    to_the_end(bench, agent)
    rest = export(bench, 0, session, "--events", "--after", str(len(lines) - 1)).splitlines()
    assert json.loads(rest[0])["index"] == len(lines)
    (request,) = export(bench, 0, session, "--otel").splitlines()
    assert len(spans_in(iter([json.loads(request)]))) == 4


def test_the_command_remembers_the_positions_of_all_sessions(bench: Bench) -> None:
    agent, session = at_the_gate(bench)
    positions = str(bench.folder / "positions.json")
    first = export(bench, 0, "--events", "--all", positions).splitlines()
    assert {json.loads(line)["sessionId"] for line in first} == {session}
    assert export(bench, 0, "--events", "--all", positions) == ""
    to_the_end(bench, agent)
    agent.start("test.flow")
    later = [json.loads(line) for line in export(bench, 0, "--events", "--all", positions).splitlines()]
    assert len({line["sessionId"] for line in later}) == 2
    assert next(line["index"] for line in later if line["sessionId"] == session) == len(first)


def test_a_log_that_ends_before_its_position_is_exported_again(bench: Bench) -> None:
    """An older copy was restored, or a repair has cut it: the events to come have numbers that were used."""
    _, session = at_the_gate(bench)
    positions = bench.folder / "positions.json"
    whole = export(bench, 0, session, "--events")
    positions.write_text(json.dumps({session: 999}))
    assert export(bench, 0, "--events", "--all", str(positions)) == whole
    assert json.loads(positions.read_text()) == {session: len(whole.splitlines()) - 1}
    assert export(bench, 0, session, "--events", "--after", "999") == whole


@pytest.mark.parametrize("damaged", ["{", "[]", '{"a": "x"}', ""])
def test_a_damaged_file_of_positions_is_named(bench: Bench, damaged: str) -> None:
    at_the_gate(bench)
    positions = bench.folder / "positions.json"
    positions.write_text(damaged)
    ran = CliRunner().invoke(
        cli, ["export", "--events", "--all", str(positions), "--data-dir", str(bench.folder)]
    )
    assert ran.exit_code == 2
    assert "positions.json holds no positions" in ran.output
    assert positions.read_text() == damaged


def test_what_does_not_go_together_is_refused(bench: Bench) -> None:
    _, session = at_the_gate(bench)
    export(bench, 2)
    export(bench, 2, session, "--after", "3")
    export(bench, 2, "--all", "positions.json")
    export(bench, 2, session, "--events", "--all", "positions.json")
