"""Creates a new workflow from a starter: valid files, scenarios that pass, and schemas for editors."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from interlock.authoring.compile.builtins import LIBRARY
from interlock.authoring.compile.ids import FOLDER_ID, LONGEST_ID, NAMESPACED, RESERVED, suggested
from interlock.authoring.convert import ConversionRefused
from interlock.authoring.filetypes.schemas.published_schemas import published, schema_text
from interlock.authoring.text.markdown import titled

Starter = Literal["steps", "activities"]

SCHEMAS = ".schemas"
LINE = "# yaml-language-server: $schema={path}\n"


def started(starter: Starter, workflow_id: str) -> dict[str, str] | ConversionRefused:
    """Return the files of a new workflow by name; step workflows need a namespaced id (rule 38)."""
    if reason := _objection(starter, workflow_id):
        return ConversionRefused(reason)
    name = workflow_id.rpartition(".")[2]
    home = LIBRARY / "starters" / starter
    files, schemas = dict[str, str](), set[str]()
    for starter_file in sorted(home.rglob("*.yaml")):
        path = starter_file.relative_to(home).as_posix().replace("NAME", name)
        text = starter_file.read_text(encoding="utf-8").replace("@ID@", workflow_id)
        files[path] = text.replace("@TITLE@", titled(name))
        if schema := _schema_of(starter, path):
            schemas.add(schema)
            reference = "../" * path.count("/") + f"{SCHEMAS}/{schema}"
            files[path] = LINE.format(path=reference) + files[path]
    for schema, content in published().items():
        if schema in schemas:
            files[f"{SCHEMAS}/{schema}"] = schema_text(content)
    return files


def _schema_of(starter: Starter, path: str) -> str:
    """Return the schema that editors check a file with; a skill has any fields, and so none."""
    if path.startswith("skills/"):
        return ""
    if ".scenario." in path:
        return "scenario.schema.json"
    if path.startswith("activities/"):
        return "activity.schema.json"
    return "step-workflow.schema.json" if starter == "steps" else "activity-workflow.schema.json"


def _objection(starter: Starter, workflow_id: str) -> str:
    if len(workflow_id) > LONGEST_ID:
        return f"an id can have at most {LONGEST_ID} characters"
    if starter == "activities":
        return "" if FOLDER_ID.fullmatch(workflow_id) else f"'{workflow_id}' is not an id such as my-workflow"
    if not NAMESPACED.fullmatch(workflow_id):
        return f"'{workflow_id}' has no namespace; choose an id such as team.{_as_name(workflow_id)}"
    if workflow_id.startswith(RESERVED):
        own = f"team.{workflow_id.removeprefix(RESERVED)}"
        return f"'{workflow_id}': the namespace wr is reserved; choose an id such as {own}"
    return ""


def _as_name(text: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in text.lower()).strip("_") or "name"


def suggested_id(folder: Path, starter: Starter) -> str:
    """Suggest an id made from the folder's name; a step workflow needs a namespace (rule 38)."""
    name = folder.resolve().name.lower()
    if starter == "activities":
        return _as_name(name).replace("_", "-").strip("-")
    return name if NAMESPACED.fullmatch(name) else suggested(_as_name(name), "user")
