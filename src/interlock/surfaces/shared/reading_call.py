"""One call of one agent on the head of its session: what it may read, its token, and its trace."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.workflow import Activity, Gate, Workflow
from interlock.core.engine.gates import find_gate, question_of, round_of
from interlock.core.run.notices import NO_NOTICES, Notice, Notices, of_abandonment
from interlock.core.run.state import RunState
from interlock.core.values import Json
from interlock.ledger.decisions.approvals import of_approvers
from interlock.ledger.runs.position import Position
from interlock.ledger.runs.shared_sessions import Calling, Sessions
from interlock.ledger.tokens.tokens import Pointer
from interlock.surfaces.call import Refused, Reply
from interlock.surfaces.shared.documents import Documents, FoundDocument
from interlock.surfaces.shared.replies import failure, json_reply, text_reply
from interlock.surfaces.shared.session_params import GetSessionSkill
from interlock.surfaces.shared.workflow_shapes import gate_shape


class ReadingCall(Struct, frozen=True):
    """A reading call on the head of a session. `token` is the caller's for the current visit."""

    sessions: Sessions
    pointer: Pointer
    position: Position
    calling: Calling
    token: str

    @property
    def state(self) -> RunState:
        return self.position.state

    @property
    def workflow(self) -> Workflow:
        return self.position.plan.workflow

    @property
    def activity(self) -> Activity | None:
        return self.workflow.activity(self.state.visit.activity)

    @property
    def documents(self) -> Documents:
        """The texts that the run is pinned to."""
        ledger = self.sessions.ledger
        return Documents(self.workflow, ledger.text, ledger.library, self.sessions.policy.name)

    @property
    def approvers(self) -> Notices:
        """How far the people are who decide the open question."""
        return Notices(tuple(of_approvers(self.position.plan, self.state)))

    def about(self, **more: Json) -> ReadingCall:
        """Return the call with more for its trace."""
        calling = replace(self.calling, about={**self.calling.about, **more})
        return replace(self, calling=calling)

    def holds(self, mark: str, *, full: bool) -> bool:
        """Say whether the agent was sent the text before; else it is sent now."""
        deliveries = self.sessions.deliveries
        if not full and deliveries.holds(self.position, mark):
            return True
        deliveries.sent(self.position, mark)
        return False

    def text_answer(self, text: str) -> Reply:
        """Answer with a text, the current token, and the notices about the token and the definition."""
        notices = self.notices()
        return self.answer(text_reply(text, self.token, notices), notices)

    def json_answer(self, body: Mapping[str, Json]) -> Reply:
        """Answer with JSON, the current token in it, and the notices about the token and the definition."""
        notices = self.notices()
        reply = json_reply({**body, "session_token": self.token}, self.token, notices)
        return self.answer(reply, notices)

    def refused(
        self, code: str, message: str, next_action: str, about: Mapping[str, Json] | None = None
    ) -> Refused:
        """Refuse with what is wrong, what to do next, and the current token; the call is traced."""
        return Refused(self.answer(failure(code, message, next_action, about, self.token)))

    def answer(self, reply: Reply, notices: Notices = NO_NOTICES) -> Reply:
        """Trace the call and return its answer."""
        error = reply.text.partition("\n")[0] if reply.is_error else ""
        self.sessions.trace(self.position, self.calling, error, notices)
        return reply

    def notices(self) -> Notices:
        """Return what the caller should know about its token and the definition."""
        position = self.position
        standing = (
            *self.sessions.ledger.standing(position),
            *of_abandonment(self.state),
        )
        if position.given_in in (None, self.state.visit.number):
            return Notices(standing)
        where = f"'{self.state.visit.activity}'" if self.state.visit.activity else "its beginning"
        text = f"The session has moved on to {where}; use the session_token of this response."
        return Notices((Notice("MOVED_ON", text), *standing))


def asked_skill(reading: ReadingCall, params: GetSessionSkill) -> tuple[ReadingCall, FoundDocument]:
    """Find the skill that is named, else that of the step, of the activity, or of the workflow."""
    activity, step_id, ref = reading.activity, params.step_id, params.skill_id
    if step_id is not None and ref is not None:
        text = "Both step_id and skill_id were sent."
        raise reading.refused("VALIDATION_ERROR", text, "Send step_id, or skill_id, not both.")
    owner = f"Workflow '{reading.workflow.id}'" if activity is None else f"Activity '{activity.id}'"
    if ref is None and step_id is None:
        ref = reading.workflow.primary_skill if activity is None else activity.primary_skill
    elif step_id is not None:
        if activity is None:
            raise no_activity(reading)
        step, owner = activity.step(step_id), f"Step '{step_id}'"
        if step is None:
            steps = ", ".join(step.id for step in activity.steps())
            text = f"Step not found: {step_id} in activity {activity.id}"
            raise reading.refused("STEP_NOT_FOUND", text, f"Use one of: {steps}.")
        ref = step.skill
    supporting = ", ".join(activity.supporting_skills if activity else ())
    if ref is None:
        more = f" Supporting skills of the activity, by skill_id: {supporting}." if supporting else ""
        raise reading.refused("NO_SKILL", f"{owner} has no skill.", f"Go on without one.{more}")
    reading = reading.about(skill=ref[:128])
    skill = reading.documents.skill(ref)
    if skill is None:
        next_action = "Go on without it, and tell the user that it is missing."
        raise reading.refused("NOT_FOUND", f"Skill not found: {ref}", next_action)
    return reading, skill


def no_activity(reading: ReadingCall) -> Refused:
    """Answer a call that needs an activity before one was entered."""
    workflow = reading.workflow
    begins = f"activity_id '{workflow.initial}'"
    if workflow.initial is None:  # independent activities: the goal decides (rule 35)
        begins = (
            f"the activity that fits the goal: {', '.join(activity.id for activity in workflow.activities)}"
        )
    return reading.refused(
        "NO_ACTIVITY", "No activity has been entered yet.", f"Call next_activity with {begins}."
    )


def status_of(position: Position) -> str:
    """Return active, blocked, completed or abandoned."""
    if position.state.finished:
        return "completed" if position.state.abandoned is None else "abandoned"
    return "blocked" if position.state.active is not None else "active"


def open_gate(position: Position) -> Gate | None:
    """Return the gate whose question a worker has yielded."""
    opened = position.state.active
    instance = find_gate(position.plan, position.state, opened.gate) if opened else None
    return instance.gate if instance else None


def presented_gate(reading: ReadingCall, gate: Gate) -> dict[str, Json]:
    """Return a gate with its question as the user is asked it now (rule 26)."""
    question = question_of(reading.position.plan, reading.state, gate)
    shape = gate_shape(replace(gate, name=question.name, message=question.text, options=question.options))
    opened = reading.state.visit.open
    is_open = opened is not None and opened.gate == gate.id
    return {**shape, **(round_of(reading.state, opened.key) if opened and is_open else {})}
