"""What the execution surface says to an agent before its first call, and the prompts that it offers."""

from __future__ import annotations

from interlock.surfaces.call import PromptTexts

INSTRUCTIONS = (
    "Interlock runs workflows one step at a time. Use it when the user names a workflow, or when one in "
    "list_workflows fits the task; prefer the team's own to the bundled ones. start_workflow; do exactly the "
    "pending step; then continue_workflow with the tokens it gave you. Gates are the user's: report only "
    "what they decided. Tokens are opaque: copy them whole. Lost your place? continue_workflow with only "
    "stateToken, or resume_session."
)
PROMPTS = PromptTexts(
    start='Work through the workflow {id} of Interlock. Call start_workflow with workflowId "{id}"{inputs}. '
    "Do exactly the pending step, then call continue_workflow with its tokens, until isComplete is true.",
    inputs=" and context {json}",
    resume='Call continue_workflow with stateToken "{token}" and nothing else, and go on from what it shows.',
)
