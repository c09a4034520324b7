"""Two branches, or two runs of a workflow, side by side: the same steps in one row, with what differs."""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

from interlock.ledger.queries.status import Shown
from interlock.ledger.queries.story import RunStory, StoryStep

Difference = Literal["notes", "artifacts", "decisions", "only_left", "only_right"]


class ComparedStep(Shown, frozen=True):
    """One step on both sides. A step that both sides share, because they forked after it, is `shared`."""

    left: StoryStep | None
    right: StoryStep | None
    shared: bool
    differences: tuple[Difference, ...]


class ComparedSide(Shown, frozen=True):
    """What one side came to: its time from first to last, its gaps and blocked attempts."""

    run_id: str
    tip: int
    title: str
    milliseconds: int
    gaps: int
    blocked: int


class Comparison(Shown, frozen=True):
    """The whole comparison."""

    left: ComparedSide
    right: ComparedSide
    steps: tuple[ComparedStep, ...]


def compared(left: RunStory, right: RunStory, left_title: str, right_title: str) -> Comparison:
    """Align two stories by what was asked, in order."""
    is_same_run = left.run_id == right.run_id
    matcher = SequenceMatcher(
        None, [step.id for step in left.steps], [step.id for step in right.steps], autojunk=False
    )
    rows: list[ComparedStep] = []
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        pairs = zip_longest(left.steps[start:end], right.steps[other_start:other_end])
        for one, other in pairs:
            if one is not None and other is not None and one.id != other.id:
                rows += (compared_step(one, None, False), compared_step(None, other, False))
            else:
                rows.append(compared_step(one, other, is_same_run))
    return Comparison(compared_side(left, left_title), compared_side(right, right_title), tuple(rows))


def compared_step(left: StoryStep | None, right: StoryStep | None, is_same_run: bool) -> ComparedStep:
    """Say in what one step differs; nothing is compared that both sides share."""
    if left is None:
        return ComparedStep(None, right, False, ("only_right",))
    if right is None:
        return ComparedStep(left, None, False, ("only_left",))
    if is_same_run and left == right:
        return ComparedStep(left, right, True, ())
    one, other = left.handed_in, right.handed_in
    answers = [[(made.gate, made.option, made.note) for made in step.decisions] for step in (left, right)]
    differences: list[Difference] = []
    if (one.notes if one else ()) != (other.notes if other else ()):
        differences.append("notes")
    if (one.artifacts if one else ()) != (other.artifacts if other else ()):
        differences.append("artifacts")
    if answers[0] != answers[1]:
        differences.append("decisions")
    return ComparedStep(left, right, False, tuple(differences))


def compared_side(story: RunStory, title: str) -> ComparedSide:
    """Sum up one side."""
    times = [at for step in story.steps for at in (step.asked_at, step.done_at) if at is not None]
    return ComparedSide(
        run_id=story.run_id,
        tip=story.tip,
        title=title,
        milliseconds=max(times) - min(times) if times else 0,
        gaps=sum(mark.kind == "gap" for step in story.steps for mark in step.marks),
        blocked=sum(len(step.blocked) for step in story.steps),
    )
