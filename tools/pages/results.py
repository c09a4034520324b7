"""What each tool returns, for docs/surfaces, where the tool has no output schema.

Names in backticks are the members of a JSON result; a test compares them with real results.
"""

from __future__ import annotations

from collections.abc import Mapping

OPEN = "and the other fields of its file"

_WARNED = "`warnings` if there are any"
_SITUATION = (
    "JSON: `success`, `position`, `message`, `availableActions`, `checkpoint`, `state`; where they apply "
    "`error`, `warnings`, `children`, `status`, `brief`, `next`, `rules`, `preconditions`, `clarifications`, "
    "`newest_state`, `other_branch_state`."
)
_HEALTH = "JSON: `status`, `server`, `version`, `workflows_available`, `uptime_seconds`."
_TRACE = "JSON: `traceId`, `source`, `event_count`, `events`, `session_token`."
_STARTED = "JSON: `workflow`, `session_token`; {} if a session was continued."
_TOON = "Text: the session token and a digest, then"

RESULTS: Mapping[str, Mapping[str, str]] = {
    "execution": {
        "list_workflows": "Text; `workflows` with id, name, description, kind, version, hash.",
        "inspect_workflow": f"Text; `workflowId`, `name`, `workflowHash`, with preview the outline, {OPEN}.",
        "checkpoint_workflow": "As continue_workflow; with a sessionToken `kind`, `sessionToken`, `session`.",
        "start_session": "Text; `kind`, `sessionToken`, `session`.",
        "resume_session": "Text; `candidates`, at most five, each with reasons, a snippet and a token; "
        "`matched`; `best`: the first of them as continue_workflow shows it.",
    },
    "session": {
        "discover": "Text: server, version, and how to begin.",
        "list_workflows": "Text (TOON): id, title, version, tags of each.",
        "health_check": _HEALTH,
        "start_session": _STARTED.format("`adopted`, `recovered` or `inherited`"),
        "get_workflow_status": "JSON: `status`, `current_activity`, `completed_activities`, `session_id`, "
        "`workflow`, `next_action`, `session_token`; if present `open_checkpoint`, `last_checkpoint`, "
        "`completed_at`, `goal`, `context`, `rules`, `decisions`, `loops`, `recap`, `leftOut`, "
        "`children`, `parent`.",
        "get_workflow": "Text (TOON): the primary skill, then the workflow with its session token.",
        "next_activity": "JSON: `activity_id`, `name`, `session_token`, "
        f"{_WARNED}; a trace token in `_meta`.",
        "get_activity": f"{_TOON} the exits and the activity (TOON).",
        "yield_checkpoint": "JSON: `status`, `checkpoint_id`, `checkpoint_handle`, `message`, "
        f"`session_token`, {_WARNED}; one that was answered before returns `resolved_option` and `effect` "
        "instead of the handle.",
        "resume_checkpoint": "JSON: `status`, `checkpoint_id`, `resolved_option`, `message`, "
        f"`session_token`, {_WARNED}.",
        "present_checkpoint": "Text (TOON): the checkpoint with message and options, then its handle; for a "
        "call by session token also that token.",
        "respond_checkpoint": "JSON: `checkpoint_id`, `resolved`, `checkpoint_handle`, `resolved_option` or "
        f"`dismissed`, `effect`, {_WARNED}; for a call by session token also `session_token`.",
        "get_skills": f"{_TOON} the skill (TOON).",
        "get_skill": f"{_TOON} the skill (TOON).",
        "get_resource": "Text: id, version and the session token, then the resource.",
        "get_trace": _TRACE,
    },
    "gated": {
        "discover": "JSON: `server`, `version`, `available_workflows`, `discovery`.",
        "list_workflows": "A JSON list: id, title, version of each.",
        "health_check": _HEALTH,
        "start_session": _STARTED.format("`inherited`"),
        "get_workflow": f"JSON: the workflow, its `session_token`, {OPEN}.",
        "next_activity": "JSON: the activity, `pending_checkpoints`, `expected_next`, `session_token`, "
        f"{OPEN}.",
        "get_checkpoint": "JSON: `checkpoint`, `session_token`.",
        "respond_checkpoint": "JSON: `checkpoint_id`, `resolved`, `session_token`, `remaining_checkpoints`, "
        f"`dismissible_checkpoints`, `expected_next`, `resolved_option` or `dismissed`, `effect`, {_WARNED}.",
        "get_skills": "JSON: `scope`, `skills`, `session_token`.",
        "get_skill": "JSON: `skill`, `session_token`.",
        "get_resource": "JSON: `resource`, `session_token`.",
        "get_trace": _TRACE,
    },
    "navigation": {
        "nav_start": _SITUATION,
        "nav_situation": _SITUATION,
        "nav_action": _SITUATION,
        "nav_checkpoint": "JSON: `active` (whether a checkpoint is open), `success`, `position`, "
        "`message`, `availableActions`, `checkpoint`, `state`, as in `nav_situation`.",
        "list_workflows": "JSON: `workflows`.",
        "get_workflow": f"JSON: `id`, `version`, `title`, `activities`, {OPEN}.",
        "get_workflow_activity": f"JSON: `id`, `version`, `name`, `steps`, {OPEN}.",
        "get_checkpoint": f"JSON: `id`, `name`, `message`, `options`, {OPEN}.",
        "validate_transition": "JSON: `valid`, and `reason` where it is not.",
        "health_check": _HEALTH.replace("`workflows_available`", "`workflows_available`, `workflows`"),
        "get_activities": "JSON: `description`, `usage`, `next_action`, `activities`, `quick_match`.",
        "get_activity": f"JSON: `workflowId`, `id`, `steps`, `next_action`, {OPEN}.",
        "get_skills": "JSON: `description`, `usage`, `universal`, `workflow_specific`.",
        "list_skills": "JSON: `universal`, `workflow_specific`.",
        "get_skill": "Text (TOON): the skill.",
        "list_workflow_resources": "JSON: `workflow_id`, `resources`.",
        "get_resource": "Text: the resource.",
        "list_templates": "JSON: `workflow_id`, `templates`.",
        "get_template": "Text: the template.",
        "discover_resources": "JSON: `workflows`, `activities`, `resources`, `templates`, `skills`.",
    },
    "lookup": {
        "workflow_get": f"JSON: `id`, `name`, `version`, `steps`, {OPEN}; with mode metadata `totalSteps`.",
    },
}
