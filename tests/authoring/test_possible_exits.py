"""The engine, the linter, the simulation and the drawing agree on where an activity leads (rule 21)."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings

from interlock.authoring.graph.model import END, drawing_of
from interlock.authoring.simulate.coverage import coverage_parts
from interlock.authoring.simulate.explore import explore
from interlock.authoring.simulate.findings import simulate
from interlock.core.definition.conditions import Compare
from interlock.core.definition.workflow import (
    TERMINAL,
    Action,
    Activity,
    Effect,
    Fragment,
    Gate,
    Option,
    Step,
    Transition,
    Workflow,
)
from interlock.core.engine.paths.exits import possible_exits
from support.authored import diagnostics, write
from support.generated import workflows
from support.story import activities

SKIP_B = Gate(
    "ask",
    "Ask",
    "Which?",
    (
        Option("all", "All"),
        Option("skip", "Skip", effect=Effect(skip_activities=("b",))),
        Option("stop", "Stop", effect=Effect(transition_to=TERMINAL)),
    ),
)


@given(workflows(defaults=True))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_exit_that_the_engine_takes_is_possible(workflow: Workflow) -> None:
    for part in explore(workflow, 40).parts:
        activity = workflow.activity(part.activity)
        if part.kind == "transition" and activity is not None:
            exits = list(possible_exits(workflow, activity))
            assert part.detail in {target for exit_ in exits for target in (exit_.to, *exit_.skipping)}


def test_the_exits_are_in_the_order_of_rule_21_with_those_past_skipped_activities() -> None:
    first = Activity("a", "A", (SKIP_B,), transitions=(Transition("b"),))
    workflow = activities(first, Activity("b", "B", transitions=(Transition("c"),)), Activity("c", "C"))
    exits = [(exit_.to, exit_.via, exit_.skipping) for exit_ in possible_exits(workflow, first)]
    assert exits == [(TERMINAL, "option", ()), ("b", "transition", ()), ("c", "transition", ("b",))]


def test_a_target_that_the_workflow_does_not_have_is_no_exit() -> None:
    alone = Activity("a", "A", (Step("s", "S"),), transitions=(Transition("of-the-lender"),))
    workflow = activities(alone)
    assert [(exit_.to, exit_.via) for exit_ in possible_exits(workflow, alone)] == [(TERMINAL, "end")]
    assert [arrow.end for arrow in drawing_of(workflow).exits("a")] == [END]
    assert [part.kind for part in coverage_parts(workflow)] == ["step"]
    assert simulate(workflow).sound


def test_a_value_matters_when_the_activity_that_would_replace_it_is_skipped() -> None:
    choose = Step("choose", "Choose", (Fragment("Set `size` in context."),))
    reset = Step("reset", "Reset", actions=(Action("set", "size", value=1, has_value=True),))
    special = Step("special", "Special", condition=Compare("size", "==", 2))
    workflow = activities(
        Activity("a", "A", (choose, SKIP_B), transitions=(Transition("b"),)),
        Activity("b", "B", (reset,), transitions=(Transition("c"),)),
        Activity("c", "C", (special,)),
    )
    assert simulate(workflow).unreached == ()


def test_an_activity_that_is_only_ever_skipped_is_unreachable(tmp_path: Path) -> None:
    gate = "{id: g, type: gate, message: M, options: [{id: x, effect: {skipActivities: [b]}}]}"
    assert unreachable(tmp_path, a=f"steps: [{gate}]\n", b="") == ["b"]


def test_the_transitions_of_an_activity_that_runs_in_a_loop_are_not_taken(tmp_path: Path) -> None:
    loop = "{id: l, type: while, maxIterations: 3, activities: [b], condition: {variable: more, value: true}}"
    after = "transitions: [{to: c}]\nsteps: [{id: s, name: S}]\n"
    assert unreachable(tmp_path, a=f"loops: [{loop}]\n", b=after, c="") == ["c"]


def unreachable(folder: Path, **fields: str) -> list[str]:
    """Return the activities that are reported as unreachable; the first is the initial one."""
    files = {
        f"w/activities/{name}.yaml": f"id: {name}\nversion: 1.0.0\nname: {name.upper()}\n{text}"
        for name, text in fields.items()
    }
    head = f"id: w\nversion: 1.0.0\ntitle: W\ninitialActivity: {next(iter(fields))}\n"
    write(folder, {"w/workflow.yaml": head, **files})
    found = [diagnostic for diagnostic in diagnostics(folder) if diagnostic.code == "IL502"]
    return [Path(diagnostic.file).stem for diagnostic in found]
