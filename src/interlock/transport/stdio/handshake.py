"""The handshake era, 2024-11-05 to 2025-11-25: a connection is opened by `initialize`.

If a tool must ask the user, we send a request of our own and serve other calls until its answer arrives.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, assert_never

import msgspec
from msgspec import Struct

from interlock.core.values import Json
from interlock.surfaces.call import Address, Call, Client, Elicit, Form, FormAnswer, Reply, RpcError, Wait
from interlock.surfaces.tool import Surface, call_tool
from interlock.transport.results import (
    DOCUMENTS,
    FORM_SECONDS,
    ServerInfo,
    capabilities_of,
    check_shown,
    client_of,
    elicitation_params,
    folders_of,
    form_answer,
    invalid_params,
    listed_tools,
    refuse_cursor,
    text_param,
    tool_result,
    unknown_method,
)
from interlock.transport.rpc import (
    INVALID_REQUEST,
    Notification,
    Params,
    Request,
    RequestId,
    Response,
    RpcRefused,
    error_line,
    guarded,
    notification_line,
    request_line,
    result_line,
)
from interlock.transport.stdio.waiting import LOOK_SECONDS, WaitingTurns

if TYPE_CHECKING:
    from interlock.transport.subscriptions import Subscription

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
INITIALIZED = "notifications/initialized"
ROOTS = "roots"  # the id of our question for the client's folders
CONNECTION = None  # what the whole connection watches; no request has this id


class WaitingCall(Struct):
    """A call that waits for the user. `open_forms` maps the id of each sent form to its question."""

    request_id: RequestId
    tool: str
    params: Params
    state: str
    open_forms: dict[str, str]
    answers: dict[str, FormAnswer] = {}
    looks: int = 0


class Handshake:
    """A connection of the handshake era; `version` is None until it is initialized."""

    def __init__(self, surface: Surface, server: ServerInfo, turns: WaitingTurns) -> None:
        self.version: str | None = None
        self._surface = surface
        self._server = server
        self._client = Client()
        self._has_roots = False
        self._turns = turns
        self._waiting: list[WaitingCall] = []
        self._form_numbers = count(1)
        self._subscription: Subscription | None = None

    def answer(self, request: Request) -> list[bytes]:
        """Answer a request; if the user must be asked, send the forms instead and answer later."""
        match request.method, self.version:
            case "initialize", _:
                return [self._initialize(request)]
            case "logging/setLevel", _ if request.params.get("level") not in LEVELS:
                raise invalid_params(f"level must be one of {', '.join(LEVELS)}")
            case (("ping" | "logging/setLevel"), _):
                return [result_line(request.id, {})]
            case (("tools/list" | "tools/call"), None):
                raise RpcRefused(RpcError(INVALID_REQUEST, "initialize must come first"))
            case "tools/list", str(version):
                refuse_cursor(request.params)
                return [result_line(request.id, {"tools": listed_tools(self._surface, version)})]
            case "tools/call", _:
                tool = text_param(request.params, "name")
                return self._call(request.id, tool, request.params, Call(self._client))
            case method, str() if self._surface.prompt_texts and method.startswith(DOCUMENTS):
                return [self._document(request)]
            case method, _:
                raise unknown_method(method)

    def handle_notification(self, notification: Notification) -> list[bytes]:
        """Withdraw the forms of a cancelled call; ask for the client's folders where they are wanted."""
        if notification.method in (INITIALIZED, "notifications/roots/list_changed"):
            wanted = self._has_roots and self._surface.take_folders is not None
            return [request_line(ROOTS, "roots/list", {})] if wanted else []
        if notification.method != "notifications/cancelled":
            return []
        request_id = notification.params.get("requestId")
        cancelled = [call for call in self._waiting if call.request_id == request_id]
        self._waiting = [call for call in self._waiting if call not in cancelled]
        return [line for call in cancelled for line in _withdrawn(call)]

    def handle_response(self, response: Response) -> list[bytes]:
        """Take the client's folders, or a form's answer; after the last one, make the waiting call again."""
        if response.id == ROOTS:
            if self._surface.take_folders is not None:
                self._surface.take_folders(folders_of(response.result))
            return []
        waiting = next((call for call in self._waiting if response.id in call.open_forms), None)
        if waiting is None:
            return []
        question = waiting.open_forms.pop(str(response.id))
        waiting.answers[question] = form_answer(response.result) or FormAnswer("cancel")
        if waiting.open_forms:
            return []
        return self._call_again(waiting)

    def _call_again(self, waiting: WaitingCall) -> list[bytes]:
        self._waiting.remove(waiting)
        self._turns.cancel(waiting.request_id)
        call = Call(self._client, waiting.answers, waiting.state)
        return guarded(
            waiting.request_id,
            lambda: self._call(waiting.request_id, waiting.tool, waiting.params, call),
        )

    def _look_for_silence(self, waiting: WaitingCall) -> list[bytes]:
        """Give up a form that is not answered in time: the client may be unable to show it."""
        waiting.looks += 1
        if waiting.looks * LOOK_SECONDS < FORM_SECONDS:
            return []
        waiting.answers |= dict.fromkeys(waiting.open_forms.values(), FormAnswer("cancel"))
        return _withdrawn(waiting) + self._call_again(waiting)

    def _initialize(self, request: Request) -> bytes:
        requested = request.params.get("protocolVersion")
        if not isinstance(requested, str):
            raise invalid_params("protocolVersion is required")
        capabilities, info = request.params.get("capabilities"), request.params.get("clientInfo")
        if capabilities is not None and not isinstance(capabilities, Mapping):
            raise invalid_params("capabilities must be an object")
        self.version = requested if requested in VERSIONS else VERSIONS[-1]
        self._client = client_of(info, capabilities, "handshake", self.version)
        self._has_roots = isinstance(capabilities, Mapping) and "roots" in capabilities
        welcome: dict[str, Json] = {
            "protocolVersion": self.version,
            "capabilities": capabilities_of(self._surface),
            "serverInfo": msgspec.to_builtins(self._server),
        }
        if self._surface.instructions:
            welcome["instructions"] = self._surface.instructions
        return result_line(request.id, welcome)

    def _document(self, request: Request) -> bytes:
        """Answer a request for prompts or resources, and look from then on for what the client follows."""
        from interlock.transport.documents import document_result
        from interlock.transport.subscriptions import Subscription, changed_lines

        self._subscription = subscription = self._subscription or Subscription(self._surface)
        result = document_result(self._surface, request.method, request.params, "handshake", subscription)
        if subscription.topics():
            self._turns.watch(CONNECTION, partial(changed_lines, subscription, {}))
        else:
            self._turns.cancel(CONNECTION)
        return result_line(request.id, result)

    def _call(self, request_id: RequestId, tool: str, params: Params, call: Call) -> list[bytes]:
        outcome = call_tool(self._surface, tool, params.get("arguments"), call)
        match outcome:
            case Reply():
                return [result_line(request_id, tool_result(outcome, self.version or VERSIONS[-1]))]
            case RpcError():
                return [error_line(request_id, outcome)]
            case Wait():
                again = partial(self._call, request_id, tool, params)
                return self._turns.add(request_id, outcome, call, params, again)
            case Elicit():
                check_shown(outcome, self._client, tool)
                forms = {f"form-{next(self._form_numbers)}": question for question in outcome.questions}
                waiting = WaitingCall(request_id, tool, params, outcome.state, forms)
                self._waiting.append(waiting)
                self._turns.watch(request_id, partial(self._look_for_silence, waiting))
                return [
                    request_line(form_id, "elicitation/create", _put(outcome.questions[question], form_id))
                    for form_id, question in forms.items()
                ]
            case _:
                assert_never(outcome)


def _put(question: Form | Address, form_id: str) -> Params:
    """Return the parameters of a question; in this era an address has an id of its own."""
    named = {"elicitationId": form_id} if isinstance(question, Address) else {}
    return elicitation_params(question) | named


def _withdrawn(waiting: WaitingCall) -> list[bytes]:
    return [
        notification_line("notifications/cancelled", {"requestId": form_id}) for form_id in waiting.open_forms
    ]
