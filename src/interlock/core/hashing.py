"""Content addresses: SHA-256 over canonical JSON for values, over bytes for texts."""

from __future__ import annotations

from hashlib import sha256

import msgspec

from interlock.core.values import Json
from interlock.core.workflow import Workflow


def canonical(value: Json) -> bytes:
    """Encode as RFC 8785 canonical JSON."""
    import rfc8785

    encoded: bytes = rfc8785.dumps(value)
    return encoded


def digest_of(data: bytes) -> str:
    return "sha256:" + sha256(data).hexdigest()


def workflow_hash(workflow: Workflow) -> str:
    """The identity that runs are pinned to."""
    return digest_of(canonical(msgspec.to_builtins(workflow)))
