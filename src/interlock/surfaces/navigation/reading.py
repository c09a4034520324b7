"""Reading workflows and activities before and beside a run. Nothing here is recorded."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain

from interlock import __version__
from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.authoring.library import Library, Loaded
from interlock.core.definition.program import gates_of
from interlock.core.definition.workflow import Activity, Workflow
from interlock.core.engine.paths.exits import entry_activities, possible_exits
from interlock.core.values import Json
from interlock.surfaces.call import Call, Outcome, Refused
from interlock.surfaces.navigation import params as p
from interlock.surfaces.navigation.errors import not_found, not_loaded
from interlock.surfaces.navigation.render import body_reply
from interlock.surfaces.parameters import NoParams
from interlock.surfaces.shared.documents import META
from interlock.surfaces.shared.workflow_filter import NO_MATCH, ListWorkflows, found_workflows, shadowed_among
from interlock.surfaces.shared.workflow_shapes import activity_shape, gate_shape, workflow_shape
from interlock.surfaces.tool import tool

MOST_ERRORS = 20


class CatalogueTools:
    """The workflow and activity tools."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.started = time.monotonic()

    @tool(read_only=True, uses_store=False)
    def list_workflows(self, params: ListWorkflows, call: Call) -> Outcome:
        """List all workflows."""
        listing = self.library.listing()
        entries = found_workflows(listing.entries, params)
        workflows: list[Json] = []
        for entry in entries:
            description = {"description": entry.description} if entry.description else {}
            tags = {"tags": list(entry.tags)} if entry.tags else {}
            fields: dict[str, Json] = {"id": entry.id, "title": entry.name, "version": entry.version}
            workflows.append({**fields, **description, **tags})
        errors = [diagnostic for diagnostic in listing.diagnostics if diagnostic.severity == "error"]
        body: dict[str, Json] = {"workflows": workflows}
        if params.narrows and not workflows:
            body["message"] = NO_MATCH
        if errors:
            body["warnings"] = [
                f"{error.file}:{error.line}: {error.message}" for error in errors[:MOST_ERRORS]
            ]
        if shadowed := shadowed_among(listing.shadowed, entries, params):
            body["shadowed"] = [workflow.message for workflow in shadowed]
        return body_reply(body)

    @tool(read_only=True, uses_store=False)
    def get_workflow(self, params: p.OfWorkflow, call: Call) -> Outcome:
        """Get a whole workflow definition."""
        loaded = self.library.load(params.workflow_id)
        if isinstance(loaded, Diagnostic):
            return not_loaded(loaded)
        return body_reply(workflow_shape(loaded.workflow))

    @tool(read_only=True, uses_store=False)
    def get_workflow_activity(self, params: p.OfActivity, call: Call) -> Outcome:
        """Get one activity: steps, checkpoints, loops, transitions."""
        activity = self._activity(params.workflow_id, params.activity_id)
        return body_reply(activity_shape(activity))

    @tool(read_only=True, uses_store=False)
    def get_checkpoint(self, params: p.OfCheckpoint, call: Call) -> Outcome:
        """Get a checkpoint's question, options and effects."""
        activity = self._activity(params.workflow_id, params.activity_id)
        gates = {gate.id: gate for gate in gates_of(activity)}
        if params.checkpoint_id not in gates:
            text = f"Checkpoint not found: {params.checkpoint_id} in activity {activity.id}"
            return not_found("CHECKPOINT_NOT_FOUND", text, list(gates))
        return body_reply(gate_shape(gates[params.checkpoint_id]))

    def _activity(self, workflow_id: str, activity_id: str) -> Activity:
        loaded = self.library.load(workflow_id)
        if isinstance(loaded, Diagnostic):
            raise Refused(not_loaded(loaded))
        activity = loaded.workflow.activity(activity_id)
        if activity is None:
            known = [activity.id for activity in loaded.workflow.activities]
            raise Refused(not_found("ACTIVITY_NOT_FOUND", f"Activity not found: {activity_id}", known))
        return activity

    @tool(read_only=True, uses_store=False)
    def validate_transition(self, params: p.ValidateTransition, call: Call) -> Outcome:
        """Say whether one activity may lead to another."""
        loaded = self.library.load(params.workflow_id)
        if isinstance(loaded, Diagnostic):
            return not_loaded(loaded)
        reason = _transition_error(loaded.workflow, params.from_activity, params.to_activity)
        return body_reply({"valid": True} if reason is None else {"valid": False, "reason": reason})

    @tool(read_only=True, uses_store=False)
    def health_check(self, params: NoParams, call: Call) -> Outcome:
        """Say whether the server works."""
        entries = self.library.listing().entries
        body: dict[str, Json] = {
            "status": "healthy",
            "server": "interlock",
            "version": __version__,
            "workflows_available": len(entries),
            "workflows": [entry.id for entry in entries],
            "uptime_seconds": int(time.monotonic() - self.started),
        }
        return body_reply(body)

    @tool(read_only=True, uses_store=False)
    def get_activities(self, params: NoParams, call: Call) -> Outcome:
        """Start here: match the user's goal to an activity."""
        entries = list(self._entries())
        quick_match = {
            words.lower(): activity.id for _, activity in reversed(entries) for words in activity.recognition
        }
        activities: list[Json] = [
            {
                "id": activity.id,
                "workflowId": workflow_id,
                "problem": activity.problem or activity.description,
                "primary_skill": activity.primary_skill,
                "next_action": {"tool": "get_activity", "parameters": {"activity_id": activity.id}},
            }
            for workflow_id, activity in entries
        ]
        body: dict[str, Json] = {
            "description": "Goals that users have, each with the activity that serves it.",
            "usage": "Match the user's words against quick_match and problem, then follow next_action.",
            "next_action": {"tool": "get_activity", "parameters": {"activity_id": "<matched id>"}},
            "activities": activities,
            "quick_match": dict(quick_match),
        }
        return body_reply(body)

    @tool(read_only=True, uses_store=False)
    def get_activity(self, params: p.GetActivity, call: Call) -> Outcome:
        """Get an activity of the index."""
        entries = list(self._entries())
        others = (
            (loaded.workflow.id, activity)
            for loaded in self._activity_workflows()
            for activity in loaded.workflow.activities
        )
        for workflow_id, activity in chain(entries, others):
            if activity.id == params.activity_id:
                begins = (workflow_id, activity) in entries
                named: dict[str, Json] = {"activity_id": activity.id} if begins else {}
                start: dict[str, Json] = {"workflow_id": workflow_id, **named}
                shape: dict[str, Json] = {"workflowId": workflow_id, **activity_shape(activity)}
                return body_reply({**shape, "next_action": {"tool": "nav_start", "parameters": start}})
        known = [activity.id for _, activity in entries]
        return not_found("ACTIVITY_NOT_FOUND", f"Activity not found: {params.activity_id}", known)

    def _entries(self) -> Iterator[tuple[str, Activity]]:
        """Yield the activities that a run can begin with: of `meta`, and of workflows without a first one."""
        for loaded in self._activity_workflows():
            workflow = loaded.workflow
            if workflow.id == META or workflow.initial is None:
                names = entry_activities(workflow)
                yield from (
                    (workflow.id, activity) for activity in workflow.activities if activity.id in names
                )

    def _activity_workflows(self) -> Iterator[Loaded]:
        """Yield every workflow made of activities, `meta` first."""
        entries = [entry for entry in self.library.listing().entries if entry.form == "activities"]
        for entry in sorted(entries, key=lambda entry: (entry.id != META, entry.id)):
            loaded = self.library.load(entry.id)
            if isinstance(loaded, Loaded):
                yield loaded


def _transition_error(workflow: Workflow, source: str, target: str) -> str | None:
    """Say why one activity does not lead to another, as far as the definition alone can tell."""
    activity = workflow.activity(source)
    if activity is None:
        return f"Source activity not found: {source}"
    if workflow.activity(target) is None and not workflow.is_end(target):
        return f"Target activity not found: {target}"
    targets = [exit_.to for exit_ in possible_exits(workflow, activity)]
    ends = workflow.is_end(target) and any(workflow.is_end(valid) for valid in targets)
    if target in targets or ends:
        return None
    return f"No valid transition. Valid: {', '.join(dict.fromkeys(targets))}"
