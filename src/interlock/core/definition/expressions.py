"""What texts interpolate: `{{a.b}}`, a path into a variable (rule 32)."""

from __future__ import annotations

import re
from collections.abc import Iterator

PATH = r"([A-Za-z_][\w-]*(?:\.[\w-]+)*)"
EXPRESSION = re.compile(rf"\{{\{{\s*{PATH}\s*\}}\}}")

ARTIFACTS = "artifacts"
CHECKS = "checks"
RESERVED = (ARTIFACTS, CHECKS)  # no variables: what a run has handed in, and what has judged it


def variables_in(text: str) -> Iterator[str]:
    """Yield the paths of the variables that a text interpolates."""
    return (match[1] for match in EXPRESSION.finditer(text))


def artifact_name(kind: str) -> str:
    """Return the name by which texts quote an artifact: `report` for the kind `wr.report`."""
    return kind.rpartition(".")[2]


def root(path: str) -> str:
    """The variable that a path leads into: `a` of `a.b`."""
    return path.partition(".")[0]
