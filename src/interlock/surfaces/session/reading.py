"""The reading tools of the session surface: TOON under a header with the token; refused while blocked."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from interlock.core.definition.prompts import filled, filling
from interlock.core.engine.gates import ruled_out
from interlock.core.engine.paths.exits import exits
from interlock.core.engine.paths.loops import rounds
from interlock.core.hashing import digest_of
from interlock.ledger.runs.shared_sessions import Calling
from interlock.surfaces.call import Call, Outcome
from interlock.surfaces.elicitation import terms_of
from interlock.surfaces.session import params as p
from interlock.surfaces.session.errors import before_leaving
from interlock.surfaces.shared import session_params as shared
from interlock.surfaces.shared.documents import FoundDocument
from interlock.surfaces.shared.reading_call import ReadingCall, asked_skill, no_activity, open_gate
from interlock.surfaces.shared.resolutions import how_to_answer
from interlock.surfaces.shared.session_tools import SessionTools, digest_mark
from interlock.surfaces.shared.workflow_shapes import (
    REPORT_STEPS,
    activity_shape,
    as_toon,
    header_shape,
    summary_shape,
    wants_reports,
)
from interlock.surfaces.tool import tool

UNCHANGED = "unchanged: true (full: true sends it again)"
FENCE = "\n\n---\n\n"


class SessionReading:
    """The reading tools of the session surface."""

    def __init__(self, tools: SessionTools) -> None:
        self._tools = tools

    @tool(read_only=True)
    def get_workflow(self, params: shared.GetWorkflow, call: Call) -> Outcome:
        """The primary skill, then rules, variables, modes, initialActivity and activities; summary=false
        gives the whole definition.
        """
        reading = self._unblocked(params.session_token, Calling("get_workflow"), call)
        workflow = reading.workflow
        shape = summary_shape if params.summary else header_shape
        text = self._tools.cached_text(reading, shape.__name__, lambda: as_toon(shape(workflow)))
        if not params.summary:
            texts = (reading.documents.activity(activity).rstrip() for activity in workflow.activities)
            text = FENCE.join((text, *texts))
        mark = digest_mark(digest_of(text.encode()))
        header = f"session_token: {reading.token}\ndigest: {mark}"
        is_held = reading.holds(mark, full=params.full)
        parts = [f"{header}\n{UNCHANGED}" if is_held else f"{header}\n{text}"]
        skill = reading.documents.skill(workflow.primary_skill or "")
        if skill is not None:
            held = digest_mark(skill.document.digest)
            unchanged = f"primary_skill: {workflow.primary_skill}\ndigest: {held}\n{UNCHANGED}"
            is_held = reading.holds(held, full=params.full)
            parts.insert(0, unchanged if is_held else skill.text.rstrip())
        return reading.text_answer(FENCE.join(parts))

    @tool(read_only=True)
    def get_activity(self, params: p.GetActivity, call: Call) -> Outcome:
        """Worker: the current activity with steps, checkpoints, loops and transitions."""
        reading = self._unblocked(params.session_token, Calling("get_activity"), call)
        if reading.activity is None:
            raise no_activity(reading)
        plan, activity = reading.position.plan, reading.activity
        told = reading.position.told(reading.state)
        name, scope = f"activity {activity.id}", plan.scope(told.variables)
        idle = [gate.id for gate in ruled_out(plan, reading.state)]
        if idle:
            activity = replace(activity, items=tuple(item for item in activity.items if item.id not in idle))
            name = f"{name} without {idle}"
        definition = self._tools.cached_text(reading, name, lambda: as_toon(activity_shape(activity)))
        mark = digest_mark(digest_of(definition.encode()))  # of the definition: values do not change it
        lines = [
            f"session_token: {reading.token}",
            f"digest: {mark}",
            *self._situation(reading, call, full=params.full),
        ]
        if reading.holds(mark, full=params.full):
            values = [f"{path}={value}" for path, value in filling(definition, scope)]
            lines += [f"values: {'; '.join(values)}"] * bool(values)
            return reading.text_answer("\n".join((*lines, UNCHANGED)))
        if idle:
            lines.append(f"left out, because their conditions are false in this run: {', '.join(idle)}")
        return reading.text_answer("\n".join((*lines, "", filled(definition, scope))))

    @tool(read_only=True)
    def get_skills(self, params: p.GetActivity, call: Call) -> Outcome:
        """The workflow's primary skill."""
        reading = self._unblocked(params.session_token, Calling("get_skills"), call)
        header = f"scope: workflow\nsession_token: {reading.token}"
        ref = reading.workflow.primary_skill
        if ref is None:
            return reading.text_answer(header)
        skill = reading.documents.skill(ref)
        if skill is None:
            return reading.text_answer(f"{header}\nfailed_skills: {ref}")
        return reading.text_answer(_skill_text(reading, skill, header, params, FENCE))

    @tool(read_only=True)
    def get_skill(self, params: shared.GetSessionSkill, call: Call) -> Outcome:
        """The skill of a step, of the activity, or before any activity of the workflow."""
        about = {"step": params.step_id[:128]} if params.step_id else {}
        reading = self._unblocked(params.session_token, Calling("get_skill", about), call)
        asked = asked_skill(reading, params)
        reading, skill = asked
        header = f"session_token: {reading.token}"
        return reading.text_answer(_skill_text(reading, skill, header, params, "\n\n"))

    @tool(read_only=True)
    def get_resource(self, params: p.GetResource, call: Call) -> Outcome:
        """A resource's text."""
        ref = params.resource_id
        reading = self._unblocked(
            params.session_token, Calling("get_resource", {"resource": ref[:128]}), call
        )
        resource = reading.documents.resource(ref)
        if resource is None:
            known = [document.ref for document in reading.documents.own("resource")]
            similar = [name for name in known if name.rpartition("/")[2] == ref]
            names = ", ".join(similar or known) or "none; this workflow has no resources"
            raise reading.refused("NOT_FOUND", f"Resource not found: {ref}", f"Use one of: {names}.")
        document, mark = resource.document, digest_mark(resource.document.digest)
        named = f"resource_id: {ref}\nid: {document.id}\nversion: {document.version}"
        header = f"{named}\nsession_token: {reading.token}\ndigest: {mark}"
        if reading.holds(mark, full=params.full):
            return reading.text_answer(f"{header}\n{UNCHANGED}")
        return reading.text_answer(f"{header}\n\n{resource.text}")

    def _situation(self, reading: ReadingCall, call: Call, *, full: bool) -> Iterator[str]:
        """Yield what the file cannot say: the exits as the variables are now, answers, what is missing."""
        plan, state = reading.position.plan, reading.state
        if not state.finished:
            open_exits = (
                f"{exit_.to}{f' if {exit_.condition}' if exit_.condition else ''}"
                f"{' (expected)' if exit_.expected else ''}"
                for exit_ in exits(plan, state)
            )
            yield f"exits: {'; '.join(open_exits)}"
        wants = reading.activity is not None and wants_reports(reading.activity, state)
        if wants and not reading.holds(REPORT_STEPS, full=full):
            yield f"report: {REPORT_STEPS}"
        yield from (f"loop: {text}" for text in rounds(plan, state))
        answers = [f"{key}={option or 'dismissed'}" for key, option in state.visit.answers.items()]
        if answers:
            yield f"answered: {', '.join(answers)}"
        if missing := before_leaving(self._tools.outstanding(reading.position, call)):
            yield f"before next_activity: {missing}"

    def _unblocked(self, token: str, calling: Calling, call: Call) -> ReadingCall:
        """Open the head for a read, which is refused while a checkpoint is open (rule 15)."""
        reading = self._tools.reading_call(token, calling)
        opened, gate = reading.state.active, open_gate(reading.position)
        if opened is None or gate is None:
            return reading
        text = (
            f"Blocked: Active checkpoint '{gate.id}' on activity '{reading.state.visit.activity}'. "
            "All tools are gated until the checkpoint is resolved. The orchestrator must call "
            "respond_checkpoint with the checkpoint_handle to clear the gate before any other tool calls can "
            "proceed."
        )
        terms = terms_of(reading.position.terms, call)
        how = how_to_answer(reading.position, reading.state, gate, opened.key, terms)
        text = " ".join((text, *reading.approvers.messages))
        raise reading.refused("DECISION_PENDING", text, how, {"checkpoint": gate.id})


def _skill_text(
    reading: ReadingCall,
    skill: FoundDocument,
    header: str,
    params: p.GetActivity | shared.GetSessionSkill,
    fence: str,
) -> str:
    """Return a skill under its header, or only that the agent holds it already."""
    mark = digest_mark(skill.document.digest)
    header = f"{header}\ndigest: {mark}"
    is_held = reading.holds(mark, full=params.full)
    return f"{header}\n{UNCHANGED}" if is_held else f"{header}{fence}{skill.text}"
