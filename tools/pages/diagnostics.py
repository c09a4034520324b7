"""Pages from data: docs/diagnostics.md and docs/builtins.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from interlock.authoring.compile import builtins as packs
from interlock.authoring.compile.templates import known_templates
from interlock.authoring.diagnostics.codes import CODES
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
    """Return every page by the name of its file."""
    generated = {"diagnostics.md": _diagnostics(), "builtins.md": _builtins()}
    return {name: "\n".join(lines).rstrip() + "\n" for name, lines in generated.items()}


def _diagnostics() -> Iterator[str]:
    yield from ("# Diagnostics", "")
    yield "What `interlock validate` reports. An error makes the workflow unusable; a warning does not."
    yield "`interlock explain CODE` prints the same in a terminal."
    for prefix, heading in FAMILIES.items():
        yield from ("", f"## {heading}")
        for kind in CODES.values():
            if kind.code.startswith(prefix):
                yield from ("", f"### {kind.code}: {kind.title}", "")
                yield from (
                    f"*{kind.severity.capitalize()}.* {kind.explanation}",
                    "",
                    f"Fix: {kind.next_action}.",
                )


def _builtins() -> Iterator[str]:
    yield from ("# What is built in", "")
    yield "Contracts, templates, features and references that any workflow may name. They are resolved when a"
    yield "workflow is compiled and are part of its hash."
    yield from ("", "## Contracts", "")
    yield "Named by `output: { contractRef: … }`. The artifact's `kind` is given in brackets."
    for contract in packs.contracts().values():
        yield from ("", f"### {contract.ref} [{contract.kind}]", "", f"{contract.title}.", "")
        yield from _properties(contract.schema)
        yield from ("", "```json", json.dumps(contract.example, ensure_ascii=False), "```")
    yield from ("", "## Templates", "")
    yield "Called by `templateCall: { templateId: …, args: {…} }`, and expanded in place."
    for template in known_templates().values():
        steps = _in_code(str(step.get("id")) for step in template.steps)
        yield from ("", f"### {template.ref}", "", f"{template.title}. Steps: {steps}.")
        if template.args:
            yield f"Arguments: {_in_code(template.args)}."
    yield from ("", "## Features", "")
    yield "Named in `features: […]`; each adds lines to the prompt blocks of every step that has some. One"
    yield "with settings may be given as `{ id: wr.features.output_contracts, config: { attempts: 2 } }`;"
    yield "only the settings below can be chosen, and `{name}` in a line shows where the choice goes."
    for feature in packs.features().values():
        yield from _feature(feature)
    yield from ("", "## References", "", "Included in a prompt by `{ kind: ref, refId: … }`.")
    for reference in packs.references().values():
        quoted = (f"> {line}".rstrip() for line in reference.text.splitlines())
        yield from ("", f"### {reference.ref}", "", f"{reference.title}.", "", *quoted)


def _properties(schema: Mapping[str, Json]) -> Iterator[str]:
    properties, required = schema.get("properties"), schema.get("required")
    names = required if isinstance(required, Sequence) else ()
    for name, value in (properties if isinstance(properties, Mapping) else {}).items():
        need = "required" if name in names else "optional"
        yield f"- `{name}` ({need}): {_type(value)}"


def _type(schema: Json) -> str:
    match schema:
        case {"const": constant}:
            return f"`{json.dumps(constant, ensure_ascii=False)}`"
        case {"enum": [*words]}:
            return f"one of {_in_code(map(str, words))}"
        case {"type": [*kinds]}:
            return " or ".join(map(str, kinds))
        case {"type": kind}:
            return str(kind)
        case _:
            return "any value"


def _feature(feature: packs.FeaturePack) -> Iterator[str]:
    yield from ("", f"### {feature.ref}", "", f"{feature.title}.")
    sections = (
        ("Constraints", feature.constraints),
        ("Procedure", feature.procedure),
        ("Verify", feature.verify),
    )
    for heading, lines in sections:
        if lines:
            yield from ("", f"{heading}:", *(f"- {line}" for line in lines))
    if feature.settings:
        yield from ("", "Settings:")
    for name, setting in feature.settings.items():
        chosen = "some of" if setting.several else "one of"
        default = setting.default if isinstance(setting.default, tuple) else (setting.default,)
        yield f"- `{name}`: {setting.description}; {chosen} {_in_code(map(str, setting.values))}."
        yield f"  Without it: {_in_code(map(str, default))}."


def _in_code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
