"""Discovery: the list of workflows, and what one of them is, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.authoring.library import Listed, Listing, Loaded, Shadowed
from interlock.core.definition.workflow import Activity, Gate, Item, Loop, Step
from interlock.core.values import Json
from interlock.surfaces.call import Reply

MOST_PROBLEMS = 20


def listed(listing: Listing) -> Reply:
    """List workflows and routines, and the files that could not be loaded with their reasons."""
    entries = [entry for entry in listing.entries if not entry.hidden]
    lines = [f"- {entry.id} ({entry.kind}): {entry.description or entry.name}" for entry in entries]
    body: dict[str, Json] = {"workflows": [_entry(entry) for entry in entries]}
    errors = [diagnostic for diagnostic in listing.diagnostics if diagnostic.severity == "error"]
    if errors:
        shown = errors[:MOST_PROBLEMS]
        body["warnings"] = [
            {
                "code": one.code,
                "message": one.message,
                "file": one.file,
                "line": one.line,
                "fix": one.next_action,
            }
            for one in shown
        ]
        lines.append(f"{len(errors)} files could not be loaded:")
        lines += [f"- {one.file}:{one.line}: {one.message}" for one in shown]
    if listing.shadowed:
        body["shadowed"] = [_shadowed(workflow) for workflow in listing.shadowed]
        lines += [f"- {workflow.message}" for workflow in listing.shadowed]
    return Reply("\n".join(lines) or "No workflows are available.", body)


def _shadowed(workflow: Shadowed) -> Json:
    return {
        "workflowId": workflow.workflow_id,
        "source": workflow.source,
        "shadowedBy": workflow.by_source,
    }


def _entry(entry: Listed) -> dict[str, Json]:
    body: dict[str, Json] = {
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
    }
    return {**body, "suggestedId": entry.suggested_id} if entry.suggested_id else body


def described(loaded: Loaded, mode: str) -> Reply:
    """Describe one workflow; the hash is the one that a run would be pinned to."""
    workflow = loaded.workflow
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
        "warnings": [{"code": one.code, "message": one.message} for one in loaded.diagnostics],
    }
    if workflow.recommended:
        body["recommendedPreferences"] = {
            "autonomy": workflow.recommended.autonomy,
            "riskPolicy": workflow.recommended.risk_policy,
        }
    lines = [f"{workflow.name} ({workflow.id} {workflow.version})", workflow.description]
    if mode == "preview":
        body["activities"] = [_activity(one) for one in workflow.activities]
        lines += [line for one in workflow.activities for line in _outline(one, len(workflow.activities) > 1)]
    lines += [f"Warning: {one.message}" for one in loaded.diagnostics]
    return Reply("\n".join(lines), body)


def _activity(activity: Activity) -> dict[str, Json]:
    return {"id": activity.id, "name": activity.name, "items": [_item(item) for item in activity.items]}


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
                "options": [o.id for o in item.options],
            }
        case Loop():
            return {
                "type": "loop",
                "id": item.id,
                "title": item.title,
                "maxIterations": item.max_iterations,
                "items": [_item(one) for one in item.body],
            }


def _outline(activity: Activity, named: bool) -> Iterator[str]:
    if named:
        yield f"{activity.name} ({activity.id})"
    yield from _lines(activity.items, 1)


def _lines(items: tuple[Item, ...], level: int) -> Iterator[str]:
    for item in items:
        title = item.name if isinstance(item, Gate) else item.title
        mark = {"Step": "", "Gate": "decision: ", "Loop": "repeat: "}[type(item).__name__]
        yield f"{'  ' * level}- {mark}{title} ({item.id})"
        if isinstance(item, Loop):
            yield from _lines(item.body, level + 1)
