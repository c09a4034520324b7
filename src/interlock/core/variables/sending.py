"""All that a step must send, in one block: where it goes, its type, legal values, an example (rule 31)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from interlock.core.definition.conditions import judged_by
from interlock.core.definition.criteria import lines_of
from interlock.core.definition.expressions import artifact_name, root
from interlock.core.definition.program import END, AskGate, DoStep, EnterLoop, Plan, RepeatLoop, step_key
from interlock.core.definition.prompts import interpolate, is_asked, step_prompt, text_of
from interlock.core.definition.workflow import Contract, Gate, Step, UserInput
from interlock.core.run.questions import DECISION
from interlock.core.run.state import RunState
from interlock.core.values import Json
from interlock.core.variables.typed_values import placeholder
from interlock.core.variables.writes import barred, may_set

SEND = "Send when it is done:"
THE_ANSWER = "<the user's answer>"
ANYWHERE = "or in an artifact, or by its name in the notes"


class Parameters(Struct, frozen=True):
    """The parameters of a surface's calls that take what a step sends.

    `answers` says whether they take the user's answers, or only the user's own channels do (rule 27).
    `kept` is where later calls take an artifact that is read later, if the server does not keep it.
    """

    variables: str = "context"
    artifacts: str = "output.artifacts"
    notes: str = "output.notesMarkdown"
    answers: bool = True
    kept: str = ""


class Instruction(Struct, frozen=True):
    """The whole instruction of a step: what to do, and last what it `sends` when it is done."""

    text: str
    sends: Literal["nothing", "notes", "listed"]


def instruction(plan: Plan, state: RunState, step: Step, parameters: Parameters) -> Instruction:
    """Return what a step says, with a list of what to send unless that is nothing or just notes."""
    prompt, ahead = step_prompt(plan, state, step), question_ahead(plan, state, step)
    if _sends_only_notes(plan, state, step):
        return Instruction("\n\n".join([prompt, *ahead]), "notes")
    wanted = [f"- {line}" for line in _to_send(plan, state, step, parameters)]
    block = [interpolate("\n".join([SEND, *wanted]), plan.scope(state.variables))] if wanted else []
    return Instruction("\n\n".join([prompt, *block, *ahead]), "listed" if wanted else "nothing")


def _sends_only_notes(plan: Plan, state: RunState, step: Step) -> bool:
    """Say whether notes that need not satisfy anything are all that the step sends."""
    others = step.user_input or step.contracts or step.criteria or {*step.hands_in} - {"notes"}
    wants = "notes" in step.hands_in or step.wants_notes
    sets = plan.produced(step, plan.scope(state.variables)) or any(_may_set(plan, state, step))
    return wants and not others and not sets


def _to_send(plan: Plan, state: RunState, step: Step, parameters: Parameters) -> Iterator[str]:
    """Yield what the step must or may send, a line each; the user's own answers come first."""
    asked = {need.key for need in step.user_input}
    for need in step.user_input:
        if parameters.answers or not is_asked(state, need):
            yield _answer_line(plan, state, step, need, parameters)
    for name in plan.produced(step, plan.scope(state.variables)):
        if name not in asked:
            yield _variable_line(plan, name, parameters)
    if may_set := ", ".join(_described(plan, name) for name in _may_set(plan, state, step)):
        yield f"{parameters.variables}, as far as the step sets it: {may_set}"
    for contract in step.contracts:
        yield _artifact_line(plan, contract, parameters)
    for name in step.hands_in:
        if name == "artifacts":
            yield f'{parameters.artifacts}: at least one, such as {{"kind":"<kind>"}}'
        elif name != "notes":
            yield f"{_variable_line(plan, name, parameters)}; {ANYWHERE}"
    yield from _notes_lines(step, parameters)


def question_ahead(plan: Plan, state: RunState, step: Step) -> Iterator[str]:
    """Say what the question right after the step will show the user, so that it is made ready before."""
    gate, comes = _gate_after(plan, state, step)
    shown = ", ".join(f"`{path}`" for path in dict.fromkeys(gate.text_paths())) if gate is not None else ""
    if gate is None or comes is False or not shown:
        return
    may = comes is None
    if state.preferences.never_stops:  # nobody is asked
        yield f"Then {'may come' if may else 'comes'} the question '{gate.name}', which shows {shown}."
    elif may:
        yield f"Then the user may be asked '{gate.name}', and is then shown {shown}."
    else:
        yield f"Then the user is asked '{gate.name}', and is shown {shown}."


def _gate_after(plan: Plan, state: RunState, step: Step) -> tuple[Gate | None, bool | None]:
    """Return the question that follows the step, and whether it comes; None if that is still open."""
    if state.activity is None:
        return None, False
    program, is_behind_loop = plan.program(state.activity), False
    key = program.following.get(step_key(step.id), END)
    while key != END and not isinstance(op := program.ops[key], (DoStep, AskGate)):
        is_behind_loop = is_behind_loop or isinstance(op, (EnterLoop, RepeatLoop))
        key = program.after(key)
    if key == END or not isinstance(op, AskGate):
        return None, False
    comes = judged_by(op.gate.condition, plan.scope(state.variables), _settled(plan, state, step))
    return op.gate, None if is_behind_loop and comes else comes


def _settled(plan: Plan, state: RunState, step: Step) -> set[str]:
    """Name what nobody changes before the step is done; before that, a question may come that does."""
    if state.visit.next_key != step_key(step.id):
        return set()
    return {name for name in barred(plan, state) if not may_set(plan, state, step, name)}


def _may_set(plan: Plan, state: RunState, step: Step) -> Iterator[str]:
    """Yield what the step, by its fields or its text, sets besides, as far as an agent may write it now."""
    named = {*plan.produced(step, plan.scope(state.variables)), *step.hands_in}
    named |= {need.key for need in step.user_input if need.key}
    declared = (action.produces for action in step.actions if action.produces and action.condition is None)
    for name in dict.fromkeys((*declared, *step.inferred)):
        if name not in named and may_set(plan, state, step, root(name)):
            yield name


def _described(plan: Plan, name: str) -> str:
    """Return the name of a variable with what is known of its values."""
    default = f"else {_json(plan.defaults[name])}" if name in plan.defaults else ""
    about = [plan.types.get(name, ""), plan.choices(name).text, default]
    known = ", ".join(part for part in about if part)
    return f"{name} ({known})" if known else name


def example_answer(step: Step, need: UserInput) -> Mapping[str, Json]:
    """Return the artifact that reports the user's answer to a question of a step, with its placeholder."""
    choice = f"<{' | '.join(option.id for option in need.options)}>" if need.options else THE_ANSWER
    return {"kind": DECISION, "checkpointId": step.input_id(need), "optionId": choice}


def _answer_line(plan: Plan, state: RunState, step: Step, need: UserInput, parameters: Parameters) -> str:
    whose = "the user's answer" if is_asked(state, need) else "what you assume"
    options = [option.id for option in need.options]
    legal = " | ".join(f'"{option}"' for option in options)
    if need.key:
        value = legal or _values(plan, need.key)
        return f"{parameters.variables}.{need.key}{_type(plan, need.key)}, {whose}: {value}"
    return f"{parameters.artifacts}, {whose}: {_json(example_answer(step, need))}"


def _variable_line(plan: Plan, name: str, parameters: Parameters) -> str:
    return f"{parameters.variables}.{name}{_type(plan, name)}: {_values(plan, name)}"


def _values(plan: Plan, name: str) -> str:
    return plan.choices(name).text or text_of(placeholder(plan, name))


def _type(plan: Plan, name: str) -> str:
    kind = plan.types.get(root(name)) if "." not in name else None
    return f" ({kind})" if kind else ""


def _artifact_line(plan: Plan, contract: Contract, parameters: Parameters) -> str:
    optional = "" if contract.required else ", if you have one"
    line = f"{parameters.artifacts}{optional} ({contract.ref}): {_json(contract.shown_example)}"
    if contract.shown_example is None:
        line = f"{parameters.artifacts}{optional} ({contract.ref}): one of kind `{contract.artifact}`"
    if contract.example is None and contract.schema:
        line += f"; its JSON Schema: {_json(dict(contract.schema))}"
    if parameters.kept and (name := artifact_name(contract.artifact)) in plan.quoted:
        line += f"; from then on also as {parameters.kept}.{name}"
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
