"""Discovery: the list of workflows, and what one of them is, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.authoring.library import Listing, Loaded
from interlock.core.definition.workflow import Gate, Item, Loop, Step
from interlock.core.values import Json
from interlock.surfaces.call import Reply
from interlock.surfaces.shared.workflow_filter import NO_MATCH, ListWorkflows, found_workflows, shadowed_among

MOST_ERRORS = 20


def listing_reply(listing: Listing, wanted: ListWorkflows) -> Reply:
    """List workflows and routines, and the files that could not be loaded with their reasons."""
    entries = found_workflows([entry for entry in listing.entries if not entry.hidden], wanted)
    lines = [f"- {entry.id} ({entry.kind}): {entry.description or entry.name}" for entry in entries]
    workflows: list[Json] = [
        {
            "workflowId": entry.id,
            "name": entry.name,
            "description": entry.description,
            "version": entry.version,
            "kind": entry.kind,
            "category": entry.category,
            "tags": list(entry.tags),
            "source": entry.source,
            "idStatus": entry.id_status,
            "workflowHash": entry.hash,
            **({"suggestedId": entry.suggested_id} if entry.suggested_id else {}),
        }
        for entry in entries
    ]
    if wanted.narrows and not entries:
        lines = [NO_MATCH]
    body: dict[str, Json] = {"workflows": workflows}
    errors = [diagnostic for diagnostic in listing.diagnostics if diagnostic.severity == "error"]
    if errors:
        first_errors = errors[:MOST_ERRORS]
        body["warnings"] = [
            {
                "code": error.code,
                "message": error.message,
                "file": error.file,
                "line": error.line,
                "fix": error.next_action,
            }
            for error in first_errors
        ]
        files = len({error.file for error in errors})
        unusable = f"{files} {'file' if files == 1 else 'files'} could not be loaded:"
        if wanted.narrows:
            lines.append(f"{unusable} list_workflows without arguments says why.")
        else:
            lines += [unusable, *(f"- {error.file}:{error.line}: {error.message}" for error in first_errors)]
        if not wanted.narrows and (left := len(errors) - len(first_errors)):
            lines.append(f"- and {left} more errors: see `interlock validate`")
    if shadowed := shadowed_among(listing.shadowed, entries, wanted):
        body["shadowed"] = [
            {
                "workflowId": workflow.workflow_id,
                "source": workflow.source,
                "shadowedBy": workflow.by_source,
            }
            for workflow in shadowed
        ]
        lines += [f"- {workflow.message}" for workflow in shadowed]
    return Reply("\n".join(lines) or "No workflows are available.", body)


def described(loaded: Loaded, mode: str) -> Reply:
    """Describe one workflow; the hash is the one that a run would be pinned to."""
    workflow = loaded.workflow
    warnings = [diagnostic for diagnostic in loaded.diagnostics if diagnostic.severity != "info"]
    body: dict[str, Json] = {
        "workflowId": workflow.id,
        "name": workflow.name,
        "description": workflow.description,
        "version": workflow.version,
        "kind": workflow.kind,
        "workflowHash": loaded.hash,
        "tags": list(workflow.tags),
        "preconditions": list(workflow.preconditions),
        "clarificationPrompts": list(workflow.clarifications),
        "metaGuidance": list(workflow.rules),
        "capabilities": dict(workflow.capabilities.items()),
        "about": workflow.about,
        "warnings": [
            {"code": diagnostic.code, "message": diagnostic.message, "fix": diagnostic.next_action}
            for diagnostic in warnings
        ],
    }
    if workflow.recommended:
        body["recommendedPreferences"] = {
            "autonomy": workflow.recommended.autonomy,
            "riskPolicy": workflow.recommended.risk_policy,
        }
    lines = [f"{workflow.name} ({workflow.id} {workflow.version})", workflow.description]
    if mode == "preview":
        body["activities"] = [
            {"id": activity.id, "name": activity.name, "items": [_item(item) for item in activity.items]}
            for activity in workflow.activities
        ]
        for activity in workflow.activities:
            if len(workflow.activities) > 1:
                lines.append(f"{activity.name} ({activity.id})")
            lines += _outline(activity.items, 1)
    lines += [f"Warning: {diagnostic.message}; {diagnostic.next_action}" for diagnostic in warnings]
    return Reply("\n".join(lines), body)


def _item(item: Item) -> dict[str, Json]:
    match item:
        case Step():
            return {
                "type": "step",
                "id": item.id,
                "title": item.title,
                "conditional": item.condition is not None,
            }
        case Gate():
            return {
                "type": "gate",
                "id": item.id,
                "title": item.name,
                "options": [option.id for option in item.options],
            }
        case Loop():
            return {
                "type": "loop",
                "id": item.id,
                "title": item.title,
                "maxIterations": item.max_iterations,
                "items": [_item(inner) for inner in item.body],
            }


def _outline(items: tuple[Item, ...], level: int) -> Iterator[str]:
    for item in items:
        title = item.name if isinstance(item, Gate) else item.title
        mark = {"Step": "", "Gate": "decision: ", "Loop": "repeat: "}[type(item).__name__]
        stops = "".join(f", {stop}" for stop in item.asks) if isinstance(item, Step) else ""
        yield f"{'  ' * level}- {mark}{title} ({item.id}){stops}"
        if isinstance(item, Loop):
            yield from _outline(item.body, level + 1)
