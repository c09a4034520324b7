"""The bounded search: each known class of hole in the smallest workflow that has it, and a wide search."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from support.proof import FULL, SEED, line, times
from tools.search.adapter import Setting
from tools.search.compiled import compiled
from tools.search.counterexample import minimised, story
from tools.search.explore import MAIN, Figures, all_workflows, explore, search, search_in_parallel
from tools.search.workflows import workflow_of

MOST = 2500
SECONDS, STATES, WHOLE = (1200, 250, float("inf")) if FULL else (0, 100, 0)
LEAST = times(300_000)  # outside the proof the search ends by this alone, on a machine of any speed

FORM = "an agent answers its own form"
DOTTED = "a key with a dot changes what was shown"
PROSE = "a step whose text forbids it changes what was decided"
SKIPPED = "a step that is skipped changes what was shown"
BEFORE = "a step before the gate changes what was shown"
ROUNDS = "one answer serves all rounds"
WORDS = "a question is changed while it is open"
TALKED = "a question is talked away"
INNER = "an inner loop releases what was shown"
LISTS = "a loop's list changes what was shown"
FIRST = "a later gate is answered first and leads away"
OVER = "a jump over an activity"
LOOP = "a loop is left while its next round is due"
TYPES = "text passes for a boolean"
UNSEEN = "a question takes its default and was never shown"
ENDED = "a run changes after its end"
ADVISORY = "a run is complete although a gate was passed"
SAME = "one answer serves all rounds that a call claims"
GAP = "an agent closes the gap of a decision without the user"
APPROVERS = "a form decides in the place of approvers, and no gap says so"
EDITED = "a question shows a check of files that were edited since"

HOLES: list[tuple[str, str, str, str, Setting]] = [
    *((FORM, "gate", "one", "channel", setting) for setting in MAIN),
    *((DOTTED, "dotted+deploy", "one", "dotted", setting) for setting in MAIN),
    *((PROSE, "gate+prose", "one", "bent", setting) for setting in MAIN),
    *((SKIPPED, "gate+optional-setter", "one", "bent", setting) for setting in MAIN),
    (BEFORE, "setter+gate", "one", "bent", Setting("session")),
    (BEFORE, "setter+gate", "one", "bent", Setting("gated")),
    (BEFORE, "setter+gate", "one", "bent", Setting("navigation", "auto")),
    (ROUNDS, "each", "one", "unanswered", Setting("gated")),
    (SAME, "each-approval", "one", "not-given", Setting("session")),
    (SAME, "each-approval", "one", "not-given", Setting("gated", "client")),
    (WORDS, "gate", "one", "digest", Setting("session")),
    (WORDS, "gate", "one", "digest", Setting("navigation")),
    (WORDS, "gate", "child", "digest", Setting("execution")),
    (TALKED, "conditional", "one", "talked-away", Setting("session")),
    (TALKED, "conditional", "one", "talked-away", Setting("gated")),
    (INNER, "shadowing", "one", "bent", Setting("session")),
    (LISTS, "listing+each-plain", "one", "bent", Setting("session")),
    (LISTS, "listing+each-plain", "one", "bent", Setting("gated")),
    (LISTS, "listing+each-plain", "one", "bent", Setting("navigation")),
    (FIRST, "gate+away", "one", "unanswered", Setting("session")),
    (FIRST, "gate+away", "one", "unanswered", Setting("gated")),
    (FIRST, "step+gate+away", "one", "unanswered", Setting("navigation", "auto")),
    (OVER, "each+step", "three", "jumped", Setting("session")),
    (OVER, "confirm+step", "three", "jumped", Setting("gated")),
    (LOOP, "while-after", "one", "loop-left", Setting("session")),
    (LOOP, "while", "one", "loop-left", Setting("gated")),
    (TYPES, "conditional", "one", "unanswered", Setting("session")),
    (TYPES, "conditional", "one", "unanswered", Setting("gated")),
    (UNSEEN, "step+waiting", "one", "channel", Setting("session", "auto")),
    (ENDED, "each-plain", "one", "after-end", Setting("session")),
    (ADVISORY, "gate", "one", "complete", Setting("session", "user", "advisory")),
    (APPROVERS, "approvers", "one", "undisclosed", Setting("gated", "client", "strict", "never-stop")),
    (EDITED, "each-reporting", "one", "stale", Setting("session")),
    (GAP, "gate", "one", "gap-closed", Setting("execution", "user", "strict", "never-stop")),
]


CASES = [pytest.param(*hole, id=f"{hole[0]} [{hole[4].surface}]") for hole in HOLES]


@pytest.mark.slow
@pytest.mark.parametrize(("hole", "kinds", "shape", "rule", "setting"), CASES)
def test_a_known_hole_is_closed(hole: str, kinds: str, shape: str, rule: str, setting: Setting) -> None:
    figures = Figures()
    explore(workflow_of(kinds.split("+"), shape), setting, figures, most=MOST, rule=rule)
    broken = [story(minimised(found)) for found in figures.first.values() if found.violation.rule == rule]
    assert not broken, f"{hole}\n{broken[0]}"


def test_a_short_search_finds_nothing() -> None:
    figures = search(islice(all_workflows(1), 2), seconds=float("inf"), most=60)
    assert not figures.violations, "\n".join(figures.lines())


@pytest.mark.slow
@pytest.mark.parametrize("kinds", ["optional-gate+approval", "away+approval", "away+risky-approval"])
def test_a_refused_call_puts_no_question_of_a_step_where_the_run_is_not(kinds: str) -> None:
    figures = search(iter([workflow_of(kinds.split("+"))]), seconds=float("inf"), most=60)
    assert not figures.violations, "\n\n".join(story(minimised(found)) for found in figures.first.values())


@pytest.mark.slow
@pytest.mark.proof
def test_a_long_search_finds_nothing() -> None:
    figures = search_in_parallel(SEED, SECONDS, processes=2, most=STATES, least=LEAST, whole=WHOLE)
    for text in figures.lines():
        print(f"\nproof: {text}")
    print(line("search", processes=2, seconds=SECONDS))
    stories = [story(minimised(found)) for found in figures.first.values()]
    assert not figures.violations, "\n\n".join(stories)


def test_the_search_is_the_same_for_the_same_seed() -> None:
    first, second = (search(islice(all_workflows(7), 2), seconds=float("inf"), most=20) for _ in range(2))
    assert (first.states, first.commands, first.violations) == (
        second.states,
        second.commands,
        second.violations,
    )


def test_a_story_is_as_short_as_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine runs a workflow whose gate is optional, and the oracle reads one that requires it."""
    lenient = compiled(workflow_of(["optional-gate"]))
    monkeypatch.setattr("tools.search.alphabet.compiled", lambda data: lenient)
    figures = Figures()
    explore(workflow_of(["conditional"]), Setting("session"), figures, most=MOST)
    found = figures.first["unanswered", "session"]
    longer = replace(found, moves=(found.moves[0], *found.moves))
    assert [len(it.moves) for it in (longer, minimised(longer))] == [4, 3]
    assert "VIOLATION unanswered: g1 was passed by" in story(minimised(longer))
