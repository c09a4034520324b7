"""What tells two nodes of the search apart: all that some rule or the oracle reads, and nothing else.

Nodes that are alike have the same moves, which lead to nodes that are alike and break the same rules; one of
them is gone on from. A test compares what a search reaches with these keys, and with keys that keep all.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import product
from typing import Any

import msgspec
from msgspec.structs import replace

from interlock.core.run.commands import Decision
from interlock.core.run.state import Gaps, Owner, Replies, RunState, Visit
from tools.search.adapter import Position
from tools.search.declared import passed_by
from tools.search.oracle import NEVER_STOP, written
from tools.search.seen import Seen
from tools.search.workflows import END, GateData, LoopData, StepData, WorkflowData, questions

_packed = msgspec.msgpack.Encoder(order="deterministic").encode
ANY = "any"  # the option of a gate that is answered alike with each


class Quotient:
    """Tells the nodes of one workflow apart."""

    def __init__(self, data: WorkflowData) -> None:
        gates = [item for item in data.items() if isinstance(item, GateData)]
        self.plain = frozenset(gate.id for gate in gates if is_plain(gate))
        self.leading = frozenset(gate.id for gate in gates if any(option.to for option in gate.options))
        self.waiting = frozenset(gate.id for gate in gates if gate.waits_ms is not None)
        self.repeated = frozenset(
            item.id for item in data.items() if isinstance(item, StepData) and item.confirm
        )
        self.unread = unread(data)
        omitted = _omitted_by_jumps(data)
        self.omitted = frozenset(question.id for question in questions(data) if question.activity in omitted)

    def key(self, position: Position, seen: Seen) -> Hashable:
        """Return what is the same for nodes that are alike; after the end of a run only its gaps are read."""
        if seen.status:
            return seen.status, _kinds_of_gaps(position.state.gaps)
        state = position.state
        opened = state.visit.open
        decisions = dict(position.decisions)
        if opened is not None and opened.gate in self.plain and opened.shown in decisions:
            decisions[opened.shown] = Decision(ANY, decisions[opened.shown].channel)
        reduced = replace(
            without_numbers(state),
            visit=self._visit(without_numbers(state).visit),
            variables=self._read(state.variables),
            replies=self._replies(state.replies),
            gaps=Gaps(),
        )
        gaps = _kinds_of_gaps(state.gaps)
        return _packed((reduced, gaps, decisions, dict(position.kept))), self._learned(seen)

    def _read(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in variables.items() if name not in self.unread}

    def _visit(self, visit: Visit) -> Visit:
        """Which option of a plain gate was chosen decides nothing, nor which one an agent resumes from."""
        answers = {
            key: ANY if key.rpartition("::")[2] in self.plain else option
            for key, option in visit.answers.items()
        }
        yielded = {agent: replace(answer, option=ANY) for agent, answer in visit.yielded.items()}
        return replace(visit, answers=answers, yielded=yielded)

    def _replies(self, replies: Replies) -> Replies:
        """The last answer to a gate is read for its `transitionTo`; notes and who approved first, never."""
        chosen = {gate: answer for gate, answer in replies.chosen.items() if gate in self.leading}
        polls = {
            path: replace(poll, approvals=tuple(sorted(poll.approvals, key=repr)))
            for path, poll in replies.polls.items()
        }
        return replace(replies, chosen=chosen, polls=polls, remark=None, notes={})

    def _learned(self, seen: Seen) -> str:
        """Return what the oracle reads of what it has learned.

        What was disclosed is read only where something may be passed by, whether a question of another
        activity was answered only if a jump can leave that out, and when it was shown only if it waits for a
        time. A check that failed counts as one that was not run, and its result is read until its step is
        done. Approvals are counted, gaps are read by whose they are.
        """
        learned: dict[str, Any] = dict(vars(seen))
        if seen.strict and seen.mode != NEVER_STOP:
            del learned["disclosed"]
        learned["variables"] = self._read(seen.variables)
        learned["gaps"] = frozenset(seen.gaps)
        done = {written(step) for step in seen.done if step[1] not in self.repeated}
        learned["ran"] = {key: ran for key, ran in seen.ran.items() if ran[0] and key not in done}
        learned["answered"] = seen.answered & self.omitted
        learned["shown"] = {
            key: (it.digest, it.at if key[1] in self.waiting else 0, it.bent, it.answered)
            for key, it in seen.shown.items()
        }
        learned["polls"] = {key: frozenset(poll) for key, poll in seen.polls.items()}
        learned["answers"] = {
            key: ANY if key[1] in self.plain else option for key, option in seen.answers.items()
        }
        return repr([_ordered(value) for value in learned.values()])


def unread(data: WorkflowData) -> frozenset[str]:
    """Name the variables that steps set and that no question, condition, loop, exit or mode reads or sets."""
    steps = [item for item in data.items() if isinstance(item, StepData)]
    known = {name for question in questions(data) for name in question.reads | question.sets}
    known |= {item.when[0] for item in steps if item.when} | {item.mentions for item in steps}
    for loop in (item for item in data.items() if isinstance(item, LoopData)):
        known |= {loop.over or "", *loop.names, *([loop.test[0]] if loop.test else [])}
    known |= {leads.when[0] for activity in data.activities for leads in activity.exits if leads.when}
    known |= {data.mode[0]} if data.mode else set()
    return frozenset(name for step in steps for name in step.sets if not data.child) - known


def _omitted_by_jumps(data: WorkflowData) -> set[str]:
    """Return the activities that a jump from one activity to another can leave out; all where modes skip."""
    names = [activity.id for activity in data.activities]
    if data.mode is not None:
        return set(names)
    jumps = product(names, (*names, END))
    return {name for start, to in jumps for name in passed_by(data, start, to, lambda _: None)}


def is_plain(gate: GateData) -> bool:
    """Say whether all options of a gate do the same.

    A default is one of its options, and approvers must agree on one: there it matters which.
    """
    effects = {(option.sets, option.to) for option in gate.options}
    return len(effects) == 1 and gate.waits_ms is None and not gate.approvers


def without_numbers(state: RunState) -> RunState:
    """Return a state without what no rule reads, and without the number that a visit has."""
    shown, decided = (_aged(state, owned) for owned in (state.ownership.shown, state.ownership.decided))
    return replace(
        state,
        visit=replace(state.visit, number=0, answered=0, resumed={}),
        route=replace(state.route, completed=()),
        ownership=replace(state.ownership, shown=shown, decided=decided),
    )


def _aged(state: RunState, owners: Mapping[str, Owner]) -> dict[str, Owner]:
    """Return what questions own, with visits that say only whether they are over."""
    return {
        path: replace(owner, visit=int(owner.visit == state.visit.number)) for path, owner in owners.items()
    }


def _kinds_of_gaps(gaps: Gaps) -> tuple[Any, ...]:
    """Return which kinds of gaps there are.

    No rule reads their words. All that are open are closed together, and one keeps a run from being complete
    as several do.
    """
    kinds = {(gap.severity, gap.users, bool(gap.resolved)) for gap in gaps.newest}
    return bool(gaps.open), tuple(sorted(kinds))


def _ordered(value: Any) -> Any:
    match value:
        case dict():
            return sorted((key, _ordered(inner)) for key, inner in value.items())
        case frozenset():
            return sorted(value)
        case _:
            return value


def whole_key(position: Position, seen: Seen) -> Hashable:
    """Return everything that a node consists of, but for what no rule reads of a state."""
    kept = (dict(position.decisions), dict(position.kept), position.files)
    return _packed((without_numbers(position.state), *kept)), seen.key()
