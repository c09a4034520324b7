"""Capabilities are learned, never assumed: observations, their provenance, and what a required one blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

from interlock.core.definition.workflow import Capability, Step
from interlock.core.run import events as e
from interlock.core.run.output import Output
from interlock.core.run.reasons import Blocker, BlockerCode, CapabilityPointer
from interlock.core.run.state import CapabilityStatus
from interlock.core.values import Json

OBSERVATION = ("wr.capability_observation", "capability_observation", "wr.contracts.capability_observation")
STRONG = ("probe_step", "attempted_use")
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)
STATUSES: tuple[CapabilityStatus, ...] = get_args(CapabilityStatus)


def observations(output: Output) -> Iterator[e.CapabilityObserved]:
    """Read the capability observations among the artifacts; malformed ones are the contract's business."""
    for artifact in output.of_kind(*OBSERVATION):
        capability, status = artifact.get("capability"), artifact.get("status")
        provenance = artifact.get("provenance")
        if capability not in CAPABILITIES or status not in STATUSES:
            continue
        origin: Mapping[str, Json] = (
            provenance if isinstance(provenance, Mapping) else {"kind": "manual_claim"}
        )
        yield e.CapabilityObserved(capability, status, origin.get("kind") in STRONG, origin)


def missing(step: Step, output: Output) -> Iterator[Blocker]:
    """Name what keeps a probe step from unlocking its capability: only strong provenance does."""
    if step.probes is None:
        return
    seen = [one for one in observations(output) if one.capability == step.probes]
    if not seen:
        return
    strong = [one for one in seen if one.strong]
    if not strong or strong[-1].status == "unknown":
        yield _unknown(step.probes)
    elif strong[-1].status == "unavailable":
        yield _unavailable(step.probes)


def _unknown(capability: Capability) -> Blocker:
    return Blocker(
        BlockerCode.REQUIRED_CAPABILITY_UNKNOWN,
        CapabilityPointer(capability),
        f"This workflow requires {capability}, and a claim alone does not show that it works.",
        "Try the capability once and report the result with provenance kind probe_step or attempted_use.",
        {
            "kind": OBSERVATION[0],
            "capability": capability,
            "status": "available",
            "provenance": {"kind": "attempted_use", "attemptContext": "workflow_step", "result": "success"},
        },
    )


def _unavailable(capability: Capability) -> Blocker:
    return Blocker(
        BlockerCode.REQUIRED_CAPABILITY_UNAVAILABLE,
        CapabilityPointer(capability),
        f"This workflow requires {capability}, and the probe found it unavailable.",
        "Ask the user to enable it (for web browsing: add a browsing tool to the client) or to supply the "
        "material by hand, then probe again and acknowledge with the fresh ackToken.",
    )
