"""Changed logs: every kind of change is made, and each log differs from the honest one."""

from __future__ import annotations

from collections import Counter

from support.proof import line
from tools.search.adapter import Setting
from tools.search.honest import walk
from tools.search.log_mutations import Log, mutations
from tools.search.oracle import Oracle
from tools.search.seen import Seen
from tools.search.workflows import workflow_of

DATA = workflow_of(["setter", "gate"])
HONEST = walk(DATA, Setting("execution"))


def test_every_kind_of_change_is_made() -> None:
    changed = list(mutations(HONEST.log))
    assert {mutation.kind for mutation in changed} == {
        "dropped", "doubled", "reordered", "re-keyed", "re-worded",
    }  # fmt: skip
    assert all(mutation.log != HONEST.log for mutation in changed)


def test_the_second_oracle_sees_a_dropped_answer() -> None:
    dropped = next(it for it in mutations(HONEST.log) if (it.kind, it.what) == ("dropped", "gate_resolved"))
    assert "unanswered" in rules_broken(dropped.log)


def test_the_second_oracle_sees_other_words() -> None:
    reworded = [it for it in mutations(HONEST.log) if it.what == "shown of gate_resolved"]
    assert ["digest" in rules_broken(mutation.log) for mutation in reworded] == [True]


def test_the_second_oracle_names_what_it_sees() -> None:
    """Most changes are for a verifier to see; the oracle sees those that concern a question."""
    seen = Counter(it.kind for it in mutations(HONEST.log) if rules_broken(it.log))
    made = Counter(it.kind for it in mutations(HONEST.log))
    print(
        line(
            "changed logs seen by the second oracle",
            **{kind: f"{seen[kind]} of {made[kind]}" for kind in made},
        )
    )
    assert seen


def rules_broken(log: Log) -> set[str]:
    """Return the rules that a log breaks; one that cannot be read breaks them all."""
    oracle, seen, broken = Oracle(DATA), Seen(), set[str]()
    for batch in log:
        try:
            seen, violations = oracle.read(seen, batch)
        except (KeyError, IndexError, AssertionError):
            return {"unreadable"}
        broken |= {violation.rule for violation in violations}
    return broken
