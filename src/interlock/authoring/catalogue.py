"""The catalogue of what is built in, for people who write workflows: what each thing does, and its name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args

from msgspec import Struct

from interlock.authoring.compile import builtins as packs
from interlock.authoring.compile.templates import known_templates
from interlock.core.definition.workflow import Capability
from interlock.core.values import Json

BuiltinKind = Literal["contract", "template", "feature", "capability", "ref"]

MEANINGS: Mapping[Capability, str] = {
    "delegation": "Hand a task to a subagent",
    "web_browsing": "Fetch pages of the web",
}
NEEDS = (
    "- `required`: a first step tries it out, and the run stops if it is not there.",
    "- `preferred`: the prompt says how to do without.",
    "- `disabled`: no effect.",
)


class Builtin(Struct, frozen=True):
    """Something that any workflow may name. `details` are lines of Markdown; `insert` is YAML to paste.

    `artifact` is the kind of a contract's artifacts, `example` one that passes.
    """

    kind: BuiltinKind
    ref: str
    title: str
    details: tuple[str, ...]
    insert: str
    artifact: str = ""
    example: str = ""


def catalogue() -> Iterator[Builtin]:
    """Yield everything that is built in, by kind and name."""
    for contract in packs.contracts().values():
        yield Builtin(
            "contract",
            contract.ref,
            contract.title,
            tuple(_properties(contract.schema)),
            f"output:\n  contractRef: {contract.ref}\n",
            contract.kind,
            json.dumps(contract.example, ensure_ascii=False),
        )
    for template in known_templates().values():
        steps = _in_code(str(step.get("id")) for step in template.steps)
        details = [f"Steps: {steps}.", *([f"Arguments: {_in_code(template.args)}."] if template.args else [])]
        filled = "".join(f"\n    {name}: {_sample(name)}" for name in template.args)
        call = f"templateCall:\n  templateId: {template.ref}\n" + (f"  args:{filled}\n" if filled else "")
        yield Builtin("template", template.ref, template.title, tuple(details), call)
    for feature in packs.features().values():
        sections = (
            ("Constraints", feature.constraints),
            ("Procedure", feature.procedure),
            ("Verify", feature.verify),
        )
        blocks = [(f"{heading}:", *(f"- {line}" for line in lines)) for heading, lines in sections if lines]
        if feature.settings:
            blocks.append(("Settings:", *map(_setting, feature.settings, feature.settings.values())))
        details = [line for block in blocks for line in ("", *block)][1:]
        yield Builtin("feature", feature.ref, feature.title, tuple(details), f"features: [{feature.ref}]\n")
    for capability in get_args(Capability):
        insert = f"capabilities:\n  {capability}: preferred\n"
        yield Builtin("capability", capability, MEANINGS[capability], NEEDS, insert)
    for reference in packs.references().values():
        quoted = tuple(f"> {line}".rstrip() for line in reference.text.splitlines())
        yield Builtin(
            "ref", reference.ref, reference.title, quoted, f"- {{ kind: ref, refId: {reference.ref} }}\n"
        )


def _setting(name: str, setting: packs.FeatureSetting) -> str:
    chosen = "some of" if setting.several else "one of"
    default = setting.default if isinstance(setting.default, tuple) else (setting.default,)
    listed = f"- `{name}`: {setting.description}; {chosen} {_in_code(map(str, setting.values))}."
    return f"{listed}\n  Without it: {_in_code(map(str, default))}."


def _sample(argument: str) -> str:
    """Return a value that a template's argument may have."""
    return get_args(Capability)[0] if argument == "capability" else f"<{argument}>"


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


def _in_code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
