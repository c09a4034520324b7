"""Results of checks as texts show them: `{{checks.tests}}`. No agent and no file writes them (rule 19)."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.core.definition.expressions import CHECKS
from interlock.core.values import Json, Variables


def with_result(variables: Variables, check: str, line: str) -> dict[str, Json]:
    """Return what to write so that the result of a check is shown."""
    known = variables.get(CHECKS)
    return {CHECKS: {**(known if isinstance(known, Mapping) else {}), check: line}}
