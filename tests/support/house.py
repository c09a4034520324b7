"""The rules of the package's structure, as functions on parsed modules that can be tried on any source."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from support.paths import SOURCE
from tools.shape import Module, read_modules

ROOT = "interlock"
MAY_IMPORT: Mapping[str, frozenset[str]] = {
    "core": frozenset({"core"}),
    "authoring": frozenset({"authoring", "core"}),
    "store": frozenset({"store", "core"}),
    "checks": frozenset({"checks", "core"}),
    "ledger": frozenset({"ledger", "core", "store", "authoring", "checks"}),
    "surfaces": frozenset({"surfaces", "ledger", "authoring", "core"}),
    "console": frozenset({"console", "ledger", "authoring", "core"}),
    "transport": frozenset({"transport", "surfaces", "console", "core"}),
    "cli": frozenset({"cli", "surfaces", "console", "transport", "ledger", "store", "authoring", "core"}),
    "library": frozenset(),
    "__main__": frozenset({"cli"}),
}
SURFACES = ("execution", "session", "gated", "navigation", "lookup")

CORE_STANDARD = {
    "__future__", "collections", "enum", "functools", "hashlib", "json", "re", "typing", "math", "difflib",
    "itertools", "operator", "string", "unicodedata", "contextlib", "contextvars",
}  # fmt: skip
CORE_LIBRARIES = {"msgspec", "re2", "regex", "jsonschema_rs", "rfc8785"}
CORE_MUST_NOT_CALL = {"open", "print", "input", "breakpoint", "exec", "eval", "__import__"}

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@cache
def modules() -> list[Module]:
    """Return the package, parsed once for the tests of a process."""
    return read_modules(SOURCE)


def parse_module(name: str, text: str) -> Module:
    """Return a module as if it were a file of the package."""
    return Module(Path(f"{name.rpartition('.')[2]}.py"), name, text, ast.parse(text))


def room_of(name: str) -> str:
    """Return the room of a dotted name: its first part below the package."""
    return name.split(".")[1] if name.startswith(f"{ROOT}.") else ""


def forbidden_imports(module: Module) -> set[str]:
    """Return what the module imports, in whatever form, from rooms that its own room may not import."""
    allowed = MAY_IMPORT.get(room_of(module.name), frozenset())
    names = {name for name in imported_names(module) if name.startswith(f"{ROOT}.")}
    return {name for name in names if room_of(name) in {*MAY_IMPORT, "*"} and room_of(name) not in allowed}


def imported_names(module: Module, *, at_start_up: bool = False) -> set[str]:
    """Return the dotted names that a module imports, also inside functions and under TYPE_CHECKING.

    With `at_start_up`, only those that are imported when the module is.
    """
    nodes = list(_run_at_import(module.tree) if at_start_up else ast.walk(module.tree))
    aliases = {
        alias.asname or ROOT
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == ROOT or (alias.asname is None and alias.name.startswith(f"{ROOT}."))
    }
    return {name for node in nodes for name in _names(module, node, aliases)}


def _names(module: Module, node: ast.AST, aliases: Collection[str]) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(names=names):
            origin = _origin(module, node)
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in names)
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in aliases:
            yield f"{ROOT}.{attribute}"
        case ast.Call(func=ast.Name(id=function) | ast.Attribute(attr=function), args=[first, *_]):
            if function in ("import_module", "__import__"):
                yield _known_beginning(first)


def _origin(module: Module, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    parts = module.package.split(".")
    above = parts[: len(parts) - node.level + 1]
    return ".".join([*above, node.module] if node.module else above)


def _known_beginning(node: ast.expr) -> str:
    """Return the text of a string, or of an f-string up to its first placeholder."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=[ast.Constant(value=str() as text), *_]):
            return text
    return ""


def _run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree without the bodies of functions and without what only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _run_at_import(child)


def impurities(module: Module) -> set[str]:
    """Return what a module of the core uses of clocks, disks, threads, coroutines or the console."""
    foreign = {name.split(".")[0] for name in imported_names(module)}
    found = foreign - CORE_STANDARD - CORE_LIBRARIES - {ROOT, ""}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found |= {node.func.id} & CORE_MUST_NOT_CALL
        elif isinstance(node, (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)):
            found.add("async")
    return found


def repeated_in_a_room(repeated: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Keep the module names that occur twice in one room, unless one per surface is meant.

    Surfaces are built alike, so that each may have its own `surface`, `params` or `render`.
    """
    pairs: dict[str, list[str]] = {}
    for stem, names in repeated.items():
        for room in sorted({room_of(name) for name in names}):
            inside = [name for name in names if room_of(name) == room]
            if len(inside) > 1 and not all(is_of_a_surface(name) for name in inside):
                pairs[f"{room}: {stem}"] = inside
    return pairs


def is_of_a_surface(name: str) -> bool:
    """Say whether a module lies directly in the package of one of the five surfaces."""
    parts = name.split(".")
    return parts[1:2] == ["surfaces"] and len(parts) == 4 and parts[2] in SURFACES


def are_parameters_of_a_tool(names: Sequence[str]) -> bool:
    """Say whether a class is the parameters of one tool that several surfaces have."""
    return all(is_of_a_surface(name) and name.endswith(".params") for name in names)


def named_tools(module: Module, tools: Collection[str]) -> set[str]:
    """Return the tools that the module names in a string that is not a docstring.

    A name without underscore, such as `discover`, is also a word of English and not looked for.
    """
    names = "|".join(sorted(name for name in tools if "_" in name))
    pattern = re.compile(rf"\b({names})\b")
    if not pattern.search(module.text):
        return set()
    docstrings = {id(node) for node in _docstrings(module.tree)}
    return {
        name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
        for name in pattern.findall(node.value)
    }


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        match node:
            case (
                ast.Module(body=[ast.Expr(value=ast.Constant() as text), *_])
                | ast.ClassDef(body=[ast.Expr(value=ast.Constant() as text), *_])
                | ast.FunctionDef(body=[ast.Expr(value=ast.Constant() as text), *_])
                | ast.AsyncFunctionDef(body=[ast.Expr(value=ast.Constant() as text), *_])
            ):
                yield text
