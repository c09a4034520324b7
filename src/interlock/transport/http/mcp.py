"""A surface as a server of the official SDK, in both eras.

A handler of a surface runs in a worker thread, because it may wait for the store's lock. If it must ask the
user, the modern era returns the forms, and the handshake era sends them to the client and calls again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar, assert_never

import anyio
import mcp_types as types
import msgspec
from mcp.server.context import CallNext, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec.structs import replace
from pydantic import ValidationError

from interlock.core.principals import LOCAL, Principal
from interlock.core.run.surface_policy import SurfaceName
from interlock.surfaces.call import (
    Address,
    Call,
    Client,
    Elicit,
    Era,
    Form,
    FormAnswer,
    Outcome,
    Reply,
    RpcError,
    Wait,
)
from interlock.surfaces.tool import Surface, call_tool, refuse_as_busy
from interlock.transport.documents import document_result
from interlock.transport.http.metrics import Metrics
from interlock.transport.http.seal import KeyringCodec
from interlock.transport.http.service import RequestRecord, Service, record_in
from interlock.transport.http.stopping import Stopping
from interlock.transport.http.subscribers import Subscribers, notification_of
from interlock.transport.http.workers import Saturated, Workers
from interlock.transport.results import (
    CAPABILITIES,
    CLIENT_INFO,
    COMPLETE,
    FORM_SECONDS,
    UNCACHED,
    JsonObject,
    call_with_answers,
    capabilities_of,
    client_of,
    form_answer,
    input_required,
    invalid_params,
    listed_tools,
    refuse_cursor,
    tool_result,
)
from interlock.transport.rpc import RpcRefused, invalid_request
from interlock.transport.subscriptions import SUBSCRIPTION_ID, listen

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")

SERVER_NAME = "interlock"
STATE_SECONDS = 24 * 3600.0
LOOK_SECONDS = 1.0
OBJECT_ERRORS = ("dict_type", "model_type")  # pydantic would speak of dictionaries and of its own classes


class SurfaceServer:
    """One surface behind the SDK. What it serves belongs to the principal of each request."""

    def __init__(
        self,
        name: SurfaceName,
        service: Service,
        workers: Workers,
        metrics: Metrics,
        subscribers: Subscribers,
        stopping: Stopping,
    ) -> None:
        self.name = name
        self._service = service
        self._workers = workers
        self._metrics = metrics
        self._subscribers = subscribers
        self._stopping = stopping
        surface = service.surface(name, LOCAL)
        self._tools = {tool.name: tool.argument_schema() for tool in surface.tools.values()}
        self._without_store = {tool.name for tool in surface.tools.values() if not tool.uses_store}
        self.server: Server[Any] = AnnouncedServer(
            capabilities_of(surface),
            SERVER_NAME,
            version=service.version,
            instructions=surface.instructions or None,
            get_tool_input_schema=self._tools.get,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=self._listen,
            on_subscribe_resource=self._document,
            on_unsubscribe_resource=self._document,
            on_list_prompts=self._document,
            on_get_prompt=self._document,
            on_list_resources=self._document,
            on_list_resource_templates=self._document,
            on_read_resource=self._document,
            on_completion=self._document,
        )
        # Nothing is logged to clients, but every client of the handshake era may choose a level.
        self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        self.server.middleware.append(explain_refusals)
        seal_states(self.server, service, name)

    def surface_of(self, ctx: Context) -> Surface:
        """Return the surface as the caller may see it."""
        return self._service.surface(self.name, request_record(ctx).principal)

    def is_too_busy_for(self, method: str, tool: object) -> bool:
        """Tell whether a call should be refused at once rather than wait for the store behind others."""
        uses_store = method == "tools/call" and tool not in self._without_store
        return uses_store and self._workers.are_saturated

    async def _list_tools(self, ctx: Context, params: Any) -> JsonObject:
        refuse_cursor(ctx.params or {})
        tools = listed_tools(self.surface_of(ctx), ctx.protocol_version)
        return {"tools": tools, **COMPLETE, **UNCACHED}

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> JsonObject:
        record = request_record(ctx)
        record.tool = params.name if params.name in self._tools else "unknown"
        began, outcome = time.perf_counter(), "error"
        try:
            result = await self._result(ctx, params.name)
            outcome = call_outcome(result)
            return result
        finally:
            self._metrics.observe_call(self.name, record.tool, outcome, time.perf_counter() - began)

    async def _set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        return types.EmptyResult()

    async def tell(self, session_id: str, principal: Principal) -> None:
        """Tell a session of the handshake era of changes, while its stream is open."""
        await self._subscribers.tell_session(session_id, self._service.surface(self.name, principal))

    def renew(self, session_id: str) -> None:
        """Keep the subscriptions of a session that was in use until now."""
        self._subscribers.renew(session_id)

    def forget(self, session_id: str) -> None:
        """Drop the subscriptions of a session that its client has ended."""
        self._subscribers.forget(session_id)

    async def _document(self, ctx: Context, params: Any) -> JsonObject:
        surface, subscription = self.surface_of(ctx), None
        if not is_modern(ctx):
            assert ctx.request is not None, "every message over HTTP comes with a request"
            # Only a session gets here: the SDK refuses what comes before `initialize`.
            own = self._subscribers.of_session(ctx.request.headers["mcp-session-id"], surface)
            own.session, subscription = ctx.session, own.subscription
        era: Era = "modern" if is_modern(ctx) else "handshake"
        result = await self._on_store(
            document_result, surface, ctx.method, ctx.params or {}, era, subscription
        )
        return result | COMPLETE | UNCACHED

    async def _listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve one stream of changes, until the client closes it or the server stops."""
        wanted = (ctx.params or {}).get("notifications")
        subscription, granted = await self._on_store(listen, self.surface_of(ctx), wanted)
        assert ctx.request_id is not None, "the SDK hands over requests only"
        meta = {SUBSCRIPTION_ID: ctx.request_id}
        acknowledged = types.SubscriptionsAcknowledgedNotification.model_validate(
            {"params": {"notifications": granted, "_meta": meta}}
        )
        with self._subscribers.listening(subscription):
            await ctx.session.send_notification(acknowledged, ctx.request_id)
            while changes := await self._subscribers.changes(subscription):
                for change in changes:
                    await ctx.session.send_notification(notification_of(change, meta), ctx.request_id)
        return types.SubscriptionsListenResult.model_validate({"_meta": meta})

    async def _on_store(self, call: Callable[..., T], *arguments: Any) -> T:
        try:
            return await self._workers.on_store(call, *arguments)
        except Saturated:
            raise MCPError(types.INTERNAL_ERROR, "the server is busy; send the same request again") from None

    async def _outcome(self, surface: Surface, tool: str, arguments: Any, call: Call) -> Outcome:
        """Run a tool on a thread of its kind."""
        run = self._workers.beside_store if tool in self._without_store else self._workers.on_store
        try:
            return await run(call_tool, surface, tool, arguments, call)
        except Saturated:
            return refuse_as_busy(surface)

    async def _waited(self, ctx: Context, began: float, seconds: float, message: str) -> bool:
        """Wait a second and report it; tell whether the call may wait on."""
        left = began + seconds - anyio.current_time()
        with anyio.move_on_after(min(LOOK_SECONDS, max(0.0, left))):
            await self._stopping.wait()
        waited = anyio.current_time() - began
        await ctx.session.report_progress(round(waited, 1), seconds, message)
        return waited < seconds and not self._stopping.is_set

    async def _result(self, ctx: Context, tool: str) -> JsonObject:
        surface, client, raw = self.surface_of(ctx), client_in(ctx), ctx.params or {}
        call = call_with_answers(raw, client) if is_modern(ctx) else Call(client)
        began = 0.0
        try:
            while True:
                outcome = await self._outcome(surface, tool, raw.get("arguments"), call)
                match outcome:
                    case Reply():
                        return reply_result(outcome, ctx.protocol_version)
                    case RpcError():
                        raise RpcRefused(outcome)
                    case Wait():
                        if not began:
                            began = anyio.current_time()
                            self._metrics.calls_waiting += 1
                        seconds = outcome.seconds
                        if outcome.works:
                            seconds += anyio.current_time() - began
                        may_wait = await self._waited(ctx, began, seconds, outcome.message)
                        call = replace(call, may_wait=may_wait)
                    case Elicit() if is_modern(ctx):
                        return input_required(outcome)
                    case Elicit():
                        call = Call(client, await _answers(ctx, outcome), outcome.state)
                    case _:
                        assert_never(outcome)
        finally:
            if began:
                self._metrics.calls_waiting -= 1


def reply_result(reply: Reply, version: str) -> JsonObject:
    """Return an answer as the SDK encodes it."""
    result = tool_result(reply, version)
    if isinstance(structured := result.get("structuredContent"), msgspec.Raw):
        result["structuredContent"] = msgspec.json.decode(structured)
    return result | COMPLETE


def seal_states(server: Server[Any], service: Service, name: str) -> None:
    """Let clients carry the state of a call that asked the user, so that nobody can read or change it."""
    security = RequestStateSecurity(
        codec=KeyringCodec(service.secrets),
        ttl=STATE_SECONDS,
        bind_principal=lambda ctx: request_record(ctx).principal.name,
    )
    boundary = RequestStateBoundary(security, default_audience=f"{SERVER_NAME}/{name}")
    server.middleware.append(boundary)


class AnnouncedServer(Server[Any]):
    """A server that says itself what it can do, the same in both eras."""

    def __init__(self, capabilities: JsonObject, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._announced = types.ServerCapabilities.model_validate(capabilities)

    def get_capabilities(self, *args: Any, **kwargs: Any) -> types.ServerCapabilities:
        return self._announced


async def _answers(ctx: Context, ask: Elicit) -> dict[str, FormAnswer]:
    """Show the forms to the user through the client; silence and a broken connection are not answers."""
    answers = {question: FormAnswer("cancel") for question in ask.questions}
    with anyio.move_on_after(FORM_SECONDS):
        for question, asked in ask.questions.items():
            with suppress(MCPError, ValidationError):  # nor is an error, or something else
                result = await _shown(ctx, question, asked)
                answer = form_answer(result.model_dump(mode="json", exclude_none=True))
                answers[question] = answer or FormAnswer("cancel")
    return answers


async def _shown(ctx: Context, question_id: str, asked: Form | Address) -> types.ElicitResult:
    """Show a form to the user, or an address."""
    if isinstance(asked, Address):
        named = f"{ctx.request_id}-{question_id}"
        return await ctx.session.elicit_url(asked.message, asked.url, named, ctx.request_id)
    return await ctx.session.elicit_form(asked.message, dict(asked.schema), ctx.request_id)


async def explain_refusals(ctx: Context, call_next: CallNext) -> Any:
    """Say what is wrong with the parameters of a request; the SDK says only that something is."""
    is_open = is_modern(ctx) or ctx.session.client_params is not None
    try:
        if not is_open and ctx.method not in ("initialize", "ping"):
            raise RpcRefused(invalid_request("initialize must come first"))
        return await call_next(ctx)
    except RpcRefused as refused:
        raise mcp_error(refused) from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        what = "must be an object" if first["type"] in OBJECT_ERRORS else first["msg"]
        where = ".".join(map(str, first["loc"]))
        raise mcp_error(invalid_params(f"{where}: {what}")) from None


def call_outcome(result: JsonObject) -> str:
    """Name what came of a call, for the metrics."""
    if "inputRequests" in result:
        return "asked"
    if "isError" not in result:
        return "ok"
    body = result.get("structuredContent") or decoded(result["content"][0]["text"])
    match body:
        case {"code": str(code)} | {"error": {"code": str(code)}} if code.startswith("STORE_"):
            return "store_failed"
        case (
            {"code": "GUARD_REFUSED"}
            | {"error": {"code": "GUARD_REFUSED"}}
            | {"details": {"reason": "GUARD_REFUSED"}}
        ):
            return "guard_refused"
        case _:
            return "refused"


def decoded(text: str) -> Any:
    """Return what a text holds that is JSON, as navigation's is."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


def request_record(ctx: Context) -> RequestRecord:
    """Return what is known about the HTTP request that a message came with."""
    assert ctx.request is not None, "every message over HTTP comes with a request"
    return record_in(ctx.request.scope)


def is_modern(ctx: Context) -> bool:
    """Tell whether a request belongs to the modern era."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def client_in(ctx: Context) -> Client:
    """Read who calls: each request of the modern era says so, the handshake said it once."""
    if is_modern(ctx):
        meta: Mapping[str, Any] = (ctx.params or {}).get("_meta") or {}
        return client_of(meta.get(CLIENT_INFO), meta.get(CAPABILITIES), "modern", ctx.protocol_version)
    opened = ctx.session.client_params
    if opened is None:
        return Client()
    info, capabilities = (
        part.model_dump(mode="json", by_alias=True, exclude_none=True)
        for part in (opened.client_info, opened.capabilities)
    )
    return client_of(info, capabilities, "handshake", ctx.protocol_version)


def mcp_error(refused: RpcRefused) -> MCPError:
    """Return a refusal as the SDK raises it; its error goes out unchanged."""
    return MCPError(refused.error.code, refused.error.message, refused.error.data)
