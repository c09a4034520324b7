"""Values under the reserved names: `{{checks.tests}}`, `{{artifacts.report.verdict}}` (rule 19).

No agent and no file writes them: the server does, from checks that it ran and artifacts that it accepted.
"""

from __future__ import annotations

from collections.abc import Mapping

from interlock.core.definition.expressions import ARTIFACTS, CHECKS
from interlock.core.values import Json, Variables


def with_result(variables: Variables, check: str, line: str) -> dict[str, Json]:
    """Return what to write so that the result of a check is shown."""
    return {CHECKS: {**_known(variables, CHECKS), check: line}}


def with_artifacts(variables: Variables, artifacts: Mapping[str, Mapping[str, Json]]) -> dict[str, Json]:
    """Return what to write so that texts quote the newest artifacts of their names."""
    return {ARTIFACTS: {**_known(variables, ARTIFACTS), **artifacts}} if artifacts else {}


def _known(variables: Variables, name: str) -> Mapping[str, Json]:
    known = variables.get(name)
    return known if isinstance(known, Mapping) else {}
