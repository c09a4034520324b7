"""What a person can do in the console: decide, note, set a mode, keep, export, import."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from interlock.console.answers import Answer, json_answer, refused
from interlock.console.pages.run_pages import KeepRequest, RemoveRequest, ViewRequest, keep_runs, remove_runs
from interlock.console.pages.session_pages import fork_text
from interlock.console.pages.trust_pages import folder_of_checks, workflow_to_trust
from interlock.core.principals import Principal
from interlock.core.run.channels import Channel
from interlock.core.run.outcomes import Refusal
from interlock.core.run.output import Output
from interlock.core.run.preferences import PRESETS, Mode
from interlock.ledger.decisions.inbox import WHAT_FOLLOWS, AskedQuestion, answer_question
from interlock.ledger.decisions.modes import set_session_mode
from interlock.ledger.decisions.trust import give_trust, take_trust_back, trustable
from interlock.ledger.decisions.user_pin import has_pin, pin_matches
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import Shown, find_session, handle_of
from interlock.ledger.runs.abandonment import abandon_run
from interlock.ledger.runs.whole_session import WholeSession
from interlock.ledger.saved_views import SavedView, remove_view, save_view
from interlock.ledger.tokens.tokens import Pointer
from interlock.ledger.transfer.bundle import BundleRefused, read_bundle
from interlock.ledger.transfer.export_import import export_session, import_bundle
from interlock.ledger.transfer.text_export import as_html, as_markdown

WRONG_PINS = 5
PIN_PAUSE = 60_000
LONGEST_NOTE = 2000

EXPORTS = ("json", "md", "html")


class ActionDone(Shown, frozen=True):
    """What an action came to, in a sentence."""

    message: str
    session_id: str = ""


class DecideRequest(Shown, frozen=True, forbid_unknown_fields=True):
    """An answer to exactly the question that was on the screen."""

    session_id: str
    run_id: str
    node: int
    id: str
    key: str
    shown: str
    option: str
    owner: str = ""
    note: str = ""
    pin: str = ""


class NoteRequest(Shown, frozen=True, forbid_unknown_fields=True):
    """A note for the session as a whole."""

    session_id: str
    notes: str


class ModeRequest(Shown, frozen=True, forbid_unknown_fields=True):
    """What the unfinished branches of a session stop for."""

    session_id: str
    mode: Mode
    pin: str = ""


class ForkRequest(Shown, frozen=True, forbid_unknown_fields=True):
    """The node that a chat is to go on from."""

    session_id: str
    node: int


class AbandonRequest(Shown, frozen=True, forbid_unknown_fields=True):
    """A run to give up for good, and why."""

    session_id: str
    run_id: str
    reason: str = ""


class TrustRequest(Shown, frozen=True, forbid_unknown_fields=True):
    """A check to be run by the server from now on, exactly as it was on the screen; or no longer."""

    workflow: str
    check: str
    definition: str
    folder: str
    session_id: str = ""
    owner: str = ""
    revoke: bool = False
    pin: str = ""


class Actions:
    """Carries out what people ask for, each with the ledger of the session's owner."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._wrong_pins: dict[str, list[int]] = {}

    def act(self, principal: Principal, name: str, body: bytes) -> Answer:
        """Carry out the action of this name."""
        actions: Mapping[str, tuple[type[Struct], Callable[[Principal, Any], Answer]]] = {
            "decide": (DecideRequest, self.decide),
            "note": (NoteRequest, self.note),
            "mode": (ModeRequest, self.mode),
            "fork": (ForkRequest, self.fork),
            "abandon": (AbandonRequest, self.abandon),
            "keep": (KeepRequest, self.keep),
            "remove": (RemoveRequest, self.remove),
            "view": (ViewRequest, self.view),
            "trust": (TrustRequest, self.trust),
        }
        if name == "import":
            return self.import_session(principal, body)
        if name not in actions:
            return refused(404, "NOT_FOUND", "There is no such action.")
        kind, action = actions[name]
        try:
            request = msgspec.json.decode(body, type=kind)
        except ValueError as error:  # text that is not UTF-8 is no DecodeError
            return refused(400, "VALIDATION_ERROR", f"The request cannot be read: {error}.")
        if any(isinstance(value, str) and "\0" in value for value in astuple(request)):
            return refused(400, "VALIDATION_ERROR", "A NUL character is not accepted.")
        return action(principal, request)

    def decide(self, principal: Principal, request: DecideRequest) -> Answer:
        """Record an answer; a question that has changed since it was shown is asked again."""
        owner = request.owner or principal.name
        if (refusal := self.decision_refused(principal, request.pin)) is not None:
            return refusal
        asked = AskedQuestion(
            request.session_id, request.node, request.id, request.shown, request.run_id, request.key
        )
        ledger, note = self._ledger.of(owner, principal.name), request.note[:LONGEST_NOTE]
        is_decided = answer_question(ledger, asked, request.option, note, channel="console")
        return json_answer(ActionDone(f"Recorded: {request.option}. {WHAT_FOLLOWS[is_decided]}"))

    def decision_refused(self, principal: Principal, pin: str) -> Answer | None:
        """Return why this principal may not decide now; None if it may (rule 27)."""
        store, name, now = self._ledger.store, principal.name, self._ledger.clock()
        if not principal.decides:
            return forbidden("decides nothing")
        if not has_pin(store, name):
            return None
        if not pin:
            return refused(403, "PIN_REQUIRED", "Deciding needs your PIN.", "Enter it with your answer.")
        wrong = [at for at in self._wrong_pins.get(name, ()) if now - at < PIN_PAUSE]
        if len(wrong) >= WRONG_PINS:
            return refused(429, "PIN_PAUSED", "Too many wrong PINs.", "Try again in a minute.")
        if pin_matches(store, name, pin):
            self._wrong_pins.pop(name, None)
            return None
        self._wrong_pins[name] = [*wrong, now]
        return refused(403, "PIN_WRONG", "That is not your PIN.", "Enter it again.")

    def trust(self, principal: Principal, request: TrustRequest) -> Answer:
        """Trust a command as it was shown, or take that back; one that has changed is shown again."""
        if (refusal := self.decision_refused(principal, request.pin)) is not None:
            return refusal
        ledger = self._ledger.of(request.owner or principal.name, principal.name)
        workflow = workflow_to_trust(ledger, request.workflow, request.session_id)
        folder = folder_of_checks(ledger)
        checks = {shown.check.id: shown for shown in trustable(ledger, workflow, folder)}
        shown = checks.get(request.check)
        is_as_shown = os.path.realpath(folder) == request.folder
        if shown is None or shown.definition != request.definition or not is_as_shown:
            message = "The check is not as it was shown."
            return refused(409, "CHECK_CHANGED", message, "Reload the page and read it again.")
        if request.revoke:
            take_trust_back(ledger, shown, folder)
        else:
            give_trust(ledger, shown, folder, "console")
        said = "is no longer trusted" if request.revoke else "is trusted"
        return json_answer(ActionDone(f"{request.check} {said}."))

    def note(self, principal: Principal, request: NoteRequest) -> Answer:
        """Keep a note with the session, where every later recap can show it."""
        ledger = self._ledger.of(principal.name)
        session = find_session(ledger, request.session_id)
        if not request.notes.strip():
            return refused(400, "VALIDATION_ERROR", "The note is empty.", "Write something.")
        kept = ledger.note(Pointer("sst", handle_of(ledger, session.session_id)), Output(request.notes))
        return json_answer(ActionDone("Noted.", kept))

    def mode(self, principal: Principal, request: ModeRequest) -> Answer:
        """Set the mode of a session: looser at its tips only, tighter wherever it can be continued."""
        if (refusal := self.decision_refused(principal, request.pin)) is not None:
            return refusal
        ledger = self._ledger.of(principal.name)
        session = find_session(ledger, request.session_id)
        changed = set_session_mode(ledger, session.session_id, PRESETS[request.mode], "console")
        return json_answer(ActionDone(f"Mode {request.mode} at {changed} nodes.", session.session_id))

    def fork(self, principal: Principal, request: ForkRequest) -> Answer:
        """Return what to say to an agent that is to go on from a node; nothing is stored."""
        return json_answer(fork_text(self._ledger.of(principal.name), request.session_id, request.node))

    def abandon(self, principal: Principal, request: AbandonRequest) -> Answer:
        """Give up a run for good; it stays readable."""
        ledger = self._ledger.of(principal.name)
        session = find_session(ledger, request.session_id)
        run = next((run for run in WholeSession(ledger, session).runs if run.run_id == request.run_id), None)
        if run is None:
            return refused(404, "NOT_FOUND", "This session has no such run.", "Reload the page.")
        channel: Channel = "console" if principal.decides else "agent"
        given_up = abandon_run(ledger, session.session_id, run.run, channel, request.reason)
        if isinstance(given_up, Refusal):
            return refused(409, given_up.code, "The run has ended; there is nothing to give up.")
        return json_answer(ActionDone("Abandoned. The run stays readable.", session.session_id))

    def keep(self, principal: Principal, request: KeepRequest) -> Answer:
        """Mark sessions to be kept, or take the marks away."""
        return keep_runs(self._ledger.of(principal.name), request)

    def remove(self, principal: Principal, request: RemoveRequest) -> Answer:
        """Delete sessions that a preview has shown."""
        if not principal.decides:
            return forbidden("deletes nothing")
        return remove_runs(self._ledger.of(principal.name), request)

    def view(self, principal: Principal, request: ViewRequest) -> Answer:
        """Keep a list of runs under a name, or forget it."""
        store, name = self._ledger.store, principal.name
        if request.query is None:
            remove_view(store, name, request.name)
            return json_answer(ActionDone(f"View {request.name} removed."))
        save_view(store, name, SavedView(request.name, request.query))
        return json_answer(ActionDone(f"View {request.name} saved."))

    def import_session(self, principal: Principal, body: bytes) -> Answer:
        """Import a bundle, which is checked before anything is stored."""
        if not principal.decides:
            return forbidden("imports nothing")
        bundle = read_bundle(body)
        if isinstance(bundle, BundleRefused):
            return refused(400, bundle.code, bundle.message, bundle.suggestion)
        ledger = self._ledger.of(principal.name)
        session = import_bundle(ledger, bundle)
        return json_answer(ActionDone(f"Imported '{session.title}'.", session.session_id))

    def export(self, principal: Principal, ref: str, form: str) -> Answer:
        """Return a session as a file: a bundle to import elsewhere, or a text to read."""
        ledger = self._ledger.of(principal.name)
        session = find_session(ledger, ref)
        bundle = export_session(ledger.store, session, ledger.pins, ledger.clock())
        answer = Answer(b"", filename=f"{session.session_id}.{form}")
        match form:
            case "json":
                return replace(answer, body=msgspec.json.encode(bundle))
            case "md":
                return replace(answer, body=as_markdown(bundle).encode(), media="text/markdown")
            case _:
                return replace(answer, body=as_html(bundle).encode(), media="text/html")


def forbidden(what: str) -> Answer:
    """Refuse what a token of the role user may not do, because an agent may hold it."""
    message = f"A token of the role user {what}: an agent may hold it."
    return refused(403, "FORBIDDEN", message, "Ask a principal of the role approver.")
