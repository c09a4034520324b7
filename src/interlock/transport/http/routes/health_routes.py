"""What an operator asks: whether the server is alive, whether it can answer calls, and what it has done."""

from __future__ import annotations

from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.transport.http.metrics import Metrics
from interlock.transport.http.responses import json_response, refusal
from interlock.transport.http.service import Service, Unavailable, record_in
from interlock.transport.http.stopping import Stopping
from interlock.transport.http.workers import Readiness, Saturated, Workers

GATES_WAITING = "Sessions that wait for a decision or an input."
MESSAGES_WAITING = "Notifications that wait to be sent or to be tried again."
MESSAGES_DEAD = "Notifications that no channel has taken; `interlock notify retry` tries them again."


def health_routes(
    service: Service, metrics: Metrics, stopping: Stopping, readiness: Readiness, workers: Workers
) -> list[Route]:
    """Return the routes. The first two are open to everybody and say nothing about anybody's work."""

    async def healthz(request: Request) -> Response:
        return json_response({"status": "ok", "version": service.version})

    async def readyz(request: Request) -> Response:
        reason = "the server is stopping" if stopping.is_set else await readiness.reason()
        if reason is not None:
            return refusal(503, "NOT_READY", reason, {"Retry-After": "1"})
        return json_response({"status": "ready"})

    async def show_metrics(request: Request) -> Response:
        if not record_in(request.scope).principal.reads_metrics:
            return refusal(403, "FORBIDDEN", "Metrics are for the roles metrics and admin.")
        reason = await readiness.reason()
        gauges = {
            "interlock_ready": ("Whether calls can be answered.", float(reason is None)),
            "interlock_calls_waiting": ("Calls that wait for a decision now.", float(metrics.calls_waiting)),
        }
        if reason is None:
            with suppress(Unavailable, Saturated):  # the other figures say why these are missing
                waiting = await workers.on_store(service.gates_waiting)
                gauges["interlock_gates_waiting"] = GATES_WAITING, waiting
                unsent, dead = await workers.on_store(service.messages_unsent)
                gauges["interlock_messages_waiting"] = MESSAGES_WAITING, unsent
                gauges["interlock_messages_dead"] = MESSAGES_DEAD, dead
        return Response(metrics.text(gauges), media_type="text/plain; version=0.0.4")

    return [
        Route("/healthz", healthz, methods=["GET"]),
        Route("/readyz", readyz, methods=["GET"]),
        Route("/metrics", show_metrics, methods=["GET"]),
    ]
