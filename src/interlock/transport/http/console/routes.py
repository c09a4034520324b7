"""The addresses of the console. Every page has a `.json` twin at its address, which is all that it shows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache, partial
from typing import TypeAlias, TypeVar

import anyio
import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from interlock.console.answers import Answer
from interlock.console.console import Console, built_page
from interlock.core.principals import Principal
from interlock.transport.http.console.access import ConsoleAccess, cookie_in, set_cookie
from interlock.transport.http.console.live import Look, change_stream
from interlock.transport.http.responses import json_response, refusal
from interlock.transport.http.service import record_in
from interlock.transport.http.stopping import Stopping

WORKERS = 4
MOST_IN_ICON = 99
MEDIA = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
ENTERED = '<!doctype html><meta http-equiv="refresh" content="0;url=/console/"><title>Interlock</title>'
CSRF = "x-interlock-csrf"

Result = TypeVar("Result")
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
AdmittedEndpoint: TypeAlias = Callable[[Request, Principal], Awaitable[Response]]


class ConsoleRoutes:
    """Lets a request through to the console if its cookie says who it is."""

    def __init__(self, console: Console, access: ConsoleAccess) -> None:
        self._console = console
        self._access = access
        self._workers = anyio.CapacityLimiter(WORKERS)

    def routes(self) -> list[BaseRoute]:
        """Return the routes, to be mounted behind the guards of the application."""
        return [
            Route("/console", self.home, methods=["GET"]),
            Route("/console/enter", self.enter, methods=["GET"]),
            Route("/console/login", self.login, methods=["POST"]),
            Route("/console/live", self.admitted(self.live), methods=["GET"]),
            Route("/console/csrf.json", self.admitted(self.csrf), methods=["GET"]),
            Route("/console/icon-{count:int}.svg", self.icon, methods=["GET"]),
            Route("/console/do/{name}", self.admitted(self.act), methods=["POST"]),
            Route("/console/{path:path}.json", self.admitted(self.page), methods=["GET"]),
            Route("/console/{path:path}", self.shell, methods=["GET"]),
        ]

    def admitted(self, endpoint: AdmittedEndpoint) -> Endpoint:
        """Let only requests through that no other site sent, and whose cookie says who it is."""

        async def checked(request: Request) -> Response:
            if foreign(request):
                return refused_site()
            principal = await self.principal(request)
            return unauthorized() if principal is None else await endpoint(request, principal)

        return checked

    async def home(self, request: Request) -> Response:
        return RedirectResponse("/console/", 308)

    async def shell(self, request: Request) -> Response:
        """Serve the page itself, which holds no data, and what it is made of."""
        found = asset(request.path_params["path"]) or asset("index.html")
        if found is None:
            return refusal(503, "NOT_BUILT", "The page is not built; run `npm run build` in console/.")
        name, body = found
        headers = {**HEADERS, "Cache-Control": "no-cache"}
        return Response(body, 200, headers, MEDIA[name.rpartition(".")[2]])

    async def icon(self, request: Request) -> Response:
        """Serve the icon of a page that shows how many questions wait; the page itself says how many."""
        found = asset("icon-waiting.svg")
        if found is None:
            return refusal(404, "NOT_FOUND", "The page is not built.", HEADERS)
        count = min(request.path_params["count"], MOST_IN_ICON)
        shown = found[1].replace(b">0<", b">%d<" % count)
        return Response(shown, 200, {**HEADERS, "Cache-Control": "no-cache"}, MEDIA["svg"])

    async def enter(self, request: Request) -> Response:
        """Exchange the secret of this launch for a cookie, then lead to the console.

        A page that refreshes, not a redirect: the browser then starts the next request from our own site.
        """
        cookie = self._access.cookie_for_launch(request.query_params.get("secret", ""))
        if cookie is None:
            return refusal(403, "FORBIDDEN", "This address is not valid any more; use the one printed last.")
        given = set_cookie(request.headers, cookie, request.url.scheme == "https")
        headers = {**HEADERS, "Cache-Control": "no-store", "Set-Cookie": given}
        return Response(ENTERED, 200, headers, MEDIA["html"])

    async def login(self, request: Request) -> Response:
        """Exchange a principal's token for a cookie."""
        if foreign(request) or not request.headers.get("content-type", "").startswith("application/json"):
            return refused_site()
        try:
            token = msgspec.json.decode(await request.body(), type=dict[str, str]).get("token", "")
        except ValueError:  # text that is not UTF-8 is no DecodeError
            token = ""
        cookie = await self.in_thread(partial(self._access.cookie_for_token, token.strip()))
        if cookie is None:
            return unauthorized()
        given = set_cookie(request.headers, cookie, request.url.scheme == "https")
        return json_response({"message": "Welcome."}, 200, {**HEADERS, "Set-Cookie": given})

    async def csrf(self, request: Request, principal: Principal) -> Response:
        """Return what a write must carry; only a page of our own can read it."""
        return json_response({"csrf": self._access.csrf_of(cookie_in(request.headers))}, 200, HEADERS)

    async def page(self, request: Request, principal: Principal) -> Response:
        """Serve what a page shows, as JSON."""
        path, query = request.path_params["path"], dict(request.query_params)
        return sent(await self.in_thread(partial(self._console.page, principal, path, query)))

    async def act(self, request: Request, principal: Principal) -> Response:
        """Carry out an action for whom the cookie and its CSRF token belong to."""
        if not self._access.is_csrf_of(cookie_in(request.headers), request.headers.get(CSRF, "")):
            return refusal(403, "CSRF", "This request does not come from the console's own page.", HEADERS)
        name, body = request.path_params["name"], await request.body()
        return sent(await self.in_thread(partial(self._console.act, principal, name, body)))

    async def live(self, request: Request, principal: Principal) -> Response:
        """Stream what moves, until the cookie does not say who it is any more."""

        async def look() -> Look | None:
            viewer = await self.principal(request)
            return await self.in_thread(partial(self._console.look, viewer)) if viewer else None

        after = request.headers.get("last-event-id") or request.query_params.get("after", "")
        stopping: Stopping = request.app.state.stopping
        headers = {**HEADERS, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(change_stream(look, after, stopping), 200, headers, "text/event-stream")

    async def principal(self, request: Request) -> Principal | None:
        """Return whom the cookie of a request was given to."""
        known = await self.in_thread(partial(self._access.principal_in, request.headers))
        if known is not None:
            record_in(request.scope).principal = known
        return known

    async def in_thread(self, call: Callable[[], Result]) -> Result:
        return await anyio.to_thread.run_sync(call, limiter=self._workers)


def foreign(request: Request) -> bool:
    """Tell whether a page of another origin made the browser send this; the cookie alone does not say."""
    return request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none")


def refused_site() -> Response:
    return refusal(403, "ORIGIN_NOT_ALLOWED", "Pages of other origins may not use the console.", HEADERS)


def unauthorized() -> Response:
    message = "The console does not know you. Open the address that the server printed, or sign in."
    return refusal(401, "UNAUTHORIZED", message, HEADERS)


def sent(answer: Answer) -> Response:
    """Turn an answer of the console into a response."""
    headers = {**HEADERS, "Cache-Control": "no-store"}
    if answer.filename:
        headers["Content-Disposition"] = f'attachment; filename="{answer.filename}"'
    return Response(answer.body, answer.status, headers, answer.media)


def asset(path: str) -> tuple[str, bytes] | None:
    """Return a built file with its name."""
    return assets().get(path)


@cache
def assets() -> dict[str, tuple[str, bytes]]:
    """Return the built files by their path. Nothing is kept for a path that somebody has only asked for."""
    page = built_page()
    files = [(each.name, each) for each in page.iterdir() if each.is_file()]
    files += [(f"assets/{each.name}", each) for each in (page / "assets").iterdir() if each.is_file()]
    return {name: (file.name, file.read_bytes()) for name, file in files if name.rpartition(".")[2] in MEDIA}
