"""Attacks through a child: its agent does not change what a question of the parent owns (rule 35)."""

from __future__ import annotations

from typing import Any

from interlock.ledger.runs.position import Position
from interlock.store.protocol import SessionFilter
from support.attacker import (
    CLAIMING,
    EVERY,
    USER,
    Attacker,
    activity,
    equals,
    held,
    on,
    question,
    sets,
    step,
    write_activities,
)
from support.harness import Bench
from support.log import logged_events

APPROVED = {"yes": sets(approved=True), "no": sets(approved=False)}
HELPER = {"triggers": {"workflow": "helper", "passContext": ["target", "approved"]}}
LAUNCH = step("launch", "Launch it at {{target}}.", condition=equals("approved", True))


def write_family(bench: Bench, *items: dict[str, Any], asks: dict[str, Any] | None = None) -> None:
    """Write a parent that asks before it passes on, and a child with these items."""
    write_activities(
        bench,
        activity("plan", asks or question("deploy", "Deploy to {{target}}?", **APPROVED), to="ship"),
        activity("ship", step("send", **HELPER)),
        target="string",
        approved="boolean",
    )
    write_activities(
        bench, activity("plan", *items), id="helper", target="string", approved="boolean", own=True
    )


class Family:
    """A parent whose user has said no, and the agent of its child."""

    def __init__(
        self, bench: Bench, surface: str, target: str = "staging", brings: dict[str, Any] | None = None
    ) -> None:
        begins = "navigation" if surface == "navigation" else "session"  # others can only take a child up
        self.parent = Attacker(bench, begins, USER)
        self.parent.start(**({"target": target} if target else {}))
        self.parent.reach("deploy")
        self.parent.user_decides("deploy", "no")
        self.parent.use_decision("deploy", "no")
        self.parent.walk(">ship")
        assert self.parent.has_entered("ship")
        self.agent = Attacker(bench, surface, USER)
        self._begin(begins, brings or {})

    def _begin(self, begins: str, brings: dict[str, Any]) -> None:
        tokens, child = self.parent.tokens, self.agent
        if begins == "navigation":
            above = {"parent_state": tokens["state"], "initial_variables": brings}
            child.call("nav_start", workflow_id="helper", **above)
            return
        token = tokens["session_token"]
        begun = child if child.surface == begins else Attacker(child.bench, begins, USER)
        begun.call("start_session", workflow_id="helper", agent_id="child", parent_session_token=token)
        begun.go("plan", variables=brings)
        token = begun.tokens["session_token"]
        if child.surface == "execution":
            child.call("continue_workflow", stateToken=token)
        elif child.surface == "gated":
            child.call("start_session", workflow_id="helper", agent_id="child", session_token=token)

    def variables(self, *, child: bool) -> dict[str, Any]:
        """Return the variables of one of the two."""
        ledger = self.parent.ledger
        with ledger.store.reading() as reader:
            sessions = [it for it in reader.sessions(SessionFilter()) if bool(it.parent_session) is child]
        position = ledger.position(sessions[0].session_id)
        assert isinstance(position, Position)
        return dict(position.state.variables)

    def child_has_done(self, name: str) -> bool:
        """Say whether the log of the child has this step as done."""
        ledger = self.parent.ledger
        with ledger.store.reading() as reader:
            (child,) = [it for it in reader.sessions(SessionFilter()) if it.parent_session]
        done = logged_events(ledger.store, child.session_id, "step_completed")
        return name in [row.event.step for row in done]


@on(*EVERY, when=["at its start", "later"])
def test_a_child_does_not_change_what_its_parents_question_owns(
    bench: Bench, surface: str, when: str
) -> None:
    write_family(bench, step("look"), LAUNCH, step("last"))
    bent = {"target": "PRODUCTION", "approved": True}
    family = Family(bench, surface, brings=bent if when == "at its start" else {})
    family.agent.walk("look", "launch", "last", ">__terminal__", **bent)
    seen = family.variables(child=True)
    held(seen["target"] == "staging", f"the user was shown staging, the child has {seen}")
    held(seen["approved"] is False, "the user's No became a Yes in the child")
    assert family.child_has_done("last")
    held(not family.child_has_done("launch"), "the child launched what the user had refused")


@on(*CLAIMING, "navigation")
def test_a_child_does_not_ask_its_own_question_about_another_value(bench: Bench, surface: str) -> None:
    write_family(bench, question("really", "Really at {{target}}?", yes={}, no={}), step("last"))
    family = Family(bench, surface)
    agent, bent = family.agent, {"target": "PRODUCTION"}
    agent.reach("really")
    if surface == "navigation":
        agent.act("respond_to_checkpoint", checkpoint_id="really", reask=bent)
    elif surface == "session":
        agent.tell("yield_checkpoint", checkpoint_id="really", reask=bent)
    else:
        agent.tell("get_checkpoint", activity_id="plan", checkpoint_id="really", reask=bent)
    assert agent.waiting("really")
    held(family.variables(child=True)["target"] == "staging", "the child asks about another target")


@on(*EVERY)
def test_what_a_child_returns_changes_nothing_that_its_parents_question_owns(
    bench: Bench, surface: str
) -> None:
    writes = [{"action": "set", "target": "target", "value": "PRODUCTION"}]
    writes.append({"action": "set", "target": "approved", "value": True})
    write_family(bench, step("look", actions=writes), step("last"))
    family = Family(bench, surface)
    family.agent.walk("look", "last", ">__terminal__")
    assert family.variables(child=True)["target"] == "PRODUCTION"
    seen = family.variables(child=False)
    held(seen["target"] == "staging", f"the child returned another target: {seen}")
    held(seen["approved"] is False, "the child returned another answer than the user's")


@on(*EVERY, when=["at its start", "later"])
def test_a_child_does_not_set_what_its_parents_question_asks_for_by_its_absence(
    bench: Bench, surface: str, when: str
) -> None:
    """The user decided that there is no target: the child's agent does not come up with one."""
    unset = {"type": "simple", "variable": "target", "operator": "notExists"}
    there = {"type": "simple", "variable": "target", "operator": "exists"}
    asks = question("deploy", "No target is known. Go on?", condition=unset, **APPROVED)
    finds = step("look", actions=[{"action": "set", "target": "target"}])
    write_family(bench, finds, step("launch", "At {{target}}.", condition=there), step("last"), asks=asks)
    bent = {"target": "PRODUCTION"}
    family = Family(bench, surface, target="", brings=bent if when == "at its start" else {})
    family.agent.walk("look", "launch", "last", ">__terminal__", **bent)
    assert family.child_has_done("last"), "a child is not stuck without it"
    held(not family.child_has_done("launch"), f"the child has {family.variables(child=True)}")
    held(family.variables(child=False).get("target") is None, str(family.variables(child=False)))


@on("session", "navigation")
def test_a_default_does_not_count_as_set_in_a_child_or_after_it(bench: Bench, surface: str) -> None:
    """A required gate that asks because nobody has set a variable is asked, whatever a child was given."""
    unset = {"condition": {"type": "simple", "variable": "target", "operator": "notExists"}}
    sure = {**question("sure", "Go on without a target?", yes={}, no={}), **unset}
    write_activities(bench, activity("plan", step("send", **HELPER), sure), target="string")
    write_activities(bench, activity("plan", step("own")), id="helper", target="string")
    for name in ("deploy", "helper"):
        file = bench.workflows / name / "workflow.yaml"
        file.write_text(file.read_text().replace('"string"', '"string", "defaultValue": "none"'))
    parent, child = Attacker(bench, surface, USER), Attacker(bench, surface, USER)
    parent.start()
    if surface == "navigation":
        child.call("nav_start", workflow_id="helper", parent_state=parent.tokens["state"])
    else:
        token = parent.tokens["session_token"]
        child.call("start_session", workflow_id="helper", agent_id="child", parent_session_token=token)
        child.go("plan")
    assert child.variables == {}
    child.walk("own", ">__terminal__")
    parent.walk("send")
    parent.reach("sure")
    assert [asked.message for asked in parent.waiting("sure")] == ["Go on without a target?"]


def write_finders(bench: Bench) -> None:
    """Write a parent whose child finds out what the parent then tells."""
    finds = {"triggers": {"workflow": "helper", "passContext": []}}
    write_activities(
        bench, activity("plan", step("send", **finds), step("tell", "Tell {{found}}.")), found="string"
    )
    looks = step("look", actions=[{"action": "set", "target": "found"}])
    write_activities(bench, activity("plan", looks), id="helper", found="string", own=True)


@on("execution", when=["begun", "ended"], by=["read", "acknowledged"])
def test_the_tokens_of_a_parent_lead_on_to_what_its_child_adds(
    bench: Bench, surface: str, when: str, by: str
) -> None:
    """Rule 8: the child moves nothing in its parent, so that its agent makes no branch by going on."""
    write_finders(bench)
    parent, child = Attacker(bench, surface, USER), Attacker(bench, "session", USER)
    parent.start()
    token, tokens = parent.tokens["stateToken"], dict(parent.tokens)
    child.call("start_session", workflow_id="helper", agent_id="child", parent_session_token=token)
    child.go("plan")
    if when == "ended":
        child.do("look", found="a leak")
        assert not child.go("__terminal__")["_refused"]
    if by == "read":
        parent.call("continue_workflow", stateToken=token)
        held("earlier point" not in parent.text, parent.text)
    else:
        parent.tokens = dict(tokens)
    assert not parent.do("send")["_refused"]
    held(("Tell a leak." in parent.text) is (when == "ended"), parent.text)
    with parent.ledger.store.reading() as reader:
        (above,) = (it for it in reader.sessions(SessionFilter()) if it.parent_session is None)
        nodes = [reader.node(above.session_id, number) for number in range(above.next_node)]
    parents = [node.parent for node in nodes if node is not None and node.kind == "step"]
    held(len(parents) == len(set(parents)), f"the parent has branched: {parents}")
    repeated = parent.text
    parent.tokens = dict(tokens)
    parent.do("send")
    if by == "acknowledged":
        assert parent.text == repeated, "the same tokens return the recorded response"


LAUNCHES = {"reason": "needs_user_approval", "key": "launch_it", "question": "Launch it?"}
ASKS = {
    "gate": [question("launch_it", "Launch it?", approve={}, reject={})],
    "step": [step("launch", userInput=[LAUNCHES])],
}


@on("execution", "navigation", "session", asks=ASKS, when=["begins", "returns"], option=["approve", "reject"])
def test_what_the_user_has_answered_is_not_asked_again_because_of_a_child(
    bench: Bench, surface: str, asks: str, when: str, option: str
) -> None:
    """Rule 26: a recorded decision is used by the agent's next call, whatever a child adds before."""
    begins = {"triggers": {"workflow": "helper", "passContext": []}}
    write_activities(bench, activity("plan", step("send", **begins), *ASKS[asks], step("last")))
    write_activities(bench, activity("plan", step("look")), id="helper")
    parent, child = Attacker(bench, surface, USER), Attacker(bench, surface, USER)
    parent.start()
    parent.walk("send", *(["launch", ">__terminal__"] if surface == "session" else []))
    if asks == "gate":
        parent.reach("launch_it")
    if when == "returns":
        begin_child(parent, child)
    parent.user_decides("launch_it", option)
    if when == "begins":
        begin_child(parent, child)
    child.walk("look", ">__terminal__")
    held(not parent.waiting("launch_it"), "the user is asked again")
    if asks == "gate":
        parent.use_decision("launch_it", option)
    else:
        parent.walk("launch", *([">__terminal__"] if surface == "session" else []))
    answers = [event.option for event in events_of_parent(parent, "gate_resolved")]
    held(answers == [option], f"{answers}, and the user has decided {option}: {parent.text}")
    if asks == "step":
        done = [event.step for event in events_of_parent(parent, "step_completed")]
        held(("launch" in done) is (option == "approve"), parent.text)
        assert bool(parent.waiting("launch_it")) is (option == "reject"), "a rejected step is asked for again"


def events_of_parent(parent: Attacker, kind: str) -> list[Any]:
    """Return what the log of the session has that no other has begun."""
    store = parent.ledger.store
    with store.reading() as reader:
        (above,) = (it for it in reader.sessions(SessionFilter()) if it.parent_session is None)
    return [row.event for row in logged_events(store, above.session_id, kind)]


def begin_child(parent: Attacker, child: Attacker) -> None:
    """Begin a child of the parent, and take it up on the child's surface."""
    if parent.surface == "navigation":
        child.call("nav_start", workflow_id="helper", parent_state=parent.tokens["state"])
        return
    begun = child if child.surface == "session" else Attacker(child.bench, "session", USER)
    token = parent.tokens["session_token" if parent.surface == "session" else "stateToken"]
    begun.call("start_session", workflow_id="helper", agent_id="child", parent_session_token=token)
    begun.go("plan")
    if child.surface == "execution":
        child.call("continue_workflow", stateToken=begun.tokens["session_token"])
