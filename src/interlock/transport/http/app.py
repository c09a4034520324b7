"""The application: the five surfaces, health and metrics, behind one chain of guards.

Everything that is mounted later passes the same chain.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

import anyio
import anyio.to_thread
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from msgspec import Struct
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from interlock.core.run.surface_policy import SurfaceName
from interlock.surfaces.registry import SURFACES
from interlock.surfaces.tool import report_exception
from interlock.transport.http.access_log import AccessLog
from interlock.transport.http.admission.guard import BODY_BYTES, LOOPBACK, Guard
from interlock.transport.http.admission.limits import Limits
from interlock.transport.http.admission.principals import Authentication, Identification, SignedIn, Verifier
from interlock.transport.http.eras import Eras
from interlock.transport.http.inbox_routes import inbox_routes
from interlock.transport.http.mcp import SurfaceServer
from interlock.transport.http.metrics import Metrics
from interlock.transport.http.responses import json_response, refusal
from interlock.transport.http.service import Service, record_of
from interlock.transport.http.stopping import Stopping

T = TypeVar("T")

WORKERS = 8
IDLE_SECONDS = 1.0
DEFAULT_SURFACE: SurfaceName = "execution"


class HttpSettings(Struct, frozen=True):
    """How the application guards itself. Limits apply where principals are told apart."""

    hosts: tuple[str, ...] = LOOPBACK
    verifier: Verifier | None = None
    signed_in: SignedIn | None = None
    challenge: Mapping[str, str] = {}
    requests_per_second: float = 100.0
    requests_in_flight: int = 256
    log: Callable[[bytes], None] | None = None


def application(service: Service, settings: HttpSettings, more: Sequence[BaseRoute] = ()) -> Starlette:
    """Return the ASGI application; `more` routes are guarded like its own."""
    metrics, stopping = Metrics(), Stopping()
    workers = anyio.CapacityLimiter(WORKERS)
    managers: list[StreamableHTTPSessionManager] = []
    routes: list[BaseRoute] = []
    for name in SURFACES:
        listen = ListenHandler(InMemorySubscriptionBus())
        stopping.on_stop(listen.close)
        server = SurfaceServer(name, service, workers, metrics, listen, stopping).server
        modern, handshake = (
            StreamableHTTPSessionManager(app=server, json_response=as_json, max_request_body_size=BODY_BYTES)
            for as_json in (True, False)
        )
        managers += [modern, handshake]
        endpoint = Eras(name, modern, handshake, stopping)
        paths = [f"/mcp/{name}", *(["/mcp"] if name == DEFAULT_SURFACE else [])]
        routes += [Route(path + end, endpoint=endpoint) for path in paths for end in ("", "/")]

    async def in_thread(call: Callable[..., T], *arguments: object) -> T:
        return await anyio.to_thread.run_sync(call, *arguments, limiter=workers)

    async def healthz(request: Request) -> Response:
        return json_response({"status": "ok", "version": service.version})

    async def readyz(request: Request) -> Response:
        reason = "the server is stopping" if stopping.is_set else await in_thread(service.not_ready)
        if reason is not None:
            return refusal(503, "NOT_READY", reason, {"Retry-After": "1"})
        return json_response({"status": "ready"})

    async def show_metrics(request: Request) -> Response:
        if record_of(request.scope).principal.role != "admin":
            return refusal(403, "FORBIDDEN", "Metrics are for the role admin.")
        reason = await in_thread(service.not_ready)
        gauges = {
            "interlock_ready": ("Whether calls can be answered.", float(reason is None)),
            "interlock_calls_waiting": ("Calls that wait for a decision now.", float(metrics.calls_waiting)),
        }
        if reason is None:
            waiting = await in_thread(service.gates_waiting)
            gauges["interlock_gates_waiting"] = ("Sessions that wait for a decision or an input.", waiting)
        return Response(metrics.text(gauges), media_type="text/plain; version=0.0.4")

    routes += [
        Route("/healthz", healthz, methods=["GET"]),
        Route("/readyz", readyz, methods=["GET"]),
        Route("/metrics", show_metrics, methods=["GET"]),
        *inbox_routes(service, in_thread, authenticated=settings.verifier is not None),
        *more,
    ]

    async def idle() -> None:
        while True:
            await anyio.sleep(IDLE_SECONDS)
            try:
                await in_thread(service.idle)
            except Exception as error:  # a store that is away, or a bug: the server goes on either way
                if await in_thread(service.not_ready) is None:
                    report_exception("the work between calls", error)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            for manager in managers:
                await running.enter_async_context(manager.run())
            async with anyio.create_task_group() as background:
                background.start_soon(idle)
                yield
                background.cancel_scope.cancel()
        await in_thread(service.close)

    known = [route.path for route in routes if isinstance(route, Route)]
    middleware = [
        Middleware(AccessLog, metrics=metrics, routes=known, write=settings.log),
        Middleware(Guard, hosts=settings.hosts),
        Middleware(Identification, verifier=settings.verifier, signed_in=settings.signed_in),
    ]
    if settings.verifier is not None:
        rate, most = settings.requests_per_second, settings.requests_in_flight
        middleware += [
            Middleware(Limits, per_second=rate, in_flight=most),
            Middleware(Authentication, challenge=settings.challenge),
        ]
    app = Starlette(routes=routes, middleware=middleware, lifespan=lifespan)
    app.router.redirect_slashes = False
    app.state.stopping = stopping
    return app
