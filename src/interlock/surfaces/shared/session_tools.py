"""What the session and gated surfaces do alike: begin and join sessions, read what is pinned, move on."""

from __future__ import annotations

import time
from _thread import allocate_lock
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from interlock import __version__
from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.authoring.library import Listed, Loaded
from interlock.core.definition.workflow import Workflow
from interlock.core.run.commands import Claim, EnterActivity
from interlock.core.run.outcomes import Decided
from interlock.core.run.surface_policy import SurfacePolicy
from interlock.core.values import Json, Variables
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.children import passed_on
from interlock.ledger.runs.position import Position
from interlock.ledger.runs.shared_sessions import Calling, Joined, SessionCall, Sessions
from interlock.ledger.tokens.slots import slot
from interlock.ledger.tokens.tokens import Pointer
from interlock.surfaces.arguments import Unfit, check_context, message_and_path
from interlock.surfaces.call import Call, Outcome, Reply
from interlock.surfaces.recorded import encoded, live
from interlock.surfaces.shared import session_params as p
from interlock.surfaces.shared import trace_view, validation
from interlock.surfaces.shared.documents import META, Documents, FoundDocument
from interlock.surfaces.shared.position import SessionPosition, status_of
from interlock.surfaces.shared.replies import failure, of_error, told_json
from interlock.surfaces.strict_params import NoParams
from interlock.surfaces.tool import Tool

SERVER = "interlock"
MOST_TEXTS = 256
RECOVERED = (
    "The session token was not recognised. This is a fresh session; the earlier state was NOT inherited."
)


class SessionTools:
    """The tools that both surfaces have, and what their own tools build on."""

    def __init__(self, ledger: Ledger, policy: SurfacePolicy) -> None:
        self.ledger = ledger
        self.policy = policy
        self.sessions = Sessions(ledger, policy)
        self.began = time.monotonic()
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._turn = allocate_lock()

    def invalid(self, tool: Tool, reason: str) -> Reply:
        message, path = message_and_path(reason)
        text = f"{tool.name}: {message}" + (f" ({path})" if path else "")
        return failure("VALIDATION_ERROR", text, "Correct the arguments and call again.")

    def unknown(self, name: str, tools: Mapping[str, Tool]) -> Reply:
        return failure("NOT_FOUND", f"There is no tool '{name}' here.", f"Use one of: {', '.join(tools)}.")

    def health_check(self, params: NoParams, call: Call) -> Outcome:
        body: dict[str, Json] = {
            "status": "healthy",
            "server": SERVER,
            "version": __version__,
            "workflows_available": len(self.listed()),
            "uptime_seconds": int(time.monotonic() - self.began),
        }
        return told_json(body, None)

    def listed(self) -> list[Listed]:
        """The workflows that an agent may be shown."""
        return [entry for entry in self.ledger.library.listing().entries if not entry.hidden]

    def bootstrap(self) -> str:
        """How to work with this server: the first resource of `meta`."""
        loaded = self.ledger.library.load(META)
        if isinstance(loaded, Diagnostic):
            return ""
        guide = Documents.of(loaded, self.ledger.library).resource("00")
        return guide.text if guide is not None else ""

    def start(
        self,
        calling: Calling,
        agent: str,
        workflow_id: str,
        parent: Position | None = None,
        flags: Mapping[str, Json] | None = None,
        warning: str = "",
    ) -> Outcome:
        """Begin a session of a workflow, under a parent if one is given (rule 35)."""
        loaded = self.ledger.library.load(workflow_id)
        if isinstance(loaded, Diagnostic):
            next_action = loaded.next_action or "Call list_workflows for the ids."
            return failure("NOT_FOUND", loaded.message, next_action)
        passed = passed_on(parent, loaded.workflow.id) if parent else {}
        warnings = [text for text in (warning, *_untriggered(parent, passed, loaded)) if text]
        start = self.ledger.start(loaded, passed or {}, policy=self.policy, parent=parent, agent=agent)
        if isinstance(start, LedgerError):
            return of_error(start)
        token = slot("ses", start.view.state.visit)
        body = _session_body(workflow_info(loaded.workflow), token, flags or {}, warnings)
        reply = encoded(told_json(body, token, warnings))
        now = self.ledger.clock()
        traced = calling.traced(agent, start.view.state, now, warnings=tuple(warnings))
        self.ledger.record_start(start, traced)
        return live(reply, self.ledger, start.handle)

    def join(self, calling: Calling, token: str, agent: str | None) -> Reply | None:
        """Join the session that a token leads to; None where it leads nowhere (rule 6)."""
        joined = self.sessions.join(token, agent, calling)
        if joined is None:
            return None
        return of_error(joined) if isinstance(joined, LedgerError) else self._joined(joined, agent)

    def _joined(self, joined: Joined, agent: str | None) -> Reply:
        warnings = list(validation.drift(self.ledger, joined.position))
        if joined.adopted:
            warnings.append(
                "The session token's signature did not match; the session it names was found and the token "
                "signed again. Its state comes from the log."
            )
        if agent and joined.previous_agent and joined.previous_agent != agent:
            warnings.append(
                f"Warning: The provided agent_id '{agent}' does not match the inherited session token's "
                f"agent_id '{joined.previous_agent}'. The session has been transitioned to '{agent}'."
            )
        flags: dict[str, Json] = {"adopted": True} if joined.adopted else {"inherited": True}
        token = self.ledger.mint("ses", joined.handle, joined.position.state.visit)
        workflow = joined.position.plan.workflow
        return told_json(_session_body(workflow_info(workflow), token, flags, warnings), token, warnings)

    def written(self, position: SessionPosition, what: str, write: Callable[[], str]) -> str:
        """A text that follows from the pinned workflow alone, written once."""
        key = (position.position.run.workflow_hash, what)
        text = self._texts.get(key)
        if text is None:
            text = write()
            with self._turn:
                self._texts[key] = text
                if len(self._texts) > MOST_TEXTS:
                    self._texts.popitem(last=False)
        return text

    def reading(self, token: str, calling: Calling) -> SessionPosition | Reply:
        """Open a session's head for a reading call."""
        pointer = self.ledger.read_token(token, "ses")
        position = pointer if isinstance(pointer, LedgerError) else self.ledger.at(pointer)
        if isinstance(position, LedgerError):
            return of_error(position)
        assert isinstance(pointer, Pointer)
        return SessionPosition(self.sessions, pointer, position, calling)

    def calling(
        self, token: str, calling: Calling, variables: Variables | None = None
    ) -> SessionCall | Reply:
        """Open a session's head for a progress call."""
        unfit = check_context(variables, "variables")
        if unfit:
            return failure("VALIDATION_ERROR", unfit.message, unfit.suggestion)
        pointer = self.ledger.read_token(token, "ses")
        if isinstance(pointer, LedgerError):
            return of_error(pointer)
        call = self.sessions.call(pointer, calling)
        return of_error(call) if isinstance(call, LedgerError) else call

    def stale(self, call: SessionCall) -> Reply:
        """Refuse a progress call with the token of another visit, and name the current one (rule 13)."""
        call.refuse("stale token")
        position = call.position
        where = f"activity '{position.state.activity}'" if position.state.activity else "its beginning"
        text = f"This token is of an earlier activity; the session is now in {where}."
        about: dict[str, Json] = {
            "current_activity": position.state.activity,
            "status": status_of(position),
        }
        then = "Go on from there with the session_token of this answer."
        return failure("STALE_TOKEN", text, then, about, call.token)

    def entering(
        self, call: SessionCall, params: p.NextActivity, claims: tuple[Claim, ...], client: str
    ) -> EnterActivity:
        """The command that `next_activity` stands for."""
        return EnterActivity(
            policy=self.policy,
            now=call.now,
            terms=self.ledger.settings.terms,
            target=params.activity_id,
            claims=claims,
            claimed_condition=params.transition_condition,
            variables=params.variables or {},
            decisions=call.position.decisions,
            client=client,
        )

    def entry_warnings(self, call: SessionCall, params: p.NextActivity, decided: Decided) -> tuple[str, ...]:
        """What the documents call validation of `next_activity`."""
        position = call.position
        return (
            *validation.step_manifest(position, params.step_manifest),
            *validation.activity_manifest(position.plan.workflow, params.activity_manifest),
            *validation.outcome(position, decided),
            *validation.drift(self.ledger, position),
        )

    def get_trace(self, params: p.GetTrace, call: Call) -> Outcome:
        """Read the trace; this is the one call that leaves none."""
        position = self.ledger.open(params.session_token, "ses")
        if isinstance(position, LedgerError):
            return of_error(position)
        name = position.run.workflow_id
        if params.trace_tokens:
            body = trace_view.segments(self.ledger, position.session_id, name, params.trace_tokens)
        else:
            body = trace_view.whole(self.ledger, position)
        token = self.ledger.mint("ses", position.handle, position.state.visit)
        if position.session.parent_session is not None:
            body["psid"] = position.session.parent_session
        return told_json({**body, "session_token": token}, token)


def _untriggered(parent: Position | None, passed: Mapping[str, Json] | None, loaded: Loaded) -> list[str]:
    if parent is None or passed is not None:
        return []
    where = parent.state.activity or "none"
    return [f"Activity '{where}' declares no trigger of '{loaded.workflow.id}'; no context was passed on."]


def _session_body(
    workflow: Mapping[str, Json], token: str, flags: Mapping[str, Json], warnings: Sequence[str]
) -> dict[str, Json]:
    body: dict[str, Json] = {"workflow": workflow, "session_token": token, **flags}
    return {**body, "warning": " ".join(warnings)} if warnings else body


def workflow_info(workflow: Workflow) -> dict[str, Json]:
    """A workflow in a line."""
    return {
        "id": workflow.id,
        "version": workflow.version,
        "title": workflow.name,
        "description": workflow.description,
    }


def claims_of(manifest: Sequence[p.StepDone] | None) -> tuple[Claim, ...] | Reply:
    """The claims of a manifest; an output that does not fit is refused with its step."""
    claims: list[Claim] = []
    for entry in manifest or ():
        output = validation.output_of(entry)
        if isinstance(output, Unfit):
            text = f"step_manifest, step '{entry.step_id}': {output.message}"
            return failure("VALIDATION_ERROR", text, output.suggestion, output.details)
        claims.append(Claim(entry.step_id, output))
    return tuple(claims)


def found_text(found: FoundDocument, header: str, known: str | None, fence: str = "\n\n") -> str:
    """A document under its header, or only the news that the agent holds it already."""
    mark = digest_mark(found.document.digest)
    head = f"{header}\ndigest: {mark}"
    return f"{head}\nunchanged: true" if known == mark else f"{head}{fence}{found.text}"


def digest_mark(digest: str) -> str:
    """Enough of a digest to say that a text is the same."""
    return digest.removeprefix("sha256:")[:12]
