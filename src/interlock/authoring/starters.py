"""A new workflow from a starter: files that validate, with scenarios that pass, and schemas for editors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from interlock.authoring.compile.builtins import LIBRARY
from interlock.authoring.compile.ids import FOLDER_ID, LONGEST_ID, NAMESPACED, RESERVED
from interlock.authoring.convert import ConversionRefused
from interlock.authoring.text.markdown import titled

Starter = Literal["steps", "activities"]

SCHEMAS = ".schemas"
LINE = "# yaml-language-server: $schema={path}\n"


def started(starter: Starter, workflow_id: str) -> dict[str, str] | ConversionRefused:
    """The files of a new workflow, by their names; step workflows need a namespaced id (rule 38)."""
    if reason := _refusal(starter, workflow_id):
        return ConversionRefused(reason)
    name = workflow_id.rpartition(".")[2]
    files = {path.replace("NAME", name): _filled(text, workflow_id) for path, text in _texts(starter)}
    return {path: _with_schema(path, text, starter) for path, text in files.items()} | _schemas(starter)


def _refusal(starter: Starter, workflow_id: str) -> str:
    if len(workflow_id) > LONGEST_ID:
        return f"an id has at most {LONGEST_ID} characters"
    if starter == "activities":
        return "" if FOLDER_ID.fullmatch(workflow_id) else f"'{workflow_id}' is not an id such as my-workflow"
    if not NAMESPACED.fullmatch(workflow_id):
        return f"'{workflow_id}' has no namespace; choose an id such as team.{_word(workflow_id)}"
    return f"'{workflow_id}': the namespace wr is reserved" if workflow_id.startswith(RESERVED) else ""


def _word(text: str) -> str:
    return "".join(one if one.isalnum() else "_" for one in text.lower()).strip("_") or "name"


def _texts(starter: Starter) -> Iterator[tuple[str, str]]:
    home = LIBRARY / "starters" / starter
    for path in sorted(home.rglob("*.yaml")):
        yield path.relative_to(home).as_posix(), path.read_text(encoding="utf-8")


def _filled(text: str, workflow_id: str) -> str:
    return text.replace("@ID@", workflow_id).replace("@TITLE@", titled(workflow_id.rpartition(".")[2]))


def _with_schema(path: str, text: str, starter: Starter) -> str:
    """Put the line first that gives editors completion."""
    schema = _schema_of(path, starter)
    if schema is None:
        return text
    up = "../" * path.count("/")
    return LINE.format(path=f"{up}{SCHEMAS}/{schema}") + text


def _schema_of(path: str, starter: Starter) -> str | None:
    if ".scenario." in path or path.startswith("skills/"):
        return None
    if path.startswith("activities/"):
        return "activity.schema.json"
    return "step-workflow.schema.json" if starter == "steps" else "activity-workflow.schema.json"


def _schemas(starter: Starter) -> dict[str, str]:
    from interlock.authoring.filetypes.published_schemas import published

    wanted = {_schema_of(path, starter) for path, _ in _texts(starter)}
    return {
        f"{SCHEMAS}/{name}": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in published().items()
        if name in wanted
    }


def suggested_id(folder: Path, starter: Starter) -> str:
    """An id from the folder's name."""
    name = folder.resolve().name.lower()
    return name if starter == "steps" else _word(name).replace("_", "-").strip("-")
