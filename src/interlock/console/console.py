"""The console as its server knows it: pages by their address, actions by their name, and what has moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from threading import Lock

import msgspec

from interlock.authoring.diagnostics.diagnostic import ABSENT, Diagnostic, absence, located
from interlock.console.actions import EXPORTS, Actions
from interlock.console.answers import Answer, answer_to_error, json_answer, refused
from interlock.console.pages.comparison import compared
from interlock.console.pages.health import SettingLine, SettingsPage, Upkeep, health_page
from interlock.console.pages.inbox_pages import WaitingQuestions, wanted_lines
from interlock.console.pages.run_pages import exported_runs, number_in, removal_page, runs_page
from interlock.console.pages.search_pages import search_page
from interlock.console.pages.session_pages import events_page, node_page, session_page
from interlock.console.pages.simulation import simulation_page
from interlock.console.pages.trust_pages import trust_page
from interlock.console.pages.workflow_pages import builtins_page, run_graph, workflow_page, workflows_page
from interlock.core.principals import Principal
from interlock.ledger.decisions.inbox import questions
from interlock.ledger.errors import error_of
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.branch_artifacts import branch_artifacts
from interlock.ledger.queries.heads import SeenSessions, look_at_sessions
from interlock.ledger.queries.run_lines import RunsWanted, run_lines, workflow_users
from interlock.ledger.queries.status import find_session

LAST_RUNS = 10
NEWEST_SESSIONS = 100  # of a workflow, to tell who uses it

Query = Mapping[str, str]


class Console:
    """All pages and actions, for every principal."""

    def __init__(
        self,
        ledger: Ledger,
        version: str,
        settings: tuple[SettingLine, ...] = (),
        upkeep: Upkeep | None = None,
        waiting: WaitingQuestions | None = None,
    ) -> None:
        self._ledger = ledger
        self._version = version
        self._settings = settings
        self._upkeep = upkeep
        self._examining = Lock()
        self._waiting = waiting or WaitingQuestions(ledger)
        self.actions = Actions(ledger)

    def page(self, principal: Principal, path: str, query: Query) -> Answer:
        """Return what the page at an address shows, as JSON."""
        return self.guarded(lambda: self._page(principal, path.strip("/").split("/"), query))

    def act(self, principal: Principal, name: str, body: bytes) -> Answer:
        """Carry out an action."""
        if name == "doctor":
            return self.examined(principal)
        return self.guarded(lambda: self.actions.act(principal, name, body))

    def examined(self, principal: Principal) -> Answer:
        """Check everything that is stored, for the role admin, once at a time."""
        if self._upkeep is None or principal.role != "admin":
            return refused(403, "FORBIDDEN", "Only the role admin checks the store.")
        if not self._examining.acquire(blocking=False):
            return refused(409, "CONFLICT", "The store is being checked.", "Wait for that check to end.")
        try:
            return json_answer(self._upkeep.doctor())
        finally:
            self._examining.release()

    def look(self, principal: Principal) -> SeenSessions:
        """Return where the sessions stand that this principal may look at."""
        return look_at_sessions(self._ledger, None if principal.decides else principal.name)

    def guarded(self, call: Callable[[], Answer]) -> Answer:
        """Answer with an error that a person can act on, whatever the store or the request is like."""
        try:
            return call()
        except msgspec.DecodeError:
            message = "What is stored cannot be read."
            return refused(500, "STORE_CORRUPT", message, "Run `interlock doctor`.")
        except Exception as error:
            known = error_of(error)
            if known is None:
                raise
            return answer_to_error(known)

    def _page(self, principal: Principal, parts: list[str], query: Query) -> Answer:
        ledger = self._ledger.of(principal.name)
        match parts:
            case ["inbox"]:
                return json_answer(self._waiting.page(principal, wanted_lines(query)))
            case ["inbox", session_id]:
                place, digest = query.get("place", ""), query.get("shown", "")
                return json_answer(self._waiting.question(principal, session_id, place, digest))
            case ["runs"]:
                return json_answer(runs_page(ledger, query))
            case ["runs", "removal"]:
                return json_answer(removal_page(ledger, query.get("ids", "").split(",")))
            case ["runs", "export"]:
                return exported_runs(ledger, query.get("ids", "").split(","))
            case ["sessions", ref]:
                session = find_session(ledger, ref)
                asked = tuple(each.question for each in questions(ledger, session))
                page = session_page(ledger, ref, query.get("run", ""), number_in(query, "node"), asked)
                return json_answer(page)
            case ["sessions", ref, "events"]:
                kinds = tuple(filter(None, query.get("kind", "").split(",")))
                return json_answer(
                    events_page(ledger, ref, number_in(query, "before"), kinds, query.get("q", ""))
                )
            case ["sessions", ref, "node"]:
                return json_answer(node_page(ledger, ref, number_in(query, "node")))
            case ["sessions", ref, "graph"]:
                shown = session_page(ledger, ref, query.get("run", ""), number_in(query, "node"))
                if shown.story is None:
                    return refused(404, "NOT_FOUND", "This session has no run yet.")
                run = next(run for run in shown.status.runs if run.run_id == shown.run_id)
                plan = ledger.pins.plan(ledger.content, run.workflow_hash)
                return json_answer(run_graph(plan.workflow, shown.story))
            case ["sessions", ref, "artifacts"]:
                shown = session_page(ledger, ref, query.get("run", ""), number_in(query, "node"))
                if shown.story is None:
                    return refused(404, "NOT_FOUND", "This session has no run yet.")
                return json_answer(branch_artifacts(shown.story))
            case ["sessions", ref, "export"]:
                form = query.get("form", "json")
                if form not in EXPORTS:
                    return refused(400, "VALIDATION_ERROR", f"Export as {', '.join(EXPORTS)}.")
                return self.actions.export(principal, ref, form)
            case ["compare"]:
                return self.comparison(ledger, query)
            case ["workflows"]:
                return json_answer(workflows_page(ledger.library))
            case ["workflows", workflow_id]:
                loaded = ledger.library.load(workflow_id)
                if isinstance(loaded, Diagnostic):
                    return unusable_workflow(loaded)
                used = run_lines(ledger, RunsWanted(workflow=workflow_id, limit=LAST_RUNS))
                users = workflow_users(ledger, workflow_id, NEWEST_SESSIONS) if principal.decides else ()
                return json_answer(workflow_page(ledger.library, loaded, used.lines, users))
            case ["workflows", workflow_id, "simulate"]:
                loaded = ledger.library.load(workflow_id)
                if isinstance(loaded, Diagnostic):
                    return unusable_workflow(loaded)
                return json_answer(simulation_page(loaded, query.get("answers", "")))
            case ["workflows", workflow_id, "checks"]:
                session_id, owner = query.get("session", ""), query.get("owner", "")
                return json_answer(trust_page(ledger, principal, workflow_id, session_id, owner))
            case ["builtins"]:
                return json_answer(builtins_page())
            case ["search"]:
                return json_answer(search_page(ledger, query.get("q", "")))
            case ["health"]:
                return json_answer(health_page(ledger, principal, self._version, self._upkeep))
            case ["settings"]:
                return json_answer(SettingsPage(self._settings if principal.role == "admin" else ()))
            case _:
                return refused(404, "NOT_FOUND", "There is no such page.", "Start at the inbox.")

    def comparison(self, ledger: Ledger, query: Query) -> Answer:
        """Compare two branches: `left` and `right` name a session, `leftNode` and `rightNode` a tip."""
        pages = []
        for side in ("left", "right"):
            run, node = query.get(f"{side}Run", ""), number_in(query, f"{side}Node")
            page = session_page(ledger, query.get(side, ""), run, node)
            pages.append(page)
        left, right = pages
        return json_answer(compared(left, right))


def unusable_workflow(diagnostic: Diagnostic) -> Answer:
    """Answer for a workflow that does not exist, or whose file has errors."""
    if diagnostic.code == ABSENT:
        return refused(404, diagnostic.code, absence(diagnostic), "Go back to the list of workflows.")
    return refused(404, diagnostic.code, located(diagnostic), diagnostic.next_action)


def built_page() -> Traversable:
    """Return the folder of the built page."""
    return files("interlock.console") / "page"
