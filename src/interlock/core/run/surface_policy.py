"""How the surfaces differ for the engine: what the server does by itself, and what it leaves to the agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

SurfaceName = Literal["execution", "session", "gated", "navigation", "lookup"]


class SurfacePolicy(Struct, frozen=True):
    """Three choices (rules 15, 22 and 23).

    `exits`: the server takes them; the agent claims any, and hears a warning; or it is offered the open ones.
    `gates`: open when reached; wait for a worker to yield them; or all pending from entry.
    `loops`: run by the server, or advanced by the agent.
    """

    name: SurfaceName
    exits: Literal["taken", "claimed", "offered"]
    gates: Literal["opened", "yielded", "pending"]
    loops: Literal["run", "advanced"] = "run"


EXECUTION = SurfacePolicy("execution", exits="taken", gates="opened")
SESSION = SurfacePolicy("session", exits="claimed", gates="yielded")
GATED = SurfacePolicy("gated", exits="claimed", gates="pending")
NAVIGATION = SurfacePolicy("navigation", exits="offered", gates="opened", loops="advanced")

POLICIES: Mapping[str, SurfacePolicy] = {
    policy.name: policy for policy in (EXECUTION, SESSION, GATED, NAVIGATION)
}
