"""JSON Schema checks whose messages name the member and the violation.

Every validator is built here, so that none reads a file or a host that a schema refers to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn, Protocol

import msgspec

from interlock.core.values import Json

MOST = 5
DEEPEST_EXAMPLE = 8

Path = tuple[str | int, ...]

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_DATA = ("const", "enum", "default", "examples")
KEYWORDS = frozenset(
    (
        *("additionalItems", "additionalProperties", "allOf", "anyOf", "comment", "const", "contains"),
        *("contentEncoding", "contentMediaType", "contentSchema", "default", "definitions", "dependencies"),
        *("dependentRequired", "dependentSchemas", "deprecated", "description", "else", "enum", "example"),
        *("examples", "exclusiveMaximum", "exclusiveMinimum", "format", "id", "if", "items", "maxContains"),
        *("maxItems", "maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength"),
        *("minProperties", "minimum", "multipleOf", "not", "nullable", "oneOf", "pattern"),
        *("patternProperties", "prefixItems", "properties", "propertyNames", "readOnly", "required", "then"),
        *("title", "type", "unevaluatedItems", "unevaluatedProperties", "uniqueItems", "writeOnly"),
    )
)  # of every draft
_NAMED_SCHEMAS = (
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "$defs",
    "definitions",
)


class BadSchema(Exception):
    """The value is not a JSON Schema, or it needs something outside its document."""


class _Validates(Protocol):
    def iter_errors(self, value: Json) -> object: ...


def violations(schema: Mapping[str, Json], value: Json) -> list[str]:
    """Name at most five violations of the schema, each with the path of the member."""
    if not schema:
        return []
    try:
        validator = _validator(msgspec.json.encode(schema, order="sorted"))
    except BadSchema as error:
        return [str(error)]
    messages: list[str] = []
    for violation in validator.iter_errors(value):  # type: ignore[attr-defined]
        messages += _in_words(violation)
        if len(messages) >= MOST:
            break
    return messages[:MOST]


def _in_words(violation: Any) -> list[str]:
    """Say where a violation is and what is legal there; of several alternatives, by the nearest one."""
    if violation.kind.name in ("anyOf", "oneOf") and violation.kind.context:
        nearest = max(violation.kind.context, key=_nearness)
        return [message for inner in nearest for message in _in_words(inner)]
    path = "/".join(str(part) for part in violation.instance_path)
    message = violation.message
    if violation.kind.name == "enum":  # the library's own message leaves most of the legal values out
        legal = ", ".join(msgspec.json.encode(choice).decode() for choice in violation.kind.options)
        message = f"{msgspec.json.encode(violation.instance).decode()} is not one of {legal}"
    return [f"{path or 'the value'}: {message}"]


def _nearness(alternative: Sequence[Any]) -> tuple[bool, int, int]:
    """Rank an alternative that failed: not by its type, as deep as possible, in few ways."""
    depth = min((len(violation.instance_path) for violation in alternative), default=0)
    has_type = all(violation.kind.name not in ("type", "const") for violation in alternative)
    return has_type, depth, -len(alternative)


def artifact_violations(schema: Mapping[str, Json], artifact: Json) -> list[str]:
    """Name the violations of an artifact; a schema may describe it with its kind or without."""
    errors = violations(schema, artifact)
    if not errors or not isinstance(artifact, Mapping):
        return errors
    bare: dict[str, Json] = {name: value for name, value in artifact.items() if name != "kind"}
    return min(errors, violations(schema, bare), key=len)


def example_of(schema: Mapping[str, Json], kind: str) -> Json:
    """Return an artifact that satisfies the schema, with placeholders for texts; None if none was found."""
    for whole in (True, False):
        made = _example(schema, schema, kind, whole=whole, depth=0) if schema else {}
        if isinstance(made, Mapping):
            artifact: dict[str, Json] = {"kind": kind, **made}
            if not artifact_violations(schema, artifact):
                return artifact
    return None


def _example(schema: Json, root: Mapping[str, Json], name: str, *, whole: bool, depth: int) -> Json:
    """Make a value for a schema: all of its members, or the required ones only."""
    if not isinstance(schema, Mapping) or depth > DEEPEST_EXAMPLE:
        return f"<{name}>"
    for word in ("const", "default"):
        if word in schema:
            return schema[word]
    for word in ("examples", "enum"):
        if isinstance(values := schema.get(word), list) and values:
            first: Json = values[0]
            return first
    if isinstance(reference := schema.get("$ref"), str):
        return _example(_referred(root, reference), root, name, whole=whole, depth=depth + 1)
    for word in ("allOf", "anyOf", "oneOf"):
        if isinstance(parts := schema.get(word), list) and parts:
            chosen = parts if word == "allOf" else parts[:1]
            rest = {key: value for key, value in schema.items() if key != word}
            made = [
                _example(part, root, name, whole=whole, depth=depth + 1)
                for part in (*([rest] if "properties" in rest else []), *chosen)
            ]
            merged = {key: value for part in made if isinstance(part, Mapping) for key, value in part.items()}
            return merged or made[-1]
    return _plain_example(schema, root, name, whole=whole, depth=depth)


def _plain_example(
    schema: Mapping[str, Json], root: Mapping[str, Json], name: str, *, whole: bool, depth: int
) -> Json:
    match schema.get("type", "object" if {"properties", "required"} & schema.keys() else "string"):
        case "object" | ["object", *_]:
            properties, required = schema.get("properties"), schema.get("required")
            members = properties if isinstance(properties, Mapping) else {}
            needed = [str(member) for member in required] if isinstance(required, list) else []
            return {
                member: _example(members.get(member), root, member, whole=whole, depth=depth + 1)
                for member in dict.fromkeys((*needed, *(members if whole else ())))
            }
        case "array" | ["array", *_]:
            least = schema.get("minItems")
            size = max(least if isinstance(least, int) else 0, int(whole))
            return [_example(schema.get("items"), root, name, whole=whole, depth=depth + 1)] * size
        case "integer" | "number" | ["integer" | "number", *_]:
            low, high = schema.get("minimum"), schema.get("maximum")
            return next((bound for bound in (low, high) if isinstance(bound, (int, float))), 1)
        case "boolean" | ["boolean", *_]:
            return True
        case "null":
            return None
        case _:
            least = schema.get("minLength")
            return f"<{name}>".ljust(least if isinstance(least, int) else 0, "…")


def template_of(schema: Mapping[str, Json], example: Json, fixed: Sequence[str] = ()) -> Json:
    """Return the example with a placeholder for whatever the agent decides: `<a | b>` for a choice."""
    template = _template(example, schema, schema)
    if not isinstance(template, Mapping) or not isinstance(example, Mapping):
        return template
    return {**template, **{name: example[name] for name in fixed if name in example}}


def _template(value: Json, schema: Json, root: Mapping[str, Json], name: str = "") -> Json:
    known = _alternative(schema, root, value)
    choices = known.get("enum")
    if "const" in known or name in ("kind", "assessmentId"):
        return value
    if isinstance(choices, list) and len(choices) > 1:
        return f"<{' | '.join(map(_word, choices))}>"
    match value:
        case Mapping():
            listed = known.get("properties")
            members = listed if isinstance(listed, Mapping) else {}
            return {key: _template(member, members.get(key), root, key) for key, member in value.items()}
        case list() | tuple():
            return [_template(member, known.get("items"), root) for member in value]
        case bool():
            return "<true | false>"
        case int() | float():
            return f"<a number, such as {value}>"
        case str() if value and not value.startswith("<"):
            return f"<{value}>"
        case _:
            return value


def _word(choice: Json) -> str:
    return choice if isinstance(choice, str) else msgspec.json.encode(choice).decode()


def _alternative(schema: Json, root: Mapping[str, Json], value: Json) -> Mapping[str, Json]:
    """Return the schema of a value: what it refers to, and of alternatives the one that the value fits."""
    for _ in range(DEEPEST_EXAMPLE):
        if not isinstance(schema, Mapping):
            return {}
        if isinstance(reference := schema.get("$ref"), str):
            schema = _referred(root, reference)
            continue
        parts = schema.get("anyOf") or schema.get("oneOf")
        if not isinstance(parts, list):
            return schema
        definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
        fitting = (part for part in parts if isinstance(part, Mapping))
        schema = next((part for part in fitting if not violations({**definitions, **part}, value)), None)
    return {}


def placeholders_left(template: Json, value: Json, path: str = "") -> Iterator[str]:
    """Yield the members of a value that still are the placeholders of the template."""
    if isinstance(template, Mapping) and isinstance(value, Mapping):
        for key in template.keys() & value.keys():
            yield from placeholders_left(template[key], value[key], f"{path}/{key}" if path else str(key))
    elif isinstance(template, list) and template and isinstance(value, (list, tuple)):
        for index, member in enumerate(value):
            yield from placeholders_left(template[0], member, f"{path}/{index}")
    elif isinstance(value, str) and value == template and value.startswith("<") and value.endswith(">"):
        yield f"{path}: {value} is the placeholder of the example; put the value there"


def _referred(root: Json, reference: str) -> Json:
    """Return what a reference within the document names."""
    for part in reference.removeprefix("#").strip("/").split("/"):
        if part:
            root = root.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(root, Mapping) else None
    return root


def check_schema(schema: Mapping[str, Json]) -> None:
    """Raise BadSchema unless a validator can be built from the schema alone."""
    _validator(msgspec.json.encode(schema, order="sorted"))


def outside_references(schema: Json) -> Iterator[tuple[Path, str]]:
    """Find the references that do not begin with '#', which would need another document."""
    for path, value in _keywords(schema):
        if path[-1] in _REFERENCES and isinstance(value, str) and not value.startswith("#"):
            yield path, value


def unknown_keywords(schema: Json) -> Iterator[tuple[Path, str]]:
    """Find the keywords that no draft of JSON Schema has: a validator passes over them without a word."""
    for path, _ in _keywords(schema):
        keyword = str(path[-1])
        if keyword not in KEYWORDS and not keyword.startswith(("$", "x-")):
            yield path, keyword


def _keywords(schema: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """Yield every keyword of a schema and of the schemas in it, with its value."""
    if isinstance(schema, list):
        for index, entry in enumerate(schema):
            yield from _keywords(entry, (*path, index))
    if not isinstance(schema, Mapping):
        return
    for keyword, value in schema.items():
        yield (*path, keyword), value
        if keyword in _NAMED_SCHEMAS and isinstance(value, Mapping):
            for name, entry in value.items():
                yield from _keywords(entry, (*path, keyword, name))
        elif keyword not in _DATA:
            yield from _keywords(value, (*path, keyword))


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> _Validates:
    import jsonschema_rs

    value = msgspec.json.decode(schema)
    for _, reference in outside_references(value):
        raise BadSchema(f"the schema cannot be used: it refers to another document, '{reference}'")
    try:
        validator: _Validates = jsonschema_rs.validator_for(
            value, retriever=_refuse, pattern_options=jsonschema_rs.RegexOptions()
        )
    except (jsonschema_rs.ValidationError, ValueError) as error:
        raise BadSchema(f"the schema cannot be used: {str(error).splitlines()[0]}") from error
    return validator


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"'{uri}' is outside the document and is not read")
