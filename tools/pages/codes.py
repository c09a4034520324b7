"""What each code of an answer means and which surface gives it, for the pages that people read.

The codes themselves live where they arise; a test holds this table complete.
"""

from __future__ import annotations

from collections.abc import Mapping

from interlock.core.run.reasons import BlockerCode
from interlock.surfaces.lookup import errors

_STORE: Mapping[str, str] = {
    "TOKEN_INVALID_FORMAT": "This is no token of the kind that belongs here, or it was cut.",
    "TOKEN_UNSUPPORTED_VERSION": "The token is of another version of the format.",
    "TOKEN_BAD_SIGNATURE": "A character was changed, or the key was rotated twice. Copy it again, whole.",
    "TOKEN_SCOPE_MISMATCH": "The token is genuine but belongs to another step, run or kind of call.",
    "TOKEN_UNKNOWN_NODE": "The token is genuine, but what it leads to is not in this store.",
    "TOKEN_SESSION_LOCKED": "Another process was writing for too long. The same call may be sent again.",
    "TOKEN_WORKFLOW_HASH_MISMATCH": "The pinned copy of the workflow cannot be read.",
    "SESSION_NOT_HEALTHY": "The session's log is damaged; it can be read up to there. See `doctor --repair`.",
    "STORE_UNAVAILABLE": "The file or the keyring cannot be used, or comes from a newer version.",
    "STORE_CORRUPT": "The database file is damaged. See `doctor --repair`.",
    "INTERNAL_ERROR": "A fault of the server. Nothing was recorded.",
}

_RUN: Mapping[str, str] = {
    "RUN_FINISHED": "The run is complete.",
    "DECISION_PENDING": "A checkpoint is open; nothing moves before it is answered.",
    "GATE_UNANSWERED": "A required checkpoint on the way has no answer yet.",
    "NO_ACTIVITY": "No activity has been entered yet.",
    "ACTIVITY_NOT_FOUND": "The workflow has no activity of that id.",
    "OUTPUT_REQUIRED": "A step demands an artifact that was not sent, or does not fit.",
    "INPUT_REQUIRED": "Variables are missing that decide how to go on.",
    "CHECKPOINT_NOT_FOUND": "The current activity has no checkpoint of that id.",
    "CHECKPOINT_NOT_ACTIVE": "That checkpoint does not wait for an answer now.",
    "OPTION_NOT_FOUND": "The checkpoint has no option of that id.",
    "USER_MUST_DECIDE": "The policy is `user`, or the user has already decided otherwise.",
}

_SESSION: Mapping[str, str] = {
    **_RUN,
    "VALIDATION_ERROR": "The arguments do not fit the tool.",
    "NOT_FOUND": "There is no such workflow, tool, skill or resource.",
    "STALE_TOKEN": "The session has moved on since. The answer carries the current position and token.",
    "STEP_NOT_FOUND": "The current activity has no step of that id.",
    "NO_SKILL": "The step or activity names no skill.",
    "CHECKPOINT_ALREADY_ANSWERED": "It has another answer on record.",
    "RESOLUTION_MODE": "Send exactly one of `option_id`, `auto_advance`, `condition_not_met`.",
    "TOO_FAST": "The answer came sooner than a person could have given it (`--min-response-seconds`).",
    "NOT_AUTO_ADVANCING": "The checkpoint blocks, or has no default option.",
    "TIMER_RUNNING": "The time after which the default counts has not passed.",
    "NOT_CONDITIONAL": "The checkpoint has no condition, so it cannot be dismissed.",
    "CONDITION_HOLDS": "The condition was checked and holds, so the checkpoint cannot be dismissed.",
}

_NAVIGATION: Mapping[str, str] = {
    "INVALID_PARAMETERS": "The arguments do not fit the tool.",
    "MISSING_PARAMETER": "The action needs an id that was not sent.",
    "UNKNOWN_TOOL": "This surface has no such tool.",
    "WORKFLOW_NOT_FOUND": "There is no workflow of that id.",
    "TARGET_ACTIVITY_NOT_FOUND": "A transition names an activity that the workflow does not have.",
    "SKILL_NOT_FOUND": "There is no skill of that id.",
    "RESOURCE_NOT_FOUND": "The workflow has no resource of that index.",
    "TEMPLATE_NOT_FOUND": "The workflow has no template of that index.",
    "INVALID_FORMAT": "The state does not begin as a state does.",
    "DECODE_FAILED": "The state is not base64.",
    "DECOMPRESS_FAILED": "The state cannot be decompressed.",
    "VALIDATION_FAILED": "The state is not one of ours, or was changed.",
    "WORKFLOW_COMPLETED": _RUN["RUN_FINISHED"],
    "CHECKPOINT_BLOCKING": _RUN["DECISION_PENDING"],
    "CHECKPOINT_ALREADY_RESPONDED": _SESSION["CHECKPOINT_ALREADY_ANSWERED"],
    "ACTIVITY_NOT_COMPLETE": "Steps, loops or checkpoints of the activity are left.",
    "INVALID_TRANSITION": "No transition leads there, or its condition is false.",
    "STEP_NOT_FOUND": _SESSION["STEP_NOT_FOUND"],
    "STEP_NOT_PENDING": "Another step comes first.",
    "STEP_ALREADY_COMPLETE": "The step was completed before.",
    "LOOP_NOT_FOUND": "That loop does not wait to be advanced.",
    "LOOP_ITEMS_REQUIRED": "A forEach loop needs its list in `loop_items`.",
    **{
        code: text
        for code, text in _RUN.items()
        if code not in ("RUN_FINISHED", "DECISION_PENDING", "GATE_UNANSWERED", "NO_ACTIVITY")
    },
}

ERRORS: Mapping[str, Mapping[str, str]] = {
    "execution": {
        "VALIDATION_ERROR": "The arguments do not fit; `details.correctTemplate` shows a call that would.",
        "NOT_FOUND": "There is no such workflow, tool or session.",
        "PRECONDITION_FAILED": "The call does not fit where the run stands; `details.reason` says why.",
        **_STORE,
    },
    "session": {
        **_SESSION,
        "CHECKPOINT_ALREADY_ACTIVE": "Another checkpoint was yielded and is not answered.",
        "CHECKPOINT_STILL_ACTIVE": "The yielded checkpoint is not answered yet.",
        "CHECKPOINT_NOT_YIELDED": "There is nothing to resume.",
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
            (errors.INVALID_PARAMS, "The parameters do not fit; `data.details` names the field first."),
            (errors.INTERNAL_ERROR, "A fault of the server."),
            (errors.WORKFLOW_NOT_FOUND, "There is no workflow of that id."),
            (errors.INVALID_WORKFLOW, "The workflow's file has an error; `data.details` says where."),
            (errors.STEP_NOT_FOUND, "The workflow has no step of that id."),
            (errors.INVALID_CRITERIA, "The criteria of the step cannot be used."),
            (errors.INVALID_STATE, "The completed steps do not fit the workflow."),
            (errors.STORAGE_ERROR, "A file cannot be read."),
            (errors.SECURITY_ERROR, "A file lies where it must not be read from."),
        )
    },
}

BLOCKERS: Mapping[BlockerCode, str] = {
    BlockerCode.USER_ONLY_DEPENDENCY: "Only the user can give this: a decision, or an input.",
    BlockerCode.MISSING_REQUIRED_OUTPUT: "The step demands something that was not sent.",
    BlockerCode.INVALID_REQUIRED_OUTPUT: "What was sent does not fit what the step demands.",
    BlockerCode.REQUIRED_CAPABILITY_UNKNOWN: "Nobody has tried whether the agent can do this.",
    BlockerCode.REQUIRED_CAPABILITY_UNAVAILABLE: "The agent has shown that it cannot do this.",
    BlockerCode.INVARIANT_VIOLATION: "The workflow contradicts itself here.",
    BlockerCode.STORAGE_CORRUPTION_DETECTED: "What is recorded cannot be read.",
}
