"""Reading what agents send: context within its budget, output in its two spellings, msgspec's messages."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from interlock.core.engine.decisions import contradicted
from interlock.core.run.output import Output
from interlock.core.values import Json

CONTEXT_BYTES = 256 * 1024
ARTIFACT_BYTES = 256 * 1024
DEEPEST = 64
FORBIDDEN = ("__proto__", "constructor", "prototype")
PLAIN_WORDS = {
    "^Object missing required field `(.+)`$": r"'\1' is missing",
    "^Object contains unknown field `(.+)`$": r"there is no parameter '\1'",
    "^Invalid enum value (.+)$": r"\1 is not one of the values that are allowed",
}

JSON_TYPES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
}

_TYPE = re.compile(r"`(\w+)(?: \| null)?`")
_FIELD = re.compile("Object (?:missing required|contains unknown) field `(.+)`$")


class InvalidArgument(Struct, frozen=True):
    """Why an argument is refused, where, and what would be right."""

    message: str
    path: str
    next_action: str
    details: dict[str, Json] = {}


class DecodingError(Struct, frozen=True):
    """Msgspec's message about arguments, and the path of the argument that it is about.

    `field` is the parameter that is missing or unknown; the message names it.
    """

    message: str
    path: str
    field: str = ""

    def __str__(self) -> str:
        return f"{self.message} ({self.path})" if self.path else self.message


def missing_field(name: str) -> str:
    """Return msgspec's message about a field that this call cannot do without, although others can."""
    return f"Object missing required field `{name}`"


def decoding_error(reason: str) -> DecodingError:
    """Split msgspec's message into what is wrong and where; the path is empty for the whole."""
    message, _, path = reason.partition(" - at `$")
    field = _FIELD.match(message)
    for pattern, plain in PLAIN_WORDS.items():
        message = re.sub(pattern, plain, message)
    if message.startswith("Expected `"):
        message = _TYPE.sub(lambda named: JSON_TYPES.get(named[1], named[1]), message).replace("E", "e", 1)
    return DecodingError(message, path.rstrip("`").lstrip("."), field[1] if field else "")


def correction(error: DecodingError, schema: Mapping[str, Json]) -> str:
    """Say what to correct in the arguments of a tool, whose schema this is."""
    parameters = schema["properties"]
    assert isinstance(parameters, Mapping)
    if error.field:
        is_known = error.field in parameters or error.path
        return f"Send {error.field} too." if is_known else f"Its parameters: {', '.join(parameters)}."
    match parameters.get(error.path):
        case {"enum": list(choices)}:
            return f"Send one of these as {error.path}: {', '.join(map(str, choices))}."
        case {"type": "object" | "array" as kind}:
            return f"Send {error.path} as a JSON {kind}."
        case _:
            return f"Correct {error.path or 'the arguments'} and call again."


def check_context(context: Mapping[str, Json] | None, name: str = "context") -> InvalidArgument | None:
    """Refuse variables that are too large, too deep, or have a forbidden key; `name` is the parameter's."""
    if not context:
        return None
    forbidden = next((key for key in context if key in FORBIDDEN), None)
    if forbidden is not None:
        message = f"'{forbidden}' is not allowed as a key of {name}."
        return InvalidArgument(message, f"{name}.{forbidden}", "Rename the key.")
    if depth(context) > DEEPEST:
        message = f"{name} is nested deeper than {DEEPEST} levels."
        return InvalidArgument(message, name, "Send flatter values.")
    return _size_error(context, name, CONTEXT_BYTES)


def _size_error(value: Json, name: str, limit: int) -> InvalidArgument | None:
    if len(msgspec.json.encode(value)) <= limit // 2:
        return None
    from interlock.core.hashing import canonical

    size = len(canonical(value))
    if size <= limit:
        return None
    return InvalidArgument(
        f"{name} has {size} bytes; at most {limit} are allowed.",
        name,
        f"Keep large data in files and send references in {name}.",
        {"measuredBytes": size, "maxBytes": limit, "method": "jcs_utf8_bytes"},
    )


def depth(value: Json) -> int:
    """Return how deeply the value is nested, without recursion."""
    deepest, pending = 0, [(value, 0)]
    while pending:
        part, level = pending.pop()
        deepest = max(deepest, level)
        if isinstance(part, Mapping):
            pending.extend((member, level + 1) for member in part.values())
        elif isinstance(part, (list, tuple)):
            pending.extend((member, level + 1) for member in part)
    return deepest


def read_output(raw: Mapping[str, Json] | None) -> Output | InvalidArgument:
    """Read notes and artifacts; an output with a `kind` is one artifact (rule 31)."""
    if raw is None:
        return Output()
    notes, artifacts = raw.get("notesMarkdown"), raw.get("artifacts")
    notes, artifacts = "" if notes is None else notes, [] if artifacts is None else artifacts
    if not isinstance(notes, str):
        return InvalidArgument("output.notesMarkdown must be text.", "output.notesMarkdown", "Send a string.")
    if not isinstance(artifacts, list) or not all(isinstance(artifact, Mapping) for artifact in artifacts):
        message = "output.artifacts must be a list of objects."
        return InvalidArgument(message, "output.artifacts", "Send [{kind: …}].")
    members = {key: value for key, value in raw.items() if key not in ("notesMarkdown", "artifacts")}
    if members and "kind" not in members:
        unknown = next(iter(members))
        next_action = "Send output.notesMarkdown and output.artifacts, or one artifact with a kind."
        return InvalidArgument(f"output has no member '{unknown}'.", f"output.{unknown}", next_action)
    output = Output(notes, (*artifacts, members) if members else tuple(artifacts))
    if not output.artifacts:
        return output
    for index, artifact in enumerate(output.artifacts):
        if not isinstance(artifact.get("kind"), str):
            path = f"output.artifacts[{index}]"
            return InvalidArgument(f"{path} has no kind.", f"{path}.kind", "Give every artifact a kind.")
    if (twice := contradicted(output)) is not None:
        message = f"Two decisions on checkpoint '{twice}' name different options; one was made."
        return InvalidArgument(message, "output.artifacts", "Send the one that the user has made.")
    if depth(output.artifacts) > DEEPEST:
        message = "The artifacts are nested too deeply."
        return InvalidArgument(message, "output.artifacts", "Send flatter values.")
    return _size_error(output.artifacts, "output.artifacts", ARTIFACT_BYTES) or output
