"""What tells two nodes of the search apart: all that some rule or the oracle reads, and nothing else.

Nodes that are alike have the same moves, which lead to nodes that are alike and break the same rules; one of
them is gone on from. A test compares what a search reaches with these keys, and with keys that keep all.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from interlock.core.run.commands import Decision
from interlock.core.run.state import Gaps, Owner, Replies, RunState, Visit
from tools.search.adapter import Position
from tools.search.oracle import NEVER_STOP
from tools.search.seen import Seen
from tools.search.workflows import GateData, WorkflowData

_packed = msgspec.msgpack.Encoder(order="deterministic").encode
ANY = "any"  # the option of a gate that is answered alike with each


class Quotient:
    """Tells the nodes of one workflow apart."""

    def __init__(self, data: WorkflowData) -> None:
        gates = [item for item in data.items() if isinstance(item, GateData)]
        self.plain = frozenset(gate.id for gate in gates if is_plain(gate))
        self.leading = frozenset(gate.id for gate in gates if any(option.to for option in gate.options))

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
            replies=self._replies(state.replies),
            gaps=Gaps(),
        )
        gaps = _kinds_of_gaps(state.gaps)
        return _packed((reduced, gaps, decisions, dict(position.kept))), self._learned(seen)

    def _visit(self, visit: Visit) -> Visit:
        """Which option of a plain gate was chosen decides nothing."""
        answers = {
            key: ANY if key.rpartition("::")[2] in self.plain else option
            for key, option in visit.answers.items()
        }
        yielded = {
            agent: replace(answer, option=ANY) if answer.gate in self.plain else answer
            for agent, answer in visit.yielded.items()
        }
        return replace(visit, answers=answers, yielded=yielded)

    def _replies(self, replies: Replies) -> Replies:
        """The last answer to a gate is read for its `transitionTo`; which approver came first, by nobody."""
        chosen = {gate: answer for gate, answer in replies.chosen.items() if gate in self.leading}
        polls = {
            path: replace(poll, approvals=tuple(sorted(poll.approvals, key=repr)))
            for path, poll in replies.polls.items()
        }
        return replace(replies, chosen=chosen, polls=polls, remark=None)

    def _learned(self, seen: Seen) -> str:
        """Return what the oracle reads of what it has learned.

        What was disclosed is read only where something may be passed by. A check that failed counts as one
        that was not run. Approvals are counted, gaps are read by whose they are.
        """
        learned: dict[str, Any] = dict(vars(seen))
        if seen.strict and seen.mode != NEVER_STOP:
            del learned["disclosed"]
        learned["gaps"] = frozenset(seen.gaps)
        learned["ran"] = {key: checked for key, checked in seen.ran.items() if checked[0]}
        learned["polls"] = {key: frozenset(poll) for key, poll in seen.polls.items()}
        learned["answers"] = {
            key: ANY if key[1] in self.plain else option for key, option in seen.answers.items()
        }
        return repr([_ordered(value) for value in learned.values()])


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
