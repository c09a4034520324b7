"""What texts interpolate: `{{a.b}}`, a path into a variable (rule 32)."""

from __future__ import annotations

import re
from functools import lru_cache

PATH = r"([A-Za-z_][\w-]*(?:\.[\w-]+)*)"
EXPRESSION = re.compile(rf"\{{\{{\s*{PATH}\s*\}}\}}")

ARTIFACTS = "artifacts"
CHECKS = "checks"
RESERVED = (ARTIFACTS, CHECKS)  # no variables: what a run has handed in, and what has judged it


@lru_cache(4096)
def variables_in(text: str) -> tuple[str, ...]:
    """Return the paths of the variables that a text interpolates; a step asks for the same texts again."""
    return tuple(match[1] for match in EXPRESSION.finditer(text))


def artifact_name(kind: str) -> str:
    """Return the name by which texts quote an artifact: `report` for the kind `wr.report`."""
    return kind.rpartition(".")[2]


def root(path: str) -> str:
    """The variable that a path leads into: `a` of `a.b`."""
    return path.partition(".")[0]
