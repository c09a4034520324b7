"""Variables in the texts of activity files: `{name}` means the same as `{{name}}` (rule 32).

Only names that the workflow declares, sets or reads count, so that braces in examples stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.condition_uses import EVERYTHING, conditions_of
from interlock.core.definition.conditions import variables_of
from interlock.core.definition.expressions import root
from interlock.core.definition.variable_sets import sets_of
from interlock.core.definition.workflow import Effect, Workflow

_BRACES = re.compile(r"(?<![{$\\])\{([A-Za-z_][\w-]*)((?:\.[\w-]+)*)\}(?!\})")
_TEXTS = frozenset({"name", "title", "message", "label", "description", "text", "question"})


def with_double_braces(workflow: Workflow) -> Workflow:
    """Write `{name}` as `{{name}}` in every text that a run shows, and in the values that effects set."""
    names = {variable.name for variable in workflow.variables}
    names.update(mode.activation_variable for mode in workflow.modes)
    names.update(each.name for each in sets_of(workflow))
    for condition in conditions_of(workflow, EVERYTHING):
        names.update(map(root, variables_of(condition)))
    return replace(workflow, activities=_doubled(workflow.activities, names))


def _doubled(value: Any, names: Set[str]) -> Any:
    """Return the value with the texts in it rewritten; a value without any is returned as it is."""
    match value:
        case tuple():
            members = tuple(_doubled(member, names) for member in value)
            return members if any(new is not old for new, old in zip(members, value, strict=True)) else value
        case Effect():
            sets = {name: _text(text, names) for name, text in value.set_variables.items()}
            return value if sets == value.set_variables else replace(value, set_variables=sets)
        case Struct():
            fields: Mapping[str, Any] = {name: getattr(value, name) for name in value.__struct_fields__}
            changed = {
                name: new
                for name, old in fields.items()
                if (new := _text(old, names) if name in _TEXTS else _doubled(old, names)) is not old
            }
            return replace(value, **changed) if changed else value
        case _:
            return value


def _text(value: Any, names: Set[str]) -> Any:
    if not isinstance(value, str):
        return value
    doubled = _BRACES.sub(lambda found: f"{{{found[0]}}}" if found[1] in names else found[0], value)
    return doubled if doubled != value else value
