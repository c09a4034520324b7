"""Loops (rule 30): nested, frozen, bounded, and never an exception."""

from __future__ import annotations

import pytest

from interlock.core.definition.conditions import Compare
from interlock.core.definition.workflow import Contract, Fragment, Gate, Item, Loop, Option, Step
from interlock.core.run import events as e
from interlock.core.run.commands import AdvanceLoop, EnterActivity, Terms
from interlock.core.run.outcomes import Code, NeedLoop, NeedStep, Refusal
from interlock.core.run.surface_policy import EXECUTION, NAVIGATION, SESSION, SurfacePolicy
from interlock.core.values import Json
from support.story import given, one_activity, only

WORK = Step("work", "Work")
LAST = Step("last", "Last")


def loop(kind: str = "while", *body: object, id: str = "again", **fields: object) -> Loop:
    return Loop(id=id, title=id, kind=kind, body=tuple(body) or (WORK,), **fields)  # type: ignore[arg-type]


def test_for_each_goes_through_its_items() -> None:
    each = loop("forEach", items="files", item_var="file", index_var="n", iteration_var="round")
    story = given(one_activity(each, LAST)).start(files=["a", "b"])
    assert (story.pending, story.state.variables["file"], story.state.variables["n"]) == (
        "again@0::work",
        "a",
        0,
    )
    story.ack()
    assert (story.state.variables["file"], story.state.variables["round"]) == ("b", 2)
    assert story.ack().pending == "last"


def test_items_are_frozen_at_entry() -> None:
    story = given(one_activity(loop("forEach", items="files", item_var="file"), LAST)).start(files=["a", "b"])
    story.ack(files=["x", "y", "z"])
    assert story.state.variables["file"] == "b"
    assert story.ack().pending == "last"


@pytest.mark.parametrize("bad", [None, "not a list", 7, {"a": 1}])
def test_missing_or_mistyped_items_ask_for_input(bad: object) -> None:
    given_files = {} if bad is None else {"files": bad}
    story = given(one_activity(loop("forEach", items="files"), LAST)).start(**given_files)
    assert story.pending == "loop:again"
    assert story.ack().outcome.blockers[0].pointer.key == "files"  # type: ignore[union-attr]
    assert story.ack(files=["a"]).pending == "again@0::work"


PART = Step(
    "part", "{{file.name}}", (Fragment("See {{file.at.line}}."),), condition=Compare("file.size", ">", 1)
)
EACH_PART = loop("forEach", items="file.parts", item_var="part")


@pytest.mark.parametrize(
    ("body", "item"),
    [
        ((WORK,), "<item>"),
        ((Step("named", "{{file}} {{file.length}} {{other.name}}"),), "<item>"),
        ((PART,), {"name": "<name>", "at": {"line": "<line>"}, "size": "<size>"}),
        ((Step("count", "{{file.parts.length}} of {{file.name}}"),), {"parts": ["<item>"], "name": "<name>"}),
        ((EACH_PART,), {"parts": ["<item>"]}),
    ],
)
def test_the_example_of_items_has_the_members_that_the_loop_reads(body: tuple[Item, ...], item: Json) -> None:
    each = loop("forEach", *body, id="each", items="files", item_var="file")
    story = given(one_activity(each, LAST)).start().ack()
    assert story.outcome.blockers[0].example == {"files": [item]}  # type: ignore[union-attr]
    story.ack(files=[item])
    assert story.pending == "loop:each"  # a placeholder is not taken as a value
    assert story.ack(files=[{"name": "a", "size": 2}]).pending != "loop:each"


def test_the_names_of_an_inner_loop_are_no_members_of_the_outer_item() -> None:
    inner = loop("forEach", Step("look", "{{currentItem.line}}"), id="inner", items="currentItem.places")
    outer = loop("forEach", inner, id="outer", items="files")
    story = given(one_activity(outer, LAST)).start().ack()
    assert story.outcome.blockers[0].example == {"files": [{"places": ["<item>"]}]}  # type: ignore[union-attr]


def test_never_stop_passes_a_loop_without_items_and_says_so() -> None:
    story = given(one_activity(loop("forEach", items="files"), LAST), mode="never-stop").start()
    assert story.ack().pending == "last"
    assert [event.detail for event in only(story.events, e.GapRecorded)] == ["missing_input"]


def test_no_items_pass_the_loop_by() -> None:
    assert given(one_activity(loop("forEach", items="files"), LAST)).start(files=[]).pending == "last"


def test_for_counts_by_number_or_variable() -> None:
    assert given(one_activity(loop("for", count=3))).start().path() == [f"again@{n}::work" for n in range(3)]
    assert len(given(one_activity(loop("for", count="n"))).start(n=2).path()) == 2
    assert given(one_activity(loop("for", count="n"))).start(n="many").pending == "loop:again"


def test_while_checks_before_each_round_and_until_is_its_opposite() -> None:
    going = loop("while", condition=Compare("go", "equals", True))
    story = given(one_activity(going, LAST)).start(go=True)
    assert story.pending == "again@0::work"
    assert story.ack(go=False).pending == "last"
    assert given(one_activity(going, LAST)).start(go=False).pending == "last"
    until = loop("until", condition=Compare("done", "equals", True))
    story = given(one_activity(until, LAST)).start()
    assert story.ack().pending == "again@1::work"
    assert story.ack(done=True).pending == "last"


def test_do_while_runs_at_least_once() -> None:
    story = given(one_activity(loop("doWhile", condition=Compare("go", "==", True)), LAST)).start(go=False)
    assert story.pending == "again@0::work"
    assert story.ack().pending == "last"


def test_a_break_condition_leaves_early() -> None:
    each = loop("for", count=5, break_condition=Compare("enough", "==", True))
    story = given(one_activity(each, LAST)).start()
    assert story.ack(enough=True).pending == "last"
    assert only(story.events, e.LoopLeft)[0].because == "break"


def test_the_limit_leaves_the_loop_and_records_a_warning_gap() -> None:
    forever = loop("while", condition=Compare("go", "==", True), max_iterations=3)
    story = given(one_activity(forever, LAST)).start(go=True)
    assert story.path() == ["again@0::work", "again@1::work", "again@2::work", "last"]
    assert [event.severity for event in only(story.events, e.GapRecorded)] == ["warning"]
    assert story.state.status == "complete_with_gaps"


def test_a_list_longer_than_the_limit_is_a_gap() -> None:
    story = given(one_activity(loop("forEach", items="files", max_iterations=2))).start(files=[1, 2, 3])
    assert len(story.path()) == 2
    assert [event.detail for event in only(story.events, e.GapRecorded)] == ["loop_limit"]


def test_a_list_that_was_cut_at_entry_is_a_gap_even_if_it_is_deleted_meanwhile() -> None:
    story = given(one_activity(loop("forEach", items="files", max_iterations=2))).start(files=[1, 2, 3])
    assert len(story.ack(files=None).path()) == 1
    assert [event.detail for event in only(story.events, e.GapRecorded)] == ["loop_limit"]


def test_a_list_that_grows_after_entry_is_no_gap() -> None:
    story = given(one_activity(loop("forEach", items="files", max_iterations=2))).start(files=[1, 2])
    assert len(story.ack(files=[1, 2, 3]).path()) == 1
    assert only(story.events, e.GapRecorded) == []


@pytest.mark.parametrize("count", [3, "n"])
def test_a_count_over_the_limit_is_a_gap(count: int | str) -> None:
    story = given(one_activity(loop("for", count=count, max_iterations=2), LAST)).start(n=3)
    assert story.path() == ["again@0::work", "again@1::work", "last"]
    assert [event.detail for event in only(story.events, e.GapRecorded)] == ["loop_limit"]
    assert given(one_activity(loop("for", count=2, max_iterations=2))).start().path() == [
        "again@0::work",
        "again@1::work",
    ]


def test_a_count_over_the_limit_is_a_gap_where_the_agent_advances_the_loop() -> None:
    story = given(one_activity(loop("for", count=3, max_iterations=2), LAST), NAVIGATION).start()
    for number in range(2):
        story.when(AdvanceLoop(NAVIGATION, 1, Terms(), "again"))
        assert story.pending == f"again@{number}::work"
        story.ack(step="work")
    assert story.pending == "last"
    assert [event.detail for event in only(story.events, e.GapRecorded)] == ["loop_limit"]


@pytest.mark.parametrize("count", ["1e400", 2.5, "two", True])
def test_a_count_that_is_no_whole_number_asks_for_input(count: object) -> None:
    assert given(one_activity(loop("for", count="n"))).start(n=count).pending == "loop:again"


CONTROL = Contract(
    "wr.contracts.loop_control",
    "wr.loop_control",
    {"type": "object", "required": ["decision"]},
    {"kind": "wr.loop_control", "decision": "stop"},
)


def test_a_steered_loop_goes_by_the_decision_of_its_step() -> None:
    decide = Step("decide", "Decide", contracts=(CONTROL,))
    story = given(one_activity(loop("while", WORK, decide, steered=True), LAST)).start()
    story.ack()
    assert story.ack().outcome.blockers[0].code == "MISSING_REQUIRED_OUTPUT"  # type: ignore[union-attr]
    assert story.ack({"kind": "wr.loop_control", "decision": "continue"}).pending == "again@1::work"
    story.ack()
    assert story.ack({"kind": "wr.loop_control", "decision": "stop"}).pending == "last"


def test_a_steered_loop_whose_steps_ask_for_no_decision_asks_its_last_step() -> None:
    story = given(one_activity(loop("while", steered=True), LAST)).start()
    assert story.ack().outcome.blockers[0].pointer.contractRef == "wr.contracts.loop_control"  # type: ignore[union-attr]
    assert story.ack({"kind": "wr.loop_control", "decision": "stop"}).pending == "last"


def test_a_step_before_a_steered_loop_may_say_stop() -> None:
    first = Step("first", "First", contracts=(CONTROL,))
    story = given(one_activity(first, loop("while", steered=True), LAST)).start()
    assert story.ack({"kind": "wr.loop_control", "decision": "stop"}).pending == "last"


@pytest.mark.parametrize("inner", ["for", "while"])
def test_a_decision_about_a_loop_outlives_a_loop_inside_it(inner: str) -> None:
    decide = Step("decide", "Decide", contracts=(CONTROL,))
    inside = loop(inner, id="inner", count=1, steered=inner == "while")
    story = given(one_activity(loop("while", decide, inside, steered=True), LAST)).start()
    assert story.ack({"kind": "wr.loop_control", "decision": "continue"}).pending == "again@0/inner@0::work"
    story.ack({"kind": "wr.loop_control", "decision": "stop"} if inner == "while" else {})
    assert story.pending == "again@1::decide"


def test_a_step_of_an_inner_loop_may_decide_about_the_outer_one() -> None:
    decide = Step("decide", "Decide", contracts=(CONTROL,))
    story = given(one_activity(loop("while", loop("for", decide, id="inner", count=1), steered=True))).start()
    assert story.ack({"kind": "wr.loop_control", "decision": "continue"}).pending == "again@1/inner@0::decide"


def test_the_decision_of_an_inner_steered_loop_is_not_that_of_the_outer_one() -> None:
    decide = Step("decide", "Decide", contracts=(CONTROL,))
    inner = loop("while", decide, id="inner", steered=True)
    story = given(one_activity(loop("while", inner, WORK, steered=True), LAST)).start()
    assert story.ack({"kind": "wr.loop_control", "decision": "stop"}).pending == "again@0::work"
    assert story.ack().outcome.blockers[0].pointer.contractRef == "wr.contracts.loop_control"  # type: ignore[union-attr]
    assert story.ack({"kind": "wr.loop_control", "decision": "stop"}).pending == "last"


def test_never_stop_leaves_an_undecided_loop_with_a_critical_gap() -> None:
    story = given(one_activity(loop("while", steered=True), LAST), mode="never-stop").start()
    assert story.ack().pending == "last"
    assert {event.severity for event in only(story.events, e.GapRecorded)} == {"critical"}


def test_loops_nest_and_name_their_place() -> None:
    inner = loop("for", id="inner", count=2)
    outer = loop("forEach", inner, id="outer", items="files", item_var="file")
    story = given(one_activity(outer, LAST)).start(files=["a", "b"])
    expected = [f"outer@{i}/inner@{j}::work" for i in range(2) for j in range(2)]
    assert story.path() == [*expected, "last"]


@pytest.mark.parametrize("policy", [EXECUTION, NAVIGATION])
def test_the_names_of_an_outer_loop_hold_again_after_an_inner_one(policy: SurfacePolicy) -> None:
    after = Step("after", "After")
    inner = loop("forEach", loop("for", id="innermost", count=2), id="inner", items="parts", item_var="part")
    outer = loop("forEach", inner, after, id="outer", items="files")
    story = given(one_activity(outer), policy).start(files=["a", "b"], parts=["x", "y"])
    seen: list[object] = []
    while not story.state.finished and len(seen) < 50:
        match story.awaited:
            case NeedLoop(loop=waiting):
                story.when(AdvanceLoop(policy, story.now, Terms(), waiting.id))
            case NeedStep(step=step):
                names = ("currentItem", "currentIteration", "currentIndex", "part")
                seen.append((step.id, *(story.state.variables[name] for name in names)))
                story.ack(step=step.id if policy is NAVIGATION else None)
            case _:
                break
    assert [values for values in seen if values[0] == "after"] == [
        ("after", "a", 1, 0, "y"),
        ("after", "b", 2, 1, "y"),
    ]
    assert seen[:2] == [("work", "a", 1, 0, "x"), ("work", "a", 2, 1, "x")]


def test_a_gate_in_a_loop_has_one_answer_per_iteration_and_answers_do_not_pile_up() -> None:
    gate = Gate("ok", "OK?", "OK?", (Option("yes", "Yes"), Option("no", "No")))
    story = given(one_activity(loop("for", WORK, gate, count=50), LAST)).start()
    sizes = set()
    for number in range(50):
        assert story.ack().pending == f"again@{number}::ok"
        story.ack({"kind": "wr.decision", "checkpointId": "ok", "optionId": "yes"})
        sizes.add(len(story.state.visit.answers) + len(story.state.visit.done))
    assert max(sizes) <= 2
    assert story.pending == "last"


def test_a_skipped_loop_names_the_variable_that_nobody_set() -> None:
    story = given(one_activity(loop("while", condition=Compare("go", "==", True)), LAST)).start()
    assert only(story.events, e.LoopLeft)[0].unset == ("go",)


@pytest.mark.slow
def test_a_walk_through_endless_lists_is_refused_instead_of_stalling() -> None:
    """Rule 33: a million claims in one call are no way to hold the server up."""
    inner = loop("forEach", id="inner", items="files", max_iterations=1000)
    outer = loop("forEach", inner, id="outer", items="files", max_iterations=1000)
    story = given(one_activity(outer), SESSION).start(files=list(range(1000)))
    story.when(EnterActivity(SESSION, 1, Terms(), "main"))
    story.when(EnterActivity(SESSION, 1, Terms(), "__terminal__"))
    assert isinstance(story.outcome, Refusal)
    assert story.outcome.code is Code.INPUT_REQUIRED


def test_a_loop_that_names_no_variables_has_the_usual_ones() -> None:
    story = given(one_activity(loop("forEach", items="files"))).start(files=["a"])
    names = ("currentIteration", "currentIndex", "currentItem")
    assert [story.state.variables[name] for name in names] == [1, 0, "a"]
