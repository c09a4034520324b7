"""The inbox over HTTP: what waits for a decision, and deciding it with a token of the role approver.

Agents hold tokens of the role user, so those decide nothing here, not even for their own sessions.
"""

from __future__ import annotations

import re

import msgspec
from msgspec.structs import astuple
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.core.values import Json
from interlock.transport.http.responses import json_response, refusal
from interlock.transport.http.service import InboxAnswer, Service, record_in
from interlock.transport.http.workers import Workers

PAGE = 100
MOST = 500
_LIMIT = re.compile("[1-9][0-9]{0,2}")
_CURSOR = re.compile("([0-9]{15}\\.[0-9a-f]{16})?")


def inbox_routes(service: Service, workers: Workers, *, authenticated: bool) -> list[Route]:
    """Return the routes. Without authentication nobody decides: any program could."""

    async def show(request: Request) -> Response:
        limit, after = request.query_params.get("limit", str(PAGE)), request.query_params.get("cursor", "")
        if not _LIMIT.fullmatch(limit) or int(limit) > MOST:
            return refusal(400, "BAD_QUERY", f"limit is a number from 1 to {MOST}.")
        if not _CURSOR.fullmatch(after):
            return refusal(400, "BAD_QUERY", "cursor is the one in `next` of the page before.")
        principal = record_in(request.scope).principal
        page = await workers.on_store(service.inbox, principal, after, int(limit))
        following = f"/inbox?limit={limit}&cursor={page.after}" if page.after else None
        told: dict[str, Json] = {"questions": page.questions, "total": page.total, "next": following}
        return json_response({**told, "counting": True} if page.counting else told)

    async def decide(request: Request) -> Response:
        principal = record_in(request.scope).principal
        if not (authenticated and principal.decides):
            message = "Deciding needs a token of the role approver: interlock auth add NAME --role approver."
            return refusal(403, "FORBIDDEN", message)
        try:
            answer = msgspec.json.decode(await request.body(), type=InboxAnswer)
        except ValueError as error:  # text that is not UTF-8 is no DecodeError
            return refusal(400, "BAD_BODY", str(error))
        if any(isinstance(part, str) and "\0" in part for part in astuple(answer)):
            return refusal(400, "BAD_BODY", "A NUL character is not accepted.")
        outcome = await workers.on_store(service.decide, principal, answer)
        if isinstance(outcome, bool):
            return json_response({"decided" if outcome else "recorded": answer.option})
        told = {"error": {"code": outcome.code, "message": outcome.message}, "question": outcome.question}
        return json_response(told, 409)

    return [Route("/inbox", show, methods=["GET"]), Route("/inbox", decide, methods=["POST"])]
