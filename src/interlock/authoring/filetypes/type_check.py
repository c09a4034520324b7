"""Checks a file's value against its source type and reports every error; msgspec would stop at the first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import TypeVar, get_type_hints

import msgspec
from msgspec import Struct, inspect

from interlock.authoring.diagnostics.codes import Report, did_you_mean, one_of
from interlock.authoring.filetypes.field_types import KEPT
from interlock.authoring.text.locations import SourceLocation
from interlock.core.values import Json

S = TypeVar("S", bound=Struct)

_NAMES: dict[type[inspect.Type], str] = {
    inspect.StrType: "text",
    inspect.IntType: "an integer",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
    inspect.NoneType: "null",
    inspect.VarTupleType: "a list",
    inspect.DictType: "an object",
    inspect.StructType: "an object",
}


def read_as(kind: type[S], value: Json, at: SourceLocation, report: Report) -> S | None:
    """Convert a value to its source type, or report everything that is wrong with it."""
    errors = report.errors - report.unknown_names
    _check(_type_info(kind), value, at, report)
    if report.errors - report.unknown_names > errors:
        return None
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        report.add("IL102", str(error), at)
        return None


def read_partly(kind: type[S], value: Json, at: SourceLocation, **stand_ins: Json) -> S | None:
    """Convert what can be read of a broken value, to look for further errors; None if nothing can."""
    entries, fields = value if isinstance(value, Mapping) else {}, _fields(kind)
    readable: dict[str, Json] = {}
    for name, entry in entries.items():
        report = Report()
        if name in fields:
            _check(fields[name].type, entry, at / name, report)
            readable |= {} if report.failed else {name: entry}
    try:
        return msgspec.convert({**stand_ins, **readable}, kind)
    except msgspec.ValidationError:
        return None


def compiled_as(kind: type[S], source: Struct, /, **read: object) -> S:
    """Make the compiled value of a source: of what was read from it, and of all that both have alike.

    Alike are fields of the same name and type, so that nothing is taken over that must be read first.
    """
    alike = _fields_alike(kind, type(source))
    return kind(**{name: getattr(source, name) for name in alike if name not in read}, **read)


@cache
def _fields_alike(kind: type[Struct], source: type[Struct]) -> tuple[str, ...]:
    compiled, written = get_type_hints(kind), get_type_hints(source)
    return tuple(name for name in kind.__struct_fields__ if compiled[name] == written.get(name))


def unknown_fields(kind: type[Struct], value: Json) -> dict[str, Json]:
    """Return the entries of an object that its source type does not name."""
    if not isinstance(value, Mapping):
        return {}
    known = _fields(kind)
    return {name: entry for name, entry in value.items() if name not in known and not name.startswith("$")}


def kept_fields(kind: type[Struct], value: Json) -> dict[str, Json]:
    """Return the entries that stay as they are written: unknown ones, and those marked as kept."""
    entries = value if isinstance(value, Mapping) else {}
    return unknown_fields(kind, value) | {name: entries[name] for name in _kept(kind) if name in entries}


@cache
def _kept(kind: type[Struct]) -> tuple[str, ...]:
    marked = KEPT.extra
    types = {name: field.type for name, field in _fields(kind).items()}
    return tuple(
        name for name, type_ in types.items() if isinstance(type_, inspect.Metadata) and type_.extra == marked
    )


@cache
def _type_info(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


@cache
def _fields(kind: type[Struct]) -> dict[str, inspect.Field]:
    info = _type_info(kind)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: field for field in info.fields}


def _check(kind: inspect.Type, value: Json, at: SourceLocation, report: Report) -> None:
    match kind, value:
        case inspect.Metadata(), _:
            _check(kind.type, value, at, report)
            longest = (kind.extra_json_schema or {}).get("maxLength")
            if isinstance(value, str) and longest is not None and len(value) > longest:
                report.add("IL104", f"{len(value)} characters of at most {longest}", at)
        case inspect.UnionType(), _:
            _check_union(kind, value, at, report)
        case inspect.LiteralType(), _ if value not in kind.values:
            words = [str(word) for word in kind.values]
            message = f"'{value}' is not one of {', '.join(words)}"
            if not isinstance(value, str):
                got = json.dumps(value) if isinstance(value, (bool, int, float)) else type_name(value)
                message = f"expected one of {', '.join(words)}, got {got}"
            report.add("IL103", message, at, one_of(str(value), words))
        case _ if not _fits(kind, value):
            unquoted = isinstance(kind, inspect.StrType) and isinstance(value, (bool, int, float))
            fix = 'put it in quotes: "…"' if unquoted else "remove the field" if value is None else ""
            report.add(
                "IL102", f"expected {_NAMES.get(type(kind), 'a value')}, got {type_name(value)}", at, fix
            )
        case inspect.StructType(), Mapping() as entries:
            _check_struct(kind.cls, entries, at, report)
        case inspect.VarTupleType(), list() as entries:
            if len(entries) < (kind.min_length or 0):
                report.add("IL106", "the list must not be empty", at)
            for index, entry in enumerate(entries):
                if not _is_right(kind.item_type, entry):
                    _check(kind.item_type, entry, at / index, report)
        case inspect.DictType(), Mapping() as entries:
            for name, entry in entries.items():
                _check(kind.key_type, name, at.key(name), report)
                _check(kind.value_type, entry, at / name, report)
        case inspect.StrType(), str() as text:
            if kind.min_length and not text.strip():
                report.add("IL106", "the text must not be empty", at)
        case ((inspect.IntType() | inspect.FloatType()), (int() | float()) as number):
            if (kind.ge is not None and number < kind.ge) or (kind.le is not None and number > kind.le):
                bounds = f"between {kind.ge} and {kind.le}" if kind.le is not None else f"at least {kind.ge}"
                report.add("IL108", f"{number} is not {bounds}", at)


def _check_union(kind: inspect.UnionType, value: Json, at: SourceLocation, report: Report) -> None:
    choices = [choice for choice in kind.types if not isinstance(choice, inspect.NoneType)]
    fitting = next((choice for choice in kind.types if _fits(choice, value)), None)
    if fitting is not None or len(choices) == 1:
        _check(fitting or choices[0], value, at, report)
        return
    bare = [choice.type if isinstance(choice, inspect.Metadata) else choice for choice in choices]
    names = " or ".join(_NAMES.get(type(choice), "a value") for choice in bare)
    report.add("IL102", f"expected {names}, got {type_name(value)}", at)


def _check_struct(kind: type[Struct], value: Mapping[str, Json], at: SourceLocation, report: Report) -> None:
    fields = _fields(kind)
    for name in value:
        if name not in fields and not name.startswith("$"):
            report.add("IL105", f"unknown field '{name}'", at.key(name), did_you_mean(name, fields))
    for name, field in fields.items():
        if name in value:
            if not _is_right(field.type, value[name]):
                _check(field.type, value[name], at / name, report)
        elif field.required:
            report.add("IL101", f"the field '{name}' is missing", at)


def _is_right(kind: inspect.Type, value: Json) -> bool:
    """Return whether a plain value needs no closer check, which is so for nearly every value."""
    match kind:
        case inspect.AnyType():
            return True
        case inspect.StrType():
            return isinstance(value, str) and (not kind.min_length or bool(value.strip()))
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.NoneType():
            return value is None
        case inspect.LiteralType():
            return isinstance(value, str) and value in kind.values
        case inspect.UnionType():
            return any(_is_right(choice, value) for choice in kind.types)
        case _:
            return False


def _fits(kind: inspect.Type, value: Json) -> bool:
    """Return whether a value is of the right kind, whatever it contains."""
    match kind:
        case inspect.Metadata():
            return _fits(kind.type, value)
        case inspect.NoneType():
            return value is None
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool)
        case inspect.FloatType():
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case inspect.StrType():
            return isinstance(value, str)
        case inspect.LiteralType():
            return isinstance(value, str) and value in kind.values
        case inspect.VarTupleType():
            return isinstance(value, list)
        case inspect.StructType() | inspect.DictType():
            return isinstance(value, Mapping)
        case _:
            return True


def type_name(value: Json) -> str:
    """Name the type of a value in an author's words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case Mapping():
            return "an object"
        case _:
            return "a list"
