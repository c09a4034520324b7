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
from interlock.core.run.surface_policy import EXECUTION, GATED, SESSION, SurfacePolicy
from interlock.ledger.decisions.recorded import branches_from, decision_key
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.chain import read_event
from interlock.ledger.log.commit import Commit, run_after
from interlock.ledger.log.records import AdvanceRecorded, DecisionRecorded
from interlock.ledger.queries.status import Shown, ref_of
from interlock.ledger.runs.position import Position
from interlock.store.protocol import Reader, RunRow, SessionFilter, SessionRow, Writer

ONE_HEAD: dict[str, SurfacePolicy] = {"session": SESSION, "gated": GATED}
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


def inbox(ledger: Ledger, reader: Reader) -> tuple[Question, ...]:
    """Every question that waits, in the sessions that were worked on last."""
    owner = ledger.settings.owner
    waiting = reader.sessions(SessionFilter(owner, awaiting=True, limit=LOOKED_AT))
    blocked = reader.sessions(SessionFilter(owner, status="blocked", limit=LOOKED_AT))
    recent = reader.sessions(SessionFilter(owner, limit=RECENT))
    found = {one.session_id: one for one in (*waiting, *blocked, *recent)}
    newest = sorted(found.values(), key=lambda one: (-one.updated_at, one.session_id))
    return tuple(question for session in newest for question in questions(ledger, reader, session))


def questions(ledger: Ledger, reader: Reader, session: SessionRow) -> Iterator[Question]:
    """What the runs of one session wait for."""
    for run in reader.runs(session.session_id):
        for node in _places(reader, run):
            at = ledger.position(reader, session.session_id, node)
            if isinstance(at, LedgerError):
                return
            yield from (one for one in _asked(reader, at) if one.id not in at.decisions)


def _places(reader: Reader, run: RunRow) -> tuple[int, ...]:
    """Where a run may wait: its preferred tip, and an earlier node that an agent went back to."""
    last = reader.events(run.session_id, kinds=("advance_recorded",), newest_first=True, limit=1)
    for row in last:
        event = read_event(row)
        if row.run == run.run and isinstance(event, AdvanceRecorded) and event.outcome == "blocked":
            return tuple({run.tip, event.node})
    return (run.tip,)


def _asked(reader: Reader, at: Position) -> Iterator[Question]:
    for gate in _gates(reader, at):
        scope = at.plan.scope(at.state.variables)
        choices = tuple(QuestionOption(one.id, one.label, one.description or "") for one in gate.options)
        message = interpolate(gate.message, scope)
        yield _question(at, gate.id, interpolate(gate.name, scope), message, choices, shown(gate))
    held = at.run.status == "blocked" or at.node.node != at.run.tip
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


def _gates(reader: Reader, at: Position) -> tuple[Gate, ...]:
    surface = _surface_of(reader, at.run)
    if surface == "gated" and at.state.open is None:
        return pending_gates(at.plan, at.state)
    if surface == "session":
        found = find_gate(at.plan, at.state, at.state.open.gate) if at.state.open else None
        return (found.gate,) if found else ()
    need = awaited(at.plan, at.state, EXECUTION)
    return (need.gate,) if isinstance(need, NeedAnswer) else ()


def _inputs(plan: Plan, state: RunState) -> Iterator[tuple[Step, UserInput]]:
    """What only the user can give to the pending step, and nobody has given."""
    need = awaited(plan, state, EXECUTION)
    if not isinstance(need, NeedStep):
        return
    for one in need.step.user_input:
        if one.key is None or state.variables.get(one.key) is None:
            yield need.step, one


def _surface_of(reader: Reader, run: RunRow) -> str:
    """The surface that the run was started at."""
    from interlock.core.run.events import RunStarted

    for row in reader.events(run.session_id, kinds=("run_started",)):
        event = read_event(row)
        if row.run == run.run and isinstance(event, RunStarted):
            return event.surface
    return EXECUTION.name


def decide_question(ledger: Ledger, question: Question, option: str, note: str = "") -> LedgerError | None:
    """Record the user's answer to exactly the question that was shown."""
    with ledger.store.writing() as tx:
        at = ledger.position(tx, question.session_id, question.node)
        if isinstance(at, LedgerError):
            return at
        if question.node not in _places(tx, at.run) or not any(
            _same(one, question) for one in _asked(tx, at)
        ):
            return _moved_on(question)
        if question.options and option not in {one.id for one in question.options}:
            valid = ", ".join(one.id for one in question.options)
            return LedgerError("INVALID", f"“{option}” is no option of {question.id}.", f"Options: {valid}.")
        one_head = ONE_HEAD.get(_surface_of(tx, at.run))
        if one_head is not None and question.options:
            return _resolve(ledger, tx, at, one_head, question, option, note)
        return _keep(ledger, tx, at, question, option, note)


def _same(one: Question, other: Question) -> bool:
    return (one.id, one.shown) == (other.id, other.shown)


def _moved_on(question: Question) -> LedgerError:
    text = f"Session {question.ref} has moved on; “{question.id}” no longer waits."
    return LedgerError("CONFLICT", text, "See `interlock inbox`.")


def _keep(
    ledger: Ledger, tx: Writer, at: Position, question: Question, option: str, note: str
) -> LedgerError | None:
    """Keep the decision on the node, once; the agent's next call uses it."""
    branches = branches_from(tx, question.session_id, question.node)
    key = decision_key(question.node, question.id, branches)
    if tx.event_by_key(question.session_id, key) is not None:
        text = f"“{question.id}” in session {question.ref} is already decided."
        return LedgerError("CONFLICT", text, "The agent goes on with its next call.")
    commit = Commit(tx, at.session, ledger.clock())
    event = DecisionRecorded(question.node, question.id, option, "cli", question.shown, commit.now, note)
    commit.chain.add(event, run=at.run.run, key=key)
    commit.finish()
    return None


def _resolve(
    ledger: Ledger,
    tx: Writer,
    at: Position,
    policy: SurfacePolicy,
    question: Question,
    option: str,
    note: str,
) -> LedgerError | None:
    """Answer the gate of a session with one head; its agents find it answered."""
    commit = Commit(tx, at.session, ledger.clock())
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
    node = commit.add_node(at.run.run, at.node, decided.state, decided.events, "advanced")
    tx.set_run(run_after(at.run, node.node, decided.state, decided.awaited, commit.now, blocked=False))
    commit.finish(at.run.run, node.node)
    return None
