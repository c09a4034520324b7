"""The second oracle: says from a workflow's plain data and a run's events whether a question was passed by.

It shares no code with the core, and knows neither its program nor its state. It is simple on purpose.

A *question* is a gate, the confirmation of a step, or what a step asks only the user for. A *body* is the
list of items of an activity or of a loop. A run's path is a sequence of passes through bodies: an activity's
body once a visit, a loop's once a round. **A gate instance on the path** is a question that stands directly
in a body, in one pass through that body: (visit, rounds of all loops around it, question). It is due when
the pass ends: when the activity is left, the next round begins, or the loop is left; what a step asks, when
the step is completed. An optional gate is never due, a conditional one if its condition holds when the pass
ends. An answered option with `transitionTo` waives what stands after its gate, and nothing before it.

The path is one that the workflow declares: no loop is left while its next round is due; an activity is left
by an open exit, by an answered option, or back to where the run has been. Any other target passes by whatever
is asked in the activities on declared paths to it.

A question is shown whole, with all that it names (what was sent as null is not known, and shown so); in
never-stop mode what it lacks is a gap that names it.

An instance that is due has an answer by a channel that the terms accept, given in its own pass, to the digest
that was last shown for it. From the answer on no agent changes what the question showed (until it is asked
anew) or sets, but by completing a step declared to set it and does not stand before the gate in the same
pass; and no agent talks a question away by changing its condition after it was shown. A question that is
asked again has no answer.

A step with a check is done only after the check has passed for that very instance, on the files as they are
now; a question that shows a check is put and answered with its result on these files. Only the server writes
results. A gate with approvers is decided by two different people of its list who chose the same option. A
person and a seat have one answer, the newest; who started the run has none, nor a stand-in of theirs. Other
words ask everybody again.

What options of required gates set and nobody else supplies is never the agent's, from the start of the run
on; nor are the names that a loop sets for each round, while the run is in it.

Under strict enforcement in guided and stop mode each breach is a violation at once; in never-stop and under
advisory enforcement, if the run ends `complete` all the same, or no gap names what was passed by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tools.search.declared import decided_only, open_exits, passed_by
from tools.search.seen import Instance, Owner, Seen, Showing
from tools.search.workflows import (
    DEFAULTS,
    ENOUGH,
    SHOWN_CHECK,
    STARTER,
    TYPES,
    LoopData,
    QuestionData,
    Test,
    WorkflowData,
    placed_steps,
    questions,
)

Event: TypeAlias = Mapping[str, Any]

NEVER_STOP = "full_auto_never_stop"
USER = frozenset({"console", "cli", "inbox", "link", "approvers"})
ASKED = USER | {"elicitation"}
CHANNELS: Mapping[str, frozenset[str]] = {
    "user": USER,
    "client": ASKED,
    "auto": ASKED | {"agent"},
    "agent": ASKED | {"agent"},
}
STRENGTH = {"server": 3, "agent": 0, "elicitation": 1, **dict.fromkeys(USER, 2)}  # a default still counts
KINDS: Mapping[str, type | tuple[type, ...]] = {
    "boolean": bool,
    "number": (int, float),
    "string": str,
    "array": (list, tuple),
    "object": dict,
}
HOLDS = (None, "revise", "reject")  # answers that do not let the run go on, and none
REPORTED = ("confirmation", "agent")  # a bare acknowledgement is the agent's answer, where that counts
AGENTS = ("initial", "agent_delta", "child", "reask")
AFTER_THE_END = ("gap_resolved", "validation_performed")


@dataclass(frozen=True)
class Violation:
    rule: str
    text: str


def root_of(path: str) -> str:
    return path.partition(".")[0]


def written(key: Instance) -> str:
    """Return an instance as events name it."""
    rounds = "/".join(f"{loop}@{number}" for loop, number in key[0])
    return f"{rounds}::{key[1]}" if rounds else key[1]


class Oracle:
    """Reads the events of one workflow's runs."""

    def __init__(self, data: WorkflowData) -> None:
        self.data = data
        self.questions = {question.id: question for question in questions(data)}
        self.steps = {placed.step.id: placed for placed in placed_steps(data)}
        self.judged = Counter[str]()  # how often each rule was applied
        self.loops = {item.id: item for item in data.items() if isinstance(item, LoopData)}
        self.decided_only = decided_only(data)

    def read(self, seen: Seen, events: Sequence[Event], files: str = "") -> tuple[Seen, list[Violation]]:
        """Learn the events of one command, and return what is wrong with them.

        `files` is the digest of the project's files while it was decided.
        """
        reading = _Reading(self, seen, events, files)
        for index, event in enumerate(events):
            reading.learn(index, event)
        return reading.seen, reading.violations


class _Reading:
    """The events of one command while they are read."""

    def __init__(self, oracle: Oracle, seen: Seen, events: Sequence[Event], files: str) -> None:
        self.files = files
        self.oracle, self.data, self.seen = oracle, oracle.data, seen.copied()
        self.completed = {at: it["step"] for at, it in enumerate(events) if it["kind"] == "step_completed"}
        self.gaps = [event for event in events if event["kind"] == "gap_recorded"]
        self.fresh: dict[str, int] = {}  # what answers of this command own, by where they stand in it
        self.violations: list[Violation] = []

    def learn(self, index: int, event: Event) -> None:
        seen, kind = self.seen, event["kind"]
        if seen.status:
            self.judge("after-end", kind not in AFTER_THE_END, f"{kind} after the end")
        match kind:
            case "run_started":
                self.start(event)
            case "preferences_changed":
                seen.mode = event["effective"].get("autonomy", "guided")
            case "context_set":
                self.take(event)
            case "child_started":
                self.pass_on(event.get("passed", {}))
            case "child_returned":
                self.take({"delta": event.get("sets", {}), "source": "child"})
            case "activity_entered":
                self.enter(event["activity"])
            case "activity_left":
                self.leave(event["to"])
            case "step_completed" | "step_skipped":
                self.pass_step(event["step"], is_done=kind == "step_completed")
            case "question_shown":
                self.show(event)
            case "question_declined":
                if key := self.instance(self.oracle.questions[event["gate"]]):
                    seen.declined[key] = event["channel"]
            case "approval_given":
                self.approve(event)
            case "check_ran":
                seen.ran[event["key"]] = event.get("passed", False), event["tree_after"]
                seen.checked = True
            case "gate_resolved":
                self.answer(index, event)
            case "gate_passed" if event["because"] == "advisory":
                self.judge_pass("unanswered", True, f"{event['gate']} was passed under advisory enforcement")
            case "loop_entered":
                seen.rounds = (*seen.rounds, (event["loop"], 0))
                seen.totals = (*seen.totals, event.get("total"))
                self.ask_anew(loop=event["loop"])
            case "loop_iterated":
                self.end_pass()
                seen.rounds = (*seen.rounds[:-1], (event["loop"], event["iteration"]))
                self.ask_anew(loop=event["loop"])
            case "loop_left":
                self.leave_loop(self.oracle.loops[event["loop"]])
            case "gap_recorded" | "gap_resolved":
                self.learn_gap(event)
            case "run_completed":
                seen.status = event["status"]
                for text in sorted(seen.missed):
                    self.judge("complete", seen.status == "complete", f"{text}, and the run is complete")
        for name, value in (event.get("restores", {}) | event.get("sets", {})).items():
            self.write(name, value)

    def learn_gap(self, event: Event) -> None:
        seen = self.seen
        if event["kind"] == "gap_recorded":
            is_users = event["category"] == "user_only_dependency" and event["severity"] == "critical"
            seen.gaps = (*seen.gaps, "user" if is_users else event["severity"])
            seen.disclosed |= {event.get("key", "")}
            return
        wrong = seen.gaps[event["gap"] - 1] == "user" and event.get("channel") not in USER
        self.judge("gap-closed", wrong, "an agent closed the gap of a decision without the user")

    def start(self, event: Event) -> None:
        self.seen.mode = event["preferences"].get("autonomy", "guided")
        self.seen.policy = event.get("policy", "auto")
        self.seen.strict = event.get("enforcement", "strict") == "strict"

    def pass_on(self, passed: Mapping[str, Any]) -> None:
        """Judge what a child begins with: what is set in its parent, and no default."""
        for name, value in passed.items():
            text = f"{name} = {value!r} is passed on, and not set so in the parent"
            self.judge("passed", self.seen.variables.get(name) != value, text)

    def judge(self, rule: str, wrong: bool, text: str) -> None:
        """Apply a rule: a breach is a violation at once."""
        self.oracle.judged[rule] += 1
        if wrong:
            self.violations.append(Violation(rule, text))

    def judge_pass(self, rule: str, wrong: bool, text: str) -> None:
        """Apply a rule about what is passed by; where the terms allow that, the run must not be complete."""
        if wrong and (self.seen.mode == NEVER_STOP or not self.seen.strict):
            self.seen.missed |= {text}
        else:
            self.judge(rule, wrong, text)

    def write(self, name: str, value: Any) -> None:
        wanted = KINDS.get(TYPES.get(name, ""))
        if wanted is not None and value is not None:
            text = f"{name} = {value!r} is of another type than is declared"
            self.judge("typed", not isinstance(value, wanted), text)
        self.seen.variables[name] = value
        if value is None:
            del self.seen.variables[name]

    def value(self, path: str) -> Any:
        """Return what conditions see under a path; None if it is unset."""
        known = {name: value for name, value in self.seen.variables.items() if value is not None}
        value: Any = DEFAULTS | known
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    def lacks(self, path: str) -> bool:
        """Say whether nobody has set what a path names, or said by null that it is not known."""
        if path == SHOWN_CHECK:
            return False  # a check that has not run is shown so
        return self.value(path) is None and self.seen.variables.get(root_of(path), "") is not None

    def holds(self, test: Test | None) -> bool:
        return test is None or self.value(test[0]) == test[1]

    def instance(self, question: QuestionData | None) -> Instance | None:
        """Return the instance of a question in this pass; None if the run is elsewhere."""
        if question is None or self.seen.activity != question.activity:
            return None
        rounds = self.seen.rounds[: len(question.loops)]
        return (rounds, question.id) if tuple(loop for loop, _ in rounds) == question.loops else None

    def show(self, event: Event) -> None:
        """Remember what was shown; to show it again does not excuse that its condition was made false."""
        question = self.oracle.questions.get(event["gate"])
        key = self.instance(question)
        if question is None or key is None:
            return
        self.judge_result(question, event["question"])
        unset = sorted(filter(self.lacks, question.shows))
        lacks = bool(unset) and not self.is_gap(event["key"], unset)
        self.judge("whole", lacks, f"{question.id} was shown without {', '.join(unset)}")
        before = self.seen.shown.get(key)
        bent = before is not None and before.bent and not self.holds(question.when)
        if before is not None and before.digest != event["shown"]:
            self.seen.polls.pop(key, None)
        self.seen.shown[key] = Showing(event["shown"], event["at"], bent)

    def is_gap(self, key: str, unset: Sequence[str]) -> bool:
        """Say whether this command discloses, in never-stop mode, what a question was shown without."""
        critical = (it for it in self.gaps if it["severity"] == "critical")
        told = " ".join(it["summary"] for it in critical if it.get("key") == key)
        return self.seen.mode == NEVER_STOP and all(f"'{name}'" in told for name in unset)

    def answer(self, index: int, event: Event) -> None:
        """Take an answer that counts: from now on it owns what the question showed and what it sets."""
        seen, question, channel = self.seen, self.oracle.questions[event["gate"]], event["channel"]
        key, sets = self.instance(question), event.get("sets", {})
        if key is None or event["how"] == "dismissed":
            return  # given for no pass that the run is in
        shown = seen.shown.get(key)
        # In never-stop mode the agent decides without the user, under every policy; a form is the user's
        # where the policy takes forms, as in the other modes (rule 27).
        accepted = channel in CHANNELS[seen.policy] and (seen.mode != NEVER_STOP or channel != "agent")
        accepted = self.is_agreed(question, key, event) if question.approvers else accepted
        if event["how"] in ("chosen", "auto_advanced"):
            self.judge_result(question, event["question"])
        if not accepted and not self.server_answers(event, question, shown):
            seen.weak[key] = channel
            if seen.mode == NEVER_STOP:
                replaced = seen.answers.get(key) not in HOLDS
                self.judge("replaced", replaced, f"{question.id} was answered, then again by {channel}")
                # It is the gate's answer in a new visit or round: what the user's earlier answer has set is
                # owned until the same gate is answered again, by whomever the mode lets answer (rule 26).
                self.release(question)
                self.lead_away(question, event)
            return
        if (declined := seen.declined.get(key)) is not None:
            text = f"{question.id} was declined, then answered by {channel}"
            self.judge("declined", STRENGTH[channel] < STRENGTH[declined], text)
        if event["how"] != "assumed" and (question.kind, channel) != REPORTED:
            is_asked = shown is not None and not shown.answered
            self.judge("unshown", not is_asked, f"{question.id} was answered and had not been shown")
        if shown is not None:
            self.judge("digest", shown.digest != event["shown"], f"{question.id} was shown with other words")
            seen.shown[key] = replace(shown, answered=True)
        if question.kind == "gate" and (option := question.options.get(event.get("option", ""))) is not None:
            wrong = (dict(option.sets), option.to) != (sets, event.get("transition_to"))
            self.judge("effect", wrong, f"{option.id} of {question.id} did something else")
        if question.kind == "input" and event.get("option") not in HOLDS:
            self.judge("effect", question.id not in sets, f"the answer to {question.id} was not taken")
        seen.answers[key] = event.get("option") or ""
        seen.declined.pop(key, None)
        seen.answered |= {question.id}
        self.lead_away(question, event)
        self.release(question)
        # In never-stop mode a question is put without what nobody has set: that was not shown, and is free.
        lacking = {root_of(path) for path in question.shows if self.lacks(path)}
        known = {name for name in question.reads if name in seen.variables}
        owned = question.sets | (known - lacking)
        for name in owned if accepted and event.get("option") not in HOLDS else ():
            seen.owners[name], self.fresh[name] = Owner(question.id, key, name in sets), index

    def approve(self, event: Event) -> None:
        """Take the answer of one of the people who decide a gate."""
        question, approval = self.oracle.questions[event["gate"]], event["approval"]
        key, by, seat = self.instance(question), approval["by"], approval["seat"]
        wrong = STARTER in (by, seat) or seat not in question.approvers or approval["channel"] not in USER
        self.judge("approver", wrong, f"{by} answered {question.id} for {seat}")
        shown = self.seen.shown.get(key) if key is not None else None
        unshown = shown is None or shown.digest != event["shown"]
        self.judge("unshown", unshown, f"{by} answered {question.id}, which was not shown so")
        if key is not None and not wrong:
            others = (it for it in self.seen.polls.get(key, ()) if it[0] != by and it[1] != seat)
            self.seen.polls[key] = (*others, (by, seat, approval["option"]))

    def is_agreed(self, question: QuestionData, key: Instance, event: Event) -> bool:
        """Say whether approvers have decided a gate; whoever else does so does not count."""
        if event["channel"] != "approvers":
            return False
        agree = [by for by, _, option in self.seen.polls.get(key, ()) if option == event["option"]]
        text = f"{question.id} was decided by {len(agree)} of {ENOUGH} people"
        self.judge("quorum", len(agree) < ENOUGH, text)
        return len(agree) >= ENOUGH

    def judge_result(self, question: QuestionData, text: str) -> None:
        """Judge whether the result that a question shows is of the files as they are."""
        if SHOWN_CHECK in question.shows and self.seen.checked:
            is_of_these = f"on files {self.files[7:15]}" in text
            self.judge("stale", not is_of_these, f"{question.id} shows a check of other files: {text}")

    def lead_away(self, question: QuestionData, event: Event) -> None:
        """Remember the target of an answer that counts: it waives what stands after its gate."""
        if event.get("transition_to") or self.seen.away[0] == question.id:
            self.seen.away = (question.id, event.get("transition_to") or "")

    def release(self, question: QuestionData) -> None:
        """Let go of what an earlier answer to a question owned."""
        owners = self.seen.owners.items()
        self.seen.owners = {name: owner for name, owner in owners if owner.question != question.id}

    def server_answers(self, event: Event, question: QuestionData, shown: Showing | None) -> bool:
        """Say whether the server may answer: for the mode, or after the time that a gate waits."""
        if event["channel"] != "server":
            return False
        if event["how"] == "assumed":
            return self.seen.mode != "guided"
        if question.waits_ms is None or shown is None:
            return False
        return bool(event["at"] - shown.at >= question.waits_ms)

    def take(self, event: Event) -> None:
        """Take variables that were sent: an agent must not change what an answer owns."""
        source = event.get("source", "agent_delta")
        by_agent = source in AGENTS
        for name, value in event["delta"].items():
            if source == "reask":
                self.ask_again(name)
            current = self.seen.variables.get(name, self.value(name) if "." in name else None)
            if by_agent and value != current:
                self.judge_writer(name, value, event)
            applied = [key for key in self.seen.shown if self.holds(self.oracle.questions[key[1]].when)]
            self.write(name, value)
            if value is None and source != "child":
                self.seen.variables[name] = None  # it is not known
            for key in applied if by_agent else ():
                if not self.holds(self.oracle.questions[key[1]].when):
                    self.seen.shown[key] = replace(self.seen.shown[key], bent=True)

    def judge_writer(self, name: str, value: Any, event: Event) -> None:
        """Judge whether what an agent has changed is the agent's."""
        root, text = root_of(name), f"{name} = {value!r} is not the agent's"
        self.judge("reserved", root == root_of(SHOWN_CHECK), f"{text}: only the server writes it")
        owner = self.seen.owners.get(root)
        if owner is not None:
            wrong = not self.may_set(root, owner, event)
            text = f"{text}: {owner.question} was answered with it"
            self.judge("dotted" if "." in name else "bent", wrong, text)
        else:
            self.judge("decided", root in self.oracle.decided_only, f"{text}: only answers set it")
        if event.get("source") != "reask":
            self.judge("round", self.is_of_round(root), f"{text}: a loop sets it for each round")

    def is_of_round(self, name: str) -> bool:
        """Say whether a loop around the run sets a name, and no question shows it that waits for it."""
        if not any(name in self.oracle.loops[loop].names for loop, _ in self.seen.rounds):
            return False
        asked = (question for question in self.oracle.questions.values() if self.instance(question))
        is_shown = any(name in map(root_of, question.shows) for question in asked)
        return not is_shown or self.value(name) is not None

    def ask_again(self, name: str) -> None:
        """Let go of an answer whose question is asked again with another value of what it shows or reads."""
        owner = self.seen.owners.get(name)
        question = self.oracle.questions[owner.question] if owner is not None else None
        key = self.instance(question)
        if owner is not None and question is not None and key in self.seen.shown and name in question.reads:
            self.seen.answers.pop(key, None)
            owners = self.seen.owners.items()
            self.seen.owners = {root: it for root, it in owners if it.is_set or it.question != question.id}
            self.seen.owners.pop(name, None)

    def may_set(self, root: str, owner: Owner, event: Event) -> bool:
        """Say whether a step that this command completes after the answer is declared to set the root."""
        question = self.oracle.questions[owner.question]
        same_pass = owner.instance is not None and owner.instance == self.instance(question)
        for at, step_id in self.completed.items():
            placed = self.oracle.steps[step_id]
            declared = root in placed.step.sets and event.get("by") == step_id
            in_the_way = same_pass and placed.place < question.place
            if declared and at > self.fresh.get(root, -1) and not in_the_way:
                return True
        return False

    def pass_step(self, step_id: str, *, is_done: bool) -> None:
        placed, seen = self.oracle.steps[step_id], self.seen
        seen.done |= {(seen.rounds, step_id)}
        if is_done and placed.step.confirm:  # an answer from before is not about this work
            seen.answers.pop((seen.rounds, placed.step.confirmation_id), None)
        if is_done and placed.step.asks:
            self.judge_due((seen.rounds, placed.step.input_id))
        if is_done and placed.step.checked:
            key = written((seen.rounds, step_id))
            wrong = seen.ran.get(key) != (True, self.files)
            if wrong and seen.mode == NEVER_STOP:
                told = any(it.get("key") == key and it["severity"] == "critical" for it in self.gaps)
                self.judge("undisclosed", not told, f"{key} is done without its check, and no gap says so")
            else:
                self.judge("unchecked", wrong, f"{key} is done, and its check has not passed for it")

    def end_pass(self, up_to: float = float("inf")) -> None:
        """Judge what stands directly in the body that the run is in, up to a place."""
        seen, loops = self.seen, tuple(loop for loop, _ in self.seen.rounds)
        for question in self.oracle.questions.values():
            if (question.activity, question.loops) != (seen.activity, loops) or question.place > up_to:
                continue
            key = (seen.rounds, question.id)
            shown = seen.shown.get(key)
            if question.kind == "confirmation":
                step = (seen.rounds, question.id.removeprefix("confirm-"))
                if step in seen.done:  # outside guided mode the server has assumed it, and said so
                    self.judge_due(key)
            elif question.kind == "gate" and question.required and self.holds(question.when):
                self.judge_due(key)
            elif question.when is not None and shown is not None and not shown.answered:
                text = f"an agent has made the condition of {question.id} false"
                self.judge_pass("talked-away", shown.bent, text)

    def judge_due(self, key: Instance) -> None:
        """Apply the main rule: what is due has an answer that counts."""
        where = "".join(f" in round {number + 1} of {loop}" for loop, number in key[0])
        weak, wrong = self.seen.weak.get(key), self.seen.answers.get(key) in HOLDS
        text = f"{key[1]}{where} was passed by{f', answered by {weak}' if weak else ''}"
        self.judge_pass("channel" if weak else "unanswered", wrong, text)
        if wrong and (self.seen.mode == NEVER_STOP or not self.seen.strict):
            self.judge("undisclosed", not self.is_disclosed(key), f"{text}, and no gap says so")

    def is_disclosed(self, key: Instance) -> bool:
        """Say whether a gap names the instance, or the step that asks."""
        steps = (
            it.step
            for it in self.oracle.steps.values()
            if key[1] in (it.step.input_id, it.step.confirmation_id)
        )
        names = (key[1], *(step.id for step in steps))
        return any(written((key[0], name)) in self.seen.disclosed for name in names)

    def leave_loop(self, loop: LoopData) -> None:
        """Judge the last round, and whether another was due."""
        seen = self.seen
        inside = bool(seen.rounds) and seen.rounds[-1][0] == loop.id
        items, rounds = self.value(loop.over or "") or (), seen.rounds[-1][1] + 1 if inside else 0
        total = seen.totals[-1] if inside else len(items)
        goes_on = self.holds(loop.test) if loop.test else rounds < (total or 0)
        if inside:
            self.end_pass()
            seen.rounds, seen.totals = seen.rounds[:-1], seen.totals[:-1]
        asks = any(loop.id in question.loops for question in self.oracle.questions.values())
        text = f"{loop.id} was left after {rounds} rounds, and the next was due"
        self.judge_pass("loop-left", bool(goes_on and asks and rounds < loop.most), text)
        seen.done |= {(seen.rounds, loop.id)}

    def ask_anew(self, *, activity: str = "", loop: str = "") -> None:
        """Let go of what questions only showed that are asked anew in this visit or round."""
        for name, owner in list(self.seen.owners.items()):
            question = self.oracle.questions[owner.question]
            if question.activity == activity or loop in question.loops:
                self.seen.owners[name] = replace(owner, instance=None)
                if not owner.is_set:
                    del self.seen.owners[name]

    def enter(self, activity: str) -> None:
        seen, first = self.seen, self.data.activities[0].id
        if not seen.activity and activity != first:
            self.jump("", activity)
        self.ask_anew(activity=activity)
        seen.activity, seen.trail, seen.away = activity, seen.trail | {activity}, ("", "")
        seen.rounds, seen.totals, seen.done = (), (), frozenset()
        seen.shown, seen.answers, seen.weak, seen.ran, seen.polls = {}, {}, {}, {}, {}

    def leave(self, to: str) -> None:
        """Judge every body that the run is in, the loops that it did not come to, and where it goes."""
        seen, activity = self.seen, self.seen.activity
        by_option = seen.away[1] == to
        place = self.oracle.questions[seen.away[0]].place if by_option else float("inf")
        begun = {loop for rounds, loop in seen.done if not rounds} | {loop for loop, _ in seen.rounds}
        while seen.rounds:
            self.end_pass(place)
            seen.rounds = seen.rounds[:-1]
        self.end_pass(place)
        for question in self.oracle.questions.values():
            in_loop = question.activity == activity and bool(question.loops) and question.required
            if in_loop and question.loops[0] not in begun and question.place < place:
                self.judge_due(((), question.id))
        if not by_option and to not in open_exits(self.data, activity, self.value) and to not in seen.trail:
            self.jump(activity, to)

    def jump(self, start: str, to: str) -> None:
        """Judge a target that no open exit leads to."""
        passed = passed_by(self.data, start, to, self.value)
        for question in self.oracle.questions.values():
            if question.kind == "confirmation" and self.seen.mode != "guided":
                continue  # rule 27: nobody is asked, so that a jump takes no decision from the user
            if question.activity in passed and question.required and self.holds(question.when):
                text = f"{start or 'the beginning'} to {to} leaves out {question.id}"
                self.judge_pass("jumped", question.id not in self.seen.answered, text)
