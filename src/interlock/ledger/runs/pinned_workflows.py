"""Pinned workflows: a run goes on with the definition it began with, whatever becomes of the file."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from interlock.authoring.library import Loaded
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Workflow
from interlock.core.hashing import digest_of
from interlock.store.protocol import Reader, Writer

MOST_PLANS = 64

_decode = msgspec.json.Decoder(Workflow).decode


class PinDamaged(Exception):
    """The pinned workflow of a run is missing or not what it was."""


class Pins:
    """Reads pinned workflows by hash and keeps the last ones ready to run."""

    def __init__(self) -> None:
        self._plans: OrderedDict[str, Plan] = OrderedDict()

    def plan(self, reader: Reader, workflow_hash: str) -> Plan:
        """The plan of a pinned workflow."""
        if workflow_hash in self._plans:
            self._plans.move_to_end(workflow_hash)
            return self._plans[workflow_hash]
        plan = Plan(_decode(pinned(reader, workflow_hash)))
        self._keep(workflow_hash, plan)
        return plan

    def pin(self, writer: Writer, loaded: Loaded) -> Plan:
        """Store the workflow and every text that belongs to it, once."""
        if writer.content(loaded.hash) is None:
            body = msgspec.json.encode(loaded.workflow)
            writer.add_content(loaded.hash, seal(body))
            for document in loaded.workflow.documents:
                writer.add_content(document.digest, loaded.text(document.digest).encode())
        plan = self._plans.get(loaded.hash) or Plan(loaded.workflow)
        self._keep(loaded.hash, plan)
        return plan

    def _keep(self, workflow_hash: str, plan: Plan) -> None:
        self._plans[workflow_hash] = plan
        while len(self._plans) > MOST_PLANS:
            self._plans.popitem(last=False)


def seal(body: bytes) -> bytes:
    """Prefix the body with its own digest: the hash is over canonical JSON, which is slow to recompute."""
    return digest_of(body).encode() + b"\n" + body


def pinned(reader: Reader, workflow_hash: str) -> bytes:
    """The text of a pinned workflow."""
    stored = reader.content(workflow_hash)
    if stored is None:
        raise PinDamaged(f"the pinned workflow {workflow_hash} is not in the store")
    digest, _, body = stored.partition(b"\n")
    if digest_of(body).encode() != digest:
        raise PinDamaged(f"the pinned workflow {workflow_hash} is damaged")
    return body
