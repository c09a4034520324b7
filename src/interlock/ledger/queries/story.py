"""A branch of a run as a story: what was asked at each node, what was handed in, who decided what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from interlock.core.definition.program import Plan
from interlock.core.engine.gates import question_of
from interlock.core.run import events as e
from interlock.core.run.channels import Strength, named, strength
from interlock.core.run.outcomes import Awaited, Done, NeedAnswer, NeedInput, NeedStep, pending_line
from interlock.core.run.preferences import mode_of
from interlock.core.run.reasons import Blocker
from interlock.core.run.state import RunState
from interlock.core.values import Json
from interlock.core.variables.sending import Parameters, instruction
from interlock.ledger.errors import LedgerError
from interlock.ledger.log.chain import Logged
from interlock.ledger.log.projection import outputs_of, state_of
from interlock.ledger.log.records import AdvanceRecorded, DecisionRecorded, LogEntry
from interlock.ledger.queries.artifacts import ShownArtifact, shown_artifact
from interlock.ledger.queries.check_results import ShownCheck, shown_check
from interlock.ledger.queries.status import Shown, ref_of, step_label
from interlock.ledger.runs.position import Position, subject_of, tip_of
from interlock.ledger.runs.whole_session import WholeSession
from interlock.store.protocol import BlockedRow, NodeRow, Recorded, RunRow

MOST_STEPS = 200

MarkKind = Literal[
    "gap", "resolved", "divergence", "capability", "mode", "child", "skipped", "loop", "activity", "ended"
]
Weight = Literal["info", "warning", "critical"]


class StoryDecision(Shown, frozen=True):
    """An answer to a gate: who gave it, by which channel, and what was asked."""

    gate: str
    option: str
    how: str
    channel: str
    strength: Strength
    client: str
    note: str
    question: str
    at: int


class StoryMark(Shown, frozen=True):
    """Something that happened on the way which a reader must not miss."""

    kind: MarkKind
    text: str
    weight: Weight = "info"


class HandedIn(Shown, frozen=True):
    """What came with one attempt, and the checks that were run for it; one with blockers was not accepted."""

    at: int
    notes: tuple[str, ...]
    artifacts: tuple[ShownArtifact, ...]
    blockers: tuple[Blocker, ...] = ()
    checks: tuple[ShownCheck, ...] = ()


class StoryStep(Shown, frozen=True):
    """One node of the branch: what it waited for, and what came of it. The tip has no `done_at`.

    `item` is the step or gate; `id` also names the rounds of the loops around it. A `probe` is a step that
    the compiler put in to try a required capability. `checks` are those that it passed with, or was asked
    again with, and those that it only claims.
    """

    node: int
    kind: str
    item: str
    id: str
    title: str
    prompt: str
    asked_at: int
    done_at: int | None = None
    handed_in: HandedIn | None = None
    blocked: tuple[HandedIn, ...] = ()
    noted: tuple[HandedIn, ...] = ()
    checks: tuple[ShownCheck, ...] = ()
    decisions: tuple[StoryDecision, ...] = ()
    marks: tuple[StoryMark, ...] = ()
    activity: str = ""
    loop: str = ""
    probe: bool = False


class RunStory(Shown, frozen=True):
    """One branch, oldest first. `omitted` counts the nodes before the first step."""

    run_id: str
    tip: int
    steps: tuple[StoryStep, ...]
    omitted: int = 0


def story_of(reading: WholeSession, run_id: str, tip: int | None = None) -> RunStory:
    """Tell the branch that ends at a node, or at the preferred tip of the run."""
    session, session_id = reading.session, reading.session.session_id
    next_action = f"See `interlock tree {ref_of(session_id)}`."
    run = next((run for run in reading.runs if run.run_id == run_id), None)
    if run is None:
        raise LedgerError("NOT_FOUND", f"This session has no run {run_id}.", next_action)
    end = tip_of(session, run) if tip is None else tip
    path = _path(reading.nodes(run), end)
    if not path:
        raise LedgerError("NOT_FOUND", f"Run {run_id} has no node {end}.", next_action)
    history = BranchHistory(reading, run, path)
    steps = (history.step(row, child) for row, child in zip(path, [*path[1:], None], strict=True))
    return RunStory(run.run_id, end, tuple(step for step in steps if step is not None), path[0].depth)


def _path(nodes: Sequence[NodeRow], end: int) -> list[NodeRow]:
    """Return the last nodes on the way to one of them, oldest first; none if it is not among them."""
    rows, path = {row.node: row for row in nodes}, list[NodeRow]()
    number: int | None = end
    while number in rows and len(path) < MOST_STEPS:
        path.append(rows[number])
        number = path[-1].parent
    return path[::-1]


def claimed_checks(need: Awaited) -> Iterator[ShownCheck]:
    """Yield the checks of a step that no project has defined: their results are what the agent says."""
    checks = need.step.checks if isinstance(need, NeedStep) else ()
    yield from (ShownCheck(check.id, "agent") for check in checks if not check.run)


def prompt_of(plan: Plan, state: RunState, need: Awaited) -> str:
    """Return what the agent was asked at a node, rendered with the variables in force there."""
    match need:
        case NeedStep(step=step):
            return instruction(plan, state, step, Parameters()).text
        case NeedAnswer():
            return question_of(plan, state, need.gate, need.confirms).text
        case NeedInput():
            return need.message
        case _:
            return ""


def last_handed_in(position: Position) -> HandedIn | None:
    """Return what the agent handed in last before a position: with its last attempt, else with its step."""
    rows: list[Recorded] = [*position.loaded.blocked[-1:], position.node]
    attempts = map(handed_in, rows)
    return next((attempt for attempt in attempts if attempt.notes or attempt.artifacts), None)


def handed_in(row: Recorded) -> HandedIn:
    """Return what came with the attempt of a row."""
    outputs = outputs_of(row)
    return HandedIn(
        at=row.created_at if isinstance(row, NodeRow) else row.recorded_at,
        notes=tuple(output.body for output in outputs if output.channel == "recap"),
        artifacts=tuple(
            shown_artifact(msgspec.json.decode(output.body, type=dict[str, Json]))
            for output in outputs
            if output.channel != "recap"
        ),
    )


class BranchHistory:
    """What the log and the rows say about the nodes of a branch, collected in one pass."""

    def __init__(self, reading: WholeSession, run: RunRow, path: Sequence[NodeRow]) -> None:
        self._reading = reading
        self._run = run
        self._plan = reading.plan(run)
        self._answers = defaultdict[int, list[StoryDecision]](list)
        self._decided = defaultdict[int, list[StoryDecision]](list)
        self._marks = defaultdict[int, list[StoryMark]](list)
        self._modes = defaultdict[int, list[StoryMark]](list)
        self._checks = defaultdict[int, list[ShownCheck]](list)
        self._blocked = defaultdict[int, list[BlockedRow]](list)
        self._noted = defaultdict[int, list[NodeRow]](list)
        self._refused: dict[tuple[int, int], tuple[tuple[Blocker, ...], tuple[ShownCheck, ...]]] = {}
        self._ran: list[ShownCheck] = []  # for an attempt that made no node: its end is recorded after them
        session_id = reading.session.session_id
        with reading.positions.store.reading() as reader:
            for attempt in reader.blocked(session_id, [row.node for row in path]):
                self._blocked[attempt.node].append(attempt)
            self._preferences = {row.node: row.preferences for row in reader.modes(session_id)}
        for note in reading.nodes(run):
            if note.kind == "note":
                self._noted[note.parent or 0].append(note)
        for logged in reading.log:
            self._add(logged, reading.session.owner)

    def step(self, row: NodeRow, child: NodeRow | None) -> StoryStep | None:
        """Tell what was asked at a node and what led on to its child; nothing at the end of the run."""
        plan, state = self._plan, state_of(row, self._preferences.get(row.node))
        need = self._reading.awaited(self._run, state)
        if child is None and isinstance(need, Done):
            return None
        line = pending_line(need, plan.scope(state.variables))
        return StoryStep(
            node=row.node,
            kind=line.kind,
            item=line.id,
            id=step_label(subject_of(need)) or line.id,
            title=line.title,
            prompt=prompt_of(plan, state, need),
            activity=state.visit.activity or "",
            loop=" / ".join(frame.loop for frame in state.visit.frames),
            asked_at=row.created_at,
            done_at=child.created_at if child else None,
            handed_in=handed_in(child) if child else None,
            blocked=tuple(map(self._attempt, self._blocked[row.node])),
            noted=tuple(map(handed_in, self._noted[row.node])),
            checks=(*self._checks[child.node], *claimed_checks(need)) if child else (),
            decisions=(*self._decided[row.node], *(self._answers[child.node] if child else ())),
            marks=(*self._modes[row.node], *(self._marks[child.node] if child else ())),
            probe=isinstance(need, NeedStep) and need.step.probes is not None,
        )

    def _attempt(self, row: BlockedRow) -> HandedIn:
        """Return a blocked attempt with its blockers, and the checks that were run for it."""
        blockers, checks = self._refused.get((row.node, row.attempt), ((), ()))
        return replace(handed_in(row), blockers=blockers, checks=checks)

    def _add(self, logged: Logged, owner: str) -> None:
        """Take in one event; its node is the one that it led to."""
        event, node = logged.event, logged.node
        match event:
            case AdvanceRecorded(outcome="blocked"):
                self._refused[event.node, event.attempt] = event.blockers, tuple(self._ran)
                self._ran.clear()
            case e.CheckRan():
                checks = self._ran if node is None else self._checks[node]
                checks.append(shown_check(event))
            case DecisionRecorded():
                decision = StoryDecision(
                    gate=event.gate,
                    option=event.option,
                    how="recorded",
                    channel=event.channel,
                    strength=strength(event.channel),
                    client=logged.principal if logged.principal != owner else "",
                    note=event.note,
                    question="",
                    at=event.at,
                )
                self._decided[event.node].append(decision)
            case e.GateResolved() if node is not None:
                decision = StoryDecision(
                    gate=event.gate,
                    option=event.option or "",
                    how=event.how,
                    channel=event.channel,
                    strength=strength(event.channel),
                    client=event.client,
                    note=event.note,
                    question=event.question,
                    at=event.at,
                )
                self._answers[node].append(decision)
            case e.PreferencesChanged() if node is not None:  # at a node that is there already
                text = f"mode {mode_of(event.effective)}, set by {named(event.channel)}"
                self._modes[node].append(StoryMark("mode", text))
            case _ if node is not None:
                self._marks[node] += marks_of(event)


def marks_of(event: LogEntry) -> Iterator[StoryMark]:
    """Yield what a reader should see of an event that is neither an answer nor an output."""
    match event:
        case e.GapRecorded():
            yield StoryMark("gap", f"{event.summary} ({event.category.replace('_', ' ')})", event.severity)
        case e.GapResolved():
            yield StoryMark(
                "resolved", f"gap {event.gap} resolved by {named(event.channel)}: {event.summary}"
            )
        case e.DivergenceRecorded():
            yield StoryMark("divergence", f"{event.reason.replace('_', ' ')}: {event.summary}", "warning")
        case e.CapabilityObserved():
            weight: Weight = "warning" if event.status == "unavailable" else "info"
            yield StoryMark("capability", f"{event.capability.replace('_', ' ')}: {event.status}", weight)
        case e.StepSkipped():
            yield StoryMark("skipped", f"{step_label(event.key)} skipped: {event.condition} does not hold")
        case e.LoopIterated():
            yield StoryMark("loop", f"{event.loop}: round {event.iteration + 1}")
        case e.LoopLeft():
            yield StoryMark("loop", f"{event.loop}: left after {event.iterations} ({event.because})")
        case e.ActivityEntered():
            yield StoryMark("activity", f"entered {event.activity}")
        case e.ChildStarted():
            yield StoryMark("child", f"started {event.workflow} as {ref_of(event.session)}")
        case e.ChildReturned():
            yield StoryMark("child", f"{event.workflow} {event.outcome}")
        case e.RunCompleted():
            yield StoryMark("ended", event.status.replace("_", " "))
        case e.RunAbandoned():
            yield StoryMark("ended", event.how.text, "warning")
        case _:
            return
