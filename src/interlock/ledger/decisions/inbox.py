"""The user's own decisions: what waits for one, and how it is recorded (rules 26 and 27).

Where the agent holds the place (execution, navigation) the decision is kept on the node and used by its
next call; a session with one head goes on at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.core.definition.program import Plan
from interlock.core.definition.prompts import interpolate
from interlock.core.definition.workflow import Gate, Step, UserInput
from interlock.core.engine.decide import decide
from interlock.core.engine.gates import find_gate, pending_gates, shown
from interlock.core.engine.requirements import input_id
from interlock.core.engine.settle import awaited
from interlock.core.run.commands import ResolveCheckpoint
from interlock.core.run.outcomes import NeedAnswer, NeedStep, Refusal
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import EXECUTION, POLICIES, SurfacePolicy
from interlock.ledger.decisions.recorded import decision_key
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.commit import Commit
from interlock.ledger.log.records import DecisionRecorded
from interlock.ledger.queries.status import Shown, ref_of
from interlock.ledger.retry import until_recorded
from interlock.ledger.runs.position import Position, tip_of
from interlock.store.protocol import BlockedRow, SessionFilter, SessionRow

LOOKED_AT = 1000
RECENT = 50


class QuestionOption(Shown, frozen=True):
    id: str
    label: str
    description: str = ""


class Question(Shown, frozen=True):
    """What a run waits for the user to say. Without options the answer is free text."""

    session_id: str
    ref: str
    title: str
    run_id: str
    node: int
    id: str
    name: str
    message: str
    options: tuple[QuestionOption, ...]
    since: int
    shown: str


def inbox(ledger: Ledger) -> tuple[Question, ...]:
    """Every question that waits, in the sessions that were worked on last."""
    owner = ledger.settings.owner
    with ledger.store.reading() as reader:
        waiting = reader.sessions(SessionFilter(owner, awaiting=True, limit=LOOKED_AT))
        blocked = reader.sessions(SessionFilter(owner, status="blocked", limit=LOOKED_AT))
        recent = reader.sessions(SessionFilter(owner, limit=RECENT))
    sessions = {session.session_id: session for session in (*waiting, *blocked, *recent)}
    newest = sorted(sessions.values(), key=lambda session: (-session.updated_at, session.session_id))
    return tuple(question for session in newest for question in questions(ledger, session))


def questions(ledger: Ledger, session: SessionRow) -> list[Question]:
    """What the runs of one session wait for."""
    asked: list[Question] = []
    for node in _waiting_nodes(ledger, session):
        position = ledger.position(session.session_id, node)
        if isinstance(position, LedgerError):
            return asked
        asked += [question for question in _asked(position) if question.id not in position.decisions]
    return asked


def _waiting_nodes(ledger: Ledger, session: SessionRow) -> list[int]:
    """Where runs may wait: at their preferred tips, and where the last attempt was blocked."""
    with ledger.store.reading() as reader:
        waiting = [tip_of(session, run) for run in reader.runs(session.session_id)]
        newest: dict[int, BlockedRow] = {row.node: row for row in reader.blocked(session.session_id)}
        for row in list(newest.values())[-RECENT:]:
            later = [
                child
                for child in reader.children(session.session_id, row.node)
                if child.kind == "step" and child.event_index > row.event_index
            ]
            if not later:
                waiting.append(row.node)
    return list(dict.fromkeys(waiting))


def _asked(at: Position) -> Iterator[Question]:
    for gate in _gates(at):
        scope = at.plan.scope(at.state.variables)
        choices = tuple(QuestionOption(one.id, one.label, one.description or "") for one in gate.options)
        message = interpolate(gate.message, scope)
        yield _question(at, gate.id, interpolate(gate.name, scope), message, choices, shown(gate))
    held = at.run.status == "blocked" or not at.is_tip
    for step, need in _inputs(at.plan, at.state) if held else ():
        name = input_id(step, need)
        yield _question(at, name, interpolate(step.title, at.plan.scope(at.state.variables)), need.question)


def _question(
    at: Position,
    name: str,
    title: str,
    message: str,
    options: tuple[QuestionOption, ...] = (),
    digest: str = "",
) -> Question:
    return Question(
        session_id=at.session.session_id,
        ref=ref_of(at.session.session_id),
        title=at.session.title,
        run_id=at.run.run_id,
        node=at.node.node,
        id=name,
        name=title,
        message=message,
        options=options,
        since=at.run.updated_at,
        shown=digest,
    )


def _gates(at: Position) -> tuple[Gate, ...]:
    policy = POLICIES[at.run.surface]
    if policy.gates == "pending" and at.state.open is None:
        return pending_gates(at.plan, at.state)
    if policy.gates == "yielded":
        found = find_gate(at.plan, at.state, at.state.open.gate) if at.state.open else None
        return (found.gate,) if found else ()
    need = at.awaited
    return (need.gate,) if isinstance(need, NeedAnswer) else ()


def _inputs(plan: Plan, state: RunState) -> Iterator[tuple[Step, UserInput]]:
    """What only the user can give to the pending step, and nobody has given."""
    need = awaited(plan, state, EXECUTION)
    if not isinstance(need, NeedStep):
        return
    for wanted in need.step.user_input:
        if wanted.key is None or state.variables.get(wanted.key) is None:
            yield need.step, wanted


def decide_question(ledger: Ledger, question: Question, option: str, note: str = "") -> LedgerError | None:
    """Record the user's answer to exactly the question that was shown."""
    return until_recorded(lambda: _decided(ledger, question, option, note))


def _decided(ledger: Ledger, question: Question, option: str, note: str) -> LedgerError | None:
    at = ledger.position(question.session_id, question.node)
    if isinstance(at, LedgerError):
        return at
    waiting = _waiting_nodes(ledger, at.session)
    same = any((asked.id, asked.shown) == (question.id, question.shown) for asked in _asked(at))
    if question.node not in waiting or not same:
        text = f"Session {question.ref} has moved on; '{question.id}' no longer waits."
        return LedgerError("CONFLICT", text, "See `interlock inbox`.")
    if question.options and option not in {choice.id for choice in question.options}:
        valid = ", ".join(choice.id for choice in question.options)
        text = f"'{option}' is not an option of '{question.id}'."
        return LedgerError("INVALID", text, f"Options: {valid}.")
    policy = POLICIES[at.run.surface]
    if policy.exits == "claimed" and question.options:
        return _resolve(ledger, at, policy, question, option, note)
    return _keep(ledger, at, question, option, note)


def _keep(ledger: Ledger, at: Position, question: Question, option: str, note: str) -> LedgerError | None:
    """Keep the decision on the node, once; the agent's next call uses it."""
    key = decision_key(question.node, question.id, at.loaded.branches)
    if key in {row.key for row in at.loaded.decisions}:
        text = f"'{question.id}' in session {question.ref} is already decided."
        return LedgerError("CONFLICT", text, "The agent uses the decision in its next call.")
    commit = Commit(at.rows(), ledger.clock())
    event = DecisionRecorded(question.node, question.id, option, "cli", question.shown, commit.now, note)
    commit.add(event, run=at.run.run)
    ledger.append(commit.finish(key))
    return None


def _resolve(
    ledger: Ledger, at: Position, policy: SurfacePolicy, question: Question, option: str, note: str
) -> LedgerError | None:
    """Answer the gate of a session with one head; its agents find it answered."""
    commit = Commit(at.rows(), ledger.clock())
    answer = ResolveCheckpoint(
        policy=policy,
        now=commit.now,
        terms=ledger.settings.terms,
        channel="cli",
        gate=question.id,
        option=option,
        client="interlock",
        note=note,
    )
    decided = decide(at.plan, at.state, answer)
    if isinstance(decided, Refusal):
        text = f"'{question.id}' in session {question.ref} cannot be answered now ({decided.code.value})."
        return LedgerError("CONFLICT", text, "See `interlock inbox`.")
    commit.add_node(at.run.run, at.node.node, decided.events, "advanced", decided.awaited)
    ledger.append(commit.finish())
    return None
