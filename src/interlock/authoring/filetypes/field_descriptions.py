"""What each field of the file formats means: the source of the published schemas and of docs/format.md.

Kept apart from the types, so that reading a workflow file does not load these texts.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from interlock.authoring.filetypes import activity_file as activities
from interlock.authoring.filetypes import scenario_file as scenarios
from interlock.authoring.filetypes import step_file as steps
from interlock.core.definition.conditions import Operator

_KEPT = "Not interpreted; kept and shown to agents that read the whole {}."
_IGNORED = "Accepted for files of other servers; ignored."

_FUNCTIONS: Mapping[type[Struct], Mapping[str, str]] = {
    steps.FunctionSource: {
        "name": "The name by which steps call or reference the function.",
        "definition": "What the function does, in words; the prompt of each step that names it shows this.",
        "parameters": "Parameters to print after the name: a list of names, or of objects with `name`.",
        "scope": "Documentation only; a function is known where it is defined and below.",
    },
    steps.CallSource: {
        "name": "A function that the workflow, an enclosing loop or the step defines.",
        "args": "Documentation only; the arguments are neither checked nor shown.",
    },
}

_PROMPTS: Mapping[type[Struct], Mapping[str, str]] = {
    steps.PromptBlocks: {
        "goal": "What the step is to achieve.",
        "constraints": "What the agent must respect.",
        "procedure": "How to go about it.",
        "outputRequired": "What to hand in; each key of an object is required.",
        "verify": "What to check before handing in.",
    },
    steps.FragmentSource: {
        "text": "The text of the fragment.",
        "id": "Documentation only: a name for the fragment.",
        "when": "The fragment is part of the prompt only while this condition holds.",
    },
    steps.TemplateCall: {
        "templateId": "The name of a built-in template.",
        "args": "Values for the `{name}` placeholders of the template; those without a default are required.",
    },
}

_OUTPUT: Mapping[type[Struct], Mapping[str, str]] = {
    steps.OutputSource: {
        "contractRef": "A built-in contract by name; of an unknown one only the artifact's `kind` is "
        "checked.",
        "kind": "The artifact's `kind`. If absent: the schema's constant for `kind`, else the example's, "
        "else the step's id.",
        "schema": "A JSON Schema that the artifact must match.",
        "example": "An artifact that passes; the prompt and every refusal show it, with `kind` added.",
        "hints": "Advice on the output that the prompt shows; never enforced.",
        "required": "Whether the step needs the artifact; an optional one is checked only when it is sent.",
    },
    steps.OutputContract: {
        "contractRef": "The same as `output.contractRef`.",
        "required": "The same as `output.required`.",
    },
    steps.RuleSource: {
        "type": "What the rule checks: `contains` uses `value`, `regex` uses `pattern` and `flags`, "
        "`length` uses `min` and `max`, `schema` uses `schema`.",
        "message": "What the output must satisfy, in words; shown in the prompt and when the rule fails.",
        "value": "`contains`: the text that must occur; case counts.",
        "pattern": "`regex`: the pattern that must be found, in RE2 syntax; look-around runs under a time "
        "limit.",
        "flags": "`regex`: any of the letters `i` (ignore case), `m` (`^` and `$` match at lines) and `s` "
        "(a dot matches a newline).",
        "min": "`length`: the least number of characters.",
        "max": "`length`: the greatest number of characters.",
        "schema": "`schema`: a JSON Schema; the output is parsed as JSON and must match it.",
        "condition": "The rule counts only while this condition holds.",
    },
    steps.AssessmentSource: {
        "id": "The name that `assessmentRefs` of steps use.",
        "dimensions": "What is rated, each with its levels.",
        "purpose": "Documentation only: what the assessment is for.",
    },
    steps.Dimension: {
        "id": "The key of the dimension in the artifact.",
        "levels": "The levels that the agent chooses from.",
        "purpose": "What the dimension measures; part of the artifact's schema.",
        "required": "`false`: the assessment may leave it out.",
    },
    steps.Consequence: {
        "when": "The level that has a consequence.",
        "effect": "The consequence.",
    },
    steps.Consequence.When: {
        "anyEqualsLevel": "The consequence follows if any dimension has this level.",
        "forAssessment": "The assessment that is looked at; all assessments of the step if absent.",
    },
    steps.Consequence.Then: {
        "guidance": "What the agent has to do first; the step is refused with this text.",
        "kind": "The only kind: the step stays pending until an assessment without that level is sent.",
    },
}

_STEPS: Mapping[type[Struct], Mapping[str, str]] = {
    steps.UserInputSource: {
        "reason": "Why only the user can give it.",
        "question": "The question as the user reads it.",
        "key": "The variable that holds the answer; the step can be acknowledged once it is set. Without a "
        "key the answer is a decision called `<step id>:<reason>`.",
        "nonAssumable": "Why the choice must not be assumed. Outside guided mode a `needs_user_choice` "
        "without this is assumed, and the assumption is recorded.",
    },
    steps.CheckSource: {
        "id": "Names the check; texts show its result as `{{checks.ID}}`.",
        "run": "The command, split into words as a shell would and run without one.",
        "in": "The folder within the project to run it in.",
        "timeout": "Seconds until it is ended.",
        "expect": "What must come of it.",
        "when": "The check is not run while this condition is false.",
    },
    steps.ExpectationSource: {
        "exit": "The exit status.",
        "stdout": "A text that the output has.",
        "files": "Files of the project that are there afterwards.",
    },
    steps.ActionSource: {
        "action": "`set` writes a variable; the others are instructions that the agent reads.",
        "target": "The variable that `set` writes, or what another action is about.",
        "message": "What the agent reads beside the action.",
        "value": "The value that the server writes for `set`. Without one, the prompt asks the agent to "
        "produce the variable, and a missing variable is a warning.",
        "description": "Stands in for `message` where that is absent.",
        "condition": "The server carries out `set` only while this condition holds.",
    },
    steps.TriggerSource: {
        "workflow": "The id of the workflow to start as a child.",
        "description": "Why it is started; shown to the agent.",
        "passContext": "Names of the variables whose values the child starts with.",
    },
    steps.Delegation: {
        "workflowId": "The workflow or routine that the agent delegates.",
        "args": "Arguments for it, which the prompt shows as JSON.",
        "goal": "What it is to achieve; shown to the agent.",
        "contextMapping": "What it is given of the context, which the prompt shows as JSON.",
        "allowedTools": "The only tools that it may use; shown to the agent.",
        "runCondition": "It is shown as part of the step only while this condition holds.",
        "modelTier": "The kind of model to use; shown to the agent.",
    },
    steps.StepSource: {
        "id": "Names the step within its activity: up to 128 letters, digits, `_`, `.` and `-`. A second "
        "step of the same id is a warning and becomes `id#2`.",
        "type": "May be left out; `parallel` is a step that the agent delegates in parts.",
        "title": "The heading, up to 128 characters. Every step has `title` or `name`.",
        "name": "The same as `title`, which takes precedence; activity files use this field.",
        "description": "A summary; it is the prompt of a step without `prompt` and `promptBlocks`.",
        "prompt": "What the agent is to do: text, or a list of texts and parts that are joined.",
        "promptBlocks": "What the agent is to do, in sections; they follow `prompt` if both are given.",
        "templateCall": "Replaces this step by the steps of a template; their ids are `<id>.<template "
        "step>`.",
        "promptFragments": "Texts that are added to the prompt while their condition holds.",
        "agentRole": "The role that the agent takes in this step instead of the workflow's; the first line "
        "of the prompt.",
        "guidance": "Advice that the prompt lists after the instruction.",
        "askForFiles": "Adds a line to the prompt: ask the user for the files that the step needs.",
        "requireConfirmation": "`true`, or a condition: after the step the user says `proceed` or `revise`. "
        "An object with `kind` may hold the `condition`.",
        "runCondition": "The step is skipped while this condition is false.",
        "condition": "The same as `runCondition`, which takes precedence; activity files use this field.",
        "validationCriteria": "What the step's notes (or, without notes, its artifacts as JSON) must "
        "satisfy: a list of rules, a tree of `and`, `or` and `not`, or one pattern.",
        "hasValidation": _IGNORED,
        "outputContract": "The older form of `output` with a `contractRef`.",
        "output": "The artifact that the step must hand in.",
        "assessmentRefs": "Assessments of the workflow that the step must report as artifacts of kind "
        "`wr.assessment`.",
        "assessmentConsequences": "Levels of these assessments that do not let the step pass.",
        "userInput": "What only the user can give; the step waits for it.",
        "checks": "Commands that the server runs when the step is done, and the names of checks that a "
        "project defines in `.interlock/checks.yaml`. One that fails holds the step.",
        "functionDefinitions": "Functions that only this step knows.",
        "functionCalls": "Functions that the step calls; the prompt shows their definitions.",
        "functionReferences": "Functions that the step mentions, as `name` or `name()`; the prompt shows "
        "their definitions.",
        "parallelDelegations": "With `type: parallel`: what the agent hands out.",
        "synthesis": "With `type: parallel`: how the agent brings the results together.",
        "skill": "The skill that the agent uses for this step; the prompt names it.",
        "skillArgs": "Arguments for the skill; shown with the step.",
        "skill_args": "The same as `skillArgs`, which takes precedence; activity files use this field.",
        "checkpoint": "The checkpoint of the same activity that is asked right before this step.",
        "actions": "What happens when the step is done.",
        "sets": "Variables that the step sets. One that a condition reads or another item shows is required "
        "when the step is done.",
        "triggers": "Child workflows that the agent starts in this step; one object or a list.",
        "required": "Whether the step has to be done. One that is not may be passed over, also if it "
        "declares an output.",
        "probes": "The capability that this step tries out: the run goes on once it was observed to work.",
        "notesOptional": "Without notes the step is done and no gap is recorded.",
        "audit": _KEPT.format("step"),
        "verification": _KEPT.format("step"),
        "modelTier": "Not interpreted; the `lookup` surface passes it on as `modelHint`.",
    },
}

_GATES: Mapping[type[Struct], Mapping[str, str]] = {
    steps.GateSource: {
        "id": "Names the gate within its activity; two gates of one id are an error.",
        "message": "The question as the user reads it.",
        "options": "The answers to choose from.",
        "type": "`gate` and `checkpoint` mean the same; needed in `steps`, not in `checkpoints`.",
        "name": "A short title; the id if absent.",
        "condition": "The gate is passed over while this condition is false.",
        "prerequisite": "What must have happened before, in words; shown and not evaluated.",
        "required": "Whether an answer is needed. `execution` offers an optional gate, the other surfaces "
        "pass it over.",
        "blocking": "Whether only an answer passes the gate. If absent: `false` where `defaultOption` and "
        "`autoAdvanceMs` are both given, else `true`.",
        "defaultOption": "The option that is taken when the time is over, and in never-stop mode without an "
        "answer.",
        "checks": "Checks that must pass before the question is put, which shows them.",
        "autoAdvanceMs": "Milliseconds to wait for an answer; the next call after that takes "
        "`defaultOption`, unless the gate is blocking.",
        "decide": "Who decides the gate, and by when; nobody else's answer counts.",
    },
    steps.DecideSource: {
        "by": "Names and groups of principals (`interlock auth`). Only they answer the gate.",
        "atLeast": "How many different people must choose the same option; 1 if absent.",
        "notBy": "`starter`: whoever started the run does not count.",
        "within": "How long they have from the showing of the question: a number of up to five digits, and "
        "`s`, `m`, `h` or `d`.",
        "remind": "How often they are reminded while it waits, in the same form.",
        "then": "What follows if they do not decide in time; needs `within`.",
    },
    steps.ThenSource: {
        "escalate": "A name or group that may answer as well from then on.",
        "option": "The option that is taken then.",
    },
    steps.OptionSource: {
        "id": "What an answer names.",
        "label": "What the user reads; the id if absent.",
        "description": "A longer text beside the label.",
        "effect": "What choosing the option does.",
    },
    steps.EffectSource: {
        "setVariable": "Variables to set, by name; `null` deletes one.",
        "transitionTo": "The activity to go to at once, past what is left of this one; `__terminal__` ends "
        "the run.",
        "skipActivities": "Activities to skip from now on: whatever leads to one goes to its default "
        "transition instead.",
    },
}

_ITERATIONS = (
    "The most iterations, 1 to 1000. A loop that would go on is left, and a warning gap is recorded."
)

_LOOPS: Mapping[type[Struct], Mapping[str, str]] = {
    steps.LoopSource: {
        "id": "Names the loop within its activity; two loops of one id are an error.",
        "loop": "The kind of the loop and what steers it.",
        "body": "What is repeated: a list of steps, gates and loops, or the id of a step of the same list, "
        "which then runs only in the loop.",
        "type": "Always `loop`; it has to be written, because it tells a loop from a step.",
        "title": "The heading, up to 128 characters; the id if absent.",
        "name": "The same as `title`, which takes precedence.",
        "description": "A summary.",
        "runCondition": "The whole loop is passed over if this condition is false on arrival.",
        "requireConfirmation": "Has no effect on a loop and is a warning; confirm a step of the body "
        "instead.",
        "functionDefinitions": "Functions that the steps of the body know.",
    },
    steps.LoopConfig: {
        "type": "The kind of loop.",
        "maxIterations": f"{_ITERATIONS} A loop without it is an error.",
        "condition": "`while` and `doWhile` repeat while it holds, `until` repeats until it holds.",
        "conditionSource": "Where the decision to go on comes from, instead of `condition`.",
        "breakCondition": "The loop is left if this condition holds at the end of an iteration.",
        "count": "`for`: how many iterations, as a number or as the name of a variable.",
        "items": "`forEach`: the variable that holds the list. It is read once, on arrival.",
        "iterationVar": "The variable that counts the iterations from 1; `currentIteration` if absent.",
        "itemVar": "`forEach`: the variable that holds the item; `currentItem` if absent.",
        "indexVar": "The variable that counts the iterations from 0; `currentIndex` if absent.",
    },
    steps.ConditionSource: {
        "kind": "`artifact_contract`: a `wr.loop_control` artifact of a step in the body decides; "
        "`context_variable`: a condition decides.",
        "contractRef": "With `artifact_contract`: `wr.contracts.loop_control`, the only contract that "
        "steers.",
        "loopId": _IGNORED,
        "condition": "With `context_variable`: the loop's condition.",
    },
    activities.ActivityLoopSource: {
        "id": "Names the loop within its activity; two loops of one id are an error.",
        "type": "The kind of loop.",
        "name": "The heading; the id if absent.",
        "description": "A summary.",
        "variable": "`forEach`: the variable that holds the item; `currentItem` if absent.",
        "over": "`forEach`: the variable that holds the list. It is read once, on arrival.",
        "condition": "`while` and `doWhile` repeat while it holds.",
        "maxIterations": _ITERATIONS,
        "breakCondition": "The loop is left if this condition holds at the end of an iteration.",
        "steps": "What is repeated: steps, gates and loops in order.",
        "loops": "Loops within this one, before or after `steps` as the file has them.",
        "checkpoints": "Gates of each iteration, placed as those of an activity are.",
        "activities": "Ids of activities whose steps, loops and checkpoints follow `steps` in each "
        "iteration; their transitions are ignored.",
    },
}

_AUTONOMY = "A run that starts beyond this gets a warning; the user's mode stays in force."

_WORKFLOWS: Mapping[type[Struct], Mapping[str, str]] = {
    steps.StepWorkflowSource: {
        "id": "`namespace.name` in lower case, up to 128 characters; `wr` is reserved. An id without a dot "
        "is a warning.",
        "name": "The name that people read, up to 128 characters.",
        "version": "Three numbers such as `1.2.0`.",
        "steps": "Steps, gates and loops in the order in which a run meets them. In a folder, a text alone "
        "is the id of a step that is written in `steps/<id>.md`.",
        "description": "What the workflow achieves, in one or two sentences of up to 512 characters.",
        "kind": "`routine` is a part that others delegate to. If absent: `routine` for ids whose name "
        "begins with `routine-` and for files in a folder `routines`, else `workflow`.",
        "category": "The category in lists; the first tag if absent, else `general`.",
        "tags": "Words to find the workflow by.",
        "author": "Who wrote it.",
        "about": "A longer description for people, up to 4096 characters.",
        "examples": _KEPT.format("workflow"),
        "agentRole": "The role that the agent takes in every step; the first line of each prompt.",
        "preconditions": "What must be true before the run; shown at its start as 'Before you begin'.",
        "clarificationPrompts": "Questions to settle first; shown at the start of the run as 'Clarify "
        "first'.",
        "metaGuidance": "Rules for the whole run; shown at its start as 'Throughout'.",
        "functionDefinitions": "Functions that every step may name.",
        "recommendedPreferences": "How far the author would let a run go by itself.",
        "capabilities": "What the agent must be able to do: `delegation`, `web_browsing`. `required` adds a "
        "first step that tries it out; `preferred` tells the agent how to do without; `disabled` "
        "tells it not to.",
        "features": "Built-in features; each adds lines to the prompt blocks of every step that has some. "
        "Named by its id, or as `{id, config}` where the feature has settings.",
        "assessments": "Assessments that steps refer to.",
        "references": "Documents that the workflow relies on; part of its hash.",
        "variables": "The variables that conditions read.",
        "extensionPoints": _KEPT.format("workflow"),
        "modelTier": _KEPT.format("workflow"),
        "metricsProfile": _KEPT.format("workflow"),
        "minServerVersion": "The oldest server that can run the workflow; on an older one it is an error.",
        "validatedAgainstSpecVersion": _KEPT.format("workflow"),
    },
    steps.FeatureUse: {
        "id": "The name of a built-in feature.",
        "config": "Values for the settings that the feature has; those left out keep their default.",
    },
    steps.VariableSource: {
        "name": "The name that conditions, prompts and effects use.",
        "type": "The type of its values: others are converted or refused. Without it, any value is taken.",
        "description": "What it means and which values it can have.",
        "defaultValue": "The value that comparisons and prompts see while nobody has set the variable; "
        "`exists` does not see it.",
        "required": "Says that the value comes from outside, so that the validator does not look for a step "
        "that sets it.",
    },
    steps.Recommended: {
        "recommendedAutonomy": "How far a run should go without the user, from `guided` to "
        f"`full_auto_stop_on_user_deps` to `full_auto_never_stop`. {_AUTONOMY}",
        "recommendedRiskPolicy": "How missing capabilities are treated: `conservative` stops, `balanced` "
        f"warns of unproven ones, `aggressive` warns of all. {_AUTONOMY}",
    },
    steps.ReferenceSource: {
        "id": "Names the reference; a name that begins with `wr.refs.` is a built-in text.",
        "title": "What it is called.",
        "source": "Where it is found; a name that begins with `wr.refs.` is a built-in text.",
        "purpose": "What it is good for.",
        "authoritative": "Whether it decides where texts disagree.",
        "resolveFrom": "What the source is relative to.",
    },
}

_ACTIVITIES: Mapping[type[Struct], Mapping[str, str]] = {
    activities.ActivityWorkflowSource: {
        "id": "Lower-case letters, digits and hyphens, up to 128 characters, without a namespace.",
        "version": "Three numbers such as `1.2.0`.",
        "title": "The name that people read. Every workflow has `title` or `name`.",
        "name": "The same as `title`, which takes precedence.",
        "description": "What the workflow achieves, in one or two sentences.",
        "author": "Who wrote it.",
        "category": "The category in lists; the first tag if absent, else `general`.",
        "tags": "Words to find the workflow by.",
        "rules": "Rules for the whole run; shown at its start.",
        "variables": "The variables that conditions read.",
        "initialActivity": "Where a run begins. If absent, it begins with the one activity that no other "
        "leads to; if none leads to another, the first question of a run is which one to enter.",
        "activities": "Activities that are not files of the folder: references such as "
        "`other/02-review.yaml`, or whole activities. Names of files without a number give their order.",
        "activitiesDir": "The folder of the activity files; `activities` if absent.",
        "modes": "Variants of the workflow that skip activities.",
        "artifactLocations": "Folders for artifacts by name: a path, or an object; shown to agents.",
        "skills": "The skill for the whole workflow: `{primary: id}`, or a list whose first entry is the "
        "primary one.",
        "executionModel": "Not interpreted; the `gated` surface returns it with the workflow.",
        "assessments": "Assessments that steps refer to.",
        "functionDefinitions": "Functions that every step may name.",
        "recommendedPreferences": "How far the author would let a run go by itself.",
        "about": "A longer description for people.",
        "minServerVersion": "The oldest server that can run the workflow; on an older one it is an error.",
    },
    activities.ModeSource: {
        "id": "Names the mode.",
        "name": "The name that people read.",
        "activationVariable": "The variable that switches the mode on while it is `true`.",
        "description": "What the mode is for.",
        "recognition": "Phrases in a user's request that ask for the mode; shown to agents.",
        "skipActivities": "Activities to skip while the mode is on: whatever leads to one goes to its "
        "default transition instead.",
        "defaults": "Values for variables that agents are shown with the mode; the server does not set them.",
        "resource": "A resource that explains the mode: its number, or `workflow/NN`.",
    },
    activities.ActivitySource: {
        "id": "Names the activity within the workflow; what `transitionTo` and `to` refer to.",
        "name": "The name that people read.",
        "version": "Three numbers such as `1.2.0`.",
        "description": "What happens in the activity.",
        "problem": "The need that it serves; shown where an activity is chosen.",
        "recognition": "Goals in a user's words that the activity fits; `navigation` lists them.",
        "skills": "The skills for this activity.",
        "steps": "Steps, gates and loops in order. A text alone is the id of a step that is written in "
        "`activities/<activity>/<id>.md`.",
        "checkpoints": "Gates: each is asked before the step whose `checkpoint` names it, else where the "
        "compiler puts it; `validate` says where.",
        "decisions": "Choices that the server makes from the variables when the activity is done.",
        "loops": "Loops that follow the steps.",
        "transitions": "Where the activity leads; without any, the run ends after it.",
        "triggers": "Child workflows that the agent starts in this activity; one object or a list.",
        "entryActions": "What happens when the activity is entered.",
        "exitActions": "What happens when the activity is left.",
        "artifacts": "Files that the activity creates or updates; shown to agents.",
        "artifactPrefix": "Ignored; the prefix is the number in the name of the activity's file.",
        "outcome": "What is true when the activity is done; shown to agents.",
        "context_to_preserve": "What later activities need from this one; shown to agents.",
        "rules": "Rules for this activity; shown to agents.",
        "notes": "Further remarks; shown to agents.",
        "required": "Whether the activity belongs to every run; shown to agents.",
        "estimatedTime": "How long it takes, such as `10-20 min`; shown to agents.",
    },
    activities.SkillsSource: {
        "primary": "The skill that an agent reads first.",
        "supporting": "Further skills. Of an activity only; the workflow's are not read.",
    },
    activities.TransitionSource: {
        "to": "The id of an activity; `__terminal__`, `end-workflow` and `workflow-end` end the run.",
        "condition": "The transition is open while this condition holds.",
        "isDefault": "Taken if no condition holds. If none is marked, the first without a condition is.",
    },
    activities.DecisionSource: {
        "id": "Names the decision.",
        "branches": "The branches in order; the first that applies and has a target decides.",
        "name": "The heading; the id if absent.",
        "description": "What is decided.",
    },
    activities.BranchSource: {
        "id": "Names the branch.",
        "label": "What people read; the id if absent.",
        "condition": "The branch applies while this condition holds.",
        "transitionTo": "The activity to go to; a branch without one decides nothing.",
        "isDefault": "Applies if no branch with a condition does; only for a branch without a condition.",
    },
    activities.LocationSource: {
        "path": "The folder; may name variables as `{name}`.",
        "description": "What is kept there.",
        "gitignored": "Whether git leaves the folder out.",
    },
    activities.ArtifactSource: {
        "id": "Names the artifact.",
        "name": "The file's name.",
        "location": "A name in the workflow's `artifactLocations`.",
        "description": "What the file holds.",
        "action": "Whether the activity creates or updates the file.",
    },
}

_SCENARIOS: Mapping[type[Struct], Mapping[str, str]] = {
    scenarios.ScenarioSource: {
        "workflow": "The id of the workflow: one beside the file, else one of the library.",
        "scenarios": "Runs to play, each from the start.",
    },
    scenarios.Polled: {
        "by": "Who answers; `starter` is who started the run.",
        "groups": "The groups that this person belongs to.",
        "option": "The option that is chosen.",
        "after": "Instead of an answer: how much time passes, as in `within`.",
    },
    scenarios.Scenario: {
        "name": "What the scenario shows.",
        "mode": "How far the run goes by itself.",
        "context": "Variables that the run starts with.",
        "answers": "Options by gate id; a list has one entry per visit. `confirm-<step>` answers a "
        "confirmation with `proceed` or `revise`, `choose-activity` the first question of independent "
        "activities.",
        "approvals": "What people answer to a gate with `decide`, by gate id and in order. Without it the "
        "answer of `answers` is one that its approvers agree on.",
        "outputs": "What the agent hands in, by step id; a list has one entry per visit.",
        "inputs": "Values for variables that a loop or an exit asks for.",
        "checks": "Exit statuses by check id; nothing is run, and a check that is not named passes.",
        "expect": "What must come of the run.",
    },
    scenarios.OutputGiven: {
        "notes": "The agent's notes.",
        "artifacts": "The agent's artifacts, each with its `kind`.",
        "context": "Variables that the agent sets with the step.",
    },
    scenarios.Expected: {
        "end": "How the run ends.",
        "path": "Ids of the steps and gates in the order of their visits, the one that blocked included; "
        "not compared if absent.",
        "blockers": "Codes of the blockers at the end; not compared if absent.",
    },
}

DESCRIPTIONS: Mapping[type[Struct], Mapping[str, str]] = {
    **_WORKFLOWS,
    **_STEPS,
    **_PROMPTS,
    **_OUTPUT,
    **_GATES,
    **_LOOPS,
    **_FUNCTIONS,
    **_ACTIVITIES,
    **_SCENARIOS,
}

CONDITION_FIELDS: Mapping[str, str] = {
    "var": "The variable that the step dialect tests, as a dotted path; alone, it tests for a true value.",
    "variable": "The variable that the activity dialect tests, as a dotted path.",
    "operator": "The activity dialect's operator; `==` if absent.",
    "value": "What the variable is compared with.",
    "and": "Holds if all of these hold.",
    "or": "Holds if one of these holds.",
    "not": "Holds if this does not.",
    "type": "The activity dialect's long form: `simple` (may be left out), `and`, `or` or `not`.",
    "conditions": "With `type: and` and `type: or`: the conditions that are joined.",
    "condition": "With `type: not`: the condition that is negated.",
}

CRITERIA_FIELDS: Mapping[str, str] = {
    "and": "All of these must pass.",
    "or": "One of these must pass.",
    "not": "This must not pass.",
}

PART_FIELDS: Mapping[str, str] = {
    "kind": "`text`: the text as it is; `ref`: a built-in reference.",
    "text": "With `kind: text`: the text.",
    "refId": "With `kind: ref`: the name of a built-in reference, whose text is put in.",
}

OPERATORS: Mapping[Operator, str] = {
    "==": 'The same value, strictly: `5` is not `"5"`, and `true` is not `1`.',
    "!=": "Not the same value, strictly; true for a variable that nobody has set.",
    "equals": "The same value, leniently: case and outer spaces do not count, texts are read as numbers and "
    "as `yes` and `no`, `null` equals an unset variable.",
    "not_equals": "Not the same value, leniently.",
    ">": "Greater than the value; false unless both are numbers, or texts that are numbers.",
    ">=": "Greater than or equal to the value; false unless both are numbers, or texts that are numbers.",
    "<": "Less than the value; false unless both are numbers, or texts that are numbers.",
    "<=": "Less than or equal to the value; false unless both are numbers, or texts that are numbers.",
    "contains": "A text contains the value, ignoring case; a list has an entry that equals it leniently.",
    "startsWith": "A text begins with the value, ignoring case.",
    "endsWith": "A text ends with the value, ignoring case.",
    "matches": "The value is a pattern in RE2 syntax that is found in the text, ignoring case.",
    "in": "The value is a list, and the variable equals one of its entries leniently.",
    "exists": "The variable is set and not `null`; declared defaults do not count. The value `false` "
    "reverses the test.",
    "notExists": "The variable is not set, or `null`. The value `false` reverses the test.",
    "truthy": "The variable is set to something other than `false`, `0`, `null` or an empty text, list or "
    "object. In the step dialect: `var` alone.",
}
