"""Reading workflows and activities before and beside a run. Nothing here is recorded."""

from __future__ import annotations

import time
from collections.abc import Iterator

from interlock import __version__
from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.authoring.library import Library, Listed, Loaded
from interlock.core.definition.workflow import TERMINAL, Activity, Workflow
from interlock.core.values import Json
from interlock.surfaces.call import Call, Outcome, Reply
from interlock.surfaces.navigation import params as p
from interlock.surfaces.navigation.errors import not_found, not_loaded
from interlock.surfaces.navigation.render import shown
from interlock.surfaces.shared.documents import META
from interlock.surfaces.shared.written import activity_shape, gate_shape, gates_of, workflow_shape
from interlock.surfaces.strict_params import NoParams


class CatalogueTools:
    """The workflow and activity tools."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.started = time.monotonic()

    def list_workflows(self, params: NoParams, call: Call) -> Outcome:
        listing = self.library.listing()
        broken = [one for one in listing.diagnostics if one.severity == "error"]
        body: dict[str, Json] = {"workflows": [_entry(one) for one in listing.entries]}
        if broken:
            body["warnings"] = [f"{one.file}:{one.line}: {one.message}" for one in broken[:20]]
        return shown(body)

    def get_workflow(self, params: p.OfWorkflow, call: Call) -> Outcome:
        loaded = self.library.load(params.workflow_id)
        return (
            not_loaded(loaded) if isinstance(loaded, Diagnostic) else shown(workflow_shape(loaded.workflow))
        )

    def get_workflow_activity(self, params: p.OfActivity, call: Call) -> Outcome:
        found = self._activity(params.workflow_id, params.activity_id)
        return found if isinstance(found, Reply) else shown(activity_shape(found))

    def get_checkpoint(self, params: p.OfCheckpoint, call: Call) -> Outcome:
        found = self._activity(params.workflow_id, params.activity_id)
        if isinstance(found, Reply):
            return found
        gates = {gate.id: gate for gate in gates_of(found)}
        if params.checkpoint_id not in gates:
            text = f"Checkpoint not found: {params.checkpoint_id} in activity {found.id}"
            return not_found("CHECKPOINT_NOT_FOUND", text, list(gates))
        return shown(gate_shape(gates[params.checkpoint_id]))

    def _activity(self, workflow_id: str, activity_id: str) -> Activity | Reply:
        loaded = self.library.load(workflow_id)
        if isinstance(loaded, Diagnostic):
            return not_loaded(loaded)
        activity = loaded.workflow.activity(activity_id)
        if activity is None:
            listed = [one.id for one in loaded.workflow.activities]
            return not_found("ACTIVITY_NOT_FOUND", f"Activity not found: {activity_id}", listed)
        return activity

    def validate_transition(self, params: p.ValidateTransition, call: Call) -> Outcome:
        loaded = self.library.load(params.workflow_id)
        if isinstance(loaded, Diagnostic):
            return not_loaded(loaded)
        reason = _objection(loaded.workflow, params.from_activity, params.to_activity)
        return shown({"valid": True} if reason is None else {"valid": False, "reason": reason})

    def health_check(self, params: NoParams, call: Call) -> Outcome:
        body: dict[str, Json] = {
            "status": "healthy",
            "server": "interlock",
            "version": __version__,
            "workflows_available": len(self.library.listing().entries),
            "uptime_seconds": int(time.monotonic() - self.started),
        }
        return shown(body)

    def get_activities(self, params: NoParams, call: Call) -> Outcome:
        entries = list(self._entries())
        matches = {
            words.lower(): activity.id for _, activity in reversed(entries) for words in activity.recognition
        }
        body: dict[str, Json] = {
            "description": "Goals that users have, each with the activity that serves it.",
            "usage": "Match the user's words against quick_match and problem, then follow next_action.",
            "next_action": {"tool": "get_activity", "parameters": {"activity_id": "<matched id>"}},
            "activities": [_indexed(workflow_id, activity) for workflow_id, activity in entries],
            "quick_match": dict(matches),
        }
        return shown(body)

    def get_activity(self, params: p.GetActivity, call: Call) -> Outcome:
        known = list(self._entries())
        found = _named(known, params.activity_id) or _named(self._all(), params.activity_id)
        if found is None:
            listed = [activity.id for _, activity in known]
            return not_found("ACTIVITY_NOT_FOUND", f"Activity not found: {params.activity_id}", listed)
        workflow_id, activity = found
        following: dict[str, Json] = {"tool": "nav_start", "parameters": {"workflow_id": workflow_id}}
        return shown({"workflowId": workflow_id, **activity_shape(activity), "next_action": following})

    def _entries(self) -> Iterator[tuple[str, Activity]]:
        """Activities that are entries of their own: those of `meta`, and of workflows without a beginning."""
        for loaded in self._folders():
            if loaded.workflow.id == META or loaded.workflow.initial is None:
                yield from ((loaded.workflow.id, one) for one in loaded.workflow.activities)

    def _all(self) -> Iterator[tuple[str, Activity]]:
        for loaded in self._folders():
            yield from ((loaded.workflow.id, one) for one in loaded.workflow.activities)

    def _folders(self) -> Iterator[Loaded]:
        """Every workflow made of activities, `meta` first."""
        entries = [one for one in self.library.listing().entries if one.form == "activities"]
        for entry in sorted(entries, key=lambda one: (one.id != META, one.id)):
            loaded = self.library.load(entry.id)
            if isinstance(loaded, Loaded):
                yield loaded


def _entry(entry: Listed) -> dict[str, Json]:
    about = {"description": entry.description} if entry.description else {}
    tags = {"tags": list(entry.tags)} if entry.tags else {}
    return {"id": entry.id, "title": entry.name, "version": entry.version, **about, **tags}


def _indexed(workflow_id: str, activity: Activity) -> dict[str, Json]:
    following: dict[str, Json] = {"tool": "get_activity", "parameters": {"activity_id": activity.id}}
    return {
        "id": activity.id,
        "workflowId": workflow_id,
        "problem": activity.problem or activity.description,
        "primary_skill": activity.primary_skill,
        "next_action": following,
    }


def _named(
    listed: Iterator[tuple[str, Activity]] | list[tuple[str, Activity]], name: str
) -> tuple[str, Activity] | None:
    return next((one for one in listed if one[1].id == name), None)


def _objection(workflow: Workflow, source: str, target: str) -> str | None:
    """Say why one activity does not lead to another, as far as the definition alone can tell."""
    activity = workflow.activity(source)
    if activity is None:
        return f"Source activity not found: {source}"
    if workflow.activity(target) is None and not workflow.is_end(target):
        return f"Target activity not found: {target}"
    valid = list(dict.fromkeys(_targets(activity)))
    ends = workflow.is_end(target) and any(workflow.is_end(one) for one in valid)
    return None if target in valid or ends else f"No valid transition. Valid: {', '.join(valid)}"


def _targets(activity: Activity) -> Iterator[str]:
    yield from (one.to for one in activity.transitions)
    yield from (branch.to for one in activity.decisions for branch in one.branches if branch.to)
    options = (option for gate in activity.gates() for option in gate.options)
    yield from (one.effect.transition_to for one in options if one.effect.transition_to)
    if not activity.transitions:
        yield TERMINAL
