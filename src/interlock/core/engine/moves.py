"""What can be done next: each move with all that it takes, or why it would be refused.

Navigation shows this instead of leaving an agent to guess; `decide` accepts exactly what is listed as open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.conditions import variables_of
from interlock.core.definition.program import END, DoStep, Plan
from interlock.core.definition.workflow import Gate, Step
from interlock.core.engine.acknowledge import without_input
from interlock.core.engine.decisions import waits_for_user
from interlock.core.engine.draft import Draft
from interlock.core.engine.gates import question_of
from interlock.core.engine.paths.exits import deciding_variables, exits
from interlock.core.engine.paths.loops import goes_by
from interlock.core.engine.requirements import Submission, examine
from interlock.core.engine.settle import lacks_unset, settle
from interlock.core.run.commands import Decision, Terms
from interlock.core.run.outcomes import (
    Awaited,
    Done,
    Exit,
    NeedAnswer,
    NeedEntry,
    NeedExit,
    NeedInput,
    NeedLoop,
    NeedStep,
)
from interlock.core.run.reasons import Blocker
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import NAVIGATION
from interlock.core.values import Variables

Decisions: TypeAlias = Mapping[str, Decision]
Kind = Literal["complete_step", "respond_to_checkpoint", "transition", "advance_loop"]


class Move(Struct, frozen=True):
    """One action with its parameters. A `reason` says that it would be refused.

    `options` are the answers that count, `items` the list that a loop lacks, `variables` what must be sent
    along and `example` its shape, `needs` what a step's output must satisfy. `condition` is what this exit or
    loop goes by, `reads` its variables, `unset` those that nobody has set: taking the exit claims the
    condition. `gate` is one that may be passed over, `loop` what a loop waits for. `is_decided` says that the
    user has answered already, `abandons` that the move is open only if it leaves the run's children behind.
    """

    action: Kind
    target: str
    options: tuple[str, ...] = ()
    items: str | None = None
    variables: tuple[str, ...] = ()
    example: Variables = {}
    needs: tuple[Blocker, ...] = ()
    condition: str = ""
    reads: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()
    reason: str = ""
    step: Step | None = None
    gate: Gate | None = None
    is_decided: bool = False
    abandons: bool = False
    loop: NeedLoop | NeedInput | None = None


class Moves(Struct, frozen=True):
    """One of `required` comes next; `optional` ones are open too; `blocked` ones are not."""

    required: tuple[Move, ...] = ()
    optional: tuple[Move, ...] = ()
    blocked: tuple[Move, ...] = ()


def moves(plan: Plan, state: RunState, terms: Terms, decisions: Decisions, now: int) -> Moves:
    """List every move from this state. `decisions` are the user's own answers to what is pending.

    Steps and gates that are not required are optional beside what is, and so is what follows a gate whose
    time is over. A run with children can only go on without them. In never-stop mode nobody has to send what
    nobody has set.
    """
    if state.children and not state.finished:
        held = f"The run waits for its child: {', '.join(state.children.values())}"
        listed = moves(plan, replace(state, children={}), terms, decisions, now)
        opened = (*listed.required, *listed.optional)
        return Moves(
            optional=tuple(replace(move, abandons=True) for move in opened),
            blocked=tuple(replace(move, reason=held) for move in (*opened, *listed.blocked)),
        )
    state, pending = settled_for_navigation(plan, state, now)
    if isinstance(pending, NeedStep) and not pending.step.required:
        submission = Submission(terms, decisions=decisions)
        needs = examine(plan, state, pending.step, pending.key, submission).stopping
        skipped = Draft(plan, state, NAVIGATION, now)
        skipped.skip(pending)
        later = moves(plan, skipped.state, terms, decisions, now)
        own = Move("complete_step", pending.step.id, needs=needs, step=pending.step)
        return replace(later, optional=(own, *later.optional))
    if lacks_unset(pending) and state.preferences.never_stops:
        unset = Draft(plan, state, NAVIGATION, now)
        unset.record(*without_input(unset, pending))
        return moves(plan, unset.state, terms, decisions, now)
    listed = _moves(plan, state, pending, terms, decisions)
    if not isinstance(pending, NeedAnswer):
        return listed
    passed = Draft(plan, state, NAVIGATION, now, decisions)
    if not passed.take_expired(pending):
        if pending.gate.required:
            return listed
        passed.pass_optional(pending)
    later = moves(plan, passed.state, terms, decisions, now)
    return replace(later, optional=(*listed.required, *later.optional))


def _moves(plan: Plan, state: RunState, pending: Awaited, terms: Terms, decisions: Decisions) -> Moves:
    match pending:
        case NeedStep(key=key, step=step):
            needs = examine(plan, state, step, key, Submission(terms, decisions=decisions)).stopping
            shut = tuple(_shut_exits(plan, state, f"Activity '{state.activity}' is not complete"))
            waiting = next((need for need in needs if need.waits_for_user), None)
            if waiting is None:
                return Moves((Move("complete_step", step.id, needs=needs, step=step),), blocked=shut)
            then = "The user must answer this in the inbox."
            if waiting.rejected:
                then = "Do what the user says about it, then send it again: the user is asked once more."
            text = f"{waiting.message} {then}"
            return Moves(blocked=(Move("complete_step", step.id, reason=text), *shut))
        case NeedAnswer(key=key, gate=gate):
            held = f"Must respond to checkpoint '{gate.id}' first"
            blocked = (*_following_step(plan, state, held), *_shut_exits(plan, state, held))
            decided = decisions.get(question_of(plan, state, gate, pending.confirms).digest)
            options = (decided.option,) if decided else tuple(option.id for option in gate.options)
            begins = options if state.activity is None else ()  # to begin with one is to choose it
            if decided is None and waits_for_user(state, key, terms, gate):
                text = f"Checkpoint '{gate.id}' waits for the user's own decision in the inbox."
                answer = Move("respond_to_checkpoint", gate.id, reason=text)
                shut = tuple(Move("transition", activity, reason=text) for activity in begins)
                return Moves(blocked=(answer, *shut, *blocked))
            offered = None if gate.required else gate
            answer = Move(
                "respond_to_checkpoint", gate.id, options, gate=offered, is_decided=decided is not None
            )
            open_ways = tuple(Move("transition", activity) for activity in begins)
            return Moves((answer,), open_ways, blocked)
        case NeedInput(gate=Gate() as gate):
            held = f"Send what the question of checkpoint '{gate.id}' shows first"
            blocked = (*_following_step(plan, state, held), *_shut_exits(plan, state, held))
            send = Move(
                "respond_to_checkpoint",
                gate.id,
                variables=pending.variables,
                example=pending.example,
                gate=gate,
            )
            return Moves((send,), blocked=blocked)
        case NeedInput(loop=None):
            listed = _exits(plan, state, NeedExit(exits(plan, state)))
            ways = (*listed.required, *listed.optional)
            return replace(listed, required=tuple(_sending(move, pending) for move in ways), optional=())
        case NeedLoop() | NeedInput():
            return _loop(plan, state, pending)
        case NeedExit():
            return _exits(plan, state, pending)
        case NeedEntry():
            return Moves(tuple(Move("transition", activity.id) for activity in plan.workflow.activities))
        case Done():
            return Moves()
        case _:
            assert_never(pending)


def _loop(plan: Plan, state: RunState, need: NeedLoop | NeedInput) -> Moves:
    assert need.loop is not None, "navigation only waits for input at a loop"
    held = f"Advance loop '{need.loop.id}' first"
    lacks = not state.preferences.never_stops
    items = need.loop.items or "items"
    move = Move(
        "advance_loop",
        need.loop.id,
        items=items if lacks and isinstance(need, NeedLoop) and need.needs_items else None,
        variables=need.variables if lacks and isinstance(need, NeedInput) else (),
        example=need.example if lacks and isinstance(need, NeedInput) else {},
        condition="; ".join(goes_by(need.loop)),
        reads=(*variables_of(need.loop.condition), *variables_of(need.loop.break_condition)),
        loop=need,
    )
    blocked = (*_following_step(plan, state, held), *_shut_exits(plan, state, held))
    return Moves((move,), blocked=blocked)


def _exits(plan: Plan, state: RunState, need: NeedExit) -> Moves:
    opened = tuple(exit_ for exit_ in need.exits if exit_.open)
    if not opened and state.preferences.never_stops:
        opened = tuple(exit_ for exit_ in need.exits if not exit_.decided)
    expected = tuple(exit_ for exit_ in opened if exit_.expected) or opened
    closed = [exit_ for exit_ in need.exits if exit_ not in opened]
    if state.visit.exit_to is not None:
        text = f"The answered checkpoint leads to '{state.visit.exit_to}'"
        blocked = [Move("transition", exit_.to, reason=text) for exit_ in closed]
        opened = expected = tuple(
            Exit(exit_.to, open=True) for exit_ in expected
        )  # by no condition of its own
    else:
        names = deciding_variables(plan, state)
        text = f"It is decided by: {', '.join(names)}"
        blocked = [
            Move(
                "transition",
                exit_.to,
                variables=names,
                reason=f"{_why_closed(exit_)}. {text}",
            )
            for exit_ in closed
        ]
    return Moves(
        tuple(_taken(exit_) for exit_ in expected),
        tuple(_taken(exit_) for exit_ in opened if exit_ not in expected),
        tuple(blocked),
    )


def _why_closed(exit_: Exit) -> str:
    if not exit_.condition:  # the default
        return "It is open only when no other condition holds"
    return f"Its condition does not hold: {exit_.condition}"


def _sending(move: Move, need: NeedInput) -> Move:
    """Return an exit that is open to whoever sends what nobody has set, or null for it."""
    return replace(move, variables=need.variables, example=need.example)


def _taken(exit_: Exit) -> Move:
    return Move("transition", exit_.to, condition=exit_.condition, reads=exit_.reads, unset=exit_.unset)


def _shut_exits(plan: Plan, state: RunState, reason: str) -> Iterator[Move]:
    """Yield the exits, which stay shut until the activity is done."""
    if state.activity is None:
        return
    for exit_ in exits(plan, state):
        yield Move("transition", exit_.to, reason=reason)


def _following_step(plan: Plan, state: RunState, reason: str) -> Iterator[Move]:
    """Yield the step that comes after what is pending, if there is one."""
    if state.activity is None:
        return
    program, key = plan.program(state.activity), state.visit.next_key
    while key != END:
        op = program.ops[key]
        if isinstance(op, DoStep):
            yield Move("complete_step", op.step.id, reason=reason)
            return
        key = program.after(key)


def settled_for_navigation(plan: Plan, state: RunState, now: int) -> tuple[RunState, Awaited]:
    """Settle a run as navigation does, whichever surface it comes from."""
    _, settled, pending = settle(plan, state, NAVIGATION, now)
    return settled, pending
