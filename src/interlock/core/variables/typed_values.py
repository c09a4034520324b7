"""What can be written at all: plain names, and values of the declared type (rule 19).

The list of conversions is closed, and nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from interlock.core.definition.expressions import RESERVED
from interlock.core.definition.program import OTHER, Choices, Plan
from interlock.core.definition.workflow import PROVISION
from interlock.core.run.notices import Notice
from interlock.core.values import MISSING, Json, Missing, Variables, same

NOT_TAKEN = "VALUE_NOT_TAKEN"
MOST_SHOWN = 1000

_DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?")
_PLACEHOLDERS: Mapping[str | None, Json] = {
    "number": "<a number>",
    "array": ["<item>"],
    "object": {"<member>": "<value>"},
}
_EXAMPLES: Mapping[str, str] = {
    "boolean": "true or false",
    "number": "a number, such as 5",
    "array": 'a JSON array, such as ["…"]',
    "object": 'a JSON object, such as {"…": "…"}',
    "string": "text",
}


def sound(plan: Plan, variables: Variables) -> tuple[dict[str, Json], list[Notice]]:
    """Return the variables that can be written, in their declared types; say what to send for the others."""
    taken: dict[str, Json] = {}
    notices: list[Notice] = []
    for name, value in variables.items():
        if "." in name:
            nested = msgspec.json.encode(_nested(name, "<value>")).decode()
            text = f"'{name}' is not taken: the name of a variable has no dot. Send {nested}, with all of its"
            notices.append(Notice(NOT_TAKEN, f"{text} other members."))
        elif name in RESERVED:
            notices.append(Notice(NOT_TAKEN, f"'{name}' is not taken: the name is reserved."))
        elif _is_placeholder(name, value, placeholder(plan, name)):
            text = f"'{name}' is not taken: it is the placeholder of an example. Send its value."
            notices.append(Notice(NOT_TAKEN, text))
        elif name in plan.secrets and not _tells_of_secret(value):
            text = f"'{name}' is not taken: a secret is never kept. Send 'provided' or 'refused'."
            notices.append(Notice(NOT_TAKEN, text))
        elif isinstance(typed := converted(plan.types.get(name), value), Missing):
            kind = plan.types[name]
            text = f"'{name}' is not taken: it is declared as {kind}. Send {_EXAMPLES.get(kind, kind)}."
            notices.append(Notice(NOT_TAKEN, text))
        elif wanted := _wanted_items(plan, name, typed):
            example = msgspec.json.encode(items_placeholder(plan, name)).decode()
            text = f"'{name}' is not taken: each of its items is {wanted}."
            notices.append(Notice(NOT_TAKEN, f"{text} Send a JSON array, such as {example}."))
        elif not is_legal(plan, name, typed):
            text = f"'{name}' is not taken: it is one of {plan.choices(name).text}. Send one of these."
            notices.append(Notice(NOT_TAKEN, text))
        else:
            taken[name] = typed
    return taken, notices


def _wanted_items(plan: Plan, name: str, value: Json) -> str:
    """Return what the items of a list are declared to be, if a loop that goes through it cannot take one."""
    variable = plan.item_names.get(name)
    if variable is None or not isinstance(value, (list, tuple)):
        return ""
    kind = plan.types.get(variable)
    for item in value:
        if isinstance(typed := converted(kind, item), Missing):
            return f"declared as {kind}"
        if not is_legal(plan, variable, typed):
            return f"one of {plan.choices(variable).text}"
    return ""


def is_legal(plan: Plan, name: str, value: Json) -> bool:
    """Say whether a value is one of those that the variable is declared to have; `null` always is."""
    legal = plan.legal.get(name)
    return legal is None or value is None or any(same(value, other) for other in legal)


def _is_placeholder(name: str, value: Json, shown: Json | Missing = MISSING) -> bool:
    """Say whether a value, or a member of it, is what an example shows in its place."""
    match value:
        case str():
            return value in (f"<{name}>", shown)
        case Mapping():
            return value == shown or any(_is_placeholder(key, member) for key, member in value.items())
        case list() | tuple():
            return value == shown or any(_is_placeholder("item", member) for member in value)
        case _:
            return value == shown


def _tells_of_secret(value: Json) -> bool:
    """Say whether a value only tells whether the agent can use a secret."""
    return value is None or isinstance(value, bool) or value in [option.id for option in PROVISION]


def fitting(plan: Plan, variables: Variables) -> dict[str, Json]:
    """Return what the workflow itself sets, in the declared types and without what does not fit."""
    return sound(plan, variables)[0]


def placeholder(plan: Plan, name: str) -> Json:
    """Return what stands for a value of the variable in an example: what is legal, as far as it is known."""
    kind, choices = plan.types.get(name), plan.choices(name)
    if name in plan.looped and kind in (None, "array"):
        return items_placeholder(plan, name)
    words = _words(choices)
    if choices.closed:
        return f"<{' | '.join(words)}>"
    is_choice = words and all(isinstance(value, str) for value in choices.values)
    return _PLACEHOLDERS.get(kind, f"<{' | '.join([*words, OTHER])}>" if is_choice else f"<{name}>")


def items_placeholder(plan: Plan, path: str) -> Json:
    """Return what stands for the list that a loop goes through: an item, with the members that are read."""
    item: dict[str, Json] = {}
    for member, is_list in plan.looped.get(path, {}).items():
        _put(item, member, ["<item>"] if is_list else f"<{member.rpartition('.')[2]}>")
    variable = plan.item_names.get(path, "")
    choices = plan.choices(variable)
    one = f"<{' | '.join(_words(choices))}>" if choices.closed else "<item>"
    return [item or _PLACEHOLDERS.get(plan.types.get(variable), one)]


def _words(choices: Choices) -> list[str]:
    return [msgspec.json.encode(it).decode() if not isinstance(it, str) else it for it in choices.values]


def example_of(plan: Plan, known: Variables, paths: Iterable[str], leaf: Json = None) -> dict[str, Json]:
    """Return what to send for the values at the paths: variables, with placeholders or `leaf` in them.

    A variable is replaced as a whole, so that its other members, as far as they are known, come along.
    """
    example: dict[str, Json] = {}
    for path in paths:
        name, *members = path.split(".")
        if not members or plan.types.get(name, "object") != "object":
            example[name] = placeholder(plan, name) if leaf is None else leaf
        else:
            example.setdefault(name, _members(known.get(name)))
            _put(example, path, f"<{members[-1]}>" if leaf is None else leaf)
    return example


def _members(value: Json) -> dict[str, Json]:
    """Return the members of a value; only their names if the whole is long."""
    members = value if isinstance(value, Mapping) else {}
    if len(msgspec.json.encode(members)) > MOST_SHOWN:
        return {name: f"<{name}>" for name in members}
    return {
        name: _members(member) if isinstance(member, Mapping) else member for name, member in members.items()
    }


def _put(example: dict[str, Json], path: str, value: Json) -> None:
    *outer, last = path.split(".")
    for part in outer:
        nested = example.get(part)
        example[part] = example = nested if isinstance(nested, dict) else {}
    example[last] = value


def sample(plan: Plan, name: str, example: Mapping[str, Json] = {}) -> Json:
    """Return a value that the variable takes, of the shape of the example, where only its type matters."""
    if legal := plan.legal.get(name):
        return legal[0]
    samples: dict[str | None, Json] = {"boolean": True, "number": 1}
    return samples.get(plan.types.get(name), _filled(example.get(name, placeholder(plan, name))))


def _filled(example: Json) -> Json:
    """Replace the placeholders of an example by their first choice, or by their own words."""
    match example:
        case str():
            return example.strip("<>").partition(" | ")[0]
        case list() | tuple():
            return [_filled(member) for member in example]
        case Mapping():
            return {key.strip("<>"): _filled(member) for key, member in example.items()}
        case _:
            return example


def _nested(path: str, value: Json) -> Json:
    name, _, rest = path.partition(".")
    return {name: _nested(rest, value) if rest else value}


def converted(kind: str | None, value: Json) -> Json | Missing:
    """Return the value in the declared type; MISSING if it has none of that type.

    `null` deletes a variable of any type, and an undeclared variable takes every value.
    """
    match kind:
        case _ if value is None:
            return value
        case "boolean":
            return value if isinstance(value, bool) else _boolean(value)
        case "number":
            return value if _is_number(value) else _number(value)
        case "string" if not isinstance(value, (str, list, tuple, Mapping)):
            return msgspec.json.encode(value).decode()
        case "string":
            return value if isinstance(value, str) else MISSING
        case "array":
            return value if isinstance(value, (list, tuple)) else _decoded(value, list)
        case "object":
            return value if isinstance(value, Mapping) else _decoded(value, dict)
        case _:
            return value


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _boolean(value: Json) -> Json | Missing:
    word = value.strip().casefold() if isinstance(value, str) else ""
    return {"true": True, "false": False}.get(word, MISSING)


def _number(value: Json) -> Json | Missing:
    text = value.strip() if isinstance(value, str) else ""
    if not _DECIMAL.fullmatch(text):
        return MISSING
    return float(text) if "." in text else int(text)


def _decoded(value: Json, kind: type[list[Json]] | type[dict[str, Json]]) -> Json | Missing:
    if not isinstance(value, str):
        return MISSING
    try:
        return msgspec.json.decode(value, type=kind)
    except msgspec.DecodeError:  # a ValidationError of another JSON value is one too
        return MISSING
