"""A simulation finds where runs get stuck, with the engine that would run them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlock.authoring.filetypes.scenario_file import Scenario
from interlock.authoring.library import BUNDLED, Library, Loaded, Source
from interlock.authoring.simulate.explore import explore, simplified
from interlock.authoring.simulate.findings import Simulated, simulate
from interlock.authoring.simulate.play import play
from interlock.authoring.simulate.scenarios import run_file
from interlock.core.definition.conditions import Compare
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import (
    Action,
    Activity,
    Effect,
    Fragment,
    Gate,
    Loop,
    Option,
    Step,
    Transition,
    Workflow,
)
from interlock.core.engine.moves import moves
from interlock.core.run.commands import Terms
from interlock.core.run.outcomes import Done
from support import paths
from support.authored import write
from support.cli_process import Ran, interlock
from support.corpus import needs_corpus
from support.harness import compile_cache
from support.paths import CORPUS
from support.story import activities, one_activity

GOLDEN = paths.GOLDEN / "authoring"
BUNDLE = Library([BUNDLED], compile_cache())
IDS = [entry.id for entry in BUNDLE.listing().entries]


def step(name: str, text: str = "Do it.", **fields: Any) -> Step:
    return Step(name, name.title(), (Fragment(text),), **fields)


def gate(name: str, *options: Option, **fields: Any) -> Gate:
    return Gate(name, name.title(), "Which?", options, **fields)


def sets(name: str, **variables: Any) -> Option:
    return Option(name, name, effect=Effect(variables))


def leads(name: str, target: str) -> Option:
    return Option(name, name, effect=Effect(transition_to=target))


def is_(variable: str, value: Any) -> Compare:
    return Compare(variable, "==", value)


def unreached(found: Simulated) -> list[str]:
    return [str(part) for part in found.unreached]


def loaded(name: str) -> Loaded:
    found = BUNDLE.load(name)
    assert isinstance(found, Loaded)
    return found


def test_a_straight_line_is_sound() -> None:
    found = simulate(one_activity(step("first"), step("second")))
    assert found.sound
    assert found.whole
    assert found.longest == ("first", "second")
    assert found.most_bytes == found.least_bytes == 2 * len("Do it.")


def test_every_value_that_a_condition_mentions_is_tried_and_one_other() -> None:
    found = simulate(
        one_activity(
            step("look", "Set `size` in context."),
            step("small", condition=is_("size", "small")),
            step("large", condition=is_("size", "large")),
            step("odd", condition=Compare("size", "!=", "small")),
        )
    )
    assert found.sound
    assert found.longest == ("look", "large", "odd")


def test_a_step_whose_variable_is_never_set_in_time_is_unreachable() -> None:
    early = step("early", condition=is_("ready", True))
    found = simulate(one_activity(early, step("late", "Set `ready` in context.")))
    assert unreached(found) == ["step early"]
    assert not found.sound
    assert not found.broken


def test_a_variable_that_no_prompt_names_is_given_at_the_start() -> None:
    assert simulate(one_activity(step("rare", condition=is_("hidden", 7)))).sound


@pytest.mark.parametrize(
    ("operator", "value"), [(">", 3), ("<=", 3), ("contains", "x"), ("in", ["a"]), ("exists", None)]
)
def test_every_operator_has_values_on_both_sides(operator: Any, value: Any) -> None:
    condition = Compare("amount", operator, value)
    found = explore(one_activity(step("look", "Set `amount`."), step("then", condition=condition)))
    assert {part.kind for part in found.parts if part.id == "then"} == {"step", "skip"}


def test_the_length_of_a_list_is_tried() -> None:
    many = step("many", condition=Compare("found.length", ">", 3))
    assert simulate(one_activity(step("look", "Set `found`."), many)).sound


def test_fields_of_items_are_tried() -> None:
    risky = step("risky", condition=is_("task.risk", "high"))
    plain = step("plain", condition=is_("task.risk", "low"))
    loop = Loop("each", "Each", "forEach", (risky, plain), items="tasks", item_var="task")
    assert simulate(one_activity(step("plan", "Set `tasks`."), loop)).sound


def test_a_list_inside_an_item_is_given() -> None:
    inner = Loop("inner", "Inner", "forEach", (step("run"),), items="module.tests", item_var="test")
    outer = Loop("outer", "Outer", "forEach", (inner,), items="modules", item_var="module")
    assert simulate(one_activity(step("gather", "Set `modules`."), outer)).sound


def test_what_a_list_contains_is_tried_beside_its_length() -> None:
    long = step("long", condition=Compare("tags.length", ">=", 2))
    marked = step("marked", condition=Compare("tags", "contains", "x"))
    assert simulate(one_activity(step("tag", "Set `tags`."), long, marked)).sound


def test_what_a_step_sets_for_an_optional_question_is_given() -> None:
    measure = step("measure", actions=(Action("set", "region"),))
    ask = Gate(
        "add", "Add", "More for {{region}}?", (Option("no", "No"), Option("yes", "Yes")), required=False
    )
    assert simulate(one_activity(measure, ask)).sound


def test_an_item_may_have_the_name_of_its_list() -> None:
    loop = Loop("each", "Each", "forEach", (step("work"),), items="task", item_var="task")
    assert simulate(one_activity(step("plan", "Set `task`."), loop)).sound


def test_all_options_are_taken() -> None:
    found = simulate(
        one_activity(
            gate("ask", sets("yes", go=True), sets("no", go=False)), step("go", condition=is_("go", True))
        )
    )
    assert found.sound
    assert found.least_bytes < found.most_bytes


def test_a_transition_that_no_variable_opens_ends_the_run_and_leads_nowhere() -> None:
    stuck = Activity("a", "A", (step("work"),), transitions=(Transition("b", _never()),))
    found = simulate(activities(stuck, Activity("b", "B", (step("rest"),))))
    assert found.dead_ends == ()
    assert "transition from a to b" in unreached(found)


def _never() -> Any:
    from interlock.core.definition.conditions import AllOf

    return AllOf((is_("x", 1), is_("x", 2)))


def test_activities_that_only_lead_to_each_other_never_end() -> None:
    first = Activity("a", "A", (step("one"),), transitions=(Transition("b", default=True),))
    second = Activity("b", "B", (step("two"),), transitions=(Transition("a", default=True),))
    found = simulate(activities(first, second))
    assert not found.ends
    assert [end.reason for end in found.dead_ends] == ["from here the run repeats and never ends"]


def test_activities_that_repeat_without_any_work_are_reported() -> None:
    work = Activity("work", "Work", (step("one"),), transitions=(Transition("a", default=True),))
    first = Activity("a", "A", transitions=(Transition("b", default=True),))
    second = Activity("b", "B", transitions=(Transition("a", default=True),))
    found = simulate(activities(work, first, second))
    assert [end.position for end in found.dead_ends] == ["activity a"]
    assert "goes in a circle through 'a', 'b'" in found.dead_ends[0].reason
    played = play(Plan(activities(first, second)), "sha256:0", Scenario())
    assert (played.end, played.visits) == ("blocked", ())


def test_a_gate_behind_which_no_end_lies_cannot_be_passed() -> None:
    asking = Activity("a", "A", (gate("again", leads("once", "a"), leads("more", "a")),))
    found = simulate(activities(asking))
    assert found.impassable == ("a/again",)


def test_an_option_that_leads_on_saves_the_gate() -> None:
    asking = Activity("a", "A", (gate("again", leads("once", "a"), leads("stop", "__terminal__")),))
    assert simulate(activities(asking)).sound


def test_a_loop_that_nothing_ends_is_reported() -> None:
    """Rule 30."""
    body = (step("poll", "Look again."),)
    loop = Loop("wait", "Wait", "while", body, condition=is_("done", False), max_iterations=5)
    start = gate("start", sets("go", done=False))
    assert simulate(one_activity(start, loop)).limited == ("wait",)


def test_a_loop_that_an_answer_ends_is_not() -> None:
    body = (gate("enough", sets("yes", done=True), sets("no", done=False)),)
    loop = Loop("wait", "Wait", "until", body, condition=is_("done", True), max_iterations=5)
    assert simulate(one_activity(loop)).limited == ()


def test_a_steered_loop_is_stopped_and_goes_on() -> None:
    """Rule 30."""
    loop = Loop("steer", "Steer", "while", (step("decide"),), steered=True, max_iterations=9)
    found = explore(one_activity(loop))
    assert found.loop_exits["main", "steer"] == {"stopped", "limit"}


def test_every_round_that_a_variable_counts_is_tried() -> None:
    fourth = step("fourth", condition=is_("round", 4))
    loop = Loop("rounds", "Rounds", "for", (fourth, step("any")), count=4, iteration_var="round")
    assert unreached(simulate(one_activity(loop))) == []


def test_activities_without_an_entry_are_chosen_among() -> None:
    """Rule 35."""
    free = Workflow("t.w", "W", "", "1", (Activity("a", "A", (step("x"),)), Activity("b", "B", (step("y"),))))
    found = simulate(free)
    assert found.sound


def test_an_independent_activity_is_entered_by_its_own_right() -> None:
    own = Activity("own", "Own", (step("alone"),), recognition=("by name",))
    found = simulate(activities(Activity("a", "A", (step("x"),)), own))
    assert unreached(found) == []


def test_the_bound_is_kept_and_reported() -> None:
    found = simulate(one_activity(*(gate(f"g{n}", sets("a", v=n), sets("b", w=n)) for n in range(5))), most=3)
    assert found.states == 3
    assert not found.whole
    assert found.dead_ends == ()


@pytest.mark.parametrize("name", IDS)
def test_the_bundled_workflows_are_sound(name: str) -> None:
    found = simulate(loaded(name).workflow)
    assert found.whole
    assert (found.dead_ends, found.impassable, unreached(found), found.limited) == ((), (), [], ())


@pytest.mark.parametrize("file", sorted(BUNDLED.path.glob("*.scenario.yaml")), ids=lambda file: file.name)
def test_a_simulation_touches_whatever_a_scenario_touches(file: Path) -> None:
    tested = run_file(file, BUNDLE)
    explored = explore(loaded(tested.workflow).workflow).parts
    seen = {part for outcome in tested.outcomes for part in outcome.played.parts}
    confirmations = {part for part in seen if part.id.startswith("confirm-")}
    assert seen - explored - confirmations == set()


@needs_corpus
@pytest.mark.parametrize("folder", ["activities", "steps", "steps-v1"])
def test_real_workflows_come_to_an_end(folder: str) -> None:
    library = Library([Source("configured", CORPUS / folder, "corpus")])
    for entry in library.listing().entries:
        found = library.load(entry.id)
        assert isinstance(found, Loaded)
        assert simulate(found.workflow).ends, entry.id


@needs_corpus
@pytest.mark.parametrize(
    "folder", [BUNDLED.path, *(CORPUS / name for name in ("activities", "steps", "steps-v1"))]
)
def test_every_state_that_a_run_reaches_has_a_move(folder: Path) -> None:
    """Rule 20: on execution a call that goes on, on navigation one that the menu offers, beside giving up."""
    library = Library([BUNDLED if folder == BUNDLED.path else Source("configured", folder, "corpus")])
    for entry in library.listing().entries:
        found = library.load(entry.id)
        assert isinstance(found, Loaded)
        explored, plan = explore(found.workflow, 1000), Plan(simplified(found.workflow))
        for number, state in enumerate(explored.states):
            if isinstance(state.awaited, Done):
                continue
            offered = moves(plan, state.run, Terms("agent"), {}, 0)
            assert offered.required or offered.optional, (entry.id, state)
            assert explored.edges[number] or explored.cut, (entry.id, state)


def run(folder: Path, *arguments: str) -> Ran:
    return interlock(folder / "data", "simulate", *arguments)


FLOW = """
id: t.flow
name: Flow
version: 1.0.0
steps:
  - { id: early, title: Early, prompt: Early., runCondition: { var: ready, equals: true } }
  - { id: look, title: Look, prompt: "Set `ready` in context." }
  - type: gate
    id: enough
    message: Enough?
    options:
      - { id: "yes", effect: { setVariable: { more: false } } }
      - { id: "no", effect: { setVariable: { more: true } } }
"""


def test_the_command_prints_what_it_found(tmp_path: Path) -> None:
    write(tmp_path, {"flow.yaml": FLOW})
    ran = run(tmp_path, str(tmp_path / "flow.yaml"))
    assert ran.out == (GOLDEN / "simulate.txt").read_text("utf-8")
    assert ran.code == 0
    assert run(tmp_path, str(tmp_path / "flow.yaml"), "--strict").code == 1


def test_the_command_as_json(tmp_path: Path) -> None:
    found = run(tmp_path, "wr.small_task", "--json").json
    assert (found["sound"], found["whole"], found["deadEnds"]) == (True, True, [])
    assert found["bytes"]["least"] < found["bytes"]["most"]


def test_the_command_follows_a_script(tmp_path: Path) -> None:
    script = "answers: { enough: 'yes' }\noutputs: { look: { context: { ready: true } } }\n"
    write(tmp_path, {"flow.yaml": FLOW, "answers.yaml": script})
    ran = run(tmp_path, str(tmp_path / "flow.yaml"), "--answers", str(tmp_path / "answers.yaml"))
    assert (ran.code, ran.out) == (0, "  look  (ready = true)\n  enough = yes\ncomplete after 2 items\n")


def test_a_script_that_is_blocked_fails_and_says_why(tmp_path: Path) -> None:
    write(tmp_path, {"flow.yaml": FLOW, "answers.yaml": "context: {}\n"})
    ran = run(tmp_path, str(tmp_path / "flow.yaml"), "--answers", str(tmp_path / "answers.yaml"))
    assert ran.code == 1
    assert "USER_ONLY_DEPENDENCY" in ran.out


@pytest.mark.parametrize(("given", "code"), [("wr.smal_task", 3), ("./nowhere.yaml", 3)])
def test_what_is_not_there_is_not_found(tmp_path: Path, given: str, code: int) -> None:
    assert run(tmp_path, given).code == code
