"""Drawings of workflows: they are complete, nothing overlaps, and they are valid in their format."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.authoring.graph.layout import Box, Layout, Placed, layout
from interlock.authoring.graph.mermaid import mermaid_of
from interlock.authoring.graph.model import drawing_of
from interlock.authoring.graph.plain import drawing_text
from interlock.authoring.graph.svg import svg_of
from interlock.authoring.library import BUNDLED, Library, Loaded
from interlock.core.definition.workflow import Workflow
from support import paths
from support.authored import head, write
from support.cli_process import Ran, interlock
from support.harness import compile_cache

GOLDEN = paths.GOLDEN / "authoring"
BUNDLE = Library([BUNDLED], compile_cache())
IDS = [entry.id for entry in BUNDLE.listing().entries]

HEAD = """
id: trip
version: 1.0.0
title: A trip
initialActivity: pack
variables: [{ name: heavy }, { name: ready }, { name: bags }, { name: far }]
"""
PACK = """
id: pack
name: Pack
steps:
  - { id: choose, name: Choose <things> & "stuff", description: D }
  - id: all-in
    type: gate
    name: All in?
    message: M
    condition: { variable: heavy, value: true }
    options:
      - { id: "yes", effect: { setVariable: { ready: true } } }
      - { id: again, effect: { transitionTo: pack } }
      - { id: stay, effect: { transitionTo: __terminal__ } }
loops:
  - id: each
    name: Each bag
    type: forEach
    over: bags
    steps: [{ id: weigh, name: Weigh, description: W }]
transitions:
  - { to: fly, condition: { variable: far, value: true } }
  - { to: drive, isDefault: true }
"""
FLY = """
id: fly
name: Fly
steps: [{ id: board, name: Board, description: B }]
transitions: [{ to: pack, isDefault: true }]
"""
DRIVE = "id: drive\nname: Drive\nsteps: [{ id: start, name: Start, description: S }]\n"


@pytest.fixture
def trip(tmp_path: Path) -> Workflow:
    files = {"workflow.yaml": HEAD, "activities/01-pack.yaml": PACK, "activities/02-fly.yaml": FLY}
    return workflow(write(tmp_path / "trip", {**files, "activities/03-drive.yaml": DRIVE}), "trip")


def workflow(folder: Path, name: str) -> Workflow:
    from interlock.authoring.library import Source

    found = Library([Source("configured", folder)]).load(name)
    assert isinstance(found, Loaded), found
    return found.workflow


def bundled(name: str) -> Workflow:
    found = BUNDLE.load(name)
    assert isinstance(found, Loaded)
    return found.workflow


@pytest.mark.parametrize("form", ["txt", "mermaid"])
def test_a_workflow_is_drawn_as_it_always_was(trip: Workflow, form: str) -> None:
    drawing = drawing_of(trip)
    text = drawing_text(drawing, 80) if form == "txt" else mermaid_of(drawing)
    assert text == (GOLDEN / f"trip.{form}").read_text("utf-8")


def test_steps_that_exclude_each_other_are_branches(tmp_path: Path) -> None:
    """The two options of a gate lead to two steps, not to one after the other."""
    options = [{"id": "go", "effect": {"setVariable": {"way": "on"}}}]
    options += [{"id": "stop", "effect": {"setVariable": {"way": "off"}}}]
    items = [
        {"id": "look", "title": "Look", "prompt": "Look."},
        {"id": "ask", "type": "gate", "name": "Ask", "message": "Go on?", "options": options},
        {"id": "undo", "title": "Undo", "prompt": "Undo.", "runCondition": {"var": "way", "equals": "off"}},
        {"id": "keep", "title": "Keep", "prompt": "Keep.", "runCondition": {"var": "way", "equals": "on"}},
    ]
    drawn = drawing_of(workflow(write(tmp_path, {"w.yaml": json.dumps(head(*items))}), "t.w"))
    flow = [(arrow.start, arrow.end, arrow.label) for arrow in drawn.cards[0].flow]
    assert flow == [
        ("(start)", "look", ""),
        ("look", "ask", ""),
        ("ask", "undo", "stop"),
        ("ask", "keep", "go"),
        ("undo", "(end)", ""),
        ("keep", "(end)", ""),
    ]
    assert '    n3 -->|"stop"| n4\n    n3 -->|"go"| n5\n' in mermaid_of(drawn)
    assert "→ undo  if stop\n  → keep  if go\n" in drawing_text(drawn, 80)
    assert {"stop", "go"} <= set(texts(svg_of(drawn)))


@pytest.mark.parametrize("name", IDS)
def test_text_fits_the_terminal(name: str) -> None:
    assert max(map(len, drawing_text(drawing_of(bundled(name)), 80).splitlines())) <= 80


@pytest.mark.parametrize("name", IDS)
def test_every_item_is_in_every_picture(name: str) -> None:
    drawn = drawing_of(bundled(name))
    text, chart = drawing_text(drawn, 200), mermaid_of(drawn)
    for activity in bundled(name).activities:
        for item in (*activity.steps(), *activity.gates()):
            assert f" {item.id}" in text
            assert (item.title if hasattr(item, "title") else item.name)[:40].replace('"', "#quot;") in chart


def texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return ["".join(item.itertext()) for item in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("name", IDS)
def test_svg_is_well_formed_and_names_every_step(name: str) -> None:
    shown = texts(svg_of(drawing_of(bundled(name))))
    for activity in bundled(name).activities:
        for step in activity.steps():
            assert any(step.title.startswith(item.rstrip("…")) for item in shown), step.title


def test_special_characters_are_escaped(trip: Workflow) -> None:
    assert 'Choose <things> & "stuff"' in texts(svg_of(drawing_of(trip)))


def test_mermaid_nodes_are_defined_before_they_are_joined(trip: Workflow) -> None:
    chart = mermaid_of(drawing_of(trip))
    used = set(re.findall(r"^\s*(\w+) -[-.]+>(?:\|.*\|)? (\w+)$", chart, re.MULTILINE))
    defined = set(re.findall(r"^\s*(?:subgraph )?(\w+)[\[({]", chart, re.MULTILINE))
    assert {name for pair in used for name in pair} <= defined


def test_arrows_that_close_a_circle_lead_up(trip: Workflow) -> None:
    drawn = drawing_of(trip)
    boxes = [Box(name, 80, 40) for name in ("(start)", "pack", "fly", "drive", "(end)")]
    made = layout(boxes, {(arrow.start, arrow.end): 0.0 for arrow in drawn.arrows})
    assert {(route.start, route.end) for route in made.routes if route.back} == {
        ("pack", "pack"),
        ("fly", "pack"),
    }


names = st.integers(0, 9).map(str)
graphs = st.tuples(
    st.lists(st.tuples(names, names), max_size=25), st.lists(st.integers(20, 300), min_size=10, max_size=10)
)


def arranged(graph: tuple[list[tuple[str, str]], list[int]]) -> Layout:
    arrows, widths = graph
    boxes = [Box(str(number), float(width), 20.0 + width % 50) for number, width in enumerate(widths)]
    return layout(boxes, {pair: float(len(pair[0]) * 40) for pair in arrows})


def overlap(one: Placed, other: Placed) -> bool:
    return (
        one.x < other.x + other.box.width
        and other.x < one.x + one.box.width
        and one.y < other.y + other.box.height
        and other.y < one.y + one.box.height
    )


@given(graphs)
def test_no_two_boxes_overlap(graph: tuple[list[tuple[str, str]], list[int]]) -> None:
    made = arranged(graph)
    assert not any(overlap(one, other) for one, other in combinations(made.boxes.values(), 2))
    assert all(
        item.x >= -0.01 and item.x + item.box.width <= made.width + 0.01 for item in made.boxes.values()
    )


@given(graphs)
def test_every_arrow_begins_and_ends_at_its_boxes(graph: tuple[list[tuple[str, str]], list[int]]) -> None:
    made = arranged(graph)
    assert {(route.start, route.end) for route in made.routes} == set(graph[0])
    for route in made.routes:
        for name, (x, y) in ((route.start, route.points[0]), (route.end, route.points[-1])):
            placed = made.boxes[name]
            assert placed.x - 0.01 <= x <= placed.x + placed.box.width + 0.01
            assert placed.y - 0.01 <= y <= placed.y + placed.box.height + 0.01


@given(graphs)
def test_an_arrow_that_leads_down_leads_down(graph: tuple[list[tuple[str, str]], list[int]]) -> None:
    for route in arranged(graph).routes:
        heights = [y for _, y in route.points]
        if not route.back:
            assert heights == sorted(heights)


def run(folder: Path, *arguments: str) -> Ran:
    return interlock(folder / "data", "graph", *arguments)


@pytest.mark.parametrize(
    ("form", "begins"), [("text", "Small task"), ("mermaid", "flowchart TD"), ("svg", "<svg xmlns=")]
)
def test_the_command_prints_the_picture(tmp_path: Path, form: str, begins: str) -> None:
    ran = run(tmp_path, "wr.small_task", "--format", form)
    assert ran.code == 0
    assert ran.out.startswith(begins)


def test_an_unknown_workflow_is_not_found(tmp_path: Path) -> None:
    ran = run(tmp_path, "wr.smal_task")
    assert (ran.code, ran.out) == (3, "")
    assert "Did you mean 'wr.small_task'?" in ran.err
