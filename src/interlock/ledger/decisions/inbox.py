"""The user's own decisions: what waits for one, and how it is recorded (rules 26 and 27).

Where agents hold positions of their own (execution, navigation), the decision is kept on the node and used
by the agent's next call; a session with one head goes on at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.prompts import effect_text
from interlock.core.definition.workflow import Option
from interlock.core.engine.gates import question_of, rounds_text
from interlock.core.engine.requirements import open_inputs, unfit
from interlock.core.run.channels import Channel
from interlock.core.run.commands import Approve, Checkable, ResolveCheckpoint
from interlock.core.run.events import GateResolved
from interlock.core.run.outcomes import Code, Decided, NeedAnswer, NeedStep, Refusal
from interlock.core.run.questions import Question
from interlock.core.secrets import no_secret, secret_in
from interlock.core.values import Json
from interlock.ledger.decisions.approvals import Approving, approving
from interlock.ledger.decisions.recorded import approved, as_attempted, next_decision_key
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.commit import Commit
from interlock.ledger.log.records import DecisionRecorded
from interlock.ledger.outbox.announcements import Announcement
from interlock.ledger.queries.status import Shown, ref_of
from interlock.ledger.retry import until_recorded
from interlock.ledger.runs.position import Position, tip_of
from interlock.store.protocol import AskingRow, BlockedRow, SessionFilter, SessionRow, StoreConflict

READ_AT_ONCE = 50
RECENT = 50
WHAT_FOLLOWS = {True: "The agent continues with its next call.", False: "Others must answer too."}

Asking: TypeAlias = AskingRow


class QuestionOption(Shown, frozen=True):
    id: str
    label: str
    description: str = ""
    effect: str = ""


class AskedQuestion(Shown, frozen=True):
    """Which question is meant: where it is asked, and the digest of what was on the screen (rule 26).

    `key` is the instance of the gate. Whoever leaves it or the run out relies on the node, which has one of
    each.
    """

    session_id: str
    node: int
    id: str
    shown: str
    run_id: str = ""
    key: str = ""


class WaitingQuestion(AskedQuestion, frozen=True, kw_only=True):
    """What a run waits for the user to say. Without options the answer is free text.

    In a loop, `name` also says which round and item it is about (rule 16).
    `default` is the option that the agent's next call takes from `default_at` on (rule 24). `decide` says who
    decides it, where the gate names them (rule 27a).
    """

    ref: str
    title: str
    name: str
    message: str
    options: tuple[QuestionOption, ...]
    since: int
    default: str = ""
    default_at: int = 0
    decide: Approving | None = None


class LocatedQuestion(Struct, frozen=True):
    """A question that waits, and the run at the node where it does.

    `is_as_put` says whether the question would be put in the words that were recorded.
    """

    position: Position
    question: WaitingQuestion
    is_as_put: bool = True


class AskedBefore(Struct, frozen=True):
    """A gate's question as it was put once, in one run; `since` is 0 for the question of a step.

    The same words that are put again, after a rewind for example, are another question.
    """

    run_id: str
    key: str
    shown: str
    since: int

    def is_still(self, question: WaitingQuestion) -> bool:
        """Say whether this is what waits."""
        asked = (question.run_id, question.key, question.shown)
        return asked == (self.run_id, self.key, self.shown) and self.since in (0, question.since)


def question_options(options: Sequence[Option]) -> tuple[QuestionOption, ...]:
    """Describe options, each with its effect in words."""
    return tuple(
        QuestionOption(option.id, option.label, option.description or "", effect_text(option.effect))
        for option in options
    )


def inbox(ledger: Ledger) -> tuple[WaitingQuestion, ...]:
    """Return every question that waits for the owner, that of the session worked on last first."""
    waiting = waiting_questions(ledger, asking_sessions(ledger, ledger.owner)[::-1])
    return tuple(question for _, question in waiting)


def waiting_questions(ledger: Ledger, asking: Sequence[Asking]) -> Iterator[tuple[str, WaitingQuestion]]:
    """Yield what these sessions ask, each with its owner, as far as somebody reads on."""
    for session, asked in questions_by_session(ledger, asking):
        yield from ((session.owner, located.question) for located in asked)


def questions_by_session(
    ledger: Ledger, asking: Sequence[Asking]
) -> Iterator[tuple[Asking, list[LocatedQuestion]]]:
    """Yield what each of these sessions asks, with the head that it was read at, until nobody reads on."""
    for first in range(0, len(asking), READ_AT_ONCE):
        rows = asking[first : first + READ_AT_ONCE]
        with ledger.store.reading() as reader:
            sessions = {
                row.session_id: row for row in reader.sessions_among([row.session_id for row in rows])
            }
        for session in (sessions[row.session_id] for row in rows if row.session_id in sessions):
            yield _asking(session), questions(ledger.of(session.owner, ledger.principal), session)


def asking_sessions(ledger: Ledger, owner: str | None) -> list[Asking]:
    """Return all sessions of an owner, or of everybody, that may ask something, oldest activity first.

    The newest of the ledger's owner are among them: a branch that was left may have been blocked there.
    """
    with ledger.store.reading() as reader:
        asking = reader.asking_sessions(owner)
        newest = reader.sessions(SessionFilter(owner or ledger.owner, limit=RECENT))
    known = {row.session_id for row in asking}
    asking += (_asking(row) for row in newest if row.session_id not in known)
    return sorted(asking, key=lambda row: (row.updated_at, row.session_id))


def _asking(session: SessionRow) -> Asking:
    return AskingRow(session.session_id, session.owner, session.head_digest, session.updated_at)


def questions(ledger: Ledger, session: SessionRow) -> list[LocatedQuestion]:
    """Return what the runs of one session ask the user, each with its position, as far as it can be read."""
    asked: list[LocatedQuestion] = []
    with suppress(LedgerError):  # it is damaged, or was removed meanwhile
        for located in located_questions(ledger, session):
            asked.append(located)
    return asked


def located_questions(ledger: Ledger, session: SessionRow) -> Iterator[LocatedQuestion]:
    """Do as `questions`, but raise what is damaged."""
    for node in _waiting_nodes(ledger, session):
        yield from _unanswered(ledger.position(session.session_id, node))


def _unanswered(position: Position) -> list[LocatedQuestion]:
    """Return what a run asks at a node that nobody has answered yet."""
    return [located for located in _asked(position) if located.question.shown not in position.decisions]


def _waiting_nodes(ledger: Ledger, session: SessionRow) -> list[int]:
    """Return where runs may wait: their preferred tips, and nodes whose last attempt was blocked."""
    with ledger.store.reading() as reader:
        runs = reader.runs(session.session_id)
        newest: dict[int, BlockedRow] = {row.node: row for row in reader.blocked(session.session_id)}
        blocked = [
            row.node
            for row in list(newest.values())[-RECENT:]
            if not any(
                child.kind == "step" and child.event_index > row.event_index
                for child in reader.children(session.session_id, row.node)
            )
        ]
    return list(dict.fromkeys([*(tip_of(session, run) for run in runs), *blocked]))


def _asked(position: Position) -> Iterator[LocatedQuestion]:
    """Yield what a run asks at a node: the question that was put, or inputs without an answer that counts."""
    plan, state, pending = position.plan, position.state, position.pending
    if (opened := state.visit.open) is not None and isinstance(pending, NeedAnswer):
        rendered = question_of(plan, state, pending.gate, pending.confirms)
        question = _waiting(position, rendered, opened.key, opened.opened_at)
        gate = pending.gate
        if not gate.blocking and gate.default_option is not None:
            from_then = opened.opened_at + (gate.auto_advance_ms or 0)
            question = replace(question, default=gate.default_option, default_at=from_then)
        decide = approving(gate, state, opened)
        put = replace(question, message=opened.text, shown=opened.shown, decide=decide)
        yield LocatedQuestion(position, put, is_as_put=question.shown == opened.shown)
    if isinstance(pending, NeedStep):
        for asked in open_inputs(plan, as_attempted(state, position.loaded), pending.step, position.terms):
            question = _waiting(position, asked.question, asked.key, position.run.updated_at)
            yield LocatedQuestion(position, question)


def _waiting(position: Position, question: Question, key: str, since: int) -> WaitingQuestion:
    session, options = position.session, question_options(question.options)
    rounds = rounds_text(position.state, key)
    return WaitingQuestion(
        session_id=session.session_id,
        run_id=position.run.run_id,
        node=position.node.node,
        id=question.id,
        key=key,
        shown=question.digest,
        ref=ref_of(session.session_id),
        title=session.title,
        name=f"{question.name} ({rounds})" if rounds else question.name,
        message=question.text,
        options=options,
        since=since,
    )


def answer_question(
    ledger: Ledger,
    asked: AskedQuestion | LocatedQuestion,
    option: str,
    note: str = "",
    channel: Channel = "cli",
) -> bool:
    """Record the user's answer to exactly the question that was on the screen, or raise why nothing is.

    The agent's next call uses it; a session with one head goes on at once. Return whether the question is
    decided by it: where the gate names its approvers, others may have to answer too. A question that comes
    with its position is read again only if the session has changed since.
    """
    if isinstance(asked, LocatedQuestion):
        if asked.is_as_put:
            with suppress(StoreConflict):
                return _Answer(ledger, asked.position, asked.question, option, note, channel).record()
        asked = asked.question
    return _answer_anew(ledger, asked, option, note, channel)


@until_recorded
def _answer_anew(ledger: Ledger, asked: AskedQuestion, option: str, note: str, channel: Channel) -> bool:
    try:
        position = ledger.position(asked.session_id, asked.node)
    except LedgerError as error:
        raise (_gone(asked) if error.code == "TOKEN_UNKNOWN_NODE" else error) from None
    question = _still_asked(ledger, position, asked)
    return _Answer(ledger, position, question, option, note, channel).record()


def _still_asked(ledger: Ledger, position: Position, asked: AskedQuestion) -> WaitingQuestion:
    """Return the question that is meant if it waits as it was shown; else raise what waits instead."""
    waiting = _unanswered(position) if position.is_tip else questions(ledger, position.session)
    meant = next((located for located in waiting if _is_meant(located.question, asked)), None)
    if meant is not None and meant.is_as_put and meant.question.shown == asked.shown:
        return meant.question
    if meant is not None:
        message = f"'{asked.id}' has changed since it was shown to you; nothing was recorded."
        details = _instead(meant.question)
        raise LedgerError("QUESTION_CHANGED", message, "Read it again, then answer.", details=details)
    place = position.run.run_id, asked.id
    others = (located.question for located in questions(ledger, position.session))
    raise _gone(asked, next((other for other in others if (other.run_id, other.id) == place), None))


def _gone(asked: AskedQuestion, later: WaitingQuestion | None = None) -> LedgerError:
    message = f"'{asked.id}' no longer waits: it was answered, or the run went on. Nothing was recorded."
    next_action = "The inbox shows what waits now."
    return LedgerError("ALREADY_DECIDED", message, next_action, details=_instead(later))


def _is_meant(question: WaitingQuestion, asked: AskedQuestion) -> bool:
    return (
        (question.node, question.id) == (asked.node, asked.id)
        and asked.run_id in ("", question.run_id)
        and asked.key in ("", question.key)
    )


def _instead(question: WaitingQuestion | None) -> dict[str, Json]:
    """Give the question that waits now, if there is one, with the refusal of an answer to another."""
    return {"question": msgspec.to_builtins(question)} if question is not None else {}


def _check(position: Position, question: WaitingQuestion, option: str, note: str) -> None:
    """Raise what is wrong with an answer to a question that waits."""
    options = [choice.id for choice in question.options]
    if options and option not in options:
        message = f"'{option}' is not an option of '{question.id}'."
        raise LedgerError("VALIDATION_ERROR", message, f"Options: {', '.join(options)}.")
    instead = _unfit(position, question, option) if not options else ""
    if note and (kind := secret_in(note)):
        instead = no_secret(kind)
    if instead:
        raise LedgerError("VALIDATION_ERROR", "This answer was not recorded.", instead)


def _unfit(position: Position, question: WaitingQuestion, answer: str) -> str:
    """Say what fits instead, where an answer cannot become the variable that its question is about."""
    pending = position.pending
    if not isinstance(pending, NeedStep):
        return ""
    asked = (need for need in pending.step.user_input if pending.step.input_id(need) == question.id)
    return next((unfit(position.plan, need, answer) for need in asked), "")


class _Answer(Struct, frozen=True):
    """A person's answer to the question that waits at a position."""

    ledger: Ledger
    position: Position
    question: WaitingQuestion
    option: str
    note: str
    channel: Channel

    def record(self) -> bool:
        """Record the answer if it fits; say whether the question is decided by it."""
        _check(self.position, self.question, self.option, self.note)
        commit = Commit(self.position.rows(), self.ledger.principal, self.ledger.clock())
        if self.question.decide is not None:
            return self._approve(commit)
        has_one_head = self.position.asking.exits == "claimed"
        if has_one_head and self.position.state.visit.open is not None:
            self._resolve(commit)
        else:
            self._leave(commit)
        return True

    def _approve(self, commit: Commit) -> bool:
        """Count the answer of one of those who decide a gate; say whether enough of them agree now."""
        ledger, position, question = self.ledger, self.position, self.question
        policy, approver = position.asking, ledger.approvers(ledger.principal)
        asked = question.id, question.shown
        answer = Approve(policy, commit.now, self.channel, approver, *asked, self.option, self.note)
        decided = self._with_checks(commit, answer)
        if isinstance(decided, Refusal):
            assert question.decide is not None
            message = f"'{ledger.principal}' does not decide '{question.id}'."
            raise LedgerError("VALIDATION_ERROR", message, question.decide.text)
        resolved = next((event for event in decided.events if isinstance(event, GateResolved)), None)
        if resolved is not None:
            commit.add_node(position.run.run, position.node.node, decided)
        for event in decided.events if resolved is None else ():
            commit.add(event, run=position.run.run, node=position.node.node)
        decision = resolved or approved(position.plan, decided.state).get(question.shown)
        if decision is not None:
            self._announce(commit, decision.option or "", decision.channel, decision.client)
        ledger.append(commit.finish())
        return decision is not None

    def _resolve(self, commit: Commit) -> None:
        """Answer the gate of a session with one head; its agents find it answered."""
        ledger, position, question = self.ledger, self.position, self.question
        answer = ResolveCheckpoint(
            policy=position.asking,
            now=commit.now,
            terms=position.terms,
            channel=self.channel,
            gate=question.id,
            option=self.option,
            client=ledger.principal if ledger.principal != ledger.owner else "interlock",
            note=self.note,
        )
        decided = self._with_checks(commit, answer)
        if isinstance(decided, Refusal):
            raise self._not_now(str(decided.about.get("reason", decided.code.value)))
        commit.add_node(position.run.run, position.node.node, decided)
        self._announce(commit, self.option, self.channel)
        ledger.append(commit.finish())

    def _leave(self, commit: Commit) -> None:
        """Leave the answer on the node for the agent's next call, which holds a token of it."""
        position, question = self.position, self.question
        asked = question.node, question.id
        event = DecisionRecorded(*asked, self.option, self.channel, question.shown, commit.now, self.note)
        commit.add(event, run=position.run.run)
        self._announce(commit, self.option, self.channel)
        key = next_decision_key(self.ledger.store, position.loaded, question.id, question.shown)
        self.ledger.append(commit.finish(key))

    def _with_checks(self, commit: Commit, answer: Checkable) -> Decided | Refusal:
        """Decide the answer once the checks that its question shows still hold; raise where they do not."""
        from interlock.ledger.runs import check_runs  # late: most workflows have no checks

        decided = check_runs.decided_with_checks(self.ledger, self.position, answer)
        if isinstance(decided, Refusal) and decided.code in (Code.CHECKED_AGAIN, Code.CHECK_FAILED):
            if decided.code is Code.CHECKED_AGAIN:
                check_runs.keep_rechecked(self.ledger, commit, self.position, decided)
            raise self._not_now(str(decided.about["reason"]))
        return decided

    def _not_now(self, reason: str) -> LedgerError:
        question = self.question
        message = f"'{question.id}' in session {question.ref} cannot be answered now: {reason}"
        return LedgerError("CONFLICT", message, "See `interlock inbox`.")

    def _announce(self, commit: Commit, option: str, channel: Channel, by: str = "") -> None:
        """Let those hear of the answer who want to; free text is the user's own, and stays in the log."""
        question = self.question
        about = Announcement(
            commit.now,
            self.position.run.run,
            question.id,
            question.key,
            question.shown,
            option if question.options else "",
            channel,
            by or commit.principal,
        )
        commit.announce("answered", about)
