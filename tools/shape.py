"""Print the static shape of a package: how modules are grouped and named, and how long functions are.

A private function is used once if its name occurs exactly twice in the text of its module: where it is
defined and where it is used. A part that is counted apart is counted by its own modules: its lines in other
modules count with those.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parents[1] / "src" / "interlock"

Function = ast.FunctionDef | ast.AsyncFunctionDef

# What surrounds the engine and its surfaces, and is counted apart; a name also stands for what is below it.
PARTS: Mapping[str, Sequence[str]] = {
    "guard": ("interlock.core.guard", "interlock.ledger.runs.guarding"),
    "checks": (
        "interlock.checks",
        "interlock.core.definition.checks",
        "interlock.core.engine.run_checks",
        "interlock.authoring.found_checks",
        "interlock.authoring.compile.items.checks",
        "interlock.ledger.decisions.trust",
        "interlock.ledger.runs.check_runs",
        "interlock.ledger.queries.check_results",
        "interlock.console.pages.trust_pages",
        "interlock.cli.commands.workflows.trust_",
    ),
    "evidence": ("interlock.ledger.evidence", "interlock.cli.commands.evidence", "interlock.cli.signing_key"),
    "outbox and notifications": (
        "interlock.ledger.outbox",
        "interlock.transport.notify",
        "interlock.cli.notify",
        "interlock.cli.commands.upkeep.notify_",
    ),
    "approvers": ("interlock.core.run.polls", "interlock.ledger.decisions.approvals"),
}


class Module(NamedTuple):
    """One source file of the package."""

    path: Path
    name: str
    text: str
    tree: ast.Module

    @property
    def package(self) -> str:
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"


class PrivateFunctions(NamedTuple):
    """How many private functions there are, and how many of them are used once."""

    total: int
    used_once: int

    @property
    def share(self) -> float:
        return self.used_once / self.total if self.total else 0.0


class Lengths(NamedTuple):
    """Lines of a function, from `def` to its last line."""

    functions: int
    median: float
    ninetieth: int
    longest: int


def read_modules(source: Path = SOURCE) -> list[Module]:
    """Parse every module below a package's folder."""
    return [_module(source, path) for path in sorted(source.rglob("*.py"))]


def _module(source: Path, path: Path) -> Module:
    parts = path.relative_to(source.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = path.read_text(encoding="utf-8")
    return Module(path, name, text, ast.parse(text))


def lines_per_room(modules: Sequence[Module]) -> list[tuple[str, int]]:
    """Count the lines of each room, the largest first; a module of the package itself is in no room."""
    counts: Counter[str] = Counter()
    for module in modules:
        counts[".".join(module.name.split(".")[:2])] += line_count(module)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def lines_per_part(modules: Sequence[Module]) -> dict[str, int]:
    """Count the lines of the parts that are counted apart."""
    return {
        part: sum(
            line_count(module)
            for module in modules
            if any(module.name == name or module.name.startswith(f"{name}.") for name in names)
        )
        for part, names in PARTS.items()
    }


def line_count(module: Module) -> int:
    """Count the lines of a module as `wc -l` does."""
    return module.text.count("\n")


def modules_per_package(modules: Sequence[Module]) -> list[tuple[str, int]]:
    """Count the files directly in each package, its `__init__` included, the largest first."""
    counts = Counter(module.package for module in modules)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def repeated_classes(modules: Sequence[Module]) -> dict[str, list[str]]:
    """Return the public classes that more than one module defines, with these modules."""
    return _repeated(
        (node.name, module.name)
        for module in modules
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )


def repeated_functions(modules: Sequence[Module]) -> dict[str, list[str]]:
    """Return the public functions that more than one module defines, with these modules."""
    return _repeated(
        (node.name, module.name)
        for module in modules
        for node in module.tree.body
        if isinstance(node, Function) and not node.name.startswith("_")
    )


def repeated_module_names(modules: Sequence[Module]) -> dict[str, list[str]]:
    """Return the file names that occur in more than one package, with these modules."""
    return _repeated((module.path.stem, module.name) for module in modules if not module.is_package)


def _repeated(pairs: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    owners: dict[str, set[str]] = {}
    for name, owner in pairs:
        owners.setdefault(name, set()).add(owner)
    return {name: sorted(owners[name]) for name in sorted(owners) if len(owners[name]) > 1}


def private_functions(modules: Sequence[Module]) -> PrivateFunctions:
    """Count the private functions and methods, and those whose module uses them once."""
    uses = [
        len(re.findall(rf"\b{function.name}\b", module.text)) - 1
        for module in modules
        for function in _functions(module)
        if function.name.startswith("_") and not function.name.startswith("__")
    ]
    return PrivateFunctions(len(uses), uses.count(1))


def isinstance_calls(modules: Sequence[Module]) -> int:
    """Count the calls of `isinstance`."""
    return sum(
        isinstance(node, ast.Name) and node.id == "isinstance"
        for module in modules
        for node in ast.walk(module.tree)
    )


def function_lengths(modules: Sequence[Module]) -> Lengths:
    """Measure every function and method."""
    lines = sorted(
        (function.end_lineno or function.lineno) - function.lineno + 1
        for module in modules
        for function in _functions(module)
    )
    if not lines:
        return Lengths(0, 0, 0, 0)
    return Lengths(len(lines), median(lines), lines[len(lines) * 9 // 10], lines[-1])


def _functions(module: Module) -> Iterator[Function]:
    return (node for node in ast.walk(module.tree) if isinstance(node, Function))


def import_cycles(modules: Sequence[Module]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or through others."""
    imports = imports_between(modules)
    reached = {name: _reachable(imports, name) for name in imports}
    groups = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in imports
        if name in reached[name]
    }
    return sorted(sorted(group) for group in groups)


def imports_between(modules: Sequence[Module]) -> dict[str, set[str]]:
    """Map each module to those it imports, also inside functions and under TYPE_CHECKING."""
    names = {module.name for module in modules}
    return {module.name: (set(_imported(module, names)) & names) - {module.name} for module in modules}


def _imported(module: Module, names: set[str]) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(module, node)
            members = {f"{origin}.{alias.name}" for alias in node.names}
            yield from members & names
            if members - names:
                yield origin


def _origin(module: Module, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    parts = module.package.split(".")
    above = parts[: len(parts) - node.level + 1]
    return ".".join([*above, node.module] if node.module else above)


def _reachable(imports: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    pending = [*imports[start]]
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending.extend(imports[name])
    return seen


def report(modules: Sequence[Module]) -> str:
    """Return all figures as Markdown."""
    private, lengths, cycles = private_functions(modules), function_lengths(modules), import_cycles(modules)
    classes, names = repeated_classes(modules), repeated_module_names(modules)
    functions, tests = repeated_functions(modules), isinstance_calls(modules)
    packages, rooms, parts = (
        modules_per_package(modules),
        lines_per_room(modules),
        lines_per_part(modules),
    )
    lines, apart = sum(map(line_count, modules)), sum(parts.values())
    rows = [
        ("lines", f"{lines:,}"),
        ("lines without the parts counted apart", f"{lines - apart:,}"),
        ("modules", f"{len(modules)}"),
        ("largest package", f"{packages[0][0]}, {packages[0][1]} modules" if packages else "none"),
        ("public class names in more than one module", f"{len(classes)}"),
        ("public function names in more than one module", f"{len(functions)}"),
        ("module names that occur more than once", f"{len(names)}"),
        ("private functions", f"{private.total:,}"),
        ("of these used once", f"{private.used_once:,} ({private.share:.1%})"),
        ("functions", f"{lengths.functions:,}"),
        ("lines of a function: median, 90th percentile, most", ", ".join(f"{n:g}" for n in lengths[1:])),
        ("`isinstance` per 1,000 lines", f"{tests * 1000 / lines:.1f} ({tests})" if lines else "none"),
        ("import cycles", f"{len(cycles)}"),
    ]
    sections = [
        "\n".join(["| figure | value |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]),
        _section("Lines per room", [f"{name}: {count:,}" for name, count in rooms]),
        _section("Lines of the parts counted apart", [f"{name}: {count:,}" for name, count in parts.items()]),
        _section("Modules per package", [f"{name}: {count}" for name, count in packages]),
        _section("Public class names in more than one module", _lines(classes)),
        _section("Public function names in more than one module", _lines(functions)),
        _section("Module names that occur more than once", _lines(names)),
        _section("Import cycles", [", ".join(cycle) for cycle in cycles]),
    ]
    return "\n\n".join(sections)


def _lines(repeated: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"{name}: {', '.join(owners)}" for name, owners in repeated.items()]


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"## {title}", "", *([f"- {line}" for line in lines] or ["None."])])


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the static shape of a package.")
    parser.add_argument("source", nargs="?", type=Path, default=SOURCE, help="the package's folder")
    print(report(read_modules(parser.parse_args().source.resolve())))


if __name__ == "__main__":
    main()
