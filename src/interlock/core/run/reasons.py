"""One model of reasons: what blocks in a blocking mode is a gap in never-stop mode.

Codes, pointers and budgets are the contract's closed sets; blockers are ordered and bounded here.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.workflow import Capability
from interlock.core.run.preferences import Preferences
from interlock.core.values import Json, cut

Severity = Literal["info", "warning", "critical"]
Category = Literal["user_only_dependency", "contract_violation", "capability_missing", "unexpected"]

MAX_BLOCKERS = 10
MAX_MESSAGE = 512
MAX_REQUIREMENT = 896  # the contract allows 1,024 for a suggestedFix, and a surface says more than this


class BlockerCode(StrEnum):
    USER_ONLY_DEPENDENCY = "USER_ONLY_DEPENDENCY"
    MISSING_REQUIRED_OUTPUT = "MISSING_REQUIRED_OUTPUT"
    INVALID_REQUIRED_OUTPUT = "INVALID_REQUIRED_OUTPUT"
    REQUIRED_CAPABILITY_UNKNOWN = "REQUIRED_CAPABILITY_UNKNOWN"
    REQUIRED_CAPABILITY_UNAVAILABLE = "REQUIRED_CAPABILITY_UNAVAILABLE"
    INVARIANT_VIOLATION = "INVARIANT_VIOLATION"
    STORAGE_CORRUPTION_DETECTED = "STORAGE_CORRUPTION_DETECTED"


class ContextKey(Struct, frozen=True, tag_field="kind", tag="context_key"):
    key: str


class ContractPointer(Struct, frozen=True, tag_field="kind", tag="output_contract"):
    contractRef: str


class CapabilityPointer(Struct, frozen=True, tag_field="kind", tag="capability"):
    capability: Capability


class WorkflowStep(Struct, frozen=True, tag_field="kind", tag="workflow_step"):
    stepId: str


Pointer: TypeAlias = ContextKey | ContractPointer | CapabilityPointer | WorkflowStep


class Blocker(Struct, frozen=True, omit_defaults=True):
    """One reason why the run does not go on; what to do about it is for the surface to say.

    `requirement` is what a failed check asks for, `example` a payload that would satisfy the reason.
    `rejected` says that the user has answered, and not approved.
    """

    code: BlockerCode
    pointer: Pointer
    message: str
    requirement: str = ""
    example: Json = None
    rejected: bool = False

    @property
    def waits_for_user(self) -> bool:
        """Say whether nothing that the agent could send would satisfy it."""
        return self.code is BlockerCode.USER_ONLY_DEPENDENCY and self.example is None


class Gap(Struct, frozen=True):
    """A reason that did not stop the run, disclosed for good."""

    severity: Severity
    category: Category
    detail: str
    summary: str


_CATEGORY: dict[BlockerCode, Category] = {
    BlockerCode.USER_ONLY_DEPENDENCY: "user_only_dependency",
    BlockerCode.MISSING_REQUIRED_OUTPUT: "contract_violation",
    BlockerCode.INVALID_REQUIRED_OUTPUT: "contract_violation",
    BlockerCode.REQUIRED_CAPABILITY_UNKNOWN: "capability_missing",
    BlockerCode.REQUIRED_CAPABILITY_UNAVAILABLE: "capability_missing",
    BlockerCode.INVARIANT_VIOLATION: "unexpected",
    BlockerCode.STORAGE_CORRUPTION_DETECTED: "unexpected",
}


def ordered(blockers: Iterable[Blocker]) -> tuple[Blocker, ...]:
    """Sort by code and pointer, keep texts short, and keep ten; the last says how many more there are."""
    every = sorted(blockers, key=_order)
    left = len(every) - MAX_BLOCKERS
    more = f" And {left} more, which are listed once these are settled." if left > 0 else ""
    last = min(len(every), MAX_BLOCKERS) - 1
    return tuple(
        replace(
            blocker,
            message=_ended(blocker.message, more if number == last else ""),
            requirement=cut(blocker.requirement, MAX_REQUIREMENT, "…"),
        )
        for number, blocker in enumerate(every[:MAX_BLOCKERS])
    )


def _ended(message: str, end: str) -> str:
    return cut(message, MAX_MESSAGE - len(end.encode()), "…") + end


def _order(blocker: Blocker) -> tuple[str, str, str]:
    pointer = blocker.pointer
    stable = getattr(pointer, pointer.__struct_fields__[0])
    return blocker.code.value, str(pointer.__struct_config__.tag), str(stable)


def as_gap(blocker: Blocker, severity: Severity = "critical", detail: str = "") -> Gap:
    """Return the same reason as a gap, for a mode that does not stop."""
    return Gap(severity, _CATEGORY[blocker.code], detail or blocker.code.value.lower(), blocker.message)


def downgraded(blocker: Blocker, preferences: Preferences) -> bool:
    """Say whether the risk policy turns this blocker into a warning; only capabilities ever are."""
    match preferences.risk_policy:
        case "conservative":
            return False
        case "balanced":
            return blocker.code is BlockerCode.REQUIRED_CAPABILITY_UNKNOWN
        case "aggressive":
            return blocker.code in (
                BlockerCode.REQUIRED_CAPABILITY_UNKNOWN,
                BlockerCode.REQUIRED_CAPABILITY_UNAVAILABLE,
            )
