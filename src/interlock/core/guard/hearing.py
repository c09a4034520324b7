"""A command before the guard: the workflow, what was learned so far, and what its events say meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from interlock.core.definition.conditions import Scope, holds
from interlock.core.definition.program import END, AskGate, ConfirmStep, Op, Plan, Program
from interlock.core.definition.workflow import Gate, Step
from interlock.core.guard.audit import Audit
from interlock.core.run import events as e
from interlock.core.run.commands import Command

Invariant = Literal["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9"]


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
        self.audit = audit
        self.command = command
        self.gaps = {(event.detail, event.key) for event in events if isinstance(event, e.GapRecorded)}
        self.given: dict[str, str | None] = {}
        self.ran = {(event.key, event.check) for event in events if isinstance(event, e.CheckRan)}
        self.completed = ""  # the step that was completed last
        self.jumped = False  # whether the activity was left by no open exit
        self.reasked: set[str] = set()  # what was changed and must be asked again at once

    @property
    def scope(self) -> Scope:
        return self.plan.scope(self.audit.variables)

    @property
    def program(self) -> Program:
        return self.plan.program(self.audit.activity or "")

    def due(self) -> Op | None:
        """The operation that the program counter is at; None outside an activity and at its end."""
        if self.audit.activity is None or self.audit.left_to is not None or self.audit.next == END:
            return None
        return self.program.ops.get(self.audit.next)

    def find(self, key: str) -> AskGate | ConfirmStep | None:
        """The gate or confirmation of an instance, wherever it stands in the activity."""
        name = key.rpartition("::")[2]
        ops = (op for op in self.program.ops.values() if isinstance(op, (AskGate, ConfirmStep)))
        return next((op for op in ops if op.gate.id == name), None)

    def applies(self, gate: Gate, confirms: Step | None) -> bool:
        """Whether a gate, or the confirmation of a step, is to be asked as the variables are."""
        if confirms is None:
            return holds(gate.condition, self.scope)
        return confirms.confirm if isinstance(confirms.confirm, bool) else holds(confirms.confirm, self.scope)

    def needs_gap(self, detail: str, key: str) -> Verdict:
        """What was decided without the user is a gap of this command."""
        if (detail, key) not in self.gaps:
            yield I1(f"'{key}' was decided without the user, and no gap says so")


def confirmed_step(op: AskGate | ConfirmStep) -> Step | None:
    """The step that is confirmed, if it is a confirmation."""
    return op.step if isinstance(op, ConfirmStep) else None
