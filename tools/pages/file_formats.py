"""The reference of the workflow file formats: texts of a template, tables from the published schemas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from interlock.authoring.compile.conditions import ACTIVITY_OPERATORS, STEP_WORDS
from interlock.authoring.filetypes.schemas.published_schemas import definitions_of, published
from interlock.authoring.filetypes.schemas.raw_definitions import OPERATORS
from interlock.authoring.filetypes.source_file import SourceSettings
from interlock.core.values import Json
from tools.pages.tables import cell, table

SHORT = 6  # longer tables are folded away
TEMPLATE = Path(__file__).with_name("format.template.md")

# The heading of each definition on the page.
HEADINGS: Mapping[str, str] = {
    "SourceSettings": "Source settings",
    "StepWorkflowSource": "Step workflow",
    "VariableSource": "Variable",
    "FeatureUse": "Feature with settings",
    "Recommended": "Recommended preferences",
    "ReferenceSource": "Reference",
    "FunctionSource": "Function",
    "CallSource": "Function call",
    "StepSource": "Step",
    "PromptText": "Prompt text",
    "PromptPart": "Prompt part",
    "PromptBlocks": "Prompt blocks",
    "FragmentSource": "Prompt fragment",
    "TemplateCall": "Template call",
    "OutputSource": "Output",
    "OutputContract": "Output contract",
    "Criteria": "Validation criteria",
    "CriteriaTree": "Criteria tree",
    "RuleSource": "Validation rule",
    "AssessmentSource": "Assessment",
    "Dimension": "Dimension",
    "Consequence": "Consequence",
    "When": "Consequence level",
    "Then": "Consequence effect",
    "UserInputSource": "User input",
    "CheckSource": "Check",
    "ExpectationSource": "Check result",
    "ActionSource": "Action",
    "TriggerSource": "Trigger",
    "Delegation": "Delegation",
    "GateSource": "Gate",
    "OptionSource": "Option",
    "EffectSource": "Effect",
    "DecideSource": "Decide block",
    "ThenSource": "End of the time",
    "LoopSource": "Loop",
    "LoopConfig": "Loop settings",
    "ConditionSource": "Condition source",
    "Condition": "Condition",
    "ActivityWorkflowSource": "Activity workflow",
    "ModeSource": "Mode",
    "ActivitySource": "Activity",
    "SkillsSource": "Skills",
    "TransitionSource": "Transition",
    "DecisionSource": "Decision",
    "BranchSource": "Branch",
    "ArtifactSource": "Artifact",
    "LocationSource": "Artifact location",
    "ActivityLoopSource": "Activity loop",
    "ScenarioSource": "Scenario file",
    "Scenario": "Scenario",
    "OutputGiven": "Scenario output",
    "Polled": "Scenario approval",
    "Expected": "Expectation",
}

_DIRECTIVE = re.compile(r"^<!-- (?P<name>[a-z]+)(?: (?P<argument>\w+))? -->$")
_PLAIN = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "object": "object",
}


def pages() -> dict[str, str]:
    """Return the page by the name of its file."""
    lines = TEMPLATE.read_text("utf-8").splitlines()
    return {"format.md": "\n".join(line for source in lines for line in _expanded(source, lines)) + "\n"}


def mapping(schema: Json) -> Mapping[str, Json]:
    """Return a schema that is an object, as all of ours are."""
    assert isinstance(schema, Mapping)
    return schema


@cache
def definitions() -> Mapping[str, Mapping[str, Json]]:
    """Return the definitions of all published schemas, and of the settings of a source, by name."""
    merged: dict[str, Mapping[str, Json]] = {}
    for schema in published().values():
        defined = schema["$defs"]
        assert isinstance(defined, Mapping)
        merged |= {name: mapping(each) for name, each in defined.items()}
    return merged | definitions_of(SourceSettings)


def _expanded(line: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield a line of the template, or what its directive stands for."""
    directive = _DIRECTIVE.match(line)
    match (directive["name"], directive["argument"]) if directive else ("", None):
        case "contents", None:
            yield from _contents(lines)
        case "fields", str(name):
            yield from _fields(definitions()[name])
        case "operators", None:
            words = {operator: f"`{word}`" for word, operator in STEP_WORDS.items()}
            rows = [
                (f"`{operator}`", words.get(operator, ""), cell(text)) for operator, text in OPERATORS.items()
            ]
            yield from table(("activity dialect", "step dialect", "holds if"), rows)
        case _:
            yield line


def _contents(lines: Sequence[str]) -> Iterator[str]:
    """Yield one entry per section, followed by links to its parts."""
    for section in "\n".join(lines).split("\n## ")[1:]:
        title, *rest = section.splitlines()
        parts = [line.removeprefix("### ") for line in rest if line.startswith("### ")]
        inner = " · ".join(f"[{part}](#{_anchor(part)})" for part in parts)
        yield f"- **[{title}](#{_anchor(title)})**" + (f": {inner}" if inner else "")


def _fields(definition: Mapping[str, Json]) -> Iterator[str]:
    """Yield what a type is and the table of its fields."""
    yield from (str(definition["description"]), "")
    properties, required = definition["properties"], definition.get("required", ())
    assert isinstance(properties, Mapping)
    assert isinstance(required, Sequence)
    rows = [
        (
            f"`{name}`",
            cell(_type(schema)),
            "**required**" if name in required else _default(schema.get("default")),
            cell(str(schema["description"])),
        )
        for name, schema in ((name, mapping(each)) for name, each in properties.items())
        if name != "$schema" and not (definition["title"] == "Condition" and name in STEP_WORDS)
    ]
    fields = table(("field", "type", "default", "meaning"), rows)
    yield from fields if len(rows) <= SHORT else _folded(list(properties), fields)


def _folded(names: Sequence[str], fields: Iterable[str]) -> Iterator[str]:
    """Yield a long table behind the names of its first fields; a reader opens it to look something up."""
    yield f"<details><summary>{', '.join(names[:SHORT])} and {len(names) - SHORT} more fields</summary>"
    yield from ("", *fields, "", "</details>")


def _default(value: Json) -> str:
    if value is None or value == "" or isinstance(value, (Mapping, list)):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _type(schema: Json) -> str:
    """Return the type of a field in words, with links to the types of this page."""
    match schema:
        case {"$ref": str(target)}:
            heading = HEADINGS[target.rpartition("/")[2]]
            return f"[{heading[0].lower()}{heading[1:]}](#{_anchor(heading)})"
        case {"enum": [*words]} if words == list(ACTIVITY_OPERATORS):
            return "[operator](#operators)"
        case {"enum": [*words]}:
            return ", ".join(f"`{word}`" for word in words)
        case {"anyOf": [*choices]}:
            return _alternatives(choices)
        case {"type": "array", "items": {"anyOf": [*choices]}}:
            return f"list of {_alternatives(choices)}"
        case {"type": "array", "items": Mapping() as item}:
            return f"list of {_type(item)}"
        case {"type": "object", "additionalProperties": Mapping() as value}:
            return f"object of {_type(value)}"
        case {"type": str(kind)}:
            return _PLAIN[kind]
        case _:
            return "any value"


def _alternatives(choices: Sequence[Json]) -> str:
    """Name the choices, simple ones before lists."""
    names = [_type(choice) for choice in choices if choice != {"type": "null"}]
    words = sorted(names, key=lambda name: name.startswith("list of "))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-")
