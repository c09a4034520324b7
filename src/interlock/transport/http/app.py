"""The application: the five surfaces, health and metrics, behind one chain of guards.

Everything that is mounted later passes the same chain.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
from mcp.server.streamable_http import EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from interlock.core.principals import LOCAL
from interlock.core.run.surface_policy import SurfaceName
from interlock.surfaces.registry import SURFACES
from interlock.surfaces.resources import Topic
from interlock.surfaces.tool import report_exception
from interlock.transport.http.access_log import AccessLog
from interlock.transport.http.admission.bodies import BODY_BYTES, Bodies
from interlock.transport.http.admission.guard import LOOPBACK, Guard
from interlock.transport.http.admission.limits import Limits
from interlock.transport.http.admission.principals import Authentication, Identification, SignedIn, Verifier
from interlock.transport.http.eras import Eras, Served
from interlock.transport.http.mcp import SurfaceServer
from interlock.transport.http.metrics import Metrics
from interlock.transport.http.responses import refusal, too_busy
from interlock.transport.http.routes.answer_routes import answer_routes
from interlock.transport.http.routes.health_routes import health_routes
from interlock.transport.http.routes.inbox_routes import inbox_routes
from interlock.transport.http.service import Service, Unavailable
from interlock.transport.http.stopping import Stopping
from interlock.transport.http.subscribers import Subscribers
from interlock.transport.http.workers import Readiness, Saturated, Workers
from interlock.transport.subscriptions import Versions, versions_now

IDLE_SECONDS = 1.0
RETRY_MS = 500
DEFAULT_SURFACE: SurfaceName = "execution"


class HttpSettings(Struct, frozen=True):
    """How the application guards itself. Limits apply where principals are told apart."""

    hosts: tuple[str, ...] = LOOPBACK
    trusted_proxies: tuple[str, ...] = ()
    verifier: Verifier | None = None
    signed_in: SignedIn | None = None
    challenge: Mapping[str, str] = {}
    requests_per_second: float = 100.0
    requests_in_flight: int = 256
    log: Callable[[bytes], None] | None = None


REPAIRED_AFTER = 30  # seconds; a person has to do something first


class Assembly:
    """The parts that all routes share, and what is mounted so far."""

    def __init__(self, service: Service) -> None:
        self.metrics, self.stopping = Metrics(), Stopping()
        self.workers = Workers()
        self.readiness = Readiness(service.not_ready)
        self.subscribers = Subscribers(self._versions, self.stopping)
        self._service = service
        self._managers: list[StreamableHTTPSessionManager] = []
        self._routes: list[BaseRoute] = []

    def mount(self, served: Served, *paths: str, events: EventStore | None = None) -> None:
        """Serve an MCP server at these paths, in both eras; with `events` a broken stream can be resumed."""
        modern, handshake = (
            StreamableHTTPSessionManager(
                app=served.server,
                event_store=events,
                retry_interval=RETRY_MS,
                json_response=as_json,
                max_request_body_size=BODY_BYTES,
            )
            for as_json in (True, False)
        )
        self._managers += [modern, handshake]
        endpoint = Eras(served, modern, handshake, self.stopping)
        self._routes += [Route(path + end, endpoint=endpoint) for path in paths for end in ("", "/")]

    def app(self, settings: HttpSettings, more: Sequence[BaseRoute] = ()) -> Starlette:
        """Return the ASGI application; `more` routes are guarded like its own."""
        routes = [
            *self._routes,
            *health_routes(self._service, self.metrics, self.stopping, self.readiness, self.workers),
            *answer_routes(self._service, self.workers),
            *inbox_routes(self._service, self.workers, authenticated=settings.verifier is not None),
            *more,
        ]
        known = [route.path for route in routes if isinstance(route, Route)]
        middleware = [
            Middleware(AccessLog, metrics=self.metrics, routes=known, write=settings.log),
            # Who sent a request, and whether over TLS, is only a trusted proxy's word.
            Middleware(ProxyHeadersMiddleware, trusted_hosts=list(settings.trusted_proxies)),
            Middleware(Guard, hosts=settings.hosts),
            Middleware(Identification, verifier=settings.verifier, signed_in=settings.signed_in),
        ]
        if settings.verifier is not None:
            rate, most = settings.requests_per_second, settings.requests_in_flight
            middleware += [
                Middleware(Limits, per_second=rate, in_flight=most),
                Middleware(Authentication, challenge=settings.challenge),
            ]
        middleware.append(Middleware(Bodies))
        app = Starlette(
            routes=routes,
            middleware=middleware,
            lifespan=self._lifespan,
            exception_handlers={
                404: unknown_path,
                405: method_not_allowed,
                Unavailable: unavailable,
                Saturated: saturated,
            },
        )
        app.router.redirect_slashes = False
        app.state.stopping = self.stopping
        return app

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            for manager in self._managers:
                await running.enter_async_context(manager.run())
            async with anyio.create_task_group() as background:
                background.start_soon(self._idle)
                yield
                background.cancel_scope.cancel()
        await self.workers.beside_store(self._service.close)

    async def _idle(self) -> None:
        """Do once a second what nobody waits for."""
        while True:
            await anyio.sleep(IDLE_SECONDS)
            await self.subscribers.look()
            try:
                await self.workers.on_store(self._service.idle)
            except Exception as error:  # a store that is away, or a bug: the server goes on either way
                if await self.readiness.reason() is None and not isinstance(error, Saturated):
                    report_exception("the work between calls", error)

    async def _versions(self, topics: Collection[Topic]) -> Versions:
        # A topic belongs to who subscribed to it; its version is the same for everybody.
        return await self.workers.on_store(
            versions_now, self._service.surface(DEFAULT_SURFACE, LOCAL), topics
        )


async def unknown_path(request: Request, error: Exception) -> Response:
    """Refuse a path that nothing is at."""
    tool_sets = ", ".join(f"/mcp/{name}" for name in SURFACES)
    return refusal(404, "NOT_FOUND", f"There is nothing here. MCP is at /mcp and at {tool_sets}.")


async def method_not_allowed(request: Request, error: Exception) -> Response:
    """Refuse a method that a path does not have."""
    headers = (error.headers if isinstance(error, HTTPException) else None) or {}
    allowed = ", ".join(sorted(headers.get("Allow", "GET").split(", ")))
    return refusal(405, "METHOD_NOT_ALLOWED", f"Use {allowed}.", headers)


async def unavailable(request: Request, error: Exception) -> Response:
    """Answer for a store that cannot be used now."""
    assert isinstance(error, Unavailable)
    after = REPAIRED_AFTER if error.after is None else error.after
    return refusal(503, error.code, error.message, {"Retry-After": str(after)})


async def saturated(request: Request, error: Exception) -> Response:
    """Answer for a request that no thread was free for."""
    return too_busy()


def application(service: Service, settings: HttpSettings, more: Sequence[BaseRoute] = ()) -> Starlette:
    """Return the ASGI application of the five surfaces; `more` routes are guarded like its own."""
    assembly = Assembly(service)
    for name in SURFACES:
        # Some clients cut an address after /mcp, so each surface has one that ends there.
        paths = [f"/mcp/{name}", f"/{name}/mcp", *(["/mcp"] if name == DEFAULT_SURFACE else [])]
        assembly.mount(
            SurfaceServer(
                name, service, assembly.workers, assembly.metrics, assembly.subscribers, assembly.stopping
            ),
            *paths,
        )
    return assembly.app(settings, more)
