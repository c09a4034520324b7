"""What both session surfaces do alike: begin and take up sessions, read what is pinned, trace every call."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from interlock import __version__
from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.authoring.library import Listed, Loaded
from interlock.core.definition.workflow import Gate, Workflow
from interlock.core.engine.gates import find_gate
from interlock.core.run.commands import Claim, Command, EnterActivity
from interlock.core.run.outcomes import Decided, Refusal
from interlock.core.run.surface_policy import SurfacePolicy
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError, error_of
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs import children as family
from interlock.ledger.runs.position import Answered, Position, Target
from interlock.ledger.runs.shared_sessions import (
    Calling,
    Joined,
    Moved,
    Progress,
    RefusedCall,
    Said,
    Sessions,
    Stale,
)
from interlock.ledger.runs.view import View
from interlock.ledger.tokens.slots import slot
from interlock.surfaces.arguments import Unfit, check_context
from interlock.surfaces.refusals import Words
from interlock.surfaces.shared import params as p
from interlock.surfaces.shared import trace_view, validation
from interlock.surfaces.shared.documents import META, Documents, FoundDocument
from interlock.surfaces.shared.position import SessionPosition
from interlock.surfaces.shared.replies import (
    failure,
    of_error,
    of_refusal,
    recorded,
    replayed,
    told_json,
)
from interlock.surfaces.tool import Call, Outcome, Reply, Surface, Tool

SERVER = "interlock"
MOST_TEXTS = 256

Read: TypeAlias = Callable[[SessionPosition], Said[Reply]]


class ActivityDoor(Surface):
    """The base of the session and gated surfaces."""

    policy: SurfacePolicy

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.sessions = Sessions(ledger, self.policy)
        self.began = time.monotonic()
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()

    def words(self, refusal: Refusal) -> Words:
        """Put a refusal into the words of the surface."""
        raise NotImplementedError

    def invalid(self, tool: Tool, diagnostic: str) -> Outcome:
        message, _, target = diagnostic.partition(" - at `$")
        where = target.rstrip("`").lstrip(".")
        text = f"{tool.name}: {message}" + (f" ({where})" if where else "")
        return failure("VALIDATION_ERROR", text, "Correct the arguments and call again.")

    def unknown(self, name: str) -> Outcome:
        return failure(
            "NOT_FOUND", f"There is no tool “{name}” here.", f"Use one of: {', '.join(self.tools)}."
        )

    def failed(self, tool: Tool, error: Exception) -> Outcome:
        return of_error(error_of(error))

    def health_check(self, params: p.Nothing, call: Call) -> Outcome:
        body: dict[str, Json] = {
            "status": "healthy",
            "server": SERVER,
            "version": __version__,
            "workflows_available": len(self._listed()),
            "uptime_seconds": int(time.monotonic() - self.began),
        }
        return told_json(body, None)

    def _listed(self) -> list[Listed]:
        return [one for one in self.ledger.library.listing().entries if not one.hidden]

    def _bootstrap(self) -> str:
        loaded = self.ledger.library.load(META)
        if isinstance(loaded, Diagnostic):
            return ""
        found = Documents.of(loaded, self.ledger.library).resource("00")
        return found.text if found is not None else ""

    def _start(
        self,
        calling: Calling,
        agent: str,
        workflow_id: str,
        parent: Target | None = None,
        flags: Mapping[str, Json] | None = None,
        warning: str = "",
    ) -> Outcome:
        """Begin a session of a workflow, under a parent if one is given."""
        loaded = self.ledger.library.load(workflow_id)
        if isinstance(loaded, Diagnostic):
            return failure("NOT_FOUND", loaded.message, loaded.fix or "Call list_workflows for the ids.")
        above = self.sessions.head(parent.session_id) if parent else None
        if isinstance(above, LedgerError):
            return of_error(above)
        passed = family.passed_on(above, loaded.workflow.id) if above else {}
        warnings = [text for text in (warning, *_untriggered(above, passed, loaded)) if text]
        render = _started(loaded, flags or {}, warnings)
        answered = self.sessions.start(loaded, agent, render, calling, parent, passed)
        return of_error(answered) if isinstance(answered, LedgerError) else replayed(answered.body)

    def _inherit(self, calling: Calling, token: str, agent: str | None) -> Joined | Reply | None:
        """Take up the session that a token leads to; None where it leads nowhere (rule 6)."""
        joined = self.sessions.join(token, agent, calling)
        return of_error(joined) if isinstance(joined, LedgerError) else joined

    def _taken_up(self, joined: Joined, agent: str | None) -> Reply:
        warnings = list(validation.drift(self.ledger.library, joined.at))
        if joined.adopted:
            warnings.append(
                "The session token's signature did not match; the session it names was found and the token "
                "signed again. Its state comes from the log."
            )
        if agent and joined.before and joined.before != agent:
            warnings.append(
                f"Warning: The provided agent_id '{agent}' does not match the inherited session token's "
                f"agent_id '{joined.before}'. The session has been transitioned to '{agent}'."
            )
        flags: dict[str, Json] = {"adopted": True} if joined.adopted else {"inherited": True}
        token = self.ledger.mint("ses", joined.target.handle, joined.at.state.visit)
        workflow = joined.at.plan.workflow
        return told_json(_session(workflow_info(workflow), token, flags, warnings), token, warnings)

    def _written(self, here: SessionPosition, what: str, write: Callable[[], str]) -> str:
        """A text that follows from the pinned workflow alone, written once."""
        key = (here.at.run.workflow_hash, what)
        if key not in self._texts:
            self._texts[key] = write()
            if len(self._texts) > MOST_TEXTS:
                self._texts.popitem(last=False)
        return self._texts[key]

    def _read(self, token: str, calling: Calling, answer: Read) -> Outcome:
        """Answer a read from the session's head, and trace it."""
        target = self.ledger.open(token, "ses")
        if isinstance(target, LedgerError):
            return of_error(target)
        said = self.sessions.read(
            target, calling, lambda at: answer(SessionPosition(self.ledger, target, at))
        )
        return of_error(said) if isinstance(said, LedgerError) else said

    def _act(self, token: str, progress: Progress) -> Outcome | RefusedCall:
        """Take a progress call; a refusal is returned to be put into the surface's own words."""
        target = self.ledger.open(token, "ses")
        if isinstance(target, LedgerError):
            return of_error(target)
        return self._acted(target, progress)

    def _acted(self, target: Target, progress: Progress) -> Outcome | RefusedCall:
        outcome = self.sessions.act(target, progress)
        match outcome:
            case Answered():
                return replayed(outcome.body)
            case Stale():
                return self._stale(target, outcome.at)
            case LedgerError():
                return of_error(outcome)
            case RefusedCall():
                return outcome

    def _stale(self, target: Target, at: Position) -> Reply:
        where = f"activity '{at.state.activity}'" if at.state.activity else "its beginning"
        text = f"This token is of an earlier activity; the session is now in {where}."
        about: dict[str, Json] = {"current_activity": at.state.activity, "status": status_of(at)}
        then = "Go on from there with the session_token of this answer."
        return failure("STALE_TOKEN", text, then, about, self._token(target, at))

    def _token(self, target: Target, at: Position) -> str:
        return self.ledger.mint("ses", target.handle, at.state.visit)

    def _refusal(self, token: str, refused: RefusedCall) -> Reply:
        target = self.ledger.open(token, "ses")
        assert isinstance(target, Target), "the call was made with this token"
        return of_refusal(refused.refusal, self.words(refused.refusal), self._token(target, refused.at))

    def _entering(
        self, params: p.NextActivity, call: Call, render: Callable[[Moved], bytes]
    ) -> Progress | Reply:
        """The command that `next_activity` stands for."""
        unfit = check_context(params.variables, "variables")
        if unfit:
            return failure("VALIDATION_ERROR", unfit.message, unfit.suggestion)
        claims = claims_of(params.step_manifest)
        if isinstance(claims, Reply):
            return claims

        def build(at: Position) -> Command:
            return EnterActivity(
                policy=self.policy,
                now=self.ledger.clock(),
                terms=self.ledger.settings.terms,
                target=params.activity_id,
                claims=claims,
                claimed_condition=params.transition_condition,
                variables=params.variables or {},
                decisions=at.decisions,
                client=call.client.name,
            )

        def advise(at: Position, decided: Decided) -> tuple[str, ...]:
            workflow = at.plan.workflow
            return (
                *validation.step_manifest(at, params.step_manifest),
                *validation.activity_manifest(workflow, params.activity_manifest),
                *validation.outcome(at, decided),
                *validation.drift(self.ledger.library, at),
            )

        calling = Calling("next_activity", {"target": params.activity_id})
        return Progress(calling, build, advise, render, claims, params.activity_id)

    def get_trace(self, params: p.GetTrace, call: Call) -> Outcome:
        """Read the trace; this is the one call that leaves none."""
        target = self.ledger.open(params.session_token, "ses")
        if isinstance(target, LedgerError):
            return of_error(target)
        with self.ledger.store.reading() as reader:
            at = family.head(self.ledger, reader, target.session_id)
        if isinstance(at, LedgerError):
            return of_error(at)
        name = at.run.workflow_id
        if params.trace_tokens:
            body = trace_view.segments(self.ledger, target.session_id, name, params.trace_tokens)
        else:
            body = trace_view.whole_trace(self.ledger, target.session_id, name)
        token = self._token(target, at)
        if at.session.parent_session is not None:
            body["psid"] = at.session.parent_session
        return told_json({**body, "session_token": token}, token)


def _untriggered(above: Position | None, passed: Mapping[str, Json] | None, loaded: Loaded) -> list[str]:
    if above is None or passed is not None:
        return []
    where = above.state.activity or "none"
    return [f"Activity '{where}' declares no trigger of '{loaded.workflow.id}'; no context was passed on."]


def _started(
    loaded: Loaded, flags: Mapping[str, Json], warnings: Sequence[str]
) -> Callable[[View], Said[bytes]]:
    def render(view: View) -> Said[bytes]:
        token = slot("ses", view.state.visit)
        body = _session(workflow_info(loaded.workflow), token, flags, warnings)
        return Said(recorded(told_json(body, token, warnings)), warnings=tuple(warnings))

    return render


def _session(
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
    for one in manifest or ():
        output = validation.output_of(one)
        if isinstance(output, Unfit):
            text = f"step_manifest, step '{one.step_id}': {output.message}"
            return failure("VALIDATION_ERROR", text, output.suggestion, output.details)
        claims.append(Claim(one.step_id, output))
    return tuple(claims)


def status_of(at: Position) -> str:
    """active, blocked or completed."""
    if at.state.finished:
        return "completed"
    return "blocked" if at.state.open is not None else "active"


def open_gate(at: Position) -> Gate | None:
    """The gate whose question is open."""
    found = find_gate(at.plan, at.state, at.state.open.gate) if at.state.open else None
    return found.gate if found else None


def not_found(here: SessionPosition, what: str, ref: str, then: str) -> Said[Reply]:
    text = f"{what} not found: {ref}"
    return Said(failure("NOT_FOUND", text, then, token=here.token), error=text)


def said(reply: Reply, warnings: Sequence[str] = ()) -> Said[Reply]:
    error = reply.text.partition("\n")[0] if reply.is_error else ""
    return Said(reply, error, tuple(warnings))


def found_text(found: FoundDocument, header: str, known: str | None, fence: str = "\n\n") -> str:
    """A document under its header, or only the news that the agent holds it already."""
    mark = digest_mark(found.document.digest)
    head = f"{header}\ndigest: {mark}"
    return f"{head}\nunchanged: true" if known == mark else f"{head}{fence}{found.text}"


def digest_mark(digest: str) -> str:
    """Enough of a digest to say that a text is the same."""
    return digest.removeprefix("sha256:")[:12]
