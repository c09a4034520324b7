"""What a refused call keeps is asked for like what an accepted one does (rule 27)."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.core.definition.workflow import Contract, Gate, Loop, Option, Step, UserInput
from interlock.core.engine.decide import decide
from interlock.core.run.commands import AcknowledgeStep, Decision, EnterActivity, Terms
from interlock.core.run.outcomes import Ask, Decided
from interlock.core.run.surface_policy import SESSION
from support.story import given, one_activity

NEED = UserInput("needs_user_approval", "Spend it?", "spend")


def test_an_answer_in_the_users_place_is_asked_for_although_a_gate_then_refuses_the_call() -> None:
    gate = Gate("ship", "Ship", "Ship?", (Option("yes", "Yes"),))
    story = given(one_activity(Step("pay", "Pay", user_input=(NEED,)), gate), SESSION).start()
    story.when(EnterActivity(SESSION, 0, Terms(asks_by="elicitation"), "main"))
    leave = EnterActivity(
        SESSION, 0, Terms(asks_by="elicitation"), "__terminal__", variables={"spend": "approve"}
    )
    asked = decide(story.plan, story.state, leave, story.audit)
    assert isinstance(asked, Ask)
    assert [question.text for question in asked.questions] == ["Spend it?"]


def test_a_rejection_in_the_users_place_is_asked_for_although_something_else_blocks() -> None:
    contract = Contract("test.report", "report", example={"kind": "report"})
    step = Step("pay", "Pay", user_input=(NEED,), contracts=(contract,))
    story = given(one_activity(step)).start()
    ack = AcknowledgeStep(story.policy, 0, Terms(asks_by="elicitation"), variables={"spend": "reject"})
    assert isinstance(decide(story.plan, story.state, ack, story.audit), Ask)


def test_each_round_is_asked_for_although_all_ask_the_same() -> None:
    loop = Loop("each", "Each", "forEach", (Step("pay", "Pay", user_input=(NEED,)),), 3, items="parts")
    story = given(one_activity(loop), SESSION).start(parts=["a", "b"])
    story.when(EnterActivity(SESSION, 0, Terms(asks_by="elicitation"), "main"))
    leave = EnterActivity(
        SESSION, 0, Terms(asks_by="elicitation"), "__terminal__", variables={"spend": "approve"}
    )
    for _ in range(2):
        asked = decide(story.plan, story.state, leave, story.audit)
        assert isinstance(asked, Ask)
        (question,) = asked.questions
        answers = {**leave.decisions, question.digest: Decision("approve", "elicitation")}
        leave = replace(leave, decisions=answers)
    assert isinstance(decide(story.plan, story.state, leave, story.audit), Decided)
