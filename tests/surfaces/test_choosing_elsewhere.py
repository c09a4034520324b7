"""A run that waits for the choice of its first activity, taken up on another surface (rules 34 and 35)."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.core.run.commands import Terms
from interlock.ledger.decisions.inbox import answer_question, inbox
from interlock.ledger.ledger import Ledger
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.gated import GatedSurface
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.session import SessionSurface
from support.authored import write
from support.harness import Agent, Bench

SURFACES = {"session": SessionSurface, "gated": GatedSurface, "navigation": NavigationSurface}
ON = pytest.mark.parametrize("surface", list(SURFACES))


def one_activity(name: str) -> str:
    return (
        f"id: {name}\nversion: 1.0.0\nname: {name}\nsteps: [{{id: do-{name}, name: Do, description: Do.}}]\n"
    )


class Taken:
    """The run on another surface, which begins with an activity."""

    def __init__(self, bench: Bench, surface: str, policy: Any) -> None:
        files = {"ind/workflow.yaml": "id: ind\nversion: 1.0.0\ntitle: Ind\n"}
        activities = {f"ind/activities/0{at}-{name}.yaml": name for at, name in enumerate(("read", "wipe"))}
        write(bench.workflows, {**files, **{path: one_activity(name) for path, name in activities.items()}})
        self.ledger: Ledger = bench.ledger(terms=Terms(decisions=policy, min_response_ms=0))
        token = Agent(ExecutionSurface(self.ledger)).start("ind")["stateToken"]
        self.agent = Agent(SURFACES[surface](self.ledger))
        if surface == "navigation":
            self.token = self.agent.call("nav_situation", state=token)["state"]
        else:
            joining = {"workflow_id": "ind"} if surface == "gated" else {}
            begun = self.agent.call("start_session", session_token=token, agent_id="a", **joining)
            self.token = begun["_meta"]["session_token"]
        self.surface = surface

    def begin(self, activity: str) -> str:
        """Begin with the activity; return the words of the answer."""
        if self.surface == "navigation":
            self.agent.call("nav_action", state=self.token, action="transition", activity_id=activity)
        else:
            self.agent.call("next_activity", session_token=self.token, activity_id=activity)
        return self.agent.text

    def decide(self, option: str) -> None:
        (question,) = inbox(self.ledger)
        assert answer_question(self.ledger, question, option)

    @property
    def is_chosen(self) -> bool:
        return not inbox(self.ledger)


@ON
def test_to_begin_with_an_activity_is_to_choose_it(bench: Bench, surface: str) -> None:
    run = Taken(bench, surface, "agent")
    assert "GUARD" not in run.begin("wipe")
    assert run.is_chosen


@ON
def test_where_the_user_decides_the_agent_does_not_choose(bench: Bench, surface: str) -> None:
    run = Taken(bench, surface, "user")
    assert "inbox" in run.begin("wipe")
    assert not run.is_chosen
    run.decide("read")
    assert "'read'" in run.begin("wipe"), "it says what was decided"
    run.begin("read")
    assert run.is_chosen
    assert not run.agent.last["_error"]


def test_what_is_open_there_is_listed(bench: Bench) -> None:
    run = Taken(bench, "navigation", "agent")
    actions = run.agent.last["availableActions"]
    assert [(move["action"], move["activity"]) for move in actions["optional"] if "activity" in move] == [
        ("transition", "read"),
        ("transition", "wipe"),
    ]
