"""Laws of the lookup surface: it goes where an execution run goes, and nothing is too odd for it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from interlock.authoring.library import Loaded
from interlock.core.definition.conditions import Compare
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Action, Activity, Loop, Step, Transition, Workflow
from interlock.core.engine.decide import outcome_of
from interlock.core.engine.settle import UNSET
from interlock.core.run.commands import AcknowledgeStep, StartRun, Terms
from interlock.core.run.outcomes import Decided, NeedInput, NeedStep
from interlock.core.run.preferences import PRESETS
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import EXECUTION
from interlock.surfaces.lookup.names import names_of
from interlock.surfaces.lookup.progress import Offered, due_step
from support.lookup_client import (
    CAP,
    SCHEMA,
    Ask,
    document,
    lookup_client,
    loop,
    save,
    step,
    walk,
)

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def ask_odd(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    asked = {"var": "x", "gt": 1}
    rule = {"type": "schema", "schema": SCHEMA, "message": "M", "condition": {"var": "x", "matches": "a"}}
    items = [
        loop("many", [step("one", prompt="{{x}} {{x.y}}", runCondition=asked)], type="for", count="x"),
        loop("each", [step("two", runCondition={"var": "x.y", "in": ["a"]})], type="forEach", items="x"),
        loop("while", [step("three")], type="while", condition={"var": "x", "contains": "a"}),
        step("four", validationCriteria=[rule, {**rule, "condition": {"var": "x", "not_equals": 1}}]),
    ]
    return lookup_client(save(tmp_path_factory.mktemp("odd"), document(*items)))


@given(x=ANYTHING, done=st.sets(st.sampled_from(["one", "one-2", "two", "three", "four"])))
@settings(max_examples=100, deadline=None)
@example(x="9" * 5000, done=set())
@example(x="²", done=set())
def test_no_context_is_too_odd(ask_odd: Ask, x: Any, done: set[str]) -> None:
    answer = ask_odd(
        "workflow_next", workflowId="team.some_flow", completedSteps=list(done), context={"x": x}
    )
    assert answer["isComplete"] is (answer["step"] == {})
    assert answer["step"].get("id") not in done


@given(output=WORDS.filter(bool), x=ANYTHING)
@settings(max_examples=60, deadline=None)
@example(output="[" * 100_000, x=0)
def test_no_output_is_too_odd(ask_odd: Ask, output: str, x: Any) -> None:
    asked = {"workflowId": "team.some_flow", "stepId": "four", "output": output, "context": {"x": x}}
    verdict = ask_odd("workflow_validate", **asked)
    assert verdict["valid"] is (verdict["issues"] == [])


NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.one_of(st.booleans(), st.integers(0, 3), st.sampled_from(["x", "yes", "2"]))
CONTEXTS = st.fixed_dictionaries(
    {"many": st.lists(VALUES, max_size=3), "often": st.integers(0, 3)},
    optional={"a": VALUES, "b": VALUES, "c": VALUES},
)
CONDITIONS = st.recursive(
    st.builds(lambda var, word, value: {"var": var, word: value}, NAMES,
              st.sampled_from(["equals", "not_equals", "gt", "lt"]), VALUES),
    lambda inner: st.one_of(
        st.builds(lambda parts: {"and": parts}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda parts: {"or": parts}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda part: {"not": part}, inner),
    ),
    max_leaves=3,
)  # fmt: skip
LOOPS = st.one_of(
    st.fixed_dictionaries({"type": st.just("for"), "count": st.one_of(st.integers(0, 3), st.just("often"))}),
    st.fixed_dictionaries({"type": st.just("forEach"), "items": st.just("many"), "itemVar": NAMES}),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["while", "until", "doWhile"]), "condition": CONDITIONS},
        optional={"iterationVar": NAMES, "breakCondition": CONDITIONS},
    ),
)
PLAIN = st.fixed_dictionaries({}, optional={"runCondition": CONDITIONS, "requireConfirmation": CONDITIONS})
ITEMS = st.recursive(
    PLAIN,
    lambda inner: st.fixed_dictionaries(
        {"loop": LOOPS, "body": st.lists(inner, min_size=1, max_size=3)},
        optional={"runCondition": CONDITIONS},
    ),
    max_leaves=6,
)


def named(items: list[dict[str, Any]], numbers: Iterator[int]) -> list[dict[str, Any]]:
    """Give every item an id of its own."""
    made = []
    for item in items:
        if "loop" in item:
            more = {"runCondition": item["runCondition"]} if "runCondition" in item else {}
            made.append(
                {**loop(f"loop{next(numbers)}", named(item["body"], numbers), **item["loop"]), **more}
            )
        else:
            made.append(step(f"step{next(numbers)}", **item))
    return made


def visited(workflow: Workflow, context: dict[str, Any]) -> list[str]:
    """What a guided execution run hands out, each visit numbered as rule 38 says."""
    plan, seen = Plan(workflow), list[str]()
    run = outcome_of(plan, RunState(), StartRun(EXECUTION, 0, "h", "s", PRESETS["guided"], context))
    while len(seen) < CAP:
        assert isinstance(run, Decided)
        if isinstance(run.awaited, NeedInput) and run.awaited.subject.startswith(UNSET):
            unset = dict.fromkeys(run.awaited.variables)  # as lookup leaves them
            run = outcome_of(plan, run.state, AcknowledgeStep(EXECUTION, 0, Terms(), variables=unset))
            continue
        if not isinstance(run.awaited, NeedStep):
            break
        seen.append(run.awaited.step.id)
        run = outcome_of(plan, run.state, AcknowledgeStep(EXECUTION, 0, Terms()))
    return [f"{name}-{n}" if (n := seen[:at].count(name) + 1) > 1 else name for at, name in enumerate(seen)]


@pytest.mark.slow
@given(items=st.lists(ITEMS, min_size=1, max_size=4), context=CONTEXTS)
@settings(max_examples=60, deadline=None)
def test_the_next_step_is_the_one_an_execution_run_hands_out(
    items: list[dict[str, Any]], context: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        library = save(Path(folder), document(*named(items, iter(range(100)))))
        loaded = library.load("team.some_flow")
        assert isinstance(loaded, Loaded), loaded
        assert walk(lookup_client(library), **context) == visited(loaded.workflow, context)


TESTS = st.builds(Compare, NAMES, st.sampled_from(["==", "!=", "exists", "truthy"]), VALUES)
SETS = st.builds(lambda name, value: Action("set", name, value=value, has_value=True), NAMES, VALUES)


@st.composite
def activity_workflows(draw: st.DrawFn) -> Workflow:
    """Activities with conditional transitions, steps that write variables, and loops."""
    ids = ["one", "two", "three"]
    activities = []
    for activity in ids:
        steps = [
            Step(f"{activity}-{letter}", letter, condition=draw(st.none() | TESTS),
                 actions=tuple(draw(st.lists(SETS, max_size=1))))
            for letter in "xyz"[: draw(st.integers(1, 3))]
        ]  # fmt: skip
        items = (Loop(f"{activity}-l", "L", "for", (steps[0],), count=draw(st.integers(0, 2))), *steps[1:])
        exits = [Transition(to, draw(TESTS)) for to in draw(st.lists(st.sampled_from(ids), max_size=2))]
        default = Transition(draw(st.sampled_from([*ids, "__terminal__"])), default=True)
        final = Step(f"{activity}-end", "end")
        activities.append(Activity(activity, activity, (*items, final), transitions=(*exits, default)))
    return Workflow("w", "W", "", "1.0.0", tuple(activities), form="activities", initial="one")


@pytest.mark.slow
@given(workflow=activity_workflows(), context=CONTEXTS)
@settings(max_examples=60, deadline=None)
def test_activities_are_visited_as_an_execution_run_visits_them(
    workflow: Workflow, context: dict[str, Any]
) -> None:
    names, done = names_of(workflow), list[str]()
    while len(done) < CAP:
        offered = due_step(workflow, names, frozenset(done), context)
        assert isinstance(offered, Offered)
        if offered.step is None:
            break
        done.append(offered.name)
    assert done == visited(workflow, context)
