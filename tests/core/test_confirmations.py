"""A confirmation that is open when the user's mode stops asking for it (rule 27)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from interlock.core.definition.workflow import Step
from interlock.core.engine.evolve import evolve
from interlock.core.guard.audit import learn
from interlock.core.run import events as e
from interlock.core.run.commands import AcknowledgeStep, Terms
from interlock.core.run.output import Output
from interlock.core.run.preferences import PRESETS, Mode
from interlock.core.run.surface_policy import EXECUTION, NAVIGATION, SurfacePolicy
from support.story import Story, given, one_activity, only

BUILD, DEPLOY = Step("build", "Build", confirm=True), Step("deploy", "Deploy")


def in_mode(story: Story, mode: Mode) -> Story:
    """What a person does to a tip, at any moment (rule 29)."""
    change = e.PreferencesChanged.to(replace(story.state.terms, preferences=PRESETS[mode]), "cli")
    story.state, story.audit = evolve(story.state, change), learn(story.audit, change)
    return story


@pytest.mark.parametrize("policy", [EXECUTION, NAVIGATION])
@pytest.mark.parametrize("mode", ["stop", "never-stop"])
def test_it_is_assumed_and_the_assumption_recorded(policy: SurfacePolicy, mode: Mode) -> None:
    story = given(one_activity(BUILD, DEPLOY), policy).start()
    story.when(AcknowledgeStep(policy, story.now, Terms("user"), Output("built")))
    assert story.pending == "confirm-build"
    assert in_mode(story, mode).ack().pending == "deploy"
    (answer,), (gap,) = only(story.events, e.GateResolved), only(story.events, e.GapRecorded)
    assert (answer.how, answer.channel, answer.binds) == ("assumed", "server", False)
    assert (gap.severity, gap.detail, gap.key) == ("info", "needs_user_approval", "confirm-build")
