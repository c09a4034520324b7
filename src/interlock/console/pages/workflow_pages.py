"""Workflows as pages: the list with what is wrong in it, and one workflow with its picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from interlock.authoring.catalogue import BuiltinKind, catalogue
from interlock.authoring.compile.templates import ROUTINE
from interlock.authoring.graph.model import END, START, Row, drawing_of
from interlock.authoring.graph.svg import Line, picture_of
from interlock.authoring.library import Diagnostic, Library, Loaded
from interlock.core.definition.program import Choices
from interlock.core.definition.workflow import Gate, Loop, Step, Workflow, walk
from interlock.core.values import Json
from interlock.ledger.decisions.inbox import QuestionOption, question_options
from interlock.ledger.queries.run_lines import RunLine, WorkflowUser
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
    size: int
    tokens: int
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
    """The workflow that a run is pinned to, how often its branch passed each item, and where it is now.

    `taken` are the arrows that the branch went along.
    """

    graph: WorkflowGraph
    visits: dict[str, int]
    current: str
    taken: tuple[tuple[str, str], ...]


class WorkflowItem(Shown, frozen=True):
    """A step, gate or loop, in order. `depth` counts the loops around it, `note` says when it applies.

    `text` is the prompt or the question as its author wrote it.
    """

    activity: str
    kind: str
    id: str
    title: str
    depth: int
    note: str
    text: str
    contracts: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    confirms: bool = False
    options: tuple[QuestionOption, ...] = ()


class WorkflowVariable(Shown, frozen=True):
    """A declared variable; `type` lists its values if it can have no others, `default` is JSON or empty."""

    name: str
    type: str
    description: str
    required: bool
    default: str


class WorkflowContract(Shown, frozen=True):
    """An artifact that steps must hand in."""

    ref: str
    artifact: str
    required: bool
    steps: tuple[str, ...]
    example: Json


class WorkflowPage(Shown, frozen=True):
    """One workflow: what it is, its picture, its items, who has used it.

    `uses` are the workflows and templates that it names, `used_by` the workflows that name it; `users` are
    the people whose newest sessions follow it, for those who decide for others.
    """

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
    contracts: tuple[WorkflowContract, ...]
    uses: tuple[str, ...]
    used_by: tuple[str, ...]
    shadowed: tuple[str, ...]
    diagnostics: tuple[DiagnosticLine, ...]
    runs: tuple[RunLine, ...]
    users: tuple[WorkflowUser, ...]


class BuiltinLine(Shown, frozen=True):
    """Something built in that a workflow may name; `details` is Markdown, `insert` is YAML to paste."""

    kind: BuiltinKind
    ref: str
    title: str
    details: str
    insert: str
    artifact: str
    example: Json


class BuiltinsPage(Shown, frozen=True):
    """The catalogue of what is built in."""

    builtins: tuple[BuiltinLine, ...]


def builtins_page() -> BuiltinsPage:
    """List the contracts, templates, features, capabilities and references."""
    lines = (
        BuiltinLine(
            kind=entry.kind,
            ref=entry.ref,
            title=entry.title,
            details="\n".join(entry.details),
            insert=entry.insert,
            artifact=entry.artifact,
            example=msgspec.json.decode(entry.example) if entry.example else None,
        )
        for entry in catalogue()
    )
    return BuiltinsPage(tuple(lines))


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
            size=entry.size,
            tokens=entry.size // BYTES_PER_TOKEN,
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


def workflow_page(
    library: Library, loaded: Loaded, runs: tuple[RunLine, ...], users: tuple[WorkflowUser, ...]
) -> WorkflowPage:
    """Describe one workflow."""
    workflow, entry, listing = loaded.workflow, loaded.entry, library.listing()
    named = {workflow.id, f"{ROUTINE}{workflow.id.partition('routine-')[2]}"}
    return WorkflowPage(
        id=workflow.id,
        name=workflow.name,
        description=workflow.description,
        version=workflow.version,
        source=loaded.source.label,
        hash=loaded.hash,
        size=entry.size,
        tokens=entry.size // BYTES_PER_TOKEN,
        graph=workflow_graph(workflow),
        items=tuple(workflow_items(workflow)),
        variables=tuple(
            WorkflowVariable(
                name=variable.name,
                type=Choices(variable.values, closed=True).text or variable.type,
                description=variable.description or "",
                required=variable.required,
                default=msgspec.json.encode(variable.default).decode() if variable.has_default else "",
            )
            for variable in workflow.variables
        ),
        contracts=workflow_contracts(workflow),
        uses=entry.uses,
        used_by=tuple(other.id for other in listing.entries if named & set(other.uses)),
        shadowed=tuple(copy.message for copy in listing.shadowed if copy.workflow_id == workflow.id),
        diagnostics=tuple(map(diagnostic_line, loaded.diagnostics)),
        runs=runs,
        users=users,
    )


def workflow_items(workflow: Workflow) -> Iterator[WorkflowItem]:
    """Yield the items of all activities in order, with what the drawing says about each."""

    def within(rows: Iterable[Row], depth: int) -> Iterator[tuple[Row, int]]:
        for row in rows:
            yield row, depth
            yield from within(row.rows, depth + 1)

    cards = {card.id: card for card in drawing_of(workflow).cards}
    for activity in workflow.activities:
        items = {item.id: item for item in walk(activity.items)}
        for row, depth in within(cards[activity.id].rows, 0):
            line = WorkflowItem(activity.id, row.kind, row.id, row.title, depth, row.note, "")
            match items[row.id]:
                case Step() as step:
                    yield replace(
                        line,
                        text="\n\n".join(fragment.text for fragment in step.prompt),
                        contracts=tuple(contract.ref for contract in step.contracts),
                        checks=tuple(check.id for check in step.checks),
                        confirms=step.may_confirm,
                    )
                case Gate() as gate:
                    options = question_options(gate.options)
                    yield replace(line, text=gate.message, options=options)
                case Loop() as loop:
                    yield replace(line, text=loop.description or "")


def workflow_contracts(workflow: Workflow) -> tuple[WorkflowContract, ...]:
    """Return each contract once, with the steps that it applies to."""
    found: dict[str, WorkflowContract] = {}
    for step in (step for activity in workflow.activities for step in activity.steps()):
        for contract in step.contracts:
            known = found.get(contract.ref)
            found[contract.ref] = WorkflowContract(
                ref=contract.ref,
                artifact=contract.artifact,
                required=contract.required or (known is not None and known.required),
                steps=(*(known.steps if known else ()), step.id),
                example=contract.example,
            )
    return tuple(found.values())


def run_graph(workflow: Workflow, story: RunStory) -> RunGraph:
    """Draw the path of a branch onto the workflow that it is pinned to."""
    visits = Counter(step.item for step in story.steps if step.done_at is not None)
    pending = [step.item for step in story.steps if step.done_at is None]
    graph = workflow_graph(workflow)
    return RunGraph(graph, dict(visits), pending[-1] if pending else "", taken_arrows(graph, story))


def taken_arrows(graph: WorkflowGraph, story: RunStory) -> tuple[tuple[str, str], ...]:
    """Return the arrows that a branch went along; where items are not cards, their activities are."""
    cards = {line.item: box.id for box in graph.boxes for line in box.lines if line.item}
    activities = {box.id for box in graph.boxes}
    path = [
        step.activity if step.activity in activities else cards.get(step.item, "") for step in story.steps
    ]
    begins = [] if story.omitted else [START]
    ends = [END] if story.steps and all(step.done_at is not None for step in story.steps) else []
    gone = set(pairwise([*begins, *path, *ends]))
    return tuple((route.start, route.end) for route in graph.routes if (route.start, route.end) in gone)


def workflow_graph(workflow: Workflow) -> WorkflowGraph:
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
