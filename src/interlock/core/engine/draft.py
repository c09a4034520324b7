"""The events of a command while it is being decided, and the state they lead to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec.structs import replace

from interlock.core.definition.program import Plan, step_key
from interlock.core.definition.workflow import Step
from interlock.core.engine.decisions import counts, given, resolved, taken_in_time, yielded_by
from interlock.core.engine.evolve import evolve, evolved
from interlock.core.engine.gates import find_gate, is_expired, question_of, question_shown
from interlock.core.engine.requirements import Submission, open_inputs
from interlock.core.engine.settle import asked_for_again, consequences, due_roots, settle, waited_for
from interlock.core.patterns import not_evaluated
from interlock.core.run import events as e
from interlock.core.run.commands import Answerable, Decision, Terms
from interlock.core.run.notices import NO_NOTICES, Notice, Notices, of_events, of_mode, of_output
from interlock.core.run.outcomes import Awaited, Decided, NeedAnswer, NeedStep, Refusal
from interlock.core.run.output import Output
from interlock.core.run.questions import Question, Unanswered
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import SurfacePolicy
from interlock.core.values import MISSING, Json, Variables
from interlock.core.variables.typed_values import sound
from interlock.core.variables.writes import CHANGED, barred, kept_notices, may_set, why_owned


class Draft:
    """Collects the events of one command. It never leaves `decide`."""

    def __init__(
        self,
        plan: Plan,
        state: RunState,
        policy: SurfacePolicy,
        now: int,
        decisions: Mapping[str, Decision] = {},
    ) -> None:
        self.plan = plan
        self.found = self.state = state
        self.policy = policy
        self.now = now
        self.decisions = decisions
        self.events: list[e.Event] = []
        self.notices: list[Notice] = []
        self.sent: dict[str, Json] = {}
        self._offered = frozenset[str]()
        self.held: dict[str, Json] = {}
        self._answering = frozenset[str]()
        self._due = frozenset[str]()
        self._lacking = frozenset[str]()  # what a run in a loop waits for, also of the loop's own names
        self._again = frozenset[str]()  # what the run waits for, and a question has asked for in vain

    def record(self, *events: e.Event) -> None:
        for event in events:
            self.events.append(event)
            self.state = evolve(self.state, event)
            match event:
                case e.GateResolved():
                    self._due -= {*event.roots}  # from now on the state says what it owns
                case e.ActivityEntered() | e.LoopEntered() | e.LoopIterated() if self.held:
                    self._due = self._lacking = self._again = frozenset()
                    self._write()

    def take(self, variables: Variables, answering: Collection[str] = ()) -> None:
        """Write variables of the call, each once, but for what a question owns (rules 19 and 26).

        That is held back for a step that may set it, or for the visit or round that the call begins.
        `answering` is what questions show that the call answers later on; it changes in no case.
        """
        fresh = {name: value for name, value in variables.items() if name not in self.sent}
        if not fresh:
            return
        taken, notices = sound(self.plan, fresh)
        self.notices.extend(notices)
        self.sent, self.held = {**self.sent, **taken}, {**self.held, **taken}
        self._answering = frozenset(answering)
        self._due = due_roots(self.plan, self.state, self.policy)
        in_loop = bool(self.state.visit.frames)
        self._lacking = waited_for(self.plan, self.state, self.policy) if in_loop else frozenset()
        self._again = asked_for_again(self.plan, self.state, self.policy)
        self._write()

    def _write(self) -> None:
        """Write what was sent and is not owned by now."""
        owned = (barred(self.plan, self.state, self._lacking) - self._again) | self._due | self._answering
        free = {name: value for name, value in self.held.items() if name not in owned}
        self.held = {name: value for name, value in self.held.items() if name in owned}
        if free:
            self.record(e.ContextSet(free))

    def settable(self, step: Step) -> dict[str, Json]:
        """Return what was held back and the step may set once it is done."""
        barred = self._due | self._answering
        return {
            name: value
            for name, value in self.held.items()
            if name not in barred and may_set(self.plan, self.state, step, name)
        }

    def write_by(self, step: Step) -> None:
        """Write what a step that was just completed is declared to set (rule 26)."""
        written = self.settable(step)
        changed = {
            name: value for name, value in written.items() if self.state.variables.get(name, MISSING) != value
        }
        self.held = {name: value for name, value in self.held.items() if name not in written}
        if changed:
            self.record(e.ContextSet(changed, by=step.id))
        for name in changed:
            text = f"Step '{step.id}' has changed '{name}', although {why_owned(self.state, name)}."
            self.notice(CHANGED, text)

    def offered(self, step: Step) -> dict[str, Json]:
        """Return the answers to the step's own questions among what was sent: each serves one round."""
        keys = {need.key for need in step.user_input if need.key and given(self.state, need) is None}
        answers = {name: value for name, value in self.sent.items() if name in keys - self._offered}
        self._offered |= {need.key or "" for need in step.user_input}
        self.held = {name: value for name, value in self.held.items() if name not in answers}
        return answers

    def submission(self, step: Step, output: Output, command: Answerable) -> Submission:
        """Return what the command brings for a step."""
        return Submission(
            command.terms,
            output,
            command.decisions,
            command.checked,
            self.now,
            command.client,
            offered=self.offered(step),
            brought=self.settable(step),
        )

    def notice(self, code: str, message: str) -> None:
        self.notices.append(Notice(code, message))

    def receive(self, output: Output, step: str = "") -> None:
        """Take note of an output that is recorded with the command."""
        self.notices.extend(of_output(output, step))

    def abandon_children(self) -> None:
        """Record that the run goes on, or ends, without the children that still run, and say so (rule 35)."""
        for session, workflow in self.state.children.items():
            self.record(e.ChildReturned(workflow, session, "abandoned"))
            self.notice("CHILD_ABANDONED", f"Child '{workflow}' was still running; it is abandoned.")

    def question(self, need: NeedAnswer) -> Question:
        """Render a pending question with the variables in force."""
        return question_of(self.plan, self.state, need.gate, need.confirms)

    def resolved(
        self,
        need: NeedAnswer,
        decision: Decision | None,
        *,
        how: e.Resolved = "chosen",
        brings: Mapping[str, Json] = {},
    ) -> e.GateResolved:
        """Return the record of a decision on a pending question."""
        return resolved(self.plan, self.state, need, decision, self.now, how=how, brings=brings)

    def use_decision(self, need: NeedAnswer, terms: Terms) -> bool:
        """Take the answer that the user gave where the run was before, on another surface (rule 34).

        It is to the question that was open then: a later round asks in the same words, and asks anew.
        """
        opened = self.found.visit.open
        is_asked = opened is not None and opened.key == need.key
        decision = self.decisions.get(self.question(need).digest) if is_asked else None
        if decision is None or not counts(decision, self.state, need.key, terms, need.gate):
            return False
        self.record(self.resolved(need, decision))
        return True

    def take_expired(self, need: NeedAnswer) -> bool:
        """Take the default of a gate that has waited long enough, and say so (rule 24).

        Not where the user has decided meanwhile.
        """
        is_over = is_expired(need.gate, need.opened_at, self.now)
        if not is_over or self.question(need).digest in self.decisions:
            return False
        answer = self.resolved(need, taken_in_time(need.gate), how="auto_advanced")
        self.record(answer)
        text = (
            f"Checkpoint '{need.gate.id}' was not answered in time; its default '{answer.option}' was taken."
        )
        self.notice("DEFAULT_TAKEN", text)
        return True

    def take_expired_open(self) -> bool:
        """Take the default of the open gate, if it has waited long enough."""
        opened = self.state.visit.open
        found = find_gate(self.plan, self.state, opened.gate) if opened else None
        if opened is None or found is None:
            return False
        return self.take_expired(NeedAnswer(opened.key, found.gate, opened.opened_at, found.confirms))

    def show(self, need: NeedAnswer, agent: str = "") -> None:
        """Record that the question is put, unless it is open already in the same words for the same agent.

        The worker that has yielded it keeps waiting for its answer, whoever else comes to it.
        """
        agent = agent or yielded_by(self.state, need.key)
        shown = question_shown(self.plan, self.state, need, self.now, self.policy.name, agent)
        opened = self.state.visit.open
        if opened is None or (opened.key, opened.shown, opened.agent) != (shown.key, shown.shown, agent):
            self.record(shown, *consequences(shown))

    def put(self, answers: Iterable[e.GateResolved]) -> Iterator[e.Event]:
        """Yield the answers to a step's own questions, each after the question if it was not put before."""
        for answer in answers:
            if self.state.visit.asked.get(answer.key) != answer.shown:
                yield self._put(answer.key, answer.gate, answer.shown, answer.question, answer.roots)
            yield answer

    def put_to_user(
        self, waiting: Iterable[Unanswered], rejected: Iterable[e.GateResolved] = ()
    ) -> Iterator[e.Event]:
        """Yield the questions of a step that wait for the user as they are put, after those it rejected."""
        events = tuple(self.put(rejected))
        yield from events
        asked = evolved(self.state, events).visit.asked
        for key, question in ((it.key, it.question) for it in waiting):
            if asked.get(key) != question.digest:
                yield self._put(key, question.id, question.digest, question.text, question.roots)

    def _put(self, key: str, gate: str, shown: str, text: str, roots: tuple[str, ...]) -> e.QuestionShown:
        return e.QuestionShown(key, gate, self.now, shown, text, roots, self.policy.name, input=True)

    def refused(self, refusal: Refusal) -> Refusal:
        """Return the refusal with what the command has passed before it, which is kept (rule 14)."""
        done = [event.step for event in self.events if isinstance(event, e.StepCompleted)]
        about = {**refusal.about, "claimed": list(dict.fromkeys(done))} if done else refusal.about
        kept = (*self.events, *refusal.kept)
        return replace(refusal, about=about, kept=kept, notices=self.disclosed(refusal.notices.listed))

    def skip_optional(self, until: str | None = None) -> Awaited:
        """Pass over steps that are not required and gates that hold nobody up; return what is awaited then.

        `until` is the step or gate to stop at. What was passed over already is awaited when a circle of
        activities leads to it again.
        """
        passed = set[tuple[str | None, str]]()
        while True:
            pending = self.settle()
            if (
                not isinstance(pending, (NeedStep, NeedAnswer))
                or (self.state.activity, pending.key) in passed
            ):
                return pending
            passed.add((self.state.activity, pending.key))
            match pending:
                case NeedStep(step=step) if not step.required and step.id != until:
                    self.skip(pending)
                case NeedAnswer(gate=gate) if gate.id != until and self.take_expired(pending):
                    continue
                case NeedAnswer(gate=gate) if gate.id != until and not gate.required:
                    self.pass_optional(pending)
                case _:
                    return pending

    def pass_optional(self, need: NeedAnswer) -> None:
        """Pass over a gate that is not required."""
        following = self.plan.program(self.state.activity or "").after(self.state.visit.next_key)
        self.record(e.GatePassed(need.key, need.gate.id, following, "optional"))

    def skip(self, need: NeedStep) -> None:
        """Pass over a step that is not required."""
        following = self.plan.program(self.state.activity or "").after(step_key(need.step.id))
        self.record(e.StepSkipped(need.key, need.step.id, following, "it is not required"))

    def settle(self) -> Awaited:
        """Apply the automatic events, and return what is awaited then."""
        while True:
            events, state, pending = settle(self.plan, self.state, self.policy, self.now)
            if not self._writes_on_the_way(events):
                self.events.extend(events)
                self.state = state
                return pending

    def _writes_on_the_way(self, events: Iterable[e.Event]) -> bool:
        """Record events up to the beginning after which something is written that was held back."""
        if not self.held:
            return False
        ahead = Draft(self.plan, self.state, self.policy, self.now)
        ahead.held, ahead._answering, ahead._due = self.held, self._answering, self._due
        for event in events:
            ahead.record(event)
            if ahead.held != self.held:
                self.events += ahead.events
                self.state, self.held, self._due = ahead.state, ahead.held, ahead._due
                return True
        return False

    def decided(self) -> Decided:
        """Settle, and return everything that the command has brought about."""
        pending = self.settle()
        if isinstance(pending, NeedStep) and pending.asks:
            terms = Terms().within(self.state.terms)
            waiting = open_inputs(self.plan, self.state, pending.step, terms)
            self.record(*self.put_to_user(waiting))
        notices = self.disclosed(of_events(self.events, self.state))
        return Decided(tuple(self.events), self.state, pending, notices=notices)

    def disclosed(self, happened: Iterable[Notice] = ()) -> Notices:
        """Return the notices so far, what every answer says while the mode holds, and what happened."""
        unknown = (
            Notice("NOT_EVALUATED", f"A condition could not be evaluated and counts as met: {reason}.")
            for reason in not_evaluated()
        )
        kept = kept_notices(self.plan, self.state, self.held)
        standing = of_mode(self.state.preferences, self.plan.workflow.recommended)
        return NO_NOTICES.plus((*self.notices, *kept, *standing, *unknown, *happened))
