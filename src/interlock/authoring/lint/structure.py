"""What a compiled workflow says about itself: ways that lead nowhere, answers that change nothing.

Errors here are references to activities that do not exist; all else still runs, and is a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from interlock.authoring.compile.items import CompileDraft
from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.lint.contradictions import contradicts
from interlock.authoring.lint.variables import check_variables
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.conditions import Condition, describe
from interlock.core.definition.workflow import Activity, Gate, Item, Loop, Step, Transition, Workflow, walk

LONGEST_PROMPT = 8192

_EXPRESSION = re.compile(r"(?<!\$)\{\{(.*?)\}\}", re.DOTALL)
_PATH = re.compile(r"\s*[A-Za-z_][\w-]*(\.[\w-]+)*\s*")


class Lint(Struct):
    """One workflow under inspection."""

    workflow: Workflow
    head: SourceLocation
    draft: CompileDraft
    report: Report

    def location(self, activity: Activity, item: Item) -> SourceLocation | None:
        """Where an item was written; None for one that was inlined from elsewhere."""
        kind = {Step: "step", Gate: "gate", Loop: "loop"}[type(item)]
        return self.draft.locations.get((activity.id, kind, item.id))

    def home(self, activity: Activity) -> SourceLocation:
        return self.draft.locations.get((activity.id, "activity", activity.id), self.head)


def lint(workflow: Workflow, head: SourceLocation, draft: CompileDraft) -> None:
    """Report all that can be known without running the workflow."""
    one = Lint(workflow, head, draft, draft.report)
    _check_targets(one)
    _check_reach(one)
    for activity in workflow.activities:
        _check_ways(one, activity)
        _check_items(one, activity)
        _check_dead_steps(one, activity)
    check_variables(workflow, head, draft)


def _check_targets(one: Lint) -> None:
    initial = one.workflow.initial
    if initial is not None and one.workflow.activity(initial) is None:
        _unknown(one, initial, one.head / "initialActivity")
    for activity in one.workflow.activities:
        for target, location in _targets(one, activity):
            if one.workflow.activity(target) is not None or one.workflow.is_end(target):
                continue
            if activity.id in one.draft.borrowed:
                one.report.add("IL220", f"'{target}' is an activity of the lender only", location)
            else:
                _unknown(one, target, location)


def _unknown(one: Lint, target: str, location: SourceLocation) -> None:
    fix = did_you_mean(target, [activity.id for activity in one.workflow.activities])
    one.report.add("IL202", f"unknown activity '{target}'", location, fix)


def _targets(one: Lint, activity: Activity) -> Iterator[tuple[str, SourceLocation]]:
    """Every activity that this one names as a way out, or as one to skip, with its place."""
    home = one.home(activity)
    for index, transition in enumerate(activity.transitions):
        yield transition.to, home / "transitions" / index / "to"
    for index, decision in enumerate(activity.decisions):
        for number, branch in enumerate(decision.branches):
            if branch.to is not None:
                yield branch.to, home / "decisions" / index / "branches" / number / "transitionTo"
    for gate in activity.gates():
        if (location := one.location(activity, gate)) is not None:
            yield from _option_targets(gate, location)


def _option_targets(gate: Gate, location: SourceLocation) -> Iterator[tuple[str, SourceLocation]]:
    for index, option in enumerate(gate.options):
        effect = location / "options" / index / "effect"
        if option.effect.transition_to is not None:
            yield option.effect.transition_to, effect / "transitionTo"
        for number, skipped in enumerate(option.effect.skip_activities):
            yield skipped, effect / "skipActivities" / number


def _check_reach(one: Lint) -> None:
    if one.workflow.initial is None:
        return
    independent = [activity.id for activity in one.workflow.activities if activity.recognition]
    reached, todo = set[str](), [one.workflow.initial, *independent]
    while todo:
        name = todo.pop()
        activity = one.workflow.activity(name)
        if name in reached or activity is None:
            continue
        reached.add(name)
        todo += [target for target, _ in _targets(one, activity)]
        todo += [
            inner for loop in walk(activity.items) if isinstance(loop, Loop) for inner in loop.activities
        ]
    for activity in one.workflow.activities:
        if activity.id not in reached:
            message = f"nothing leads to the activity '{activity.id}'"
            one.report.add("IL502", message, one.home(activity) / "id")


def _check_ways(one: Lint, activity: Activity) -> None:
    home, exits = one.home(activity), activity.transitions
    sure = next((index for index, exit_ in enumerate(exits) if _is_sure(exit_)), None)
    for index, exit_ in enumerate(exits):
        location = home / "transitions" / index
        if _is_dead(exits, index, sure):
            one.report.add("IL504", f"the way to '{exit_.to}' is never taken", location)
        _check_condition(one, exit_.condition, location)
    if (
        exits
        and not any(exit_.default or exit_.condition is None for exit_ in exits)
        and not _has_branch(activity)
    ):
        one.report.add("IL505", f"'{activity.id}' has no default way out", home.key("transitions"))
    for index, decision in enumerate(activity.decisions):
        for number, branch in enumerate(decision.branches):
            location = home / "decisions" / index / "branches" / number
            _check_condition(one, branch.condition, location)


def _is_sure(exit_: Transition) -> bool:
    return exit_.condition is None and not exit_.default


def _is_dead(exits: Sequence[Transition], index: int, sure: int | None) -> bool:
    """A way after one without a condition, a second default, or a condition that stood before."""
    exit_ = exits[index]
    if sure is not None and (index > sure or exit_.default):
        return index != sure
    if exit_.default and exit_.condition is None:
        return any(other.default and other.condition is None for other in exits[:index])
    return any(
        other.condition == exit_.condition and other.default == exit_.default for other in exits[:index]
    )


def _has_branch(activity: Activity) -> bool:
    return any(branch.default and branch.to for one in activity.decisions for branch in one.branches)


def _check_items(one: Lint, activity: Activity) -> None:
    for item in walk(activity.items):
        location = one.location(activity, item)
        if location is None:
            continue
        match item:
            case Step():
                _check_step(one, item, location)
            case Gate():
                _check_gate(one, item, location)
            case Loop():
                _check_loop(one, item, location)


def _check_step(one: Lint, step: Step, location: SourceLocation) -> None:
    _check_condition(one, step.condition, location)
    text = "\n\n".join(fragment.text for fragment in step.prompt)
    if len(text) > LONGEST_PROMPT:
        message = f"the prompt has {len(text)} of at most {LONGEST_PROMPT} characters"
        one.report.add("IL509", message, location.either("prompt", "promptBlocks", "description"))
    odd = [found[1] for found in _EXPRESSION.finditer(text) if not _PATH.fullmatch(found[1])]
    for expression in dict.fromkeys(odd):
        message = f"{{{{{expression[:60]}}}}} is not a variable and stays as written"
        one.report.add("IL510", message, location.holding(f"{{{{{expression}}}}}"))


def _check_gate(one: Lint, gate: Gate, location: SourceLocation) -> None:
    _check_condition(one, gate.condition, location)
    idle = not any(
        option.effect.set_variables or option.effect.transition_to or option.effect.skip_activities
        for option in gate.options
    )
    if idle and len(gate.options) > 1:
        one.report.add("IL503", f"no option of '{gate.id}' has an effect", location / "options")


def _check_loop(one: Lint, loop: Loop, location: SourceLocation) -> None:
    _check_condition(one, loop.run_condition, location)
    if loop.steered and not any(_steers(item) for item in walk(loop.body)):
        one.report.add("IL307", f"no step of '{loop.id}' says whether it goes on", location / "loop")


def _steers(item: Item) -> bool:
    return isinstance(item, Step) and any(one.artifact == "wr.loop_control" for one in item.contracts)


def _check_condition(one: Lint, condition: Condition | None, location: SourceLocation) -> None:
    if condition is not None and contradicts(condition):
        one.report.add(
            "IL304", f"never true: {describe(condition)}", location.either("runCondition", "condition")
        )


def _check_dead_steps(one: Lint, activity: Activity) -> None:
    """After a gate whose every option leads elsewhere, nothing more of the activity is reached."""
    leaving: Gate | None = None
    for item in activity.items:
        if leaving is not None and (location := one.location(activity, item)) is not None:
            message = f"every option of '{leaving.id}' leads elsewhere before '{item.id}'"
            one.report.add("IL501", message, location)
            return
        if isinstance(item, Gate) and _always_leaves(item):
            leaving = item


def _always_leaves(gate: Gate) -> bool:
    sure = gate.required and gate.condition is None
    return sure and all(option.effect.transition_to for option in gate.options)
