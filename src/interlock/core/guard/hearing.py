"""A command before the guard: the workflow, what was learned so far, and what its events say meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from interlock.core.definition.conditions import Scope, holds
from interlock.core.definition.program import END, AskGate, ConfirmStep, Op, Plan, Program, entrance_gate
from interlock.core.definition.workflow import Workflow
from interlock.core.guard.audit import Applied, Audit, GuardedVisit
from interlock.core.run import events as e
from interlock.core.run.commands import Command
from interlock.core.run.keys import item_of

Invariant = Literal["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9"]
GateOp: TypeAlias = AskGate | ConfirmStep


class Violation(Struct, frozen=True):
    """The promise that events break, and how."""

    invariant: Invariant
    detail: str

    @property
    def text(self) -> str:
        """The violation in a line."""
        return f"{self.invariant}: {self.detail}"


Verdict: TypeAlias = Iterator[Violation]
I1, I2, I3, I4, I5, I6, I7, I8, I9 = (partial(Violation, name) for name in get_args(Invariant))


class Hearing:
    """The state of one judgement. `given` are the inputs that were answered for the step that is due."""

    def __init__(self, plan: Plan, audit: Audit, events: Sequence[e.Event], command: Command | None) -> None:
        self.plan = plan
        self.audit = self.found = audit
        self.command = command
        self.gaps = {(event.detail, event.key) for event in events if isinstance(event, e.GapRecorded)}
        self.answered = {(event.key, event.shown) for event in events if isinstance(event, e.GateResolved)}
        self.given: dict[str, str | None] = {}
        self.ran = {(event.key, event.check) for event in events if isinstance(event, e.CheckRan)}
        self.completed = ""  # the step that was completed last
        self.jumped = False  # whether the activity was left by no open exit
        self.skips = True  # whether options and modes have activities skipped
        self.reasked: set[str] = set()  # what was changed and must be asked again at once

    @property
    def workflow(self) -> Workflow:
        return self.plan.workflow

    @property
    def visit(self) -> GuardedVisit:
        return self.audit.visit

    @property
    def terms(self) -> Applied:
        return self.audit.applied

    @property
    def scope(self) -> Scope:
        return self.plan.scope(self.audit.variables)

    @property
    def program(self) -> Program:
        return self.plan.program(self.visit.activity or "")

    def without_skipping(self) -> Hearing:
        """The same run before no command, as if no activity were skipped."""
        whole = Hearing(self.plan, self.audit, (), None)
        whole.skips = False
        return whole

    def due(self) -> Op | None:
        """The operation that the program counter is at; None outside an activity and at its end."""
        if self.visit.activity is None or self.visit.left_to is not None or self.visit.next == END:
            return None
        return self.program.ops.get(self.visit.next)

    def find(self, key: str) -> GateOp | None:
        """The gate or confirmation of an instance, wherever it stands in the activity."""
        ops = self.program.ops.values() if self.visit.activity is not None else ()
        gates = (op for op in ops if isinstance(op, GateOp))
        return next((op for op in gates if op.gate.id == item_of(key)), None)

    def gate_at(self, key: str, others: Collection[str]) -> GateOp | None:
        """The gate that is due, or one of `others`, by its instance; the entrance before any activity."""
        op = self.due()
        if self.visit.activity is None:
            entrance = entrance_gate(self.workflow)
            return AskGate("", entrance) if key == entrance.id else None
        if isinstance(op, GateOp) and key == self.audit.instance(op.gate.id):
            return op
        return self.find(key) if key in others else None

    def applies(self, op: GateOp) -> bool:
        """Whether a gate, or the confirmation of a step, is to be asked as the variables are."""
        condition = op.step.confirm if isinstance(op, ConfirmStep) else op.gate.condition
        return condition if isinstance(condition, bool) else holds(condition, self.scope)

    def needs_gap(self, detail: str, key: str) -> Verdict:
        """What was decided without the user is a gap of this command."""
        if (detail, key) not in self.gaps:
            yield I1(f"'{key}' was decided without the user, and no gap says so")
