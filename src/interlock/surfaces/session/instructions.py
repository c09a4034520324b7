"""What the session surface says to an agent before its first call, and the prompts that it offers."""

from __future__ import annotations

from interlock.surfaces.call import PromptTexts

INSTRUCTIONS = (
    "Interlock runs workflows activity by activity. Use it when the user names a workflow, or when one in "
    "list_workflows fits the task; prefer the team's own to the bundled ones. Begin with discover. "
    "Checkpoints are the user's: report only what they decided. Tokens are opaque: copy them whole, and use "
    "the newest. The server holds variables, answers and position; read the warnings in each answer. "
    "No token of earlier work? start_session with find."
)
PROMPTS = PromptTexts(
    start='Work through the workflow {id} of Interlock. Call start_session with workflow_id "{id}" and an '
    "agent_id of your choice, then get_workflow, and go on with next_activity.{inputs}",
    inputs=" Send variables {json} with your first next_activity.",
    resume='Call start_session with session_token "{token}" and an agent_id of your choice, then '
    "get_workflow_status, and go on from there.",
)
