"""Workflows as pages: the list with what is wrong in it, and one workflow with its picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from interlock.authoring.graph.model import drawing_of
from interlock.authoring.graph.svg import Line, picture_of
from interlock.authoring.library import Diagnostic, Library, Loaded
from interlock.core.definition.workflow import Gate, Step, Workflow, walk
from interlock.ledger.queries.run_lines import RunLine
from interlock.ledger.queries.status import Shown
from interlock.ledger.queries.story import RunStory

BYTES_PER_TOKEN = 4


class DiagnosticLine(Shown, frozen=True):
    """What is wrong with a file, and where."""

    code: str
    severity: str
    message: str
    next_action: str
    file: str
    line: int
    workflow_id: str


class WorkflowLine(Shown, frozen=True):
    """A workflow in the list. `shadows` are the sources whose copy of it is not used."""

    id: str
    name: str
    description: str
    version: str
    kind: str
    form: str
    source: str
    hash: str
    errors: int
    warnings: int
    shadows: tuple[str, ...]


class WorkflowsPage(Shown, frozen=True):
    """All workflows, and what is wrong with files of all sources."""

    workflows: tuple[WorkflowLine, ...]
    diagnostics: tuple[DiagnosticLine, ...]


class GraphBox(Shown, frozen=True):
    """A card of the picture; the start and the end have no lines."""

    id: str
    title: str
    x: float
    y: float
    width: float
    height: float
    lines: tuple[Line, ...] = ()


class GraphRoute(Shown, frozen=True):
    """An arrow of the picture."""

    start: str
    end: str
    label: str
    points: tuple[tuple[float, float], ...]
    back: bool


class WorkflowGraph(Shown, frozen=True):
    """A workflow as a picture with coordinates."""

    width: float
    height: float
    boxes: tuple[GraphBox, ...]
    routes: tuple[GraphRoute, ...]


class RunGraph(Shown, frozen=True):
    """The workflow that a run is pinned to, how often its branch passed each item, and where it is now."""

    graph: WorkflowGraph
    visits: dict[str, int]
    current: str


class WorkflowItem(Shown, frozen=True):
    """A step or gate of the workflow, in order."""

    activity: str
    kind: str
    id: str
    title: str
    contracts: tuple[str, ...] = ()
    confirms: bool = False
    options: tuple[str, ...] = ()


class WorkflowVariable(Shown, frozen=True):
    """A declared variable."""

    name: str
    type: str
    description: str
    required: bool


class WorkflowPage(Shown, frozen=True):
    """One workflow: what it is, its picture, its items, who has used it."""

    id: str
    name: str
    description: str
    version: str
    source: str
    hash: str
    size: int
    tokens: int
    graph: WorkflowGraph
    items: tuple[WorkflowItem, ...]
    variables: tuple[WorkflowVariable, ...]
    diagnostics: tuple[DiagnosticLine, ...]
    runs: tuple[RunLine, ...]


def workflows_page(library: Library) -> WorkflowsPage:
    """List the workflows of all sources."""
    listing = library.listing()
    lines = [
        WorkflowLine(
            id=entry.id,
            name=entry.name,
            description=entry.description,
            version=entry.version,
            kind=entry.kind,
            form=entry.form,
            source=entry.source,
            hash=entry.hash,
            errors=count(listing.diagnostics, entry.id, "error"),
            warnings=count(listing.diagnostics, entry.id, "warning"),
            shadows=tuple(copy.source for copy in listing.shadowed if copy.workflow_id == entry.id),
        )
        for entry in listing.entries
        if not entry.hidden
    ]
    return WorkflowsPage(tuple(lines), tuple(map(diagnostic_line, listing.diagnostics)))


def count(diagnostics: tuple[Diagnostic, ...], workflow_id: str, severity: str) -> int:
    return sum(
        diagnostic.workflow_id == workflow_id and diagnostic.severity == severity
        for diagnostic in diagnostics
    )


def diagnostic_line(diagnostic: Diagnostic) -> DiagnosticLine:
    return DiagnosticLine(
        code=diagnostic.code,
        severity=diagnostic.severity,
        message=diagnostic.message,
        next_action=diagnostic.next_action,
        file=diagnostic.file,
        line=diagnostic.line,
        workflow_id=diagnostic.workflow_id or "",
    )


def workflow_page(loaded: Loaded, runs: tuple[RunLine, ...]) -> WorkflowPage:
    """Describe one workflow."""
    workflow = loaded.workflow
    size = len(msgspec.json.encode(workflow)) + sum(len(text.encode()) for text in loaded.texts.values())
    return WorkflowPage(
        id=workflow.id,
        name=workflow.name,
        description=workflow.description,
        version=workflow.version,
        source=loaded.source.label,
        hash=loaded.hash,
        size=size,
        tokens=size // BYTES_PER_TOKEN,
        graph=graph_of(workflow),
        items=tuple(
            WorkflowItem(
                activity=activity.id,
                kind="step" if isinstance(item, Step) else "gate" if isinstance(item, Gate) else "loop",
                id=item.id,
                title=item.name if isinstance(item, Gate) else item.title,
                contracts=tuple(contract.ref for contract in item.contracts)
                if isinstance(item, Step)
                else (),
                confirms=isinstance(item, Step) and item.confirm is not False,
                options=tuple(option.id for option in item.options) if isinstance(item, Gate) else (),
            )
            for activity in workflow.activities
            for item in walk(activity.items)
        ),
        variables=tuple(
            WorkflowVariable(variable.name, variable.type, variable.description or "", variable.required)
            for variable in workflow.variables
        ),
        diagnostics=tuple(map(diagnostic_line, loaded.diagnostics)),
        runs=runs,
    )


def run_graph(workflow: Workflow, story: RunStory) -> RunGraph:
    """Draw the path of a branch onto the workflow that it is pinned to."""
    visits = Counter(step.item for step in story.steps if step.done_at is not None)
    pending = [step.item for step in story.steps if step.done_at is None]
    return RunGraph(graph_of(workflow), dict(visits), pending[-1] if pending else "")


def graph_of(workflow: Workflow) -> WorkflowGraph:
    """Return the picture of a workflow as values that a page can draw."""
    picture = picture_of(drawing_of(workflow))
    placed = picture.placed
    titles: Mapping[str, str] = {activity.id: activity.name for activity in workflow.activities}
    boxes = tuple(
        GraphBox(
            id=name,
            title=titles.get(name, name.strip("()")),
            x=at.x,
            y=at.y,
            width=at.box.width,
            height=at.box.height,
            lines=tuple(picture.cards.get(name, ())),
        )
        for name, at in placed.boxes.items()
    )
    routes = tuple(
        GraphRoute(route.start, route.end, picture.labels[route.start, route.end], route.points, route.back)
        for route in placed.routes
    )
    return WorkflowGraph(placed.width, placed.height, boxes, routes)
