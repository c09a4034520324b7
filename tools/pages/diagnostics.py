"""The pages of the documentation that are made from data: diagnostics, and what is built in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from interlock.authoring.compile import builtins as packs
from interlock.authoring.compile.templates import known_templates
from interlock.authoring.diagnostics.codes import CODES, DiagnosticKind
from interlock.core.values import Json

FAMILIES = {
    "IL0": "Files",
    "IL1": "Fields",
    "IL2": "References",
    "IL3": "Conditions, patterns and loops",
    "IL4": "Names and versions",
    "IL5": "Structure",
    "IL6": "Scenarios",
}


def pages() -> dict[str, str]:
    """Every generated page by the name of its file."""
    return {"diagnostics.md": _text(_diagnostics()), "builtins.md": _text(_builtins())}


def _text(lines: Iterator[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"


def _diagnostics() -> Iterator[str]:
    yield "# Diagnostics"
    yield ""
    yield "What `interlock validate` reports. An error makes the workflow unusable; a warning does not."
    yield "`interlock explain CODE` prints the same in a terminal."
    for prefix, heading in FAMILIES.items():
        yield from ("", f"## {heading}")
        for one in CODES.values():
            if one.code.startswith(prefix):
                yield from _diagnostic(one)


def _diagnostic(one: DiagnosticKind) -> Iterator[str]:
    yield from (
        "",
        f"### {one.code}: {one.title}",
        "",
        f"*{one.severity.capitalize()}.* {one.explanation}",
        "",
    )
    yield f"Fix: {one.next_action}."


def _builtins() -> Iterator[str]:
    yield "# What is built in"
    yield ""
    yield "Contracts, templates, features and references that any workflow may name. They are resolved when a"
    yield "workflow is compiled and are part of its hash."
    yield from (
        "",
        "## Contracts",
        "",
        "Named by `output: { contractRef: … }`. The artifact's `kind` is given in brackets.",
    )
    for contract in packs.contracts().values():
        yield from _contract(contract)
    yield from (
        "",
        "## Templates",
        "",
        "Called by `templateCall: { templateId: …, args: {…} }`, and expanded in place.",
    )
    for template in known_templates().values():
        yield from _template(template)
    yield from (
        "",
        "## Features",
        "",
        "Named in `features: […]`; each adds lines to the prompt blocks of every step.",
    )
    for feature in packs.features().values():
        yield from _feature(feature)
    yield from ("", "## References", "", "Included in a prompt by `{ kind: ref, refId: … }`.")
    for reference in packs.references().values():
        yield from ("", f"### {reference.ref}", "", f"{reference.title}.", "", *_quoted(reference.text))


def _contract(pack: packs.ContractPack) -> Iterator[str]:
    yield from ("", f"### {pack.ref} [{pack.kind}]", "", f"{pack.title}.", "")
    yield from _fields(pack.schema)
    yield from ("", "```json", _json(pack.example), "```")


def _fields(schema: Mapping[str, Json]) -> Iterator[str]:
    properties, required = schema.get("properties"), schema.get("required")
    names = required if isinstance(required, Sequence) else ()
    for name, one in (properties if isinstance(properties, Mapping) else {}).items():
        need = "required" if name in names else "optional"
        yield f"- `{name}` ({need}): {_kind(one)}"


def _kind(schema: Json) -> str:
    if not isinstance(schema, Mapping):
        return "any value"
    if "const" in schema:
        return f"`{_json(schema['const'])}`"
    if isinstance(words := schema.get("enum"), list):
        return "one of " + ", ".join(f"`{word}`" for word in words)
    kind = schema.get("type", "any value")
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def _template(pack: packs.TemplatePack) -> Iterator[str]:
    yield from (
        "",
        f"### {pack.ref}",
        "",
        f"{pack.title}. Steps: {_named(str(one.get('id')) for one in pack.steps)}.",
    )
    if pack.args:
        yield f"Arguments: {_named(pack.args)}."


def _feature(pack: packs.FeaturePack) -> Iterator[str]:
    yield from ("", f"### {pack.ref}", "", f"{pack.title}.")
    for heading, lines in (
        ("Constraints", pack.constraints),
        ("Procedure", pack.procedure),
        ("Verify", pack.verify),
    ):
        if lines:
            yield from ("", f"{heading}:", *(f"- {line}" for line in lines))


def _named(words: Iterator[str] | Sequence[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _quoted(text: str) -> Iterator[str]:
    return (f"> {line}".rstrip() for line in text.splitlines())


def _json(value: Json) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
