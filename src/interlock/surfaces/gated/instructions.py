"""What the gated surface says to an agent before its first call, and the prompts that it offers."""

from __future__ import annotations

from interlock.surfaces.call import PromptTexts

INSTRUCTIONS = (
    "Interlock runs workflows activity by activity. Use it when the user names a workflow, or when one in "
    "list_workflows fits the task; prefer the team's own to the bundled ones. Begin with discover. "
    "Tokens are opaque: copy them whole, and use the newest. Checkpoints are the user's: answer every "
    "pending one with what they decided before the next activity. No token of earlier work? start_session "
    "with find."
)
PROMPTS = PromptTexts(
    start='Work through the workflow {id} of Interlock. Call start_session with workflow_id "{id}", then '
    "get_workflow, and go from activity to activity with next_activity.{inputs}",
    inputs=" Send variables {json} with your first next_activity.",
    resume='Call start_session with workflow_id "{id}" and session_token "{token}", and go on from there.',
)
