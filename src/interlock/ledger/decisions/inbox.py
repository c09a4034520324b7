"""The user's own decisions: what waits for one, and how it is recorded (rules 26 and 27).

Where agents hold positions of their own (execution, navigation), the decision is kept on the node and used
by the agent's next call; a session with one head goes on at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.core.definition.prompts import effect_text
from interlock.core.definition.workflow import Option
from interlock.core.engine.decide import outcome_of
from interlock.core.engine.decisions import given
from interlock.core.engine.gates import find_gate, question_of
from interlock.core.engine.requirements import input_question
from interlock.core.run.channels import Channel
from interlock.core.run.commands import ResolveCheckpoint
from interlock.core.run.outcomes import NeedAnswer, NeedStep, Refusal
from interlock.core.run.questions import Question
from interlock.core.run.surface_policy import POLICIES
from interlock.ledger.decisions.recorded import decision_key, imported_up_to
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
    effect: str = ""


class WaitingQuestion(Shown, frozen=True):
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


def question_option(option: Option) -> QuestionOption:
    """Describe an option, with its effect in words."""
    return QuestionOption(option.id, option.label, option.description or "", effect_text(option.effect))


def inbox(ledger: Ledger) -> tuple[WaitingQuestion, ...]:
    """Return every question that waits, in the sessions that were worked on last."""
    sessions = asking_sessions(ledger, ledger.owner)
    return tuple(question for session in sessions for question in questions(ledger, session))


def everyones_inbox(ledger: Ledger, session_id: str = "") -> Iterator[tuple[str, WaitingQuestion]]:
    """Yield the questions that wait in the sessions of all owners, for those who may decide for others.

    With a session id only those of this session, however many others wait.
    """
    if session_id:
        with ledger.store.reading() as reader:
            named = reader.session(session_id)
        sessions = [named] if named is not None else []
    else:
        sessions = asking_sessions(ledger, None)
    for session in sessions:
        for question in questions(ledger.of(session.owner), session):
            yield session.owner, question


def asking_sessions(ledger: Ledger, owner: str | None) -> list[SessionRow]:
    """Return the sessions of an owner, or of everybody, that may ask something, newest first."""
    with ledger.store.reading() as reader:
        sessions = reader.sessions(SessionFilter(owner, awaiting=True, limit=LOOKED_AT))
        sessions += reader.sessions(SessionFilter(owner, status="blocked", limit=LOOKED_AT))
        if owner is not None:
            sessions += reader.sessions(SessionFilter(owner, limit=RECENT))
    found = {session.session_id: session for session in sessions}
    return sorted(found.values(), key=lambda session: (-session.updated_at, session.session_id))


def questions(ledger: Ledger, session: SessionRow) -> list[WaitingQuestion]:
    """Return what the runs of one session ask the user."""
    asked: list[WaitingQuestion] = []
    for node in _waiting_nodes(ledger, session):
        position = ledger.position(session.session_id, node)
        if isinstance(position, LedgerError):
            return asked
        asked += [question for question in _asked(position) if question.shown not in position.decisions]
    return asked


def _waiting_nodes(ledger: Ledger, session: SessionRow) -> list[int]:
    """Return where runs may wait: their preferred tips, and nodes whose last attempt was blocked."""
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


def _asked(position: Position) -> Iterator[WaitingQuestion]:
    """Yield what a run asks the user at a node: gates that are open, and inputs that nobody has given."""
    plan, state, pending = position.plan, position.state, position.awaited
    policy, run = POLICIES[position.run.surface], position.run
    asked: list[Question] = []
    if state.open is not None and isinstance(pending, NeedAnswer):
        asked.append(question_of(plan, state, pending.gate, pending.confirms))
    # only execution keeps blocked attempts; elsewhere an input waits as soon as its step is pending
    is_held = run.status == "blocked" or not position.is_tip or policy.exits != "taken"
    if is_held and isinstance(pending, NeedStep):
        asked += [
            input_question(plan, state, pending.step, wanted)
            for wanted in pending.step.user_input
            if wanted.is_approval or given(state, wanted) is None
        ]
    for question in asked:
        yield WaitingQuestion(
            session_id=position.session_id,
            ref=ref_of(position.session_id),
            title=position.session.title,
            run_id=run.run_id,
            node=position.node.node,
            id=question.id,
            name=question.name,
            message=question.text,
            options=tuple(map(question_option, question.options)),
            since=run.updated_at,
            shown=question.digest,
        )


@until_recorded
def decide_question(
    ledger: Ledger,
    question: WaitingQuestion,
    option: str,
    note: str = "",
    channel: Channel = "cli",
) -> LedgerError | None:
    """Record the user's answer to exactly the question that was shown.

    The agent's next call uses it; a session with one head goes on at once.
    """
    position = ledger.position(question.session_id, question.node)
    if isinstance(position, LedgerError):
        return position
    same = any((asked.id, asked.shown) == (question.id, question.shown) for asked in _asked(position))
    if not same or question.node not in _waiting_nodes(ledger, position.session):
        message = f"Session {question.ref} has moved on; '{question.id}' no longer waits."
        return LedgerError("CONFLICT", message, "See `interlock inbox`.")
    options = [choice.id for choice in question.options]
    if options and option not in options:
        message = f"'{option}' is not an option of '{question.id}'."
        return LedgerError("VALIDATION_ERROR", message, f"Options: {', '.join(options)}.")
    is_gate = find_gate(position.plan, position.state, question.id) is not None
    if is_gate and POLICIES[position.run.surface].exits == "claimed":
        return _resolve(ledger, position, question, option, note, channel)
    with ledger.store.reading() as reader:
        key = decision_key(position.loaded, question.id, imported_up_to(reader, question.session_id))
    if key in {row.key for row in position.loaded.decisions}:
        message = f"'{question.id}' in session {question.ref} is already decided."
        return LedgerError("CONFLICT", message, "The agent uses the decision in its next call.")
    commit = Commit(position.rows(), ledger.principal, ledger.clock())
    event = DecisionRecorded(question.node, question.id, option, channel, question.shown, commit.now, note)
    commit.add(event, run=position.run.run)
    ledger.append(commit.finish(key))
    return None


def _resolve(
    ledger: Ledger,
    position: Position,
    question: WaitingQuestion,
    option: str,
    note: str,
    channel: Channel,
) -> LedgerError | None:
    """Answer the gate of a session with one head; its agents find it answered."""
    commit = Commit(position.rows(), ledger.principal, ledger.clock())
    answer = ResolveCheckpoint(
        policy=POLICIES[position.run.surface],
        now=commit.now,
        terms=ledger.terms(position.state),
        channel=channel,
        gate=question.id,
        option=option,
        client=ledger.principal if ledger.principal != ledger.owner else "interlock",
        note=note,
    )
    decided = outcome_of(position.plan, position.state, answer)
    if isinstance(decided, Refusal):
        message = f"'{question.id}' in session {question.ref} cannot be answered now ({decided.code.value})."
        return LedgerError("CONFLICT", message, "See `interlock inbox`.")
    commit.add_node(position.run.run, position.node.node, decided.events, "advanced", decided.awaited)
    ledger.append(commit.finish())
    return None
