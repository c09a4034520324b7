"""Texts and conditions quote the artifacts that steps handed in: what was checked, not what was claimed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from interlock.core.definition.conditions import Compare
from interlock.core.definition.program import Plan
from interlock.core.definition.prompts import step_prompt
from interlock.core.definition.workflow import (
    Activity,
    Contract,
    Fragment,
    Gate,
    Item,
    Loop,
    Option,
    Step,
    Workflow,
)
from interlock.core.engine.decide import decide
from interlock.core.engine.evolve import evolved
from interlock.core.guard.audit import Audit, learned
from interlock.core.guard.hearing import I5
from interlock.core.guard.inspection import inspect
from interlock.core.run import events as e
from interlock.core.run.commands import AcknowledgeStep, StartRun, Terms
from interlock.core.run.outcomes import Decided
from interlock.core.run.output import Output
from interlock.core.run.preferences import PRESETS, Mode
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import EXECUTION

VERDICT = {
    "type": "object",
    "required": ["verdict"],
    "properties": {"verdict": {"enum": ["pass", "fail"]}, "summary": {"type": "string"}},
}
REPORT = Contract("wr.contracts.report", "wr.report", VERDICT)
VERIFY = Step("verify", "Verify", contracts=(REPORT,))
LAST = Step("close", "Close")
SHOWN = "Verdict: {{artifacts.report.verdict}}. {{artifacts.report.summary}}"
REVIEW = Gate("review", "Review", SHOWN, (Option("ok", "Ok"), Option("no", "No")))


class Run:
    """A run of a few items, acknowledged one after the other."""

    def __init__(self, *items: Item, mode: Mode = "guided") -> None:
        activity = Activity("main", "Main", items)
        self.plan = Plan(Workflow("team.work", "Work", "", "1", (activity,), initial="main"))
        self.state, self.audit = RunState(), Audit()
        self.send(StartRun(EXECUTION, 0, "sha256:0", "test", PRESETS[mode]))

    def send(self, command: AcknowledgeStep | StartRun) -> Decided:
        outcome = decide(self.plan, self.state, command, self.audit)
        assert isinstance(outcome, Decided), outcome
        if not outcome.blockers:
            self.state = evolved(self.state, outcome.events)
            self.audit = learned(self.audit, outcome.events)
            assert self.audit.variables == self.state.variables
        return outcome

    def ack(self, *artifacts: dict[str, Any], context: Mapping[str, Any] = {}) -> Decided:
        output = Output("Done.", tuple(artifacts))
        return self.send(AcknowledgeStep(EXECUTION, 0, Terms(), output, variables=context))

    @property
    def question(self) -> str:
        assert self.state.visit.open is not None
        return self.state.visit.open.text


def report(verdict: str, **fields: str) -> dict[str, Any]:
    return {"kind": "wr.report", "verdict": verdict, **fields}


def test_a_question_quotes_the_artifact_that_was_handed_in() -> None:
    run = Run(VERIFY, REVIEW, LAST)
    run.ack(report("fail", summary="Two tests fail."))
    assert run.question == "Verdict: «fail». «Two tests fail.»"


def test_what_the_agent_claims_beside_it_is_not_taken() -> None:
    run = Run(VERIFY, REVIEW, LAST)
    outcome = run.ack(report("fail"), context={"artifacts": {"report": {"verdict": "pass"}}})
    assert "'artifacts' is not taken: the name is reserved." in [
        str(notice.message) for notice in outcome.notices.listed
    ]
    assert "«fail»" in run.question


def test_an_artifact_of_a_step_without_a_contract_is_not_quoted() -> None:
    run = Run(VERIFY, Step("talk", "Talk"), REVIEW, LAST)
    run.ack(report("fail"))
    run.ack(report("pass"))
    assert "«fail»" in run.question


def test_a_field_that_did_not_come_is_said_not_to_be_handed_in() -> None:
    run = Run(VERIFY, REVIEW, LAST)
    run.ack(report("pass"))
    assert run.question == "Verdict: «pass». «not handed in»"


def test_an_artifact_that_is_not_accepted_replaces_the_one_before() -> None:
    again = replace(VERIFY, id="again")
    run = Run(VERIFY, again, REVIEW, LAST, mode="never-stop")
    run.ack(report("pass", summary="All pass."))
    assert run.state.variables["artifacts"] == {"report": {"summary": "All pass.", "verdict": "pass"}}
    run.ack(report("perhaps"))
    assert run.state.variables["artifacts"] == {"report": {}}


def test_a_condition_goes_by_the_artifact() -> None:
    fix = Loop(
        "fix",
        "Fix",
        "until",
        (VERIFY,),
        max_iterations=3,
        condition=Compare("artifacts.report.verdict", "==", "pass"),
    )
    run = Run(fix, LAST)
    run.ack(report("fail"))
    assert [frame.iteration for frame in run.state.visit.frames] == [1]
    run.ack(report("pass"))
    assert run.state.visit.next_key == "step:close"


def test_a_part_of_a_prompt_goes_by_the_artifact() -> None:
    failed = Compare("artifacts.report.verdict", "==", "fail")
    mend = Step("mend", "Mend", (Fragment("Do."), Fragment("Mend what failed.", failed)))
    run = Run(VERIFY, mend)
    run.ack(report("fail"))
    assert step_prompt(run.plan, run.state, mend) == "Do.\n\nMend what failed."


def test_only_what_texts_quote_is_kept() -> None:
    run = Run(VERIFY, replace(REVIEW, message="{{artifacts.report.verdict}}"), LAST)
    run.ack(report("pass", summary="x" * 5_000))
    assert run.state.variables["artifacts"] == {"report": {"verdict": "pass"}}


def test_the_guard_refuses_an_artifact_that_the_step_has_no_contract_for() -> None:
    run = Run(VERIFY, REVIEW, LAST)
    ack = AcknowledgeStep(EXECUTION, 0, Terms(), Output("Done.", (report("fail"),)))
    outcome = decide(run.plan, run.state, ack, run.audit)
    assert isinstance(outcome, Decided)
    forged = [
        replace(event, artifacts={**event.artifacts, "approval": {"by": "Ann"}})
        if isinstance(event, e.StepCompleted)
        else event
        for event in outcome.events
    ]
    violation = I5("step 'verify' hands in an artifact that it has no contract for")
    assert inspect(run.plan, run.audit, forged, ack) == violation
