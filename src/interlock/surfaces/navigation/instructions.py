"""What the navigation surface says to an agent before its first call, and the prompts that it offers."""

from __future__ import annotations

from interlock.surfaces.call import PromptTexts

INSTRUCTIONS = (
    "Interlock walks you through a workflow. Use it when the user names one, or when one in get_activities "
    "fits the task; prefer the team's own to the bundled ones. nav_start gives a situation: do what "
    "availableActions.required asks, report it with nav_action, and pass on the newest state each time. "
    "Checkpoints are the user's: report only what they decided. No state of earlier work? "
    "nav_start with find."
)
PROMPTS = PromptTexts(
    start='Work through the workflow {id} of Interlock. Call nav_start with workflow_id "{id}"{inputs}, do '
    "what availableActions.required asks, and report it with nav_action, until the workflow is complete.",
    inputs=" and initial_variables {json}",
    resume='Call nav_situation with state "{token}", and go on from the situation that it shows.',
)
