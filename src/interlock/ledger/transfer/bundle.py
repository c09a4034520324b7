"""Bundles: one versioned JSON file with everything that a session needs to be continued elsewhere.

Events name ordinals (rule 4), so a bundle is imported under another id without touching its chain. It
holds no handle and no token; recorded responses travel with slots (rule 7).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from interlock.authoring.compile.ids import DOTLESS, LONGEST_ID, NAMESPACED
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Workflow
from interlock.core.hashing import canonical, digest_of, workflow_hash
from interlock.core.values import Json
from interlock.ledger.log.chain import GENESIS, entries_of, follows
from interlock.ledger.log.judgement import violations
from interlock.ledger.log.projection import Rows, outputs_of
from interlock.ledger.log.rebuild import rebuild, recorded_in
from interlock.ledger.runs.position import tip_of
from interlock.store.protocol import CommitRow, Health, NodeRow

VERSION = 1
LONGEST_KEY = 2000
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
MANIFEST: Literal["sha256_manifest_v1"] = "sha256_manifest_v1"

# Ids are stored, printed and looked up as they are, so nothing else is taken for one (rule 39).
SessionId = Annotated[str, msgspec.Meta(pattern=r"\Asess_[a-z2-7]{26}\Z")]
WorkflowId = Annotated[
    str, msgspec.Meta(pattern=rf"\A(?:{NAMESPACED.pattern}|{DOTLESS.pattern})\Z", max_length=LONGEST_ID)
]
OutputKind = Literal["notes", "artifact"]

BundleCode = Literal[
    "BUNDLE_INVALID_FORMAT",
    "BUNDLE_UNSUPPORTED_VERSION",
    "BUNDLE_INTEGRITY_FAILED",
    "BUNDLE_MISSING_SNAPSHOT",
    "BUNDLE_MISSING_PINNED_WORKFLOW",
    "BUNDLE_EVENT_ORDER_INVALID",
    "BUNDLE_GUARD_REFUSED",
]


class BundlePart(Struct, frozen=True, rename="camel"):
    """The base of everything in a bundle."""


class BundleRefused(BundlePart, frozen=True):
    """Why a bundle is not imported; nothing was stored."""

    code: BundleCode
    message: str
    suggestion: str


class Meta(BundlePart, frozen=True):
    """The session itself. A damaged one says so, and how many events its log once had."""

    session_id: SessionId
    title: str
    created_at: int
    updated_at: int
    parent_session: SessionId | None
    health: Health
    health_reason: str
    events: int
    lost_events: int


class Run(BundlePart, frozen=True):
    run: int
    run_id: str
    workflow_id: WorkflowId
    workflow_hash: str
    status: str
    tip: int
    started_at: int
    updated_at: int


class Node(BundlePart, frozen=True):
    """`snapshot` names the state in `snapshots`."""

    node: int
    run: int
    kind: str
    snapshot: str
    event_index: int
    created_at: int


class Edge(BundlePart, frozen=True):
    parent: int
    node: int
    kind: str


class Produced(BundlePart, frozen=True):
    """Notes or an artifact with the attempt that wrote it."""

    node: int
    attempt: int
    ordinal: int
    kind: OutputKind
    step: str
    body: str
    child: int | None
    recorded_at: int


class BundledResponse(BundlePart, frozen=True):
    """What an attempt was answered, with slots in place of tokens and ids."""

    node: int
    attempt: int
    body: str


class BundledCommit(BundlePart, frozen=True):
    """The events of one command. `body` is the stored text, because the chain is over its bytes."""

    first: int
    last: int
    recorded_at: int
    digest: str
    body: str
    key: str | None = None


class Graph(BundlePart, frozen=True):
    """Everything that follows from the events. Snapshots are the states of nodes, as text."""

    observations: dict[str, str]
    runs: tuple[Run, ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    outputs: tuple[Produced, ...]
    snapshots: dict[str, str]


class Session(BundlePart, frozen=True):
    """All parts. Workflows and documents are texts under their digests."""

    meta: Meta
    graph: Graph
    commits: tuple[BundledCommit, ...]
    responses: tuple[BundledResponse, ...]
    pinned_workflows: dict[str, str]
    documents: dict[str, str]


class Digest(BundlePart, frozen=True):
    path: str
    sha256: str
    bytes: int


class Integrity(BundlePart, frozen=True):
    entries: tuple[Digest, ...]
    kind: Literal["sha256_manifest_v1"] = MANIFEST


class Producer(BundlePart, frozen=True):
    app_version: str
    name: str = "interlock"


class Bundle(BundlePart, frozen=True):
    """The file."""

    bundle_schema_version: int
    bundle_id: str
    exported_at: int
    producer: Producer
    integrity: Integrity
    session: Session


class _Version(BundlePart, frozen=True):
    bundle_schema_version: int


def read_bundle(raw: bytes) -> Bundle | BundleRefused:
    """Decode a bundle and check all of it; nothing is imported that does not fit together."""
    try:
        version = msgspec.json.decode(raw, type=_Version).bundle_schema_version
        if version != VERSION:
            return BundleRefused(
                "BUNDLE_UNSUPPORTED_VERSION",
                f"The bundle has version {version}; this Interlock reads version {VERSION}.",
                "Update Interlock here, or export again with the version that is used here.",
            )
        bundle = msgspec.json.decode(raw, type=Bundle)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return BundleRefused("BUNDLE_INVALID_FORMAT", f"This is not a bundle: {error}.", EXPORT_AGAIN)
    if refused := _incomplete(bundle.session):
        return refused
    try:
        computed, listed = manifest(bundle.session).entries, bundle.integrity.entries
    except ValueError as error:
        return _refused("BUNDLE_INVALID_FORMAT", f"it has no canonical form ({error})")
    if computed != listed:
        changed = min((entry.path for entry in set(computed) ^ set(listed)), default="the manifest")
        return _refused("BUNDLE_INTEGRITY_FAILED", f"{changed} was changed")
    return _contradiction(bundle.session) or bundle


def manifest(session: Session) -> Integrity:
    """Return the digests of all parts."""
    graph = session.graph
    named_parts = {
        "meta": session.meta,
        "commits": session.commits,
        "responses": session.responses,
        "observations": graph.observations,
        "runs": graph.runs,
        "nodes": graph.nodes,
        "edges": graph.edges,
        "outputs": graph.outputs,
    }
    parts: dict[str, Json] = {name: msgspec.to_builtins(part) for name, part in named_parts.items()}
    for name, texts in (
        ("snapshots", graph.snapshots),
        ("pinnedWorkflows", session.pinned_workflows),
        ("documents", session.documents),
    ):
        parts |= {f"{name}/{key}": texts[key] for key in sorted(texts)}
    bodies = {f"session/{path}": canonical(part) for path, part in parts.items()}
    return Integrity(
        tuple(
            Digest(path, digest_of(body).removeprefix("sha256:"), len(body)) for path, body in bodies.items()
        )
    )


def graph_of(made: Rows) -> Graph:
    """Return a rebuilt session as a bundle shows it."""
    nodes = list(made.nodes.values())
    return Graph(
        observations=dict(made.observations),
        runs=tuple(
            Run(
                run.run,
                run.run_id,
                run.workflow_id,
                run.workflow_hash,
                run.status,
                tip_of(made.session, run),
                run.started_at,
                run.updated_at,
            )
            for run in made.runs.values()
        ),
        nodes=tuple(
            Node(node.node, node.run, node.kind, digest_of(node.state), node.event_index, node.created_at)
            for node in nodes
        ),
        edges=tuple(Edge(node.parent, node.node, node.kind) for node in nodes if node.parent is not None),
        outputs=tuple(_produced(made)),
        snapshots={digest_of(node.state): node.state.decode() for node in nodes},
    )


def _produced(made: Rows) -> Iterator[Produced]:
    """Yield every output with the node and attempt it came with, in the order in which it was recorded."""
    recorded = sorted(recorded_in(made), key=lambda item: item[1].event_index)
    for node, row in recorded:
        child = row.node if isinstance(row, NodeRow) and row.kind == "step" else None
        at = row.created_at if isinstance(row, NodeRow) else row.recorded_at
        for ordinal, output in enumerate(outputs_of(row)):
            kind: OutputKind = "notes" if output.channel == "recap" else "artifact"
            yield Produced(node, row.attempt or 0, ordinal, kind, output.step, output.body, child, at)


def bundled(row: CommitRow) -> BundledCommit:
    return BundledCommit(row.first, row.last, row.recorded_at, row.digest.hex(), row.body.decode(), row.key)


def commit_rows(session: Session, session_id: str) -> list[CommitRow]:
    """Return a bundle's commits as they are stored under an id."""
    return [
        CommitRow(
            session_id,
            commit.first,
            commit.last,
            commit.recorded_at,
            bytes.fromhex(commit.digest),
            commit.body.encode(),
            commit.key,
        )
        for commit in session.commits
    ]


def rebuilt_as(session: Session, session_id: str) -> Rows:
    """Return a bundle's rows under an id, built from its events."""
    return rebuild(session_id, commit_rows(session, session_id))


def _incomplete(session: Session) -> BundleRefused | None:
    """Refuse a bundle in which a state, a workflow or an event is missing."""
    for node in session.graph.nodes:
        if node.snapshot not in session.graph.snapshots:
            return _refused("BUNDLE_MISSING_SNAPSHOT", f"the state of node {node.node} is missing")
    for run in session.graph.runs:
        if run.workflow_hash not in session.pinned_workflows:
            reason = f"the workflow {run.workflow_id} that run {run.run} is pinned to is missing"
            return _refused("BUNDLE_MISSING_PINNED_WORKFLOW", reason)
    ends = [-1, *(commit.last for commit in session.commits)]
    if not session.commits or [commit.first for commit in session.commits] != [end + 1 for end in ends[:-1]]:
        return _refused("BUNDLE_EVENT_ORDER_INVALID", "its events are not numbered from 0 without a gap")
    return None


def _contradiction(session: Session) -> BundleRefused | None:
    """Refuse what a manifest cannot show: a broken chain, a false hash, rows that the events do not make."""
    before = GENESIS
    try:
        for row in commit_rows(session, session.meta.session_id):
            if not follows(before, row):
                return _refused("BUNDLE_INTEGRITY_FAILED", f"event {row.first} breaks the chain")
            if row.last != row.first + len(entries_of(row)) - 1:
                return _refused("BUNDLE_INTEGRITY_FAILED", f"the events from {row.first} on are misnumbered")
            before = row.digest
        return _false_workflow(session) or _other_graph(session) or _broken_promise(session)
    except (ValueError, KeyError, AssertionError) as error:
        return _refused("BUNDLE_INTEGRITY_FAILED", f"its events make no session ({error!r})")


def _false_workflow(session: Session) -> BundleRefused | None:
    for key, text in session.pinned_workflows.items():
        workflow = msgspec.json.decode(text, type=Workflow)
        if workflow_hash(workflow) != key:
            reason = f"the workflow {workflow.id} is not what its hash says"
            return _refused("BUNDLE_INTEGRITY_FAILED", reason)
        for document in workflow.documents:
            if document.digest not in session.documents:
                reason = f"“{document.id}”, which belongs to the workflow {workflow.id}, is missing"
                return _refused("BUNDLE_MISSING_PINNED_WORKFLOW", reason)
    for key, text in session.documents.items():
        if digest_of(text.encode()) != key:
            return _refused("BUNDLE_INTEGRITY_FAILED", f"the document {key} is not what its digest says")
    return None


def _other_graph(session: Session) -> BundleRefused | None:
    rebuilt = rebuilt_as(session, session.meta.session_id)
    if graph_of(rebuilt) != session.graph or rebuilt.session.parent_session != session.meta.parent_session:
        return _refused("BUNDLE_INTEGRITY_FAILED", "its nodes, runs or outputs are not what its events make")
    row, meta = rebuilt.session, session.meta
    if (row.title, row.created_at, row.updated_at, row.head_index + 1) != (
        meta.title,
        meta.created_at,
        meta.updated_at,
        meta.events,
    ):
        return _refused("BUNDLE_INTEGRITY_FAILED", "its title, times or length are not what its events make")
    if reason := _unstorable(session, rebuilt):
        return _refused("BUNDLE_INTEGRITY_FAILED", reason)
    digests = {(node, row.attempt): row.response_digest.hex() for node, row in recorded_in(rebuilt)}
    for response in session.responses:
        digest = digest_of(response.body.encode()).removeprefix("sha256:")
        if digests.get((response.node, response.attempt)) != digest:
            which = f"attempt {response.attempt} on node {response.node}"
            return _refused("BUNDLE_INTEGRITY_FAILED", f"the response to {which} is not the recorded one")
    return None


def _broken_promise(session: Session) -> BundleRefused | None:
    """Refuse a log with a command that the guard would have refused."""
    plans = {
        key: Plan(msgspec.json.decode(text, type=Workflow)) for key, text in session.pinned_workflows.items()
    }
    broken = next(violations(commit_rows(session, session.meta.session_id), plans.get), None)
    return None if broken is None else _refused("BUNDLE_GUARD_REFUSED", broken.text)


def _unstorable(session: Session, rebuilt: Rows) -> str:
    """Say what no store of ours would have written: a NUL delimits slots, and indexes have limits."""
    texts = [*(commit.body for commit in session.commits), *session.pinned_workflows.values()]
    keys = [*(commit.key or "" for commit in session.commits), *chain(*rebuilt.observations.items())]
    if any(map(_ESCAPED_NUL.search, texts)) or any(
        "\0" in text for text in (*keys, *session.documents.values())
    ):
        return "it contains a NUL character"
    if any(len(key.encode()) > LONGEST_KEY for key in keys):
        return f"one of its keys or observations is longer than {LONGEST_KEY} bytes"
    rows = (rebuilt.session, *rebuilt.nodes.values(), *rebuilt.runs.values(), *rebuilt.all_blocked())
    numbers = (value for row in rows for value in astuple(row) if isinstance(value, int))
    return "one of its numbers needs more than 64 bits" if any(abs(n) >= 2**63 for n in numbers) else ""


def _refused(code: BundleCode, reason: str) -> BundleRefused:
    return BundleRefused(code, f"The bundle is not imported: {reason}.", EXPORT_AGAIN)


EXPORT_AGAIN = "Export the session again where it came from: interlock export ID > FILE."
