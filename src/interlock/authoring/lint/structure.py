"""Checks the structure of a compiled workflow: targets that do not exist, parts that no run can reach.

Errors are references to activities that do not exist; everything else still runs, and is a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from interlock.authoring.compile.items.draft import CompileDraft
from interlock.authoring.diagnostics.codes import did_you_mean, one_of
from interlock.authoring.lint.contradictions import check_contradictions
from interlock.authoring.lint.located import activity_location, item_location
from interlock.authoring.lint.possible_values import check_possible_values
from interlock.authoring.lint.value_types import check_value_types
from interlock.authoring.lint.variables import check_reserved, check_variables
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.program import LOOP_CONTROL, steering_steps
from interlock.core.definition.workflow import Activity, Gate, Loop, Step, Transition, Workflow, walk
from interlock.core.engine.paths.exits import fallback_exit, possible_exits

LONGEST_PROMPT = 8192
FEW_ACTIVITIES = 12

_EXPRESSION = re.compile(r"(?<!\$)\{\{(.*?)\}\}", re.DOTALL)
_PATH = re.compile(r"\s*[A-Za-z_][\w-]*(\.[\w-]+)*\s*")


def lint(workflow: Workflow, head: SourceLocation, draft: CompileDraft) -> None:
    """Report everything that can be known without running the workflow."""
    linter = _Linter(workflow, head, draft)
    linter.check_targets()
    linter.check_reachable()
    for activity in workflow.activities:
        linter.check_transitions(activity)
        linter.check_items(activity)
        linter.check_unreachable_items(activity)
    check_variables(workflow, head, draft)
    check_reserved(workflow, head, draft)
    check_value_types(workflow, head, draft)
    check_possible_values(workflow, head, draft)
    check_contradictions(workflow, head, draft)


class _Linter:
    def __init__(self, workflow: Workflow, head: SourceLocation, draft: CompileDraft) -> None:
        self._workflow = workflow
        self._head = head
        self._draft = draft
        self._report = draft.report

    def check_targets(self) -> None:
        """Report names of activities and locations that the workflow does not have."""
        initial = self._workflow.initial
        if initial is not None and self._workflow.activity(initial) is None:
            self._report_unknown(initial, self._head / "initialActivity")
        for index, mode in enumerate(self._workflow.modes):
            for number, skipped in enumerate(mode.skip_activities):
                if self._workflow.activity(skipped) is None:
                    location = self._head / "modes" / index / "skipActivities" / number
                    self._report_unknown(skipped, location)
        places = self._workflow.artifact_locations  # without any, a location is a name that stands for itself
        for activity in self._workflow.activities:
            home = activity_location(activity, self._head, self._draft)
            for index, artifact in enumerate(activity.artifacts):
                lent = activity.id in self._draft.borrowed
                if places and artifact.location and artifact.location not in places and not lent:
                    message = f"unknown location '{artifact.location}'"
                    location = home / "artifacts" / index / "location"
                    self._report.add("IL224", message, location, did_you_mean(artifact.location, places))
            for target, location in self._named_targets(activity):
                if self._workflow.has_target(target):
                    continue
                if activity.id in self._draft.borrowed:
                    message = f"'{target}' is an activity of the lending workflow only"
                    self._report.add("IL220", message, location)
                else:
                    self._report_unknown(target, location)

    def _report_unknown(self, target: str, location: SourceLocation) -> None:
        if self._draft.unusable:
            return  # it may be an activity whose file has errors of its own
        ids = [activity.id for activity in self._workflow.activities]
        next_action = one_of(target, ids) if len(ids) <= FEW_ACTIVITIES else did_you_mean(target, ids)
        if self._workflow.form == "steps":
            next_action = "use __terminal__ to end the run; a condition on a step leads elsewhere"
        self._report.add("IL202", f"unknown activity '{target}'", location, next_action)

    def _named_targets(self, activity: Activity) -> Iterator[tuple[str, SourceLocation]]:
        """Yield every activity that this one names as a target or as one to skip."""
        home = activity_location(activity, self._head, self._draft)
        for index, transition in enumerate(activity.transitions):
            yield transition.to, home / "transitions" / index / "to"
        for index, decision in enumerate(activity.decisions):
            for number, branch in enumerate(decision.branches):
                if branch.to is not None:
                    yield branch.to, home / "decisions" / index / "branches" / number / "transitionTo"
        for gate in activity.gates():
            if (location := item_location(activity, gate, self._draft)) is None:
                continue
            for index, option in enumerate(gate.options):
                effect = location / "options" / index / "effect"
                if option.effect.transition_to is not None:
                    yield option.effect.transition_to, effect / "transitionTo"
                for number, skipped in enumerate(option.effect.skip_activities):
                    yield skipped, effect / "skipActivities" / number

    def check_reachable(self) -> None:
        """Report activities that are never entered, and that no loop contains."""
        if self._workflow.initial is None:
            return
        entered, contained = set[str](), set[str]()
        recognized = [activity.id for activity in self._workflow.activities if activity.recognition]
        pending = [self._workflow.initial, *recognized]
        while pending:
            activity = self._workflow.activity(pending.pop())
            if activity is None or activity.id in entered:
                continue
            entered.add(activity.id)
            pending += [exit_.to for exit_ in possible_exits(self._workflow, activity)]
            loops = [item for item in walk(activity.items) if isinstance(item, Loop)]
            contained.update(name for loop in loops for name in loop.activities)
        for activity in self._workflow.activities:
            if activity.id not in entered | contained:
                message = f"nothing leads to the activity '{activity.id}'"
                self._report.add(
                    "IL502", message, activity_location(activity, self._head, self._draft) / "id"
                )

    def check_transitions(self, activity: Activity) -> None:
        """Report transitions that are never taken, and a missing default."""
        home, transitions = activity_location(activity, self._head, self._draft), activity.transitions
        for index, transition in enumerate(transitions):
            if _is_never_taken(transitions, index):
                message = f"the transition to '{transition.to}' is never taken"
                self._report.add("IL504", message, home / "transitions" / index)
        if fallback_exit(self._workflow, activity) is None:
            message = f"'{activity.id}' has no default transition"
            self._report.add("IL505", message, home.key("transitions"))

    def check_items(self, activity: Activity) -> None:
        """Check each item that was written in this activity."""
        for item in walk(activity.items):
            if (location := item_location(activity, item, self._draft)) is None:
                continue
            match item:
                case Step():
                    self._check_prompt(item, location)
                case Gate():
                    effects = [option.effect for option in item.options]
                    if len(effects) > 1 and not any(
                        effect.set_variables or effect.transition_to or effect.skip_activities
                        for effect in effects
                    ):
                        self._report.add(
                            "IL503", f"no option of '{item.id}' has an effect", location / "options"
                        )
                case Loop():
                    artifacts = {
                        contract.artifact for step in steering_steps(item) for contract in step.contracts
                    }
                    if item.steered and LOOP_CONTROL not in artifacts:
                        message = f"no step of '{item.id}' decides whether the loop continues"
                        self._report.add("IL307", message, location / "loop")

    def _check_prompt(self, step: Step, location: SourceLocation) -> None:
        text = "\n\n".join(fragment.text for fragment in step.prompt)
        if len(text) > LONGEST_PROMPT:
            message = f"the prompt has {len(text)} characters; the limit is {LONGEST_PROMPT}"
            self._report.add("IL509", message, location.either("prompt", "promptBlocks", "description"))
        expressions = dict.fromkeys(match[1] for match in _EXPRESSION.finditer(text))
        for expression in expressions:
            if not _PATH.fullmatch(expression):
                message = f"{{{{{expression[:60]}}}}} is not a variable and stays as it is"
                self._report.add("IL510", message, location.holding(f"{{{{{expression}}}}}"))

    def check_unreachable_items(self, activity: Activity) -> None:
        """Report the first item after a gate whose every option leads to another activity."""
        exits = {(exit_.gate, exit_.option) for exit_ in possible_exits(self._workflow, activity)}
        leaving: Gate | None = None
        for item in activity.items:
            if leaving is not None and (location := item_location(activity, item, self._draft)) is not None:
                message = f"every option of '{leaving.id}' leaves the activity before '{item.id}'"
                self._report.add("IL501", message, location)
                return
            if not isinstance(item, Gate) or not item.required or item.condition is not None:
                continue
            if all((item.id, option.id) in exits for option in item.options):
                leaving = item


def _is_never_taken(transitions: Sequence[Transition], index: int) -> bool:
    """Say whether a transition comes after one that is always taken, or repeats an earlier one."""
    transition = transitions[index]
    always_taken = (
        number for number, other in enumerate(transitions) if other.condition is None and not other.default
    )
    first = next(always_taken, None)
    if first is not None and (index > first or transition.default):
        return index != first
    if transition.default and transition.condition is None:
        return any(other.default and other.condition is None for other in transitions[:index])
    return any(
        other.condition == transition.condition and other.default == transition.default
        for other in transitions[:index]
    )
