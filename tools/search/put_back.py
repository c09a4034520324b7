"""Put each exception that the engine once had back, and see that the search finds it.

    python -m tools.search.put_back

A change is made in a copy of the sources and searched in the smallest workflow that shows it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.search.adapter import Setting
from tools.search.explore import Figures, explore
from tools.search.unguarded import unguard
from tools.search.workflows import workflow_of

ROOT = Path(__file__).parent.parent.parent
CORE = Path("src/interlock/core")
STATES = 2500
SECONDS = 600


@dataclass(frozen=True)
class PutBack:
    """A change of one text in one module, where it shows, and the rule that it breaks.

    `unseen` says why the guard cannot see it.
    """

    name: str
    module: str
    text: str
    instead: str
    kinds: str
    setting: Setting
    rule: str
    shape: str = "one"
    unseen: str = ""

    def source(self) -> str:
        """Return the module with the change."""
        source = (ROOT / CORE / self.module).read_text("utf-8")
        assert source.count(self.text) == 1, f"{self.module} has changed: adapt '{self.name}'"
        return source.replace(self.text, self.instead)


EXCEPTIONS = (
    PutBack(
        "an answer counts by its bare id",
        "run/state.py",
        "return instance_key(state.visit.rounds, item_id)",
        "return item_id",
        "each",
        Setting("gated"),
        "unanswered",
    ),
    PutBack(
        "a gate ahead is opened where the run is",
        "engine/checkpoints.py",
        "    walk = Walk(draft, command, found)\n",
        "    walk = Walk(draft, command, found)\n"
        "    key = instance(draft.state, found.gate.id)\n"
        "    return NeedAnswer(key, found.gate, draft.now, found.confirms)\n",
        "gate+away",
        Setting("session"),
        "unanswered",
    ),
    PutBack(
        "a loop that asks is claimed once",
        "engine/claims.py",
        "if not (frame.asked or loop.steered or any(step.requires_output for step in steps)):",
        "if not loop.steered:",
        "while-after",
        Setting("session"),
        "loop-left",
    ),
    PutBack(
        "a step sets what its text names",
        "variables/writes.py",
        "if not step.sets(name) or ",
        "if not (step.sets(name) or name in str(step.prompt)) or ",
        "gate+prose",
        Setting("execution"),
        "bent",
    ),
    PutBack(
        "a key with a dot is written",
        "variables/typed_values.py",
        'if "." in name:\n            nested',
        'if "?" in name:\n            nested',
        "dotted+deploy",
        Setting("execution"),
        "dotted",
    ),
    PutBack(
        "a loop releases what was shown",
        "engine/evolve.py",
        "if not (path.startswith(inside) and owner.key.startswith(rounds))",
        "if not (path.startswith(inside) or owner.key.startswith(rounds))",
        "listing+each-plain",
        Setting("session"),
        "bent",
    ),
    PutBack(
        "a write releases what was shown",
        "engine/evolve.py",
        "    ownership = replace(state.ownership, decided=decided)\n",
        "    owners = state.ownership.shown.items()\n"
        "    shown = {path: owner for path, owner in owners if not {*owner.roots} & {*delta}}\n"
        "    ownership = replace(state.ownership, decided=decided, shown=shown)\n",
        "gate+yes-or-nothing",
        Setting("execution"),
        "bent",
    ),
    PutBack(
        "a jump looks at top-level gates only",
        "engine/paths/jumps.py",
        "    for op in plan.program(name).ops.values():\n        answered",
        "    for op in plan.program(name).ops.values():\n"
        "        if not isinstance(op, AskGate) or op.gate not in activity.items:\n"
        "            continue\n"
        "        answered",
        "each+step",
        Setting("session"),
        "jumped",
        "three",
    ),
    PutBack(
        "a transitionTo that nobody chose is an exit",
        "engine/paths/jumps.py",
        "    if goal in (*state.route.path, state.activity):\n        return None\n",
        "    held = [link.to for link in _links(plan, state, state.activity or '', set()) if link.gate]\n"
        "    if goal in (*state.route.path, state.activity, *held):\n        return None\n",
        "away+gate",
        Setting("session"),
        "jumped",
        "two",
    ),
    PutBack(
        "no path leads to what is skipped",
        "engine/paths/jumps.py",
        "for skipped in (skipped_now(plan, state), frozenset[str]()):",
        "for skipped in (skipped_now(plan, state),):",
        "gate+step+step",
        Setting("session"),
        "jumped",
        "mode",
    ),
    PutBack(
        "types are not looked at",
        "variables/typed_values.py",
        "typed := converted(plan.types.get(name), value)",
        "typed := converted(None, value)",
        "step+conditional",
        Setting("execution"),
        "typed",
    ),
    PutBack(
        "a decision is used whatever it was for",
        "engine/requirements.py",
        "decision, asked = submission.decisions.get(question.digest), ",
        "decision, asked = next(iter(submission.decisions.values()), None), ",
        "approval+approval",
        Setting("session"),
        "not-given",
    ),
    PutBack(
        "one answer serves every round that a call claims",
        "engine/requirements.py",
        "return Question(name, title, text, need.options, roots, instance(state, name))",
        "return Question(name, title, text, need.options, roots)",
        "each-approval",
        Setting("session"),
        "not-given",
    ),
    PutBack(
        "an answer that waits serves a later round that asks in the same words",
        "engine/draft.py",
        "is_asked = opened is not None and opened.key == need.key",
        "is_asked = True",
        "while",
        Setting("gated", also="navigation"),
        "not-given",
    ),
    PutBack(
        "an answer need not fit the type of its key",
        "engine/requirements.py",
        "if instead:\n            decision = None",
        "if instead and not instead:\n            decision = None",
        "count",
        Setting("execution"),
        "effect",
    ),
    PutBack(
        "a step's question does not own what its step's condition reads",
        "variables/roots.py",
        "paths = (*variables_in(need.question), *variables_of(step.condition))",
        "paths = tuple(variables_in(need.question))",
        "risky-approval",
        Setting("session"),
        "talked-away",
    ),
    PutBack(
        "a default is passed on to a child",
        "variables/inheritance.py",
        "    names = [name for name in trigger.pass_context if name in known or name in owned]\n"
        "    passed = {name: state.variables.get(name) for name in names}\n",
        "    passed = {**plan.defaults, **state.variables}\n",
        "while-plain",
        Setting("session"),
        "passed",
        "child",
    ),
    PutBack(
        "a decline is forgotten",
        "engine/evolve.py",
        "return _declined(state, event)",
        "return state",
        "gate",
        Setting("execution", "auto"),
        "declined",
    ),
    PutBack(
        "a gate that a false condition let pass is not judged again",
        "engine/settle.py",
        "    for key in state.visit.passed:\n",
        "    for key in ():\n",
        "step+conditional+step",
        Setting("execution"),
        "unanswered",
    ),
    PutBack(
        "any channel counts",
        "engine/decisions.py",
        "return not is_too_weak and is_at_least(decision.channel, terms.weakest)",
        "return not is_too_weak",
        "gate",
        Setting("gated"),
        "channel",
    ),
    PutBack(
        "an agent sets what only answers set",
        "variables/writes.py",
        "return {*owners(state), *state.ownership.inherited, *plan.decided_only, *rounds}",
        "return {*owners(state), *state.ownership.inherited, *rounds}",
        "gate+deploy",
        Setting("session"),
        "decided",
    ),
    PutBack(
        "an agent begins a run with what only answers set",
        "variables/writes.py",
        "held = (barred(plan, state) - {*again}) | {*due}",
        "held = (barred(plan, state) - plan.decided_only.keys() - {*again}) | {*due}",
        "deploy+gate",
        Setting("execution"),
        "decided",
    ),
    PutBack(
        "an agent sets what a loop sets for each round",
        "variables/writes.py",
        "rounds = rounds_of(plan, state).keys() - lacking",
        "rounds = frozenset[str]()",
        "each-plain",
        Setting("execution"),
        "round",
    ),
    PutBack(
        "a check's result serves another step, after an edit",
        "engine/requirements.py",
        "    ran, unchecked = checks_of(plan, step, key, scope, submission.checked)\n",
        "    ran, unchecked = checks_of(plan, step, key, scope, submission.checked)\n"
        "    unchecked = () if state.checks else unchecked\n",
        "checked+checked",
        Setting("execution"),
        "unchecked",
    ),
    PutBack(
        "a check's result is shown after an edit",
        "engine/run_checks.py",
        "if name in fresh or last is None or (event.key, last.definition) in known:",
        "if name in fresh or last is not None or (event.key, last.definition) in known:",
        "each-reporting",
        Setting("execution"),
        "stale",
        unseen="the core does not read files",
    ),
    PutBack(
        "an approval by who started the run counts",
        "run/polls.py",
        "if excluded and excluded in (approver.name, holder.name):",
        "if excluded is None:",
        "approvers",
        Setting("session"),
        "approver",
    ),
    PutBack(
        "a stand-in of who started the run counts",
        "run/polls.py",
        "if excluded and excluded in (approver.name, holder.name):",
        "if excluded and excluded == approver.name:",
        "approvers",
        Setting("execution"),
        "approver",
    ),
    PutBack(
        "one person counts twice",
        "run/polls.py",
        "others = (each for each in self.approvals if approval.seat != each.seat and approval.by != each.by)",
        "others = self.approvals",
        "approvers",
        Setting("session"),
        "quorum",
    ),
    PutBack(
        "a gate with approvers is anybody's",
        "engine/decisions.py",
        'return decision.channel == "approvers"',
        "return True",
        "approvers",
        Setting("gated", "agent"),
        "channel",
    ),
)


@dataclass(frozen=True)
class Probed:
    """What a search for one exception came to: how often its rule was broken, and after how many states."""

    broken: int
    states: int

    def __str__(self) -> str:
        return f"{self.states} states" if self.broken else "no"


def probe(case: PutBack, *, guarded: bool) -> Probed:
    """Search the workflow of a case with the engine as it is imported, until its rule is broken."""
    if not guarded:
        unguard()
    figures = Figures()
    data = workflow_of(case.kinds.split("+"), case.shape)
    explore(data, case.setting, figures, most=STATES, rule=case.rule)
    return Probed(figures.violations[case.rule], figures.states)


def put_back(case: PutBack, *, guarded: bool) -> Probed:
    """Search with the exception put back, with or without the guard."""
    with TemporaryDirectory() as folder:
        copied = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copied, ignore=shutil.ignore_patterns("__pycache__"))
        (copied.parent / CORE / case.module).write_text(case.source(), "utf-8")
        environment = {**os.environ, "PYTHONPATH": f"{copied}{os.pathsep}{ROOT}"}
        command = [sys.executable, "-m", "tools.search.put_back", "--probe", case.name]
        command += ["--guarded"] if guarded else []
        ran = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    assert ran.returncode == 0, ran.stderr
    return Probed(*map(int, ran.stdout.split()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe")
    parser.add_argument("--guarded", action="store_true")
    options = parser.parse_args()
    if options.probe:
        case = next(case for case in EXCEPTIONS if case.name == options.probe)
        probed = probe(case, guarded=options.guarded)
        print(probed.broken, probed.states)
        return
    found, held, wrong = 0, 0, 0
    print(f"{'guard off: found after':24}{'guard on: held':16}{'rule':14}exception")
    for case in EXCEPTIONS:
        off, on = put_back(case, guarded=False), put_back(case, guarded=True)
        found, held = found + bool(off.broken), held + (not on.broken)
        wrong += not off.broken or bool(on.broken) is not bool(case.unseen)
        is_held = case.unseen or ("no" if on.broken else "yes")
        print(f"{off!s:24}{is_held:16}{case.rule:14}{case.name}", flush=True)
    print(f"put back: {len(EXCEPTIONS)} exceptions, found {found}, held by the guard {held}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
