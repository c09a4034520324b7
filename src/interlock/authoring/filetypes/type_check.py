"""Checks a raw value against a source type and reports every fault, not only the first.

The source types are the one description of the formats: the published schemas come from them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TypeVar

import msgspec
from msgspec import Struct, inspect

from interlock.authoring.diagnostics.codes import Report, did_you_mean
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
    """Convert a value to its source type, or report all that is wrong with it."""
    before = report.errors
    check(_info(kind), value, at, report)
    if report.errors > before:
        return None
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        report.add("IL102", str(error), at)
        return None


def unknown_fields(kind: type[Struct], value: Json) -> dict[str, Json]:
    """The entries of an object that its source type does not name."""
    if not isinstance(value, Mapping):
        return {}
    known = {field.encode_name for field in _struct(kind).fields}
    return {name: one for name, one in value.items() if name not in known and not name.startswith("$")}


@cache
def _fields(kind: type[Struct]) -> dict[str, inspect.Field]:
    return {field.encode_name: field for field in _struct(kind).fields}


def _is_right(kind: inspect.Type, value: Json) -> bool:
    """Say whether a plain value needs no closer look."""
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
            return any(_is_right(one, value) for one in kind.types)
        case _:
            return False


@cache
def _info(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


def _struct(kind: type[Struct]) -> inspect.StructType:
    info = _info(kind)
    assert isinstance(info, inspect.StructType)
    return info


def check(kind: inspect.Type, value: Json, at: SourceLocation, report: Report) -> None:
    match kind:
        case inspect.AnyType():
            return
        case inspect.Metadata():
            check(kind.type, value, at, report)
            _check_length(kind.extra_json_schema or {}, value, at, report)
        case inspect.UnionType():
            _check_union(kind, value, at, report)
        case inspect.LiteralType():
            _check_word(kind, value, at, report)
        case inspect.StructType():
            _check_struct(kind, value, at, report)
        case inspect.VarTupleType():
            _check_list(kind, value, at, report)
        case inspect.DictType():
            _check_entries(kind, value, at, report)
        case inspect.StrType():
            _check_text(kind, value, at, report)
        case inspect.IntType() | inspect.FloatType():
            _check_number(kind, value, at, report)
        case _:
            if not _fits(kind, value):
                _mistyped(kind, value, at, report)


def _check_union(kind: inspect.UnionType, value: Json, at: SourceLocation, report: Report) -> None:
    for one in kind.types:
        if _fits(one, value):
            return check(one, value, at, report)
    wanted = [_bare(one) for one in kind.types if not isinstance(one, inspect.NoneType)]
    if len(wanted) == 1:
        return check(wanted[0], value, at, report)
    names = " or ".join(_NAMES.get(type(one), "a value") for one in wanted)
    return report.add("IL102", f"expected {names}, got {name_of(value)}", at)


def _check_word(kind: inspect.LiteralType, value: Json, at: SourceLocation, report: Report) -> None:
    if value in kind.values:
        return
    words = [str(word) for word in kind.values]
    shown = value if isinstance(value, str) else name_of(value)
    fix = did_you_mean(str(value), words) or f"use one of: {', '.join(words)}"
    report.add("IL103", f"'{shown}' is not one of {', '.join(words)}", at, fix)


def _check_struct(kind: inspect.StructType, value: Json, at: SourceLocation, report: Report) -> None:
    if not isinstance(value, Mapping):
        return _mistyped(kind, value, at, report)
    fields = _fields(kind.cls)
    for name in value:
        if name not in fields and not name.startswith("$"):
            report.add("IL105", f"unknown field '{name}'", at.key(name), did_you_mean(name, fields))
    for name, field in fields.items():
        if name in value:
            if not _is_right(field.type, value[name]):
                check(field.type, value[name], at / name, report)
        elif field.required:
            report.add("IL101", f"the field '{name}' is missing", at)
    return None


def _check_list(kind: inspect.VarTupleType, value: Json, at: SourceLocation, report: Report) -> None:
    if not isinstance(value, list):
        return _mistyped(kind, value, at, report)
    if len(value) < (kind.min_length or 0):
        report.add("IL106", "the list must not be empty", at)
    for index, one in enumerate(value):
        if not _is_right(kind.item_type, one):
            check(kind.item_type, one, at / index, report)
    return None


def _check_entries(kind: inspect.DictType, value: Json, at: SourceLocation, report: Report) -> None:
    if not isinstance(value, Mapping):
        return _mistyped(kind, value, at, report)
    for name, one in value.items():
        check(kind.key_type, name, at.key(name), report)
        check(kind.value_type, one, at / name, report)
    return None


def _check_text(kind: inspect.StrType, value: Json, at: SourceLocation, report: Report) -> None:
    if not isinstance(value, str):
        return _mistyped(kind, value, at, report)
    if kind.min_length and not value.strip():
        report.add("IL106", "the text must not be empty", at)
    return None


def _check_length(limits: Mapping[str, Json], value: Json, at: SourceLocation, report: Report) -> None:
    longest = limits.get("maxLength")
    if isinstance(value, str) and isinstance(longest, int) and len(value) > longest:
        report.add("IL104", f"{len(value)} characters of at most {longest}", at)


def _check_number(
    kind: inspect.IntType | inspect.FloatType, value: Json, at: SourceLocation, report: Report
) -> None:
    if not _fits(kind, value) or not isinstance(value, (int, float)):
        return _mistyped(kind, value, at, report)
    if (kind.ge is not None and value < kind.ge) or (kind.le is not None and value > kind.le):
        report.add("IL108", f"{value} is not between {kind.ge} and {kind.le}", at)
    return None


def _fits(kind: inspect.Type, value: Json) -> bool:
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


def _bare(kind: inspect.Type) -> inspect.Type:
    return kind.type if isinstance(kind, inspect.Metadata) else kind


def _mistyped(kind: inspect.Type, value: Json, at: SourceLocation, report: Report) -> None:
    quote = 'put it in quotes: "…"' if isinstance(kind, inspect.StrType) and value is not None else ""
    fix = quote if not isinstance(value, (list, Mapping)) else ""
    report.add("IL102", f"expected {_NAMES.get(type(kind), 'a value')}, got {name_of(value)}", at, fix)


def name_of(value: Json) -> str:
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
