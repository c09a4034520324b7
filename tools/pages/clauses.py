"""docs/clauses.md: each clause of the five documents with the test that shows it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import yaml
from msgspec import Struct, convert

from tools.pages.tables import cell, table

TESTS = Path(__file__).parents[2] / "tests"
DOCUMENTS = ("execution", "lookup", "navigation", "gated", "session", "answers", "protocol")
HEAD = """\
# Clauses

Interlock serves the tools of five documents, which say what such a server must do. Each line below is one
clause in our own words, with a test that shows it. A clause that holds only partly says why. Two lists follow
that no document has: what answers must tell, and the protocol beyond its [conformance suite](conformance.md).

Generated from `docs/clauses/*.yaml` by `python -m tools.pages docs`; a test checks that every named test
exists.
"""


class Partly(Struct, frozen=True, forbid_unknown_fields=True):
    """A clause that holds in part: why, and a test of the part that holds."""

    partly: str
    test: str = ""


class Document(Struct, frozen=True, forbid_unknown_fields=True):
    """The clauses of one document, by section."""

    title: str
    surface: str
    clauses: Mapping[str, Mapping[str, str | Partly]]

    def listed(self) -> Iterator[tuple[str, str, str]]:
        """Yield each clause with its test and the reason why it holds only partly; either may be empty."""
        for section in self.clauses.values():
            for clause, shown in section.items():
                yield (clause, shown, "") if isinstance(shown, str) else (clause, shown.test, shown.partly)


def document(docs: Path, name: str) -> Document:
    """Read the clauses of one document."""
    return convert(yaml.safe_load((docs / "clauses" / f"{name}.yaml").read_text("utf-8")), Document)


@cache
def test_names() -> Mapping[str, str]:
    """Return the path of every test below `tests`, by `file::name` without the prefixes."""
    known: dict[str, str] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
                name = f"{path.stem.removeprefix('test_')}::{node.name.removeprefix('test_')}"
                known[name] = path.relative_to(TESTS.parent).as_posix()
    return known


def pages(docs: Path) -> dict[str, str]:
    """Return the page by the name of its file."""
    lines = [HEAD]
    for name in DOCUMENTS:
        lines += _of_document(document(docs, name))
    return {"clauses.md": "\n".join(lines)}


def _of_document(of: Document) -> Iterator[str]:
    listed = list(of.listed())
    partly = sum(bool(reason) for _, _, reason in listed)
    yield f"## {of.title}"
    yield ""
    surface = f"The surface `{of.surface}`" if " " not in of.surface else "Every surface"
    yield f"{surface}: {len(listed)} clauses, {partly} of them held partly."
    yield ""
    for section, clauses in of.clauses.items():
        part = Document(of.title, of.surface, {section: clauses})
        yield from table(
            (section, "shown by"), ((cell(clause), _shown(*how)) for clause, *how in part.listed())
        )
        yield ""


def _shown(test: str, reason: str) -> str:
    words = test.partition("::")[2].replace("_", " ")
    link = f"[{words}](../{test_names().get(test, test)})" if test else ""
    return "; ".join(filter(None, (link, f"**partly**: {cell(reason)}" if reason else "")))
