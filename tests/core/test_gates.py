"""Which gates an activity has, and what is answered about one that it has not."""

from __future__ import annotations

import pytest

from interlock.core.definition.workflow import Activity, Gate, Option, Step, Workflow
from interlock.core.run.commands import EnterActivity, OpenCheckpoint, ResolveCheckpoint, Terms
from interlock.core.run.events import GateResolved
from interlock.core.run.outcomes import Code, Refusal
from interlock.core.run.surface_policy import EXECUTION, GATED, NAVIGATION, SESSION, SurfacePolicy
from support.story import Story, given, one_activity, only

SCOPE = Gate("scope", "Scope", "Which scope?", (Option("small", "Small"), Option("large", "Large")))
BUILD = Step("build", "Build", confirm=True)


def answer_unknown_gate(story: Story) -> Refusal:
    command = ResolveCheckpoint(
        story.policy, story.now, Terms(min_response_ms=0), "agent", "no-such-gate", "small"
    )
    refusal = story.when(command).outcome
    assert isinstance(refusal, Refusal)
    assert refusal.code == Code.CHECKPOINT_NOT_FOUND
    return refusal


@pytest.mark.parametrize("policy", [EXECUTION, NAVIGATION])
def test_an_unknown_gate_is_refused_with_the_gates_of_the_activity(policy: SurfacePolicy) -> None:
    story = given(one_activity(SCOPE, BUILD), policy).start()
    assert answer_unknown_gate(story).about["checkpoints"] == ["scope", "confirm-build"]


@pytest.mark.parametrize("policy", [EXECUTION, NAVIGATION])
def test_before_an_activity_is_chosen_there_are_no_gates_to_name(policy: SurfacePolicy) -> None:
    """Rule 35: independent activities begin with the choice of one of them."""
    rooms = tuple(Activity(name, name.title(), (SCOPE,)) for name in ("one", "two"))
    story = given(Workflow("rooms", "Rooms", "", "1.0.0", rooms, form="activities"), policy).start()
    assert answer_unknown_gate(story).about["checkpoints"] == []


def test_before_the_first_activity_is_entered_it_is_named_instead_of_gates() -> None:
    story = given(one_activity(SCOPE, BUILD), GATED).start()
    story.when(ResolveCheckpoint(GATED, story.now, Terms(min_response_ms=0), "agent", SCOPE.id, "small"))
    assert isinstance(story.outcome, Refusal)
    assert (story.outcome.code, story.outcome.about) == (Code.NO_ACTIVITY, {"initial": "main"})


def test_another_gate_can_be_yielded_once_the_time_of_the_open_one_is_over() -> None:
    """Rule 24: the default is taken for another question, not for one that is yielded again."""
    options = (Option("now", "Now"), Option("later", "Later"))
    timed = Gate(
        "send", "Send", "Send?", options, blocking=False, default_option="later", auto_advance_ms=30_000
    )
    story = given(one_activity(timed, SCOPE), SESSION).start()
    story.when(EnterActivity(SESSION, story.now, Terms(), "main"))

    def yielded(gate: str) -> Code | None:
        outcome = story.when(OpenCheckpoint(SESSION, story.now, Terms(), gate, agent="worker")).outcome
        return outcome.code if isinstance(outcome, Refusal) else None

    assert yielded("send") is None
    assert yielded("scope") is Code.CHECKPOINT_ALREADY_ACTIVE
    story.now += 30_001
    assert yielded("send") is Code.CHECKPOINT_ALREADY_ACTIVE
    assert only(story.events, GateResolved) == []
    assert yielded("scope") is None
    assert [(answer.gate, answer.option) for answer in only(story.events, GateResolved)] == [
        ("send", "later")
    ]
