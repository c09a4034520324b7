"""What the session and gated surfaces do alike: begin and join sessions, read what is pinned, move on."""

from __future__ import annotations

import time
from _thread import allocate_lock
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from interlock import __version__
from interlock.authoring.diagnostics.diagnostic import ABSENT, Diagnostic, absence, located
from interlock.authoring.library import Listed, Shadowed
from interlock.core.definition.workflow import Activity, Gate, Workflow
from interlock.core.engine.acknowledge import resolves_gaps
from interlock.core.engine.paths.transitions import outstanding
from interlock.core.run.commands import AbandonRun, Claim, EnterActivity, ResolveCheckpoint
from interlock.core.run.notices import Notice, Notices
from interlock.core.run.outcomes import Decided, Refusal
from interlock.core.run.surface_policy import SurfacePolicy
from interlock.core.values import Json, Variables
from interlock.ledger.ledger import Ledger
from interlock.ledger.repeatable import Repeatable
from interlock.ledger.runs.position import Position
from interlock.ledger.runs.shared_sessions import (
    Calling,
    SessionCall,
    Sessions,
    session_token,
)
from interlock.ledger.tokens.slots import slot
from interlock.ledger.tokens.tokens import Pointer
from interlock.surfaces.arguments import InvalidArgument, check_context, correction, decoding_error
from interlock.surfaces.briefs import brief_fields
from interlock.surfaces.call import Call, Elicit, Outcome, Refused, Reply, Wait
from interlock.surfaces.elicitation import decided_with_user, terms_of
from interlock.surfaces.parameters import NoParams
from interlock.surfaces.recorded import body_of, live, replayed
from interlock.surfaces.refusals import sentence
from interlock.surfaces.shared import session_params as p
from interlock.surfaces.shared import validation
from interlock.surfaces.shared.documents import META, Documents
from interlock.surfaces.shared.found_work import found_fields, names_work
from interlock.surfaces.shared.reading_call import ReadingCall, status_of
from interlock.surfaces.shared.replies import failure, json_reply, with_warning
from interlock.surfaces.shared.resolutions import Answering
from interlock.surfaces.shared.trace_json import trace_segments_json, whole_trace_json
from interlock.surfaces.tool import Tool, tool

SERVER = "interlock"
MOST_TEXTS = 256
MADE_BEFORE = (
    "This call was made before: this is its recorded answer. What you sent differently this time "
    "(manifests, outputs, variables, note) was not read."
)
RECOVERED = (
    "The session token was not recognised. This is a fresh session; the earlier state was NOT inherited."
)


class Entered(Struct, frozen=True):
    """A `next_activity` that passes, before it is recorded."""

    progress: SessionCall
    decided: Decided
    notices: Notices
    claims: tuple[Claim, ...]
    activity: Activity  # that the session is in now
    token: str  # what stands for the caller's tokens in the reply
    trace_token: str


class NotEntered(Struct, frozen=True):
    """A `next_activity` that was refused; its call is traced."""

    progress: SessionCall
    refusal: Refusal


class SessionTools:
    """The tools that both surfaces have, and what their own tools build on."""

    def __init__(
        self,
        ledger: Ledger,
        policy: SurfacePolicy,
        next_action: Callable[[Position, Sequence[Refusal]], str],
        *take_handles: str,
    ) -> None:
        self.ledger = ledger
        self.policy = policy
        self._take_handles = take_handles
        self._next_action = next_action
        self.sessions = Sessions(ledger, policy, joining="start_session")
        self.began = time.monotonic()
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._turn = allocate_lock()

    def invalid(self, tool: Tool, reason: str) -> Reply:
        error = decoding_error(reason)
        next_action = correction(error, tool.argument_schema())
        return failure("VALIDATION_ERROR", f"{tool.name}: {error}", next_action)

    @tool(read_only=True, uses_store=False)
    def health_check(self, params: NoParams, call: Call) -> Outcome:
        """Server status."""
        body: dict[str, Json] = {
            "status": "healthy",
            "server": SERVER,
            "version": __version__,
            "workflows_available": len(self.visible_workflows()),
            "uptime_seconds": int(time.monotonic() - self.began),
        }
        return json_reply(body, None)

    def visible_workflows(self) -> list[Listed]:
        """Return the workflows that an agent can start, `meta` among them."""
        return list(self.ledger.library.listing().entries)

    def shadowed(self) -> tuple[Shadowed, ...]:
        """The workflows that another one of the same id hides (rule 38a)."""
        return self.ledger.library.listing().shadowed

    def bootstrap(self) -> str:
        """Return how to work with this server: the first resource of `meta`, and what is configured."""
        loaded = self.ledger.library.load(META)
        if isinstance(loaded, Diagnostic):
            return ""
        guide = Documents.of(loaded, self.ledger.library, self.policy.name).resource("00")
        least = self.ledger.settings.terms.min_response_ms / 1000
        told = [f"Answers under {least:g} seconds are refused here."] if least else []
        return "\n\n".join([guide.text.rstrip(), *told]) if guide is not None else ""

    def start(
        self,
        calling: Calling,
        agent: str,
        workflow_id: str,
        key: Repeatable | None,
        parent: Position | None = None,
        flags: Mapping[str, Json] | None = None,
        warning: str = "",
    ) -> Outcome:
        """Begin a session of a workflow, under a parent if one is given (rule 35)."""
        loaded = self.ledger.library.load(workflow_id)
        if isinstance(loaded, Diagnostic):
            if loaded.code == ABSENT:
                raise Refused(failure("NOT_FOUND", absence(loaded), "Call list_workflows for the ids."))
            raise Refused(failure("WORKFLOW_INVALID", located(loaded), f"{loaded.next_action}."))
        warned = (Notice("RECOVERED", warning),) if warning else ()
        start = self.ledger.start(loaded, {}, policy=self.policy, parent=parent, agent=agent)
        token = slot("ses", start.view.node, start.view.state.visit.answered)
        notices = Notices(warned).plus(start.view.notices.listed)
        answer = body_of(_session_reply(loaded.workflow, token, flags or {}, notices))
        traced = calling.traced(agent, start.view.state, self.ledger.clock(), notices=notices)
        self.ledger.record_start(start, answer, key, traced)
        return live(answer, self.ledger, start.handle, start.commit.rows.lines)

    def found(self, query: str | None, token: str | None, next_action: str) -> Reply | None:
        """List earlier work by words, or by an id that was sent as a token; None where neither was sent."""
        if query is None and (token is None or not names_work(self.ledger, token)):
            return None
        wanted = query if query is not None else token or ""
        return json_reply(found_fields(self.ledger, wanted, "st", "session_token", next_action), None)

    def join(self, calling: Calling, token: str, agent: str | None, call: Call) -> Reply | None:
        """Join the session that a token leads to; None where it leads nowhere (rule 6)."""
        joined = self.sessions.join(token, agent, calling)
        if joined is None:
            return None
        position = joined.position
        flags: dict[str, Json] = {"adopted": True} if joined.adopted else {"inherited": True}
        if joined.agent:
            flags["message"] = f"Joined as {joined.agent}."
        with self.ledger.store.reading() as reader:
            flags |= brief_fields(self.ledger.brief(reader, position))
        flags["current_activity"] = position.state.visit.activity or "none"
        flags["next_action"] = self.next_action(position, call)
        token = session_token(self.ledger, joined.handle, position)
        return _session_reply(position.plan.workflow, token, flags, joined.notices)

    def next_action(self, position: Position, call: Call) -> str:
        """Say what an agent that takes up the session here does next."""
        return self._next_action(position, self.outstanding(position, call))

    def outstanding(self, position: Position, call: Call) -> tuple[Refusal, ...]:
        """Return what keeps the session in its activity now."""
        state = position.state
        if state.visit.activity is None or state.finished:
            return ()
        terms = terms_of(position.terms, call)
        leaving = EnterActivity(self.policy, self.ledger.clock(), terms, "", decisions=position.decisions)
        return outstanding(position.plan, state, leaving)

    def cached_text(self, reading: ReadingCall, name: str, write: Callable[[], str]) -> str:
        """Return a text that follows from the pinned workflow alone, written once."""
        key = (reading.position.run.workflow_hash, name)
        text = self._texts.get(key)
        if text is None:
            text = write()
            with self._turn:
                self._texts[key] = text
                if len(self._texts) > MOST_TEXTS:
                    self._texts.popitem(last=False)
        return text

    def pointer(self, token: str, tool: str) -> Pointer:
        """Check a session token; a checkpoint handle, which looks like one, is refused as what it is."""
        pointer = self.ledger.read_token(token, "ses")
        if not pointer.is_checkpoint_handle or tool in self._take_handles:
            return pointer
        text = "This is a checkpoint_handle, not a session_token: it names one question and moves nothing."
        next_action = "Send your own session_token. A handle answers its question, with respond_checkpoint."
        raise Refused(failure("TOKEN_SCOPE_MISMATCH", text, next_action))

    def reading_call(self, token: str, calling: Calling) -> ReadingCall:
        """Open a session's head for a reading call."""
        pointer = self.pointer(token, calling.tool)
        position = self.ledger.at(pointer)
        token = session_token(self.ledger, pointer.handle, position)
        return ReadingCall(self.sessions, pointer, position, calling, token)

    def progress_call(self, token: str, calling: Calling, variables: Variables | None = None) -> SessionCall:
        """Open a session's head for a progress call."""
        invalid = check_context(variables, "variables")
        if invalid is not None:
            raise Refused(failure("VALIDATION_ERROR", invalid.message, invalid.next_action))
        return self.sessions.call(self.pointer(token, calling.tool), calling)

    def refuse_stale(self, progress: SessionCall) -> Reply:
        """Refuse a progress call with the token of another visit, and name the current one (rule 13)."""
        progress.refuse("stale token")
        activity = progress.state.visit.activity
        where = f"activity '{activity}'" if activity else "its beginning"
        text = f"This token is of another position; the session is now in {where}."
        about: dict[str, Json] = {"current_activity": activity, "status": status_of(progress.position)}
        next_action = "Go on from there with the session_token of this answer."
        return failure("STALE_TOKEN", text, next_action, about, progress.token)

    def enter_activity(
        self, params: p.NextActivity, call: Call
    ) -> Entered | NotEntered | Reply | Elicit | Wait:
        """Decide `next_activity`; a repeated call returns its recorded reply, and nothing is recorded yet."""
        about: dict[str, Json] = {"target": params.activity_id[:128]}
        if params.transition_condition:
            about["condition"] = params.transition_condition[:256]
        calling = Calling("next_activity", about)
        progress = self.progress_call(params.session_token, calling, params.variables)
        progress.unread = call.unread
        claims = claims_of(params.step_manifest)
        progress.request, state = {"target": params.activity_id}, progress.state
        progress.beside = beside(params, "session_token", "activity_id", "abandon")
        if params.abandon is not None:
            return self._abandon(progress, params, params.abandon, claims, call.client.name)
        has_ended = state.status not in ("in_progress", "abandoned")
        progress.exact = has_ended and any(resolves_gaps(claim.output) for claim in claims)
        if progress.given_in == state.visit.number - (not has_ended):
            repeated = self.repeated(progress)
            if repeated is not None:
                return repeated
        if progress.is_stale:
            return self.refuse_stale(progress)
        position = progress.position
        command = EnterActivity(
            policy=self.policy,
            now=progress.now,
            terms=terms_of(position.terms, call),
            target=params.activity_id,
            claims=claims,
            claimed_condition=params.transition_condition,
            variables=params.variables or {},
            decisions=position.decisions,
            client=call.client.name,
        )
        decided = decided_with_user(self.ledger, position, command, call)
        if isinstance(decided, (Elicit, Wait)):
            return decided
        if isinstance(decided, Refusal):
            progress.refuse(sentence(decided), decided.kept, claims)
            return NotEntered(progress, decided)
        notices, token = progress.notices(decided), progress.token_slot(decided)
        trace_token = slot("trc", *progress.trace_range)
        if state.status == "in_progress":
            manifests = (
                *validation.step_manifest(position, params.step_manifest),
                *validation.activity_manifest(position.plan.workflow, params.activity_manifest),
            )
            notices = Notices(tuple(Notice("MANIFEST", text) for text in manifests)).plus(notices.listed)
        activity = position.plan.workflow.activity(decided.state.visit.activity)
        assert activity is not None, "a session that moved is in an activity"
        return Entered(progress, decided, notices, claims, activity, token, trace_token)

    def _abandon(
        self,
        progress: SessionCall,
        params: p.NextActivity,
        reason: str,
        claims: tuple[Claim, ...],
        client: str,
    ) -> NotEntered | Reply:
        """Give the run up, with what was done so far (rule 35); a repeat returns the recorded reply."""
        if not progress.position.plan.workflow.is_end(params.activity_id):
            text = f"abandon gives up the whole run; '{params.activity_id}' is an activity of it."
            raise Refused(failure("VALIDATION_ERROR", text, "Send activity_id '__terminal__' with abandon."))
        progress.request = {"abandon": reason}
        repeated = self.repeated(progress)
        if repeated is not None:
            return repeated
        if progress.is_stale:
            return self.refuse_stale(progress)
        by = progress.agent or client
        command = AbandonRun(progress.now, "agent", by, reason.strip(), params.variables or {})
        decided = progress.position.decide_unasked(command)
        if isinstance(decided, Refusal):
            progress.refuse(sentence(decided))
            return NotEntered(progress, decided)
        assert decided.state.abandoned is not None, "the run is given up"
        token, notices = progress.token_slot(decided), progress.notices(decided)
        message = f"The run was {decided.state.abandoned.text}"
        reply = json_reply(
            {"status": "abandoned", "message": message, "session_token": token}, token, notices
        )
        return self.record(progress, decided, reply, notices=notices, claims=claims)

    def record_entry(self, entered: Entered, body: Mapping[str, Json]) -> Reply:
        """Record an entry with its reply, and return the reply with the caller's tokens."""
        progress, token = entered.progress, entered.token
        meta: dict[str, Json] = {"trace_token": entered.trace_token}
        reply = json_reply({**body, "session_token": token}, token, entered.notices, meta)
        return self.record(
            progress,
            entered.decided,
            reply,
            notices=entered.notices,
            claims=entered.claims,
        )

    def resolve(
        self,
        progress: SessionCall,
        gate: Gate | None,
        gate_id: str,
        params: Answering,
        call: Call,
        claims: tuple[Claim, ...] = (),
    ) -> Decided | Refusal | Elicit | Wait:
        """Decide an answer to a gate: the user's own if there is one, else the one that the agent reports."""
        position = progress.position
        command = ResolveCheckpoint(
            policy=self.policy,
            now=progress.now,
            terms=terms_of(position.terms, call),
            channel="agent",
            gate=gate.id if gate is not None else gate_id,
            option=params.option_id,
            auto_advance=params.auto_advance,
            condition_not_met=params.condition_not_met,
            agent=progress.agent,
            client=call.client.name,
            note=params.note or "",
            claims=claims,
            variables=params.variables or {},
            decisions=position.decisions,
        )
        return decided_with_user(self.ledger, position, command, call)

    def record(
        self,
        progress: SessionCall,
        decided: Decided,
        reply: Reply,
        *,
        notices: Notices,
        claims: tuple[Claim, ...] = (),
    ) -> Reply:
        """Record what came of a progress call, and return its reply with the caller's tokens."""
        answer = body_of(reply)
        progress.record(decided, answer, notices=notices, claims=claims)
        return live(answer, self.ledger, progress.pointer.handle, progress.lines)

    def repeated(self, progress: SessionCall) -> Reply | None:
        """Return the recorded reply of the same call, if it was made before (rule 13)."""
        recorded = progress.repeated()
        if recorded is None:
            return None
        reply = replayed(recorded, self.ledger)
        return with_warning(reply, MADE_BEFORE) if recorded.differs else reply

    def told_again(self, progress: SessionCall, reply: Reply) -> Reply:
        """Return what is told again of an answer that another call has recorded."""
        progress.trace_repeat()
        return reply

    @tool(read_only=True)
    def get_trace(self, params: p.GetTrace, call: Call) -> Outcome:
        """The calls of this session, or those that trace tokens name."""
        pointer = self.pointer(params.session_token, "get_trace")  # the one call that leaves no trace
        position = self.ledger.at(pointer)
        if params.trace_tokens:
            body = trace_segments_json(self.ledger, position, params.trace_tokens)
        else:
            body = whole_trace_json(self.ledger, position)
        token = session_token(self.ledger, position.handle, position)
        if position.session.parent_session is not None:
            body["psid"] = position.session.parent_session
        return json_reply({**body, "session_token": token}, token)


def _session_reply(workflow: Workflow, token: str, flags: Mapping[str, Json], notices: Notices) -> Reply:
    workflow_fields: dict[str, Json] = {
        "id": workflow.id,
        "version": workflow.version,
        "title": workflow.name,
        "description": workflow.description,
    }
    body: dict[str, Json] = {"workflow": workflow_fields, "session_token": token, **flags}
    if notices.listed:
        body["warning"] = " ".join(notices.messages)
    return json_reply(body, token, notices)


def claims_of(manifest: Sequence[p.StepDone] | None) -> tuple[Claim, ...]:
    """Return the claims of a manifest; an invalid output is refused with its step."""
    claims: list[Claim] = []
    for entry in manifest or ():
        output = validation.output_of(entry)
        if isinstance(output, InvalidArgument):
            text = f"step_manifest, step '{entry.step_id}': {output.message}"
            raise Refused(failure("VALIDATION_ERROR", text, output.next_action, output.details))
        claims.append(Claim(entry.step_id, output))
    return tuple(claims)


def beside(params: Struct, *known_by: str) -> dict[str, Json]:
    """Return what a call has sent beside what it is known by."""
    sent: dict[str, Json] = msgspec.to_builtins(params)
    return {name: value for name, value in sent.items() if name not in known_by}


def digest_mark(digest: str) -> str:
    """Shorten a digest to what tells whether a text is the same."""
    return digest.removeprefix("sha256:")[:12]
