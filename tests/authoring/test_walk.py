"""A workflow tried out by chosen answers: every choice that is offered can be taken."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.authoring.library import BUNDLED, Library, Loaded
from interlock.authoring.simulate.walk import walk_through
from interlock.core.definition.workflow import Workflow
from interlock.core.run.outcomes import Done, NeedAnswer
from support.harness import compile_cache

LIBRARY = Library([BUNDLED], compile_cache())
IDS = [entry.id for entry in LIBRARY.listing().entries]


@cache
def bundled(workflow_id: str) -> Workflow:
    loaded = LIBRARY.load(workflow_id)
    assert isinstance(loaded, Loaded)
    return loaded.workflow


@given(st.sampled_from(IDS), st.lists(st.integers(1, 24), max_size=12))
def test_a_walk_goes_as_far_as_its_answers_are_choices(workflow_id: str, answers: list[int]) -> None:
    walk = walk_through(bundled(workflow_id), answers)
    assert list(walk.answers) == answers[: len(walk.answers)]
    if len(walk.answers) < len(answers):
        assert not 1 <= answers[len(walk.answers)] <= len(walk.choices)
    again = walk_through(bundled(workflow_id), walk.answers)
    assert [item.chosen for item in again.items] == [item.chosen for item in walk.items]


@given(st.sampled_from(IDS), st.lists(st.integers(1, 3), max_size=6))
def test_each_choice_leads_to_what_it_says(workflow_id: str, answers: list[int]) -> None:
    walk = walk_through(bundled(workflow_id), answers)
    for number, choice in enumerate(walk.choices[:3], 1):
        taken = walk_through(bundled(workflow_id), (*walk.answers, number))
        assert taken.items[-1].reached == choice.outcome


@pytest.mark.parametrize("workflow_id", [name for name in IDS if name.startswith("wr.")])
def test_always_taking_the_first_choice_ends(workflow_id: str) -> None:
    walk = walk_through(bundled(workflow_id), [1] * 200)
    assert isinstance(walk.items[-1].reached.awaited, Done)


def test_the_answers_of_a_gate_are_its_options_with_their_effects() -> None:
    walk = walk_through(bundled("wr.small_task"), [1, 1, 1])
    assert isinstance(walk.items[-1].reached.awaited, NeedAnswer)
    assert [(choice.label, choice.effect) for choice in walk.choices] == [
        ("Accept", "verdict = accepted"),
        ("Rework", "verdict = rework"),
        ("Call it off", "verdict = stopped"),
    ]


def test_rework_goes_round_the_loop_again() -> None:
    walk = walk_through(bundled("wr.small_task"), [1, 1, 1, 2])
    assert [item.chosen for item in walk.items[-2:]] == ["Rework", ""]
    assert walk.items[-1].reached.state.visit.frames[0].iteration == 1
