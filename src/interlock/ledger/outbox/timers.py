"""What is due at a time without anybody calling: reminders, and the end of the time to decide (rule 27a).

The rows wait in the outbox beside the messages, under no channel, and are taken like those.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from interlock.core.definition.workflow import Gate
from interlock.core.run.commands import Escalate, ResolveCheckpoint
from interlock.core.run.outcomes import Code, NeedAnswer, Refusal
from interlock.ledger.decisions.inbox import AskedBefore, WaitingQuestion, questions
from interlock.ledger.decisions.recorded import next_decision_key
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.commit import Commit
from interlock.ledger.log.records import DecisionRecorded
from interlock.ledger.outbox.announcements import Announcement, announcement_in
from interlock.ledger.retry import until_recorded
from interlock.ledger.runs.position import Position
from interlock.store.protocol import OutboxRow

BY = "time"


def act(ledger: Ledger, row: OutboxRow) -> OutboxRow | None:
    """Do what is due; return the row as it is due next, or None if it is done."""
    about = announcement_in(row)
    with ledger.store.reading() as reader:
        session = reader.session(row.session_id)
    if session is None:
        return None
    own = ledger.of(session.owner, BY)
    question = asked_in(own, row.session_id, about)
    if question is None:
        return None
    if row.kind == "due":
        end_time(own, question, about)
        return None
    remind(ledger, row)
    return replace(row, due_at=ledger.clock() + about.every, attempts=0)


def asked_in(ledger: Ledger, session_id: str, about: Announcement) -> WaitingQuestion | None:
    """Return the question that a row is about, if it still waits as it was put then."""
    with ledger.store.reading() as reader:
        session, run = reader.session(session_id), reader.run(session_id, about.run)
    if session is None or run is None:
        return None
    asked = AskedBefore(run.run_id, about.key, about.shown, about.since)
    waiting = (each.question for each in questions(ledger, session))
    return next(filter(asked.is_still, waiting), None)


def remind(ledger: Ledger, row: OutboxRow) -> None:
    """Put a reminder into the outbox for everybody who wants one; each has an id of its own."""
    now, about = ledger.clock(), announcement_in(row)
    message_id = f"{row.message_id.replace('tmr', 'msg')}{(now - about.since) // about.every}"
    body = msgspec.json.encode(replace(about, at=now))
    reminder = OutboxRow(row.session_id, message_id, "", "reminded", body, now, now)
    with ledger.store.writing() as writer:
        for name, recipient in ledger.settings.recipients.items():
            if "reminded" in recipient.occasions:
                writer.add_message(replace(reminder, channel=name))


@until_recorded
def end_time(ledger: Ledger, question: WaitingQuestion, about: Announcement) -> None:
    """Escalate a question whose time is over, or take the option that its gate names for that."""
    position = ledger.position(question.session_id, question.node)
    pending = position.pending
    if not isinstance(pending, NeedAnswer) or pending.gate.decide is None:
        return
    if pending.gate.decide.escalate_to is not None:
        _escalate(ledger, position, question, about)
    elif position.asking.exits == "claimed":
        _take(ledger, position, pending.gate)
    else:
        _record(ledger, position, question, pending.gate, about)


def _escalate(ledger: Ledger, position: Position, question: WaitingQuestion, about: Announcement) -> None:
    commit = Commit(position.rows(), ledger.principal, ledger.clock())
    decided = position.decide_unasked(Escalate(position.asking, commit.now, question.id, question.shown))
    if isinstance(decided, Refusal):
        return
    for event in decided.events:
        commit.add(event, run=position.run.run, node=position.node.node)
    commit.announce("escalated", replace(about, at=commit.now))
    ledger.append(commit.finish())


def _take(ledger: Ledger, position: Position, gate: Gate) -> None:
    """Let a session with one head go on with the option, if the checks that its question shows still hold."""
    from interlock.ledger.runs import check_runs  # late: most workflows have no checks

    commit = Commit(position.rows(), ledger.principal, ledger.clock())
    taken = ResolveCheckpoint(
        policy=position.asking,
        now=commit.now,
        terms=position.terms,
        channel="server",
        gate=gate.id,
        auto_advance=True,
    )
    decided = check_runs.decided_with_checks(ledger, position, taken)
    if isinstance(decided, Refusal):
        if decided.code is Code.CHECKED_AGAIN:
            check_runs.keep_rechecked(ledger, commit, position, decided)
        elif decided.code is Code.CHECK_FAILED:  # tried again until it passes or somebody answers
            raise LedgerError("CONFLICT", str(decided.about["reason"]))
        return
    commit.add_node(position.run.run, position.node.node, decided)
    ledger.append(commit.finish())


def _record(
    ledger: Ledger, position: Position, question: WaitingQuestion, gate: Gate, about: Announcement
) -> None:
    """Record the option for the agent's next call."""
    key = next_decision_key(ledger.store, position.loaded, gate.id, question.shown)
    commit = Commit(position.rows(), ledger.principal, ledger.clock())
    option = gate.default_option or ""
    event = DecisionRecorded(question.node, gate.id, option, "time", question.shown, commit.now)
    commit.add(event, run=position.run.run)
    commit.announce("answered", replace(about, at=commit.now, option=option, channel="time"))
    ledger.append(commit.finish(key))
