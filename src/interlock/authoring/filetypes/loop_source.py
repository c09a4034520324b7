"""The source types of a loop among the steps."""

from __future__ import annotations

from typing import Literal

from interlock.authoring.filetypes.field_types import (
    Camel,
    Iterations,
    Name,
    NonEmpty,
    RawBody,
    RawCondition,
    RawConfirmation,
)
from interlock.authoring.filetypes.prompt_source import FunctionSource


class ConditionSource(Camel, frozen=True):
    """Where the decision to repeat a loop comes from."""

    kind: Literal["artifact_contract", "context_variable"]
    """`artifact_contract`: a `wr.loop_control` artifact of a step in the body decides; `context_variable`: a
    condition decides."""
    contract_ref: str | None = None
    """With `artifact_contract`: `wr.contracts.loop_control`, the only contract that steers."""
    loop_id: str | None = None
    """Accepted for files of other servers; ignored."""
    condition: RawCondition = None
    """With `context_variable`: the loop's condition."""


class LoopConfig(Camel, frozen=True):
    """The kind of a loop and what steers it."""

    type: Literal["while", "until", "for", "forEach", "doWhile"]
    """The kind of loop."""
    max_iterations: Iterations | None = None
    """The most iterations, 1 to 1000. A loop that would go on is left, and a warning gap is recorded. A loop
    without it is an error."""
    condition: RawCondition = None
    """`while` and `doWhile` repeat while it holds, `until` repeats until it holds."""
    condition_source: ConditionSource | None = None
    """Where the decision to go on comes from, instead of `condition`."""
    break_condition: RawCondition = None
    """The loop is left if this condition holds at the end of an iteration."""
    count: int | str | None = None
    """`for`: how many iterations, as a number or as the name of a variable."""
    items: str | None = None
    """`forEach`: the variable that holds the list. It is read once, on arrival."""
    iteration_var: str | None = None
    """The variable that counts the iterations from 1; `currentIteration` if absent."""
    item_var: str | None = None
    """`forEach`: the variable that holds the item; `currentItem` if absent."""
    index_var: str | None = None
    """The variable that counts the iterations from 0; `currentIndex` if absent."""


class LoopSource(Camel, frozen=True):
    """A bounded repetition of steps, gates and loops."""

    id: NonEmpty
    """Names the loop within its activity; two loops of one id are an error."""
    loop: LoopConfig
    """The kind of the loop and what steers it."""
    body: RawBody
    """What is repeated: a list of steps, gates and loops, or the id of a step of the same list, which then
    runs only in the loop."""
    type: Literal["loop"] = "loop"
    """Always `loop`; it has to be written, because it tells a loop from a step."""
    title: Name | None = None
    """The heading, up to 128 characters; the id if absent."""
    name: Name | None = None
    """The same as `title`, which takes precedence."""
    description: str | None = None
    """A summary."""
    run_condition: RawCondition = None
    """The whole loop is passed over if this condition is false on arrival."""
    require_confirmation: RawConfirmation = False
    """Has no effect on a loop and is a warning; confirm a step of the body instead."""
    function_definitions: tuple[FunctionSource, ...] = ()
    """Functions that the steps of the body know."""
