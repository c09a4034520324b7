"""Content addresses: SHA-256 over canonical JSON for values, over bytes for texts."""

from __future__ import annotations

import re
from hashlib import sha256

import msgspec

from interlock.core.definition.checks import CommandCheck
from interlock.core.definition.workflow import Workflow
from interlock.core.values import Json

_DELICATE = re.compile(rb"[:\[,]-?(?:\d{16}|\d+[.eE])|[\xf0-\xf4]")


def canonical(value: Json) -> bytes:
    """Encode as RFC 8785 canonical JSON."""
    import rfc8785

    encoded: bytes = rfc8785.dumps(value)
    return encoded


def digest_of(data: bytes) -> str:
    return "sha256:" + sha256(data).hexdigest()


def workflow_hash(workflow: Workflow) -> str:
    """The identity that runs are pinned to."""
    return digest_of(_plainly(workflow) or canonical(msgspec.to_builtins(workflow)))


def check_digest(workflow_id: str, check: CommandCheck) -> str:
    """The identity that users trust: all of a check's definition, and whose it is."""
    return digest_of(canonical([workflow_id, msgspec.to_builtins(check)]))


def _plainly(workflow: Workflow) -> bytes | None:
    """The same bytes in a fraction of the time, where no number or key needs the canonical rules.

    Sorted compact JSON is canonical but for fractions, integers of 16 digits and more, and the order of
    keys beyond the basic plane; anything that looks like one of them goes through the canonical encoder.
    """
    raw = msgspec.json.encode(workflow, order="sorted")
    return None if _DELICATE.search(raw) else raw
