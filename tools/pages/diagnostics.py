"""Pages from data: docs/diagnostics.md and docs/builtins.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

from interlock.authoring.catalogue import BuiltinKind, catalogue
from interlock.authoring.diagnostics.codes import CODES
from tools.pages.tables import cell, table

FAMILIES = {
    "IL0": "Files",
    "IL1": "Fields",
    "IL2": "References",
    "IL3": "Conditions, patterns and loops",
    "IL4": "Names and versions",
    "IL5": "Structure",
    "IL6": "Scenarios",
}
BUILTINS: Mapping[BuiltinKind, tuple[str, str]] = {
    "contract": (
        "Contracts",
        "Named by `output: { contractRef: … }`. The artifact's `kind` is given in brackets.",
    ),
    "template": (
        "Templates",
        "Called by `templateCall: { templateId: …, args: {…} }`, and expanded in place.",
    ),
    "feature": (
        "Features",
        "Named in `features: […]`; each adds lines to the prompt blocks of every step that has some. One\n"
        "with settings may be given as `{ id: wr.features.output_contracts, config: { attempts: 2 } }`;\n"
        "only the settings below can be chosen, and `{name}` in a line shows where the choice goes.",
    ),
    "capability": ("Capabilities", "Named in `capabilities: { … }` of a workflow."),
    "ref": ("References", "Included in a prompt by `{ kind: ref, refId: … }`."),
}


def pages() -> dict[str, str]:
    """Return every page by the name of its file."""
    generated = {"diagnostics.md": _diagnostics(), "builtins.md": _builtins()}
    return {name: "\n".join(lines).rstrip() + "\n" for name, lines in generated.items()}


def _diagnostics() -> Iterator[str]:
    yield from ("# Diagnostics", "")
    yield "What `interlock validate` reports. An error makes the workflow unusable; a warning does not."
    yield "Each one names its code; `interlock explain CODE` prints what is here."
    for prefix, heading in FAMILIES.items():
        family = [kind for kind in CODES.values() if kind.code.startswith(prefix)]
        rows = (
            (
                kind.code,
                f"*{kind.severity}*: {cell(kind.title)}",
                cell(kind.explanation),
                cell(kind.next_action),
            )
            for kind in family
        )
        yield from ("", f"## {heading}", "", *folded(f"{len(family)} codes"))
        yield from (*table(("code", "what", "explanation", "fix"), rows), "", "</details>")


def _builtins() -> Iterator[str]:
    yield from ("# What is built in", "")
    yield "Contracts, templates, features, capabilities and references that any workflow may name. They are"
    yield "resolved when a workflow is compiled and are part of its hash. The console lists them too, with"
    yield "text to insert."
    entries = list(catalogue())
    for kind, (heading, naming) in BUILTINS.items():
        yield from ("", f"## {heading}", "", naming)
        for entry in entries:
            if entry.kind == kind:
                artifact = f" [{entry.artifact}]" if entry.artifact else ""
                yield from (
                    "",
                    *folded(f"<b>{entry.ref}</b>{artifact}: {escape(entry.title)}"),
                    *entry.details,
                )
                yield from ("", "```json", entry.example, "```", "") if entry.example else ("",)
                yield "</details>"


def folded(summary: str) -> Iterator[str]:
    """Yield the beginning of a part that a reader opens."""
    yield from (f"<details><summary>{summary}</summary>", "")
