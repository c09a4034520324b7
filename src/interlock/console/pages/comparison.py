"""Two branches, or two runs of a workflow, side by side: the same steps in one row, with what differs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

import msgspec

from interlock.console.pages.session_pages import SessionPage
from interlock.ledger.queries.status import Shown
from interlock.ledger.queries.story import RunStory, StoryStep

Difference = Literal["notes", "artifacts", "decisions", "only_left", "only_right"]


class OnlyHere(Shown, frozen=True):
    """What one side of a step has and the other lacks, by its place among the notes, artifacts, decisions."""

    notes: tuple[int, ...] = ()
    artifacts: tuple[int, ...] = ()
    decisions: tuple[int, ...] = ()


class ComparedStep(Shown, frozen=True):
    """One step on both sides. A step that both sides share, because they forked after it, is `shared`."""

    left: StoryStep | None
    right: StoryStep | None
    shared: bool
    differences: tuple[Difference, ...]
    only_left: OnlyHere = OnlyHere()
    only_right: OnlyHere = OnlyHere()


class BranchChoice(Shown, frozen=True):
    """A branch of the session that could be compared instead."""

    run_id: str
    tip: int
    label: str


class ComparedSide(Shown, frozen=True):
    """What one side came to: the time of agent and people, its gaps and blocked attempts."""

    session_id: str
    ref: str
    run_id: str
    tip: int
    title: str
    workflow_id: str
    status: str
    working: int
    waiting: int
    gaps: int
    blocked: int
    choices: tuple[BranchChoice, ...]


class Comparison(Shown, frozen=True):
    """The whole comparison."""

    left: ComparedSide
    right: ComparedSide
    steps: tuple[ComparedStep, ...]


def compared(left: SessionPage, right: SessionPage) -> Comparison:
    """Align two stories by what was asked, in order."""
    one, other = left.story or NO_STORY, right.story or NO_STORY
    is_same_run = one.run_id == other.run_id
    matcher = SequenceMatcher(
        None, [step.id for step in one.steps], [step.id for step in other.steps], autojunk=False
    )
    rows: list[ComparedStep] = []
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        for mine, theirs in zip_longest(one.steps[start:end], other.steps[other_start:other_end]):
            if mine is not None and theirs is not None and mine.id != theirs.id:
                rows += (compared_step(mine, None, False), compared_step(None, theirs, False))
            else:
                rows.append(compared_step(mine, theirs, is_same_run))
    return Comparison(compared_side(left), compared_side(right), tuple(rows))


NO_STORY = RunStory("", 0, ())


def compared_step(left: StoryStep | None, right: StoryStep | None, is_same_run: bool) -> ComparedStep:
    """Say in what one step differs; nothing is compared that both sides share."""
    if left is None:
        return ComparedStep(None, right, False, ("only_right",))
    if right is None:
        return ComparedStep(left, None, False, ("only_left",))
    if is_same_run and left == right:
        return ComparedStep(left, right, True, ())
    mine, theirs = content_of(left), content_of(right)
    differences = tuple(name for name in mine if mine[name] != theirs[name])
    return ComparedStep(left, right, False, differences, only_in(mine, theirs), only_in(theirs, mine))


def content_of(step: StoryStep) -> dict[Difference, Sequence[Hashable]]:
    """Return what is compared of a step; who decided and when does not matter, nor does a row's revision."""
    handed_in = step.handed_in
    return {
        "notes": handed_in.notes if handed_in else (),
        "artifacts": [msgspec.json.encode(artifact) for artifact in handed_in.artifacts] if handed_in else [],
        "decisions": [(made.gate, made.option, made.note) for made in step.decisions],
    }


def only_in(
    mine: dict[Difference, Sequence[Hashable]], theirs: dict[Difference, Sequence[Hashable]]
) -> OnlyHere:
    """Return the places of what the other side does not have."""
    places = {
        name: tuple(place for place, value in enumerate(values) if value not in theirs[name])
        for name, values in mine.items()
    }
    return OnlyHere(places["notes"], places["artifacts"], places["decisions"])


def compared_side(page: SessionPage) -> ComparedSide:
    """Sum up one side."""
    story = page.story or NO_STORY
    run = next((run for run in page.runs if run.run_id == page.run_id), None)
    titles = {each.run_id: each.title for each in page.runs}
    return ComparedSide(
        session_id=page.status.session_id,
        ref=page.status.ref,
        run_id=page.run_id,
        tip=story.tip,
        title=page.status.title,
        workflow_id=run.workflow_id if run else "",
        status=run.status if run else "no run",
        working=page.timeline.working if page.timeline else 0,
        waiting=page.timeline.waiting if page.timeline else 0,
        gaps=sum(mark.kind == "gap" for step in story.steps for mark in step.marks),
        blocked=sum(len(step.blocked) for step in story.steps),
        choices=tuple(
            BranchChoice(
                run_id=tree.run_id,
                tip=each.node.node,
                label=f"{titles.get(tree.run_id, tree.workflow_id)}: {each.node.label}",
            )
            for tree in page.trees
            for each in tree.nodes
            if each.node.tip
        ),
    )
