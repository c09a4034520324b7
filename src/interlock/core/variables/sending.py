"""All that a step must send, in one block: where it goes, its type, legal values, an example (rule 31)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from interlock.core.definition.criteria import lines_of
from interlock.core.definition.expressions import root
from interlock.core.definition.program import END, AskGate, DoStep, Plan
from interlock.core.definition.prompts import choices_of, interpolate, step_prompt, text_of
from interlock.core.definition.workflow import Contract, Gate, Step, UserInput
from interlock.core.run.state import RunState
from interlock.core.values import Json
from interlock.core.variables.typed_values import placeholder

SEND = "Send when it is done:"
ANYWHERE = "or in an artifact, or by its name in the notes"


class Parameters(Struct, frozen=True):
    """The parameters of a surface's calls that take what a step sends."""

    variables: str = "context"
    artifacts: str = "output.artifacts"
    notes: str = "output.notesMarkdown"


def step_text(plan: Plan, state: RunState, step: Step, parameters: Parameters) -> str:
    """Return the whole instruction of a step: what to do, and last what to send when it is done."""
    ahead = question_ahead(plan, state, step)
    if sends_only_notes(plan, state, step):
        return "\n\n".join([step_prompt(plan, state, step), *ahead])
    wanted = [f"- {line}" for line in to_send(plan, state, step, parameters)]
    block = [interpolate("\n".join([SEND, *wanted]), plan.scope(state.variables))] if wanted else []
    return "\n\n".join([step_prompt(plan, state, step), *block, *ahead])


def sends_only_notes(plan: Plan, state: RunState, step: Step) -> bool:
    """Say whether notes that need not satisfy anything are all that the step sends."""
    others = step.user_input or step.contracts or step.criteria or {*step.hands_in} - {"notes"}
    wants = "notes" in step.hands_in or step.wants_notes
    return wants and not others and not plan.produced(step, plan.scope(state.variables))


def to_send(plan: Plan, state: RunState, step: Step, parameters: Parameters) -> Iterator[str]:
    """Yield what the step must or may send, a line each; the user's own answers come first."""
    asked = {need.key for need in step.user_input}
    for need in step.user_input:
        yield _answer_line(plan, need, parameters)
    for name, choices in choices_of(plan.produced(step, plan.scope(state.variables))).items():
        if name not in asked:
            yield _variable_line(plan, name, choices, parameters)
    for contract in step.contracts:
        yield _artifact_line(contract, parameters)
    for name in step.hands_in:
        if name == "artifacts":
            yield f'{parameters.artifacts}: at least one, such as {{"kind":"<kind>"}}'
        elif name != "notes":
            yield f"{_variable_line(plan, name, '', parameters)}; {ANYWHERE}"
    yield from _notes_lines(step, parameters)


def question_ahead(plan: Plan, state: RunState, step: Step) -> Iterator[str]:
    """Say what the question right after the step will show the user, so that it is made ready before."""
    gate = _gate_after(plan, state, step)
    shown = dict.fromkeys(gate.text_paths()) if gate is not None else {}
    if gate is not None and shown:
        names = ", ".join(f"`{path}`" for path in shown)
        yield f"Then the user is asked '{gate.name}', and is shown {names}."


def _gate_after(plan: Plan, state: RunState, step: Step) -> Gate | None:
    if state.activity is None:
        return None
    program = plan.program(state.activity)
    key = program.following.get(f"step:{step.id}", END)
    while key != END and not isinstance(op := program.ops[key], (DoStep, AskGate)):
        key = program.after(key)
    return op.gate if key != END and isinstance(op, AskGate) else None


def _answer_line(plan: Plan, need: UserInput, parameters: Parameters) -> str:
    options = [option.id for option in need.options]
    legal = " | ".join(f'"{option}"' for option in options)
    if need.key:
        value = legal or text_of(placeholder(plan, need.key))
        return f"{parameters.variables}.{need.key}{_type(plan, need.key)}, the user's answer: {value}"
    return f"{parameters.artifacts}, the user's answer as wr.decision: {legal or 'in their words'}"


def _variable_line(plan: Plan, name: str, choices: str, parameters: Parameters) -> str:
    return f"{parameters.variables}.{name}{_type(plan, name)}: {choices or text_of(placeholder(plan, name))}"


def _type(plan: Plan, name: str) -> str:
    kind = plan.types.get(root(name)) if "." not in name else None
    return f" ({kind})" if kind else ""


def _artifact_line(contract: Contract, parameters: Parameters) -> str:
    optional = "" if contract.required else ", if you have one"
    line = f"{parameters.artifacts}{optional} ({contract.ref}): {_json(contract.shown_example)}"
    if contract.shown_example is None:
        line = f"{parameters.artifacts}{optional} ({contract.ref}): one of kind `{contract.artifact}`"
    if contract.example is None and contract.schema:
        line += f"; its JSON Schema: {_json(dict(contract.schema))}"
    return line


def _notes_lines(step: Step, parameters: Parameters) -> Iterator[str]:
    if step.criteria is not None:
        yield "\n".join(
            [f"{parameters.notes}, which must satisfy:", *(f"  {line}" for line in lines_of(step.criteria))]
        )
    elif "notes" in step.hands_in or step.wants_notes:
        yield f"{parameters.notes}: {'as said above' if step.hands_in else 'what was done and found'}"


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()
