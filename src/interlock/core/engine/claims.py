"""A session call is a walk (rule 14): steps ahead are claimed in order until a gate or the exits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.conditions import holds
from interlock.core.definition.program import AskGate, ConfirmStep, DoStep, Plan
from interlock.core.definition.workflow import Gate, Loop, Step, walk
from interlock.core.engine.acknowledge import accept, complete, input_required, without_input
from interlock.core.engine.decisions import asked_how, reports, undecided_gap
from interlock.core.engine.draft import Draft
from interlock.core.engine.gates import FoundGate, found_at, loops_around, round_of
from interlock.core.engine.paths.loops import ended_loop, goes_by
from interlock.core.engine.requirements import NOTHING_LACKS, Verdict, examine
from interlock.core.engine.settle import consequences, next_event
from interlock.core.run import events as e
from interlock.core.run.commands import (
    Claim,
    Decision,
    EnterActivity,
    OpenCheckpoint,
    ResolveCheckpoint,
    Terms,
)
from interlock.core.run.outcomes import (
    Awaited,
    Code,
    Done,
    NeedAnswer,
    NeedEntry,
    NeedExit,
    NeedInput,
    NeedLoop,
    NeedStep,
    Refusal,
)
from interlock.core.run.output import Output
from interlock.core.run.reasons import Blocker, BlockerCode, ContextKey
from interlock.core.run.state import Reported, RunState, instance
from interlock.core.values import Json
from interlock.core.variables.writes import answered_roots

MOST_CLAIMED = 100_000
MOST_LOOKED_AT = 500
MOST_NAMED = 50


class Walk:
    """A walk through the current activity. `towards` is a gate to stop at, or None for the exits.

    What it passes stays in the draft, also if it is refused later on.
    """

    def __init__(
        self,
        draft: Draft,
        command: EnterActivity | OpenCheckpoint | ResolveCheckpoint,
        towards: FoundGate | None = None,
        most_events: int = MOST_CLAIMED,
    ) -> None:
        self.draft = draft
        self.most_events = most_events
        self.command = command
        self.terms = command.terms
        claimed = claimed_outputs(draft.plan, draft.state, command.claims)
        self.new = {step: list(outputs.new) for step, outputs in claimed.items()}
        self.repeated = {step: iter(outputs.repeated) for step, outputs in claimed.items()}
        self.only_repeated = {step for step, outputs in claimed.items() if not outputs.new}
        self.towards = towards
        self.loops = loops_around(draft.plan, draft.state, towards) if towards else []
        self.begun: set[str] = set()
        self.passes_inapplicable = False  # whether to look for a later round to which the gate applies
        answered = towards.gate if towards and isinstance(command, ResolveCheckpoint) else None
        self.fixed = answered.decides if answered else frozenset[str]()  # a call brings it after its answer
        self.heading: Mapping[str, Json] = (
            {"target": command.target} if isinstance(command, EnterActivity) else {}
        )

    def go(self) -> NeedAnswer | NeedExit | NeedEntry | Done | Refusal:
        """Walk until the gate or the exits are reached, or something refuses."""
        while True:
            pending = self._settle()
            if len(self.draft.events) > self.most_events:
                # no input can stall the server (rule 33): a walk has an end, whatever its lists hold
                about = {"activity": self.draft.state.activity, "limit": self.most_events}
                return Refusal(Code.INPUT_REQUIRED, about)
            match pending:
                case Refusal():
                    return pending
                case NeedStep():
                    refusal = self._claim(pending)
                    if refusal:
                        return refusal
                case NeedAnswer():
                    if self.towards is not None and pending.gate.id == self.towards.gate.id:
                        return pending
                    refusal = self._meet(pending)
                    if refusal:
                        return refusal
                case NeedInput(gate=Gate() as gate) if self._may_let_pass(gate):
                    self._let_pass(NeedAnswer(instance(self.draft.state, gate.id), gate, self.draft.now))
                case NeedInput():
                    if not self.draft.state.preferences.never_stops:
                        return input_required(pending)
                    self.draft.record(*without_input(self.draft, pending))
                case NeedExit() | NeedEntry() | Done():
                    return pending
                case NeedLoop():
                    raise AssertionError("these surfaces run their loops by themselves")
                case _:
                    assert_never(pending)

    def _settle(self) -> Awaited | Refusal:
        draft = self.draft
        while True:
            asks = self.towards is None  # who walks to a gate learns there whether it applies
            event = next_event(draft.plan, draft.state, draft.policy, draft.now, asks=asks)
            if not isinstance(event, e.RunEvent):
                return event
            if len(draft.events) > self.most_events:
                return NeedExit(())
            if self._passes_by(event):
                assert self.towards is not None
                key = instance(draft.state, self.towards.gate.id)
                return NeedAnswer(key, self.towards.gate, draft.now, self.towards.confirms)
            if isinstance(event, e.LoopLeft) and event.loop in self.loops[:1]:
                assert self.towards is not None
                return Refusal(Code.CHECKPOINT_NOT_ACTIVE, {"checkpoint": self.towards.gate.id})
            if isinstance(event, e.LoopIterated):
                round_ = self._next_round(event)
                if isinstance(round_, Refusal):
                    return round_
                event = round_
            draft.record(event, *consequences(event))

    def _passes_by(self, event: e.Event) -> bool:
        """Say whether the run would pass the gate that is walked to: it does not apply, or is optional."""
        if self.towards is None or not isinstance(event, e.GatePassed) or event.because == "answered":
            return False
        looks_on = self.passes_inapplicable and event.because == "condition"
        return event.gate == self.towards.gate.id and not looks_on

    def _next_round(self, event: e.LoopIterated) -> e.LoopIterated | e.LoopLeft | Refusal:
        """Begin the next round of a loop that goes by a condition only for a call that belongs to it.

        A round that asks or requires something is due while the condition holds, and the walk stops before
        it. Any other may be claimed as the last: nothing in a walk changes its condition (rule 30).
        """
        plan, state = self.draft.plan, self.draft.state
        tail = plan.program(state.activity or "").tail(event.loop)
        loop, frame = tail.loop, state.visit.frames[-1]
        steps = [item for item in walk(loop.body) if isinstance(item, Step)]
        if frame.total is not None or self._brings_another(loop):
            return event
        if loop.id in self.loops and loop.id not in self.begun:
            self.begun.add(loop.id)
            return event
        if not (frame.asked or loop.steered or any(step.requires_output for step in steps)):
            text = f"Loop '{loop.id}' was claimed once; its condition still holds."
            self.draft.notice("LOOP_CLAIMED", text)
            return ended_loop(plan, state, tail, "claimed")
        about: dict[str, Json] = {"loop": loop.id, "iteration": event.iteration + 1}
        about["condition"] = "; ".join(goes_by(loop))
        about["steps"] = [step.id for step in steps]
        about["steered"] = loop.steered
        about["repeated"] = [step.id for step in steps if step.id in self.only_repeated]
        return Refusal(Code.ROUND_DUE, {**about, **self.heading})

    def _brings_another(self, loop: Loop) -> bool:
        """Say whether the call brings outputs for a round after this one: more of a step that is done."""
        done = [
            item for item in loop.body if instance(self.draft.state, item.id) in self.draft.state.visit.done
        ]
        inner = [item for within in loop.body if isinstance(within, Loop) for item in walk(within.body)]
        return any(self.new.get(item.id) for item in (*done, *inner))

    def _claim(self, need: NeedStep) -> Refusal | None:
        draft = self.draft
        new = self.new.get(need.step.id, [])
        if not need.step.required and not new and need.step.id not in self.repeated:
            draft.skip(need)
            return None
        claim = new.pop(0) if new else None
        output = claim or next(self.repeated.get(need.step.id, iter(())), Output())
        draft.receive(output, need.step.id)
        submission = draft.submission(need.step, output, self.command)
        submission = replace(submission, claimed=True, fixed=self.fixed)
        verdict = examine(draft.plan, draft.state, need.step, need.key, submission)
        if verdict.stopping:
            return self._lacks(need, verdict)
        accept(draft, output, verdict)
        digest = claim.digest if claim is not None else ""
        complete(draft, need, digest, verdict, claimed=True)
        return None

    def _how(self) -> dict[str, Json]:
        """Return how the user is asked what a step wants to know."""
        return asked_how(self.draft.state, "", self.terms)

    def _lacks(self, need: NeedStep, verdict: Verdict) -> Refusal | None:
        """Refuse to claim a step that lacks something."""
        refusal = verdict.check_refusal or _unclaimable(need, verdict.stopping[0], self._how())
        kept = tuple(self.draft.put_to_user(verdict.unanswered, verdict.rejections))
        return replace(
            refusal,
            kept=(*verdict.ran, *kept),
            unanswered=verdict.unanswered,
            unchecked=verdict.unchecked,
        )

    def report(self) -> None:
        """Record the outputs that came for steps which this walk has not completed, each once a visit."""
        activity = self.draft.plan.workflow.activity(self.draft.state.activity)
        self._report([step.id for step in activity.steps()] if activity is not None else [])

    def report_late(self) -> None:
        """Record the outputs that came for steps which an earlier call has claimed without one (rule 14)."""
        visit = self.draft.state.visit
        self._report([step for step in visit.unreported if step in visit.done])

    def _report(self, steps: Sequence[str]) -> None:
        for step in steps:
            digests = [output.digest for output in self.new.pop(step, ())]
            self.draft.record(*(e.StepReported(step, digest) for digest in digests if digest))

    def _meet(self, need: NeedAnswer) -> Refusal | None:
        """Refuse to pass an unanswered gate, unless the mode or the user's enforcement says otherwise."""
        draft = self.draft
        if draft.state.active is not None:
            return gate_open(draft.plan, draft.state, self.heading, self.terms)
        if draft.use_decision(need, self.terms):
            return None
        if not need.gate.required:
            draft.pass_optional(need)
            return None
        if draft.state.preferences.never_stops:
            option = need.gate.default_option or need.gate.options[0].id
            answer = draft.resolved(need, Decision(option, "server"))
            draft.record(answer, *undecided_gap(draft.state, answer))
            return None
        if self._may_let_pass(need.gate):
            self._let_pass(need)
            return None
        draft.show(need)
        if draft.take_expired_open():
            return None
        about = {
            "checkpoint": need.gate.id,
            "instance": need.key,
            "question": draft.question(need).text,
            **self.heading,
            **round_of(draft.state, need.key),
            **asked_how(draft.state, need.key, self.terms, need.gate),
        }
        return Refusal(Code.GATE_UNANSWERED, about)

    def _may_let_pass(self, gate: Gate) -> bool:
        """Say whether advisory enforcement passes a gate: nobody was asked yet."""
        state = self.draft.state
        is_unasked = state.visit.open is None and state.declined_by(instance(state, gate.id)) is None
        return self.terms.enforcement == "advisory" and is_unasked

    def _let_pass(self, need: NeedAnswer) -> None:
        """Pass a gate that nobody was asked under advisory enforcement, as a gap."""
        draft = self.draft
        program, following = draft.plan.program(draft.state.activity or ""), draft.state.visit.next_key
        op = program.ops.get(following)
        if isinstance(op, (AskGate, ConfirmStep)) and op.gate.id == need.gate.id:
            following = program.after(following)  # a gate that is judged on leaving stands nowhere
        text = f"Checkpoint '{need.gate.id}' was not answered (advisory enforcement)."
        draft.record(
            e.GatePassed(need.key, need.gate.id, following, "advisory"),
            e.GapRecorded("critical", "user_only_dependency", "gate_passed", text, need.key),
        )
        draft.notice("GATE_PASSED", text)


class Outlook(Walk):
    """A walk that claims nothing: it passes the steps that lack something, and lists what they lack."""

    def __init__(self, draft: Draft, command: EnterActivity) -> None:
        super().__init__(draft, command, None, MOST_LOOKED_AT)
        self.missing: list[Refusal] = []

    def look(self) -> tuple[Refusal, ...]:
        """Return all that is missing before the exits, or before the first gate or list that is needed."""
        arrival = self.go()
        if isinstance(arrival, Refusal) and "limit" not in arrival.about:
            self.missing.append(arrival)
        return tuple(self.missing)

    def _lacks(self, need: NeedStep, verdict: Verdict) -> None:
        how = self._how()
        if "address" in how:
            how = {"shows_address": True}  # the call that claims the step does
        self.missing += (_unclaimable(need, blocker, how) for blocker in verdict.stopping)
        complete(self.draft, need, "", NOTHING_LACKS, claimed=True)


class ClaimedOutputs(Struct, frozen=True):
    """The outputs that a call claims for one step; `repeated` are those that earlier calls have brought."""

    new: tuple[Output, ...]
    repeated: tuple[Output, ...] = ()


def claimed_outputs(plan: Plan, state: RunState, claims: Sequence[Claim]) -> dict[str, ClaimedOutputs]:
    """Group the claims by step; a step's output counts once a visit (rule 14).

    Outside loops a step has one output, however often a call sends it. In a loop a manifest may begin with
    the outputs of earlier rounds, whichever surface they came by.
    """
    activity = plan.workflow.activity(state.activity)
    outside_loops = {item.id for item in activity.items} if activity is not None else set[str]()
    by_step: dict[str, list[Output]] = {}
    for claim in claims:
        sent = by_step.setdefault(claim.step, [])
        if claim.step not in outside_loops or claim.output not in sent:
            sent.append(claim.output)
    grouped: dict[str, ClaimedOutputs] = {}
    for step, outputs in by_step.items():
        count = state.visit.reported.get(step, Reported()).repeated_by([output.digest for output in outputs])
        if step in state.visit.done and state.has_report(step):
            count = len(outputs)
        grouped[step] = ClaimedOutputs(tuple(outputs[count:]), tuple(outputs[:count]))
    return grouped


def take_with_claims(draft: Draft, command: EnterActivity | OpenCheckpoint | ResolveCheckpoint) -> None:
    """Record the variables of a call that claims the steps ahead."""
    notice_unexpected(draft, command.claims)
    steps = steps_ahead(draft.plan, draft.state)
    reported = [*command.variables, *(name for claim in command.claims for name in reports(claim.output))]
    draft.take(command.variables, answered_roots(draft.plan, draft.state, steps, reported))


def notice_unexpected(draft: Draft, claims: Sequence[Claim]) -> None:
    """Say which claims are of steps that the activity does not have: nothing is recorded of them."""
    activity = draft.plan.workflow.activity(draft.state.activity)
    steps = {step.id for step in activity.steps()} if activity is not None else set[str]()
    names = list(dict.fromkeys(claim.step for claim in claims if claim.step not in steps))
    if names:
        more = f", and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        draft.notice("MANIFEST", f"Unexpected steps in manifest: [{', '.join(names[:MOST_NAMED])}{more}]")


def steps_ahead(plan: Plan, state: RunState) -> list[Step]:
    """The steps of the activity that a walk would complete."""
    if state.activity is None:
        return []
    scope = plan.scope(state.variables)
    steps = [op.step for op in plan.program(state.activity).ops.values() if isinstance(op, DoStep)]
    return [
        step
        for step in steps
        if instance(state, step.id) not in state.visit.done and holds(step.condition, scope)
    ]


def gate_open(plan: Plan, state: RunState, heading: Mapping[str, Json], terms: Terms) -> Refusal:
    """Refuse to move while a question is open."""
    assert state.visit.open is not None
    gate = found_at(plan, state, state.visit.open.key).gate
    about = {"checkpoint": state.visit.open.gate, "activity": state.activity, **heading}
    about |= round_of(state, state.visit.open.key)
    return Refusal(Code.DECISION_PENDING, {**about, **asked_how(state, state.visit.open.key, terms, gate)})


def no_activity(plan: Plan) -> Refusal:
    """Refuse what needs an activity before one was entered; without a first one, any may begin (rule 35)."""
    workflow = plan.workflow
    listed: list[Json] = [activity.id for activity in workflow.activities]
    about: dict[str, Json] = {"initial": workflow.initial} if workflow.initial else {"activities": listed}
    return Refusal(Code.NO_ACTIVITY, about)


def _unclaimable(need: NeedStep, blocker: Blocker, how: Mapping[str, Json]) -> Refusal:
    """Refuse to claim a step whose output or input is missing; `how` is how the user is asked for it."""
    about: dict[str, Json] = {"step": need.step.id, "reason": blocker.message}
    if blocker.requirement:
        about["requirement"] = blocker.requirement
    if blocker.waits_for_user:
        about |= how
        return Refusal(Code.USER_MUST_DECIDE, {**about, "rejected": True} if blocker.rejected else about)
    about["from_user"] = blocker.code is BlockerCode.USER_ONLY_DEPENDENCY
    if about["from_user"]:
        about |= how
    if blocker.example is not None:
        about["example"] = blocker.example
    if isinstance(blocker.pointer, ContextKey):
        return Refusal(Code.INPUT_REQUIRED, {**about, "variables": [blocker.pointer.key]})
    return Refusal(Code.OUTPUT_REQUIRED, about)
