"""Pages behind the links in messages. Looking at one decides nothing: mail and chat programs look too."""

from __future__ import annotations

from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from interlock.transport.http.service import AnswerPage, Service
from interlock.transport.http.workers import Workers

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self';"
    " frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "same-origin",  # with none at all, a browser sends no origin with the form
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body{{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:2rem auto;padding:0 1rem}}
pre{{white-space:pre-wrap;font:inherit}}button{{font:inherit;padding:.6rem 1.2rem}}</style></head>
<body><main><h1>{title}</h1><pre>{text}</pre>{form}</main></body></html>"""
FORM = '<form method="post"><button type="submit">{label}</button></form>'


def answer_routes(service: Service, workers: Workers) -> list[Route]:
    """Return the routes. The link itself says who answers, so they need no token."""

    async def show(request: Request) -> Response:
        return _page(await workers.on_store(service.linked, request.path_params["link"]))

    async def answer(request: Request) -> Response:
        return _page(await workers.on_store(service.answer_linked, request.path_params["link"]))

    path = "/answer/{link}"
    return [Route(path, show, methods=["GET"]), Route(path, answer, methods=["POST"])]


def _page(page: AnswerPage) -> Response:
    form = FORM.format(label=escape(page.button)) if page.button else ""
    report = f"<pre>{escape(page.report)}</pre>" if page.report else ""
    body = PAGE.format(title=escape(page.title), text=escape(page.text), form=form + report)
    return HTMLResponse(body, page.status, HEADERS)
