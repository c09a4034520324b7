"""Pinned workflows: a run continues with the definition it began with, whatever becomes of the file."""

from __future__ import annotations

from _thread import allocate_lock  # threading costs start-up and adds nothing here
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from interlock.authoring.library import Loaded
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Workflow
from interlock.core.hashing import digest_of
from interlock.ledger.decoders import LazyDecoder

MOST_PLANS = 64

Content: TypeAlias = Callable[[str], bytes | None]

_workflow = LazyDecoder(Workflow)


class PinDamaged(Exception):
    """The pinned workflow of a run is missing or not what it was."""


class Pins:
    """Reads pinned workflows by hash and keeps the last ones ready to run; safe under threads."""

    def __init__(self) -> None:
        self._plans: OrderedDict[str, Plan] = OrderedDict()
        self._turn = allocate_lock()
        self._whole: set[str] = set()

    def plan(self, content: Content, workflow_hash: str) -> Plan:
        """Return the plan of a pinned workflow."""
        plan = self._known(workflow_hash)
        if plan is None:
            plan = self._keep(workflow_hash, Plan(_workflow.decode(pinned(content, workflow_hash))))
        return plan

    def lost_texts(self, content: Content, workflow_hash: str) -> list[str]:
        """Name the texts of a pinned workflow that are missing or damaged; whole ones are checked once."""
        if workflow_hash in self._whole:
            return []
        lost = [
            f"{document.kind} {document.id}"
            for document in self.plan(content, workflow_hash).workflow.documents
            if not is_whole(content(document.digest), document.digest)
        ]
        if not lost:
            self._whole.add(workflow_hash)
        return lost

    def pin(self, content: Content, loaded: Loaded) -> tuple[Plan, dict[str, bytes]]:
        """Return the plan of a workflow, and what to store with the first run that is pinned to it."""
        plan = self._known(loaded.hash) or self._keep(loaded.hash, Plan(loaded.workflow))
        if content(loaded.hash) is not None:
            return plan, {}
        return plan, contents_of(loaded)

    def _known(self, workflow_hash: str) -> Plan | None:
        with self._turn:
            plan = self._plans.get(workflow_hash)
            if plan is not None:
                self._plans.move_to_end(workflow_hash)
            return plan

    def _keep(self, workflow_hash: str, plan: Plan) -> Plan:
        with self._turn:
            self._plans[workflow_hash] = plan
            while len(self._plans) > MOST_PLANS:
                self._plans.popitem(last=False)
        return plan


def contents_of(loaded: Loaded) -> dict[str, bytes]:
    """Return a workflow and every text that belongs to it, as they are stored."""
    texts = {document.digest: loaded.text(document.digest).encode() for document in loaded.workflow.documents}
    return {loaded.hash: seal(msgspec.json.encode(loaded.workflow)), **texts}


def is_whole(body: bytes | None, digest: str) -> bool:
    """Say whether a stored text is the one that was pinned; a column of another type is damage too."""
    return isinstance(body, bytes) and digest_of(body) == digest


def seal(body: bytes) -> bytes:
    """Prefix the body with its own digest: the hash is over canonical JSON, which is slow to recompute."""
    return digest_of(body).encode() + b"\n" + body


def pinned(content: Content, workflow_hash: str) -> bytes:
    """Return the text of a pinned workflow."""
    stored = content(workflow_hash)
    if stored is None:
        raise PinDamaged(f"the pinned workflow {workflow_hash} is not in the store")
    digest, _, body = stored.partition(b"\n")
    if digest_of(body).encode() != digest:
        raise PinDamaged(f"the pinned workflow {workflow_hash} is damaged")
    return body
