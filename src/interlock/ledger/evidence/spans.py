"""A session as OpenTelemetry spans, in the JSON of OTLP: runs and steps, and apart from them what waited.

No library is needed: collectors read these lines from a file, or by POST to /v1/traces. Ids follow from the
session, so that what is exported twice is the same span. Texts stay in the log: spans name ids, channels and
times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256

from msgspec import Struct

from interlock import __version__
from interlock.core.run import events as e
from interlock.core.run.channels import strength
from interlock.core.values import Json
from interlock.ledger.log.chain import Logged, logged
from interlock.ledger.log.records import AdvanceRecorded, DecisionRecorded, NodeCreated
from interlock.store.protocol import CommitRow

INTERNAL = 1
OK, ERROR = 1, 2
NANOSECONDS = 1_000_000  # in a millisecond


class Span(Struct, frozen=True):
    """What took time in a run. `ended` is the position of the event that ended it."""

    run: int
    name: str
    key: str
    start: int
    end: int
    ended: int
    about: Mapping[str, Json] = {}
    failed: bool = False


def spans_of(commits: Iterable[CommitRow]) -> Iterator[Span]:
    """Yield the spans that have ended, in the order of the events that ended them."""
    timeline = _Timeline()
    for commit in commits:
        yield from timeline.ended_by(list(logged((commit,))))


class _Timeline:
    """What has begun in a session: runs, the nodes that steps start from, and questions that wait."""

    def __init__(self) -> None:
        self._runs: dict[int, e.RunStarted] = {}
        self._since: dict[int, int] = {}
        self._asked: dict[tuple[int, str], int] = {}
        self._answered: dict[tuple[int, str], int] = {}

    def ended_by(self, command: list[Logged]) -> Iterator[Span]:
        nodes = {it.event.node: it.event.parent for it in command if isinstance(it.event, NodeCreated)}
        tried = next((it.event.node for it in command if isinstance(it.event, AdvanceRecorded)), None)
        for row in command:
            before = nodes.get(row.node, tried) if row.node is not None else tried
            begun = self._since.get(before, row.at) if before is not None else row.at
            if row.run is not None:
                yield from self._ended_by(row, row.run, begun)
        self._since |= dict.fromkeys(nodes, command[0].at)

    def _ended_by(self, row: Logged, run: int, begun: int) -> Iterator[Span]:
        match row.event:
            case e.RunStarted() as started:
                self._runs[run] = started
            case e.StepCompleted(key=key, step=step, claimed=claimed):
                about: dict[str, Json] = {"step": step, "instance": key, "claimed": claimed}
                yield Span(run, f"step {step}", key, begun, row.at, row.index, about)
            case e.QuestionShown(key=key, at=at):
                self._asked[run, key] = at
            case DecisionRecorded(gate=gate, at=at):
                self._answered[run, gate] = at
            case e.GateResolved(key=key, gate=gate) as answer:
                start = self._asked.pop((run, key), answer.at)
                end = self._answered.pop((run, gate), answer.at)
                about = {"gate": gate, "instance": key, "option": answer.option or "", "how": answer.how}
                about |= {"channel": answer.channel, "strength": strength(answer.channel)}
                yield Span(run, f"wait {gate}", key, start, end, row.index, about)
            case e.CheckRan(key=key, check=check) as ran:
                about = {"check": check, "instance": key, "exit": ran.exit, "passed": ran.passed}
                start, failed = ran.at - ran.duration_ms, not ran.passed
                yield Span(run, f"check {check}", key, start, ran.at, row.index, about, failed)
            case e.RunCompleted(status=status, at=at):
                yield self._run(run, status, at, row.index)
            case e.RunAbandoned(at=at):
                yield self._run(run, "abandoned", at, row.index)
            case _:
                return

    def _run(self, run: int, status: str, at: int, index: int) -> Span:
        started = self._runs[run]
        about: dict[str, Json] = {"workflow": started.workflow_id, "workflow_hash": started.workflow_hash}
        about["status"] = status
        failed = status == "abandoned"
        return Span(run, f"run {started.workflow_id}", "", started.at, at, index, about, failed=failed)


def otlp(session_id: str, spans: Iterable[Span]) -> dict[str, Json]:
    """Return spans of a session as a request of OTLP."""
    scope: Json = {"name": "interlock", "version": __version__}
    resource: Json = {"attributes": _attributes({"service.name": "interlock"})}
    listed: Json = [_otlp_span(session_id, span) for span in spans]
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": listed}]}]}


def _otlp_span(session_id: str, span: Span) -> Json:
    root = _id(f"{session_id}/{span.run}", 8)
    is_root = not span.key
    about: dict[str, Json] = {"interlock.session": session_id, "interlock.run": span.run}
    about["interlock.event"] = span.ended
    about |= {f"interlock.{name}": value for name, value in span.about.items()}
    made: dict[str, Json] = {
        "traceId": _id(session_id, 16),
        "spanId": root if is_root else _id(f"{session_id}/{span.run}/{span.ended}", 8),
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": str(span.start * NANOSECONDS),
        "endTimeUnixNano": str(span.end * NANOSECONDS),
        "attributes": _attributes(about),
        "status": {"code": ERROR if span.failed else OK},
    }
    return made if is_root else {**made, "parentSpanId": root}


def _id(name: str, size: int) -> str:
    return sha256(name.encode()).hexdigest()[: 2 * size]


def _attributes(values: Mapping[str, Json]) -> list[Json]:
    return [{"key": name, "value": _value(value)} for name, value in values.items() if value is not None]


def _value(value: Json) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}
