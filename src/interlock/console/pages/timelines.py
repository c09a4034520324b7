"""Where time went: a branch in lanes by activity or loop, a session in lanes by run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from interlock.ledger.queries.status import Shown
from interlock.ledger.queries.story import RunStory, StoryStep

WAITS = ("decision", "input")


class TimelineBar(Shown, frozen=True):
    """The time from one node to the next; `waiting` is for a person, the rest is the agent's work."""

    node: int
    id: str
    title: str
    waiting: bool
    start: int
    end: int
    open: bool


class TimelineLane(Shown, frozen=True):
    """The steps of one activity, or of one loop in it."""

    name: str
    kind: Literal["activity", "loop"]
    working: int
    waiting: int
    bars: tuple[TimelineBar, ...]


class TimelineCheck(Shown, frozen=True):
    """The time in which the server ran a check, for the step at `node`."""

    node: int
    id: str
    passed: bool
    outcome: str
    start: int
    end: int


class RunTimeline(Shown, frozen=True):
    """A branch from its first node to its end, or to now where a question waits for its answer."""

    start: int
    end: int
    working: int
    waiting: int
    lanes: tuple[TimelineLane, ...]
    checks: tuple[TimelineCheck, ...]


class SessionMark(Shown, frozen=True):
    """Something that happened to the session as a whole, or the start or end of one of its runs."""

    at: int
    text: str


class SessionLane(Shown, frozen=True):
    """A run of the session, or the session itself, which has no run and no status."""

    run_id: str
    name: str
    status: str
    start: int
    end: int
    marks: tuple[SessionMark, ...] = ()


def run_timeline(story: RunStory, now: int | None) -> RunTimeline:
    """Put the steps of a branch into lanes, in the order in which the lanes were entered.

    `now` is how far an open question has waited; None where nobody waits for its answer any more.
    """
    lanes: dict[tuple[str, str], list[TimelineBar]] = {}
    for step in story.steps:
        bar = TimelineBar(
            node=step.node,
            id=step.id,
            title=step.title,
            waiting=step.kind in WAITS,
            start=step.asked_at,
            end=step_end(step, now),
            open=step.done_at is None,
        )
        lanes.setdefault((step.activity, step.loop), []).append(bar)
    bars = [bar for lane in lanes.values() for bar in lane]
    return RunTimeline(
        start=min((bar.start for bar in bars), default=0),
        end=max((bar.end for bar in bars), default=0),
        working=spent(bars, waiting=False),
        waiting=spent(bars, waiting=True),
        lanes=tuple(
            TimelineLane(
                name=loop or activity,
                kind="loop" if loop else "activity",
                working=spent(lane, waiting=False),
                waiting=spent(lane, waiting=True),
                bars=tuple(lane),
            )
            for (activity, loop), lane in lanes.items()
        ),
        checks=tuple(check for step in story.steps for check in checks_in(step)),
    )


def checks_in(step: StoryStep) -> Iterator[TimelineCheck]:
    """Yield when the server ran checks for a step, attempt by attempt."""
    attempts = (*(attempt.checks for attempt in step.blocked), step.checks)
    for check in (check for checks in attempts for check in checks if check.by == "server"):
        end = check.at + check.duration_ms
        yield TimelineCheck(step.node, check.id, check.passed, check.outcome, check.at, end)


def step_end(step: StoryStep, now: int | None) -> int:
    """Return until when a step lasted; an open one until its last attempt or note, a question until now."""
    if step.done_at is not None:
        return step.done_at
    waits = [now] if now is not None and step.kind in WAITS else []
    return max(step.asked_at, *waits, *(attempt.at for attempt in (*step.blocked, *step.noted)), 0)


def spent(bars: Iterable[TimelineBar], *, waiting: bool) -> int:
    """Add up the milliseconds of work, or of waiting for a person."""
    return sum(bar.end - bar.start for bar in bars if bar.waiting == waiting)
