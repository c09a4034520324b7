"""A question that the user declined waits for a channel as strong as the one that asked (rule 27)."""

from __future__ import annotations

import pytest

from interlock.core.engine.decisions import counts
from interlock.core.engine.evolve import evolve, evolved
from interlock.core.run import events as e
from interlock.core.run.channels import Channel
from interlock.core.run.commands import Decision, Terms
from interlock.core.run.state import RunState

ENTERED = e.ActivityEntered("plan", 1, "gate:scope", 0)
DECLINED = e.QuestionDeclined("each@0::scope", "scope", "sha256:1", 0, "elicitation")


def answered(channel: Channel) -> e.GateResolved:
    return e.GateResolved("each@0::scope", "scope", "chosen", 1, channel, "sha256:1", option="small")


def takes(state: RunState, channel: Channel, key: str = "each@0::scope") -> bool:
    return counts(Decision("small", channel), state, key, Terms())


def test_a_weaker_channel_does_not_answer_for_the_user() -> None:
    state = evolved(RunState(), [ENTERED, DECLINED])
    assert not takes(state, "agent")
    assert takes(state, "elicitation")
    assert takes(state, "cli")
    assert takes(state, "agent", "each@1::scope"), "another round is another question"


def test_another_visit_does_not_forget_it_and_another_activity_does_not_know_it() -> None:
    elsewhere = evolved(RunState(), [ENTERED, DECLINED, e.ActivityEntered("ship", 2, "gate:scope", 1)])
    assert takes(elsewhere, "agent")
    assert not takes(evolve(elsewhere, e.ActivityEntered("plan", 3, "gate:scope", 2)), "agent")


@pytest.mark.parametrize(("channel", "is_over"), [("agent", False), ("elicitation", True), ("console", True)])
def test_it_is_over_when_a_channel_as_strong_has_answered(channel: Channel, is_over: bool) -> None:
    assert takes(evolved(RunState(), [ENTERED, DECLINED, answered(channel)]), "agent") == is_over
