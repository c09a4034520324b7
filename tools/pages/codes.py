"""What each error and blocker code means on which surface, for docs/surfaces.

The codes are defined where they arise; a test checks that these tables are complete.
"""

from __future__ import annotations

from collections.abc import Mapping

from interlock.core.run.reasons import BlockerCode
from interlock.surfaces.lookup import errors

_STORE: Mapping[str, str] = {
    "TOKEN_INVALID_FORMAT": "This is not a token of the kind that is expected here, or it is incomplete.",
    "TOKEN_UNSUPPORTED_VERSION": "The token has another version of the format.",
    "TOKEN_BAD_SIGNATURE": "A character was changed, or the key is lost. Copy the whole token again.",
    "TOKEN_KEY_RETIRED": "The keys were rotated twice since the token was given. Find the session again.",
    "TOKEN_SCOPE_MISMATCH": "The token is genuine but belongs to another step, run or kind of call.",
    "TOKEN_UNKNOWN_NODE": "The token is genuine, but its session or node is not in this store.",
    "TOKEN_OTHER_TIMELINE": "The records were set back since the token was given, by a restore, a failover "
    "or a repair. The answer carries a token that leads to where the run is now.",
    "TOKEN_SESSION_LOCKED": "Another process was writing for too long. Send the same call again.",
    "TOKEN_WORKFLOW_HASH_MISMATCH": "The pinned copy of the workflow cannot be read.",
    "SESSION_NOT_HEALTHY": "The session's log is damaged; it can be read up to the damage. See `doctor "
    "--repair`.",
    "STORE_UNAVAILABLE": "The database or the keyring cannot be used, or was written by a newer version.",
    "STORE_CORRUPT": "The database file is damaged. See `doctor --repair`.",
    "GUARD_REFUSED": "Interlock's guard found that this would break a promise: see `interlock verify`.",
    "INTERNAL_ERROR": "An error in the server. Nothing was recorded.",
}

_RUN: Mapping[str, str] = {
    "CHECK_FAILED": "A check of the step has failed, or was not run because the user has not trusted it.",
    "CHECKED_AGAIN": "Files have changed since the question was put: its checks were run again, and it is "
    "asked again with their results.",
    "ROUND_DUE": "The next round of a loop is due: its condition still holds.",
    "RUN_FINISHED": "The run is complete.",
    "RUN_ABANDONED": "The run was abandoned; the message says by whom and why. It stays readable.",
    "DECISION_PENDING": "A checkpoint is open; the run waits for its answer.",
    "GATE_UNANSWERED": "A required checkpoint before the target has no answer yet.",
    "NO_ACTIVITY": "No activity has been entered yet.",
    "ACTIVITY_NOT_FOUND": "The workflow has no activity with that id.",
    "OUTPUT_REQUIRED": "A step requires an artifact that was not sent or is not valid.",
    "INPUT_REQUIRED": "Variables are missing that decide how the run continues.",
    "CHECKPOINT_NOT_FOUND": "The current activity has no checkpoint with that id.",
    "CHECKPOINT_NOT_ACTIVE": "That checkpoint is not waiting for an answer.",
    "OPTION_NOT_FOUND": "The checkpoint has no option with that id.",
    "USER_MUST_DECIDE": "The decision policy is `user`, or the user has already chosen another option.",
}

_SESSION: Mapping[str, str] = {
    **_RUN,
    "VALIDATION_ERROR": "The arguments are not valid for this tool.",
    "NOT_FOUND": "There is no such workflow, tool, skill or resource.",
    "WORKFLOW_INVALID": "The workflow's file has errors; the message names file, line and code.",
    "STALE_TOKEN": "The session has advanced since. The answer has the current position and token.",
    "STEP_NOT_FOUND": "The current activity has no step with that id.",
    "NO_SKILL": "The step or activity names no skill.",
    "CHECKPOINT_ALREADY_ANSWERED": "The checkpoint was answered with another option.",
    "RESOLUTION_MODE": "Send exactly one of `option_id`, `auto_advance`, `condition_not_met`.",
    "TOO_FAST": "The answer came sooner than a person could answer (`--min-response-seconds`).",
    "NOT_AUTO_ADVANCING": "The checkpoint blocks, or has no default option.",
    "TIMER_RUNNING": "The time after which the default is taken has not passed.",
    "NOT_CONDITIONAL": "The checkpoint has no condition and cannot be dismissed.",
    "CONDITION_HOLDS": "The checkpoint's condition holds, so it cannot be dismissed.",
}

_NAVIGATION: Mapping[str, str] = {
    "INVALID_PARAMETERS": "The arguments are not valid for this tool.",
    "MISSING_PARAMETER": "The action needs an id that was not sent.",
    "WORKFLOW_NOT_FOUND": "There is no workflow with that id.",
    "WORKFLOW_INVALID": "The workflow's file has errors; the message names file, line and code.",
    "TARGET_ACTIVITY_NOT_FOUND": "A transition names an activity that the workflow does not have.",
    "SKILL_NOT_FOUND": "There is no skill with that id.",
    "RESOURCE_NOT_FOUND": "The workflow has no resource with that index.",
    "TEMPLATE_NOT_FOUND": "The workflow has no template with that index.",
    "INVALID_FORMAT": "The state does not begin with `v1.gzB64.`.",
    "DECODE_FAILED": "The state is not base64.",
    "DECOMPRESS_FAILED": "The state cannot be decompressed.",
    "VALIDATION_FAILED": "The state was not issued by this server, or was changed.",
    "WORKFLOW_COMPLETED": _RUN["RUN_FINISHED"],
    "WORKFLOW_ABANDONED": _RUN["RUN_ABANDONED"],
    "CHECKPOINT_BLOCKING": _RUN["DECISION_PENDING"],
    "CHECKPOINT_ALREADY_RESPONDED": _SESSION["CHECKPOINT_ALREADY_ANSWERED"],
    "ACTIVITY_NOT_COMPLETE": "The activity has steps, loops or checkpoints that are not done.",
    "INVALID_TRANSITION": "No transition leads to that activity, or its condition is false.",
    "STEP_NOT_FOUND": _SESSION["STEP_NOT_FOUND"],
    "STEP_NOT_PENDING": "Another step comes first.",
    "STEP_ALREADY_COMPLETE": "The step is already complete.",
    "REASK_IMPOSSIBLE": "No question can be asked again here with what `reask` brings.",
    "VARIABLES_TOO_LARGE": "The variables of the run would be larger than they may be in all.",
    "LOOP_NOT_FOUND": "That loop is not waiting to be advanced.",
    "CHILD_RUNNING": "The run waits for its child; finish it, or send `abandon_children`.",
    "LOOP_ITEMS_REQUIRED": "A forEach loop needs its list in `loop_items`.",
    **{
        code: text
        for code, text in _RUN.items()
        if code not in ("RUN_FINISHED", "RUN_ABANDONED", "DECISION_PENDING", "GATE_UNANSWERED", "NO_ACTIVITY")
    },
}

ERRORS: Mapping[str, Mapping[str, str]] = {
    "execution": {
        "VALIDATION_ERROR": "The arguments are not valid; `details.correctTemplate` shows a call that is.",
        "NOT_FOUND": "There is no such workflow, tool or session.",
        "PRECONDITION_FAILED": "The call is not possible at the run's position; `details.reason` says why.",
        **_STORE,
    },
    "session": {
        **_SESSION,
        "CHECKPOINT_ALREADY_ACTIVE": "Another checkpoint was yielded and has no answer yet.",
        "CHECKPOINT_STILL_ACTIVE": "The yielded checkpoint has no answer yet.",
        "CHECKPOINT_NOT_YIELDED": "No checkpoint was yielded, so there is nothing to resume.",
        **_STORE,
    },
    "gated": {
        **_SESSION,
        "WORKFLOW_MISMATCH": "`workflow_id` is not the workflow of the session.",
        **_STORE,
    },
    "navigation": {**_NAVIGATION, **_STORE},
    "lookup": {
        str(code): text
        for code, text in (
            (errors.METHOD_NOT_FOUND, "There is no such method."),
            (errors.INVALID_PARAMS, "The parameters are not valid; `data.details` begins with the field."),
            (errors.INTERNAL_ERROR, "An error in the server."),
            (errors.WORKFLOW_NOT_FOUND, "There is no workflow with that id."),
            (errors.INVALID_WORKFLOW, "The workflow's file has an error; `data.details` says where."),
            (errors.STEP_NOT_FOUND, "The workflow has no step with that id."),
            (errors.INVALID_CRITERIA, "The step's validation criteria are not valid."),
            (errors.INVALID_STATE, "The completed steps are not those of the workflow."),
            (errors.STORAGE_ERROR, "A file cannot be read."),
            (errors.SECURITY_ERROR, "A file is outside the folders that may be read."),
        )
    },
}

BLOCKERS: Mapping[BlockerCode, str] = {
    BlockerCode.USER_ONLY_DEPENDENCY: "Only the user can give this: a decision or an input.",
    BlockerCode.MISSING_REQUIRED_OUTPUT: "The step requires something that was not sent.",
    BlockerCode.INVALID_REQUIRED_OUTPUT: "What was sent is not what the step requires.",
    BlockerCode.REQUIRED_CAPABILITY_UNKNOWN: "It has not been tried whether the agent can do this.",
    BlockerCode.REQUIRED_CAPABILITY_UNAVAILABLE: "The agent tried and could not do this.",
    BlockerCode.INVARIANT_VIOLATION: "The workflow contradicts itself at this point.",
    BlockerCode.STORAGE_CORRUPTION_DETECTED: "The record cannot be read.",
}
