"""What keeps a step from being done: unmet contracts and criteria, unproven capabilities, missing input.

One model of reasons serves all modes: what blocks a guided run is a recorded gap in never-stop mode.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from interlock.core.definition.conditions import Scope
from interlock.core.definition.criteria import failed_checks, requirement
from interlock.core.definition.expressions import artifact_name, root, variables_in
from interlock.core.definition.program import Plan, confirmation
from interlock.core.definition.prompts import question_text, text_of
from interlock.core.definition.workflow import Capability, Contract, Step, UserInput
from interlock.core.engine.decisions import (
    AskedThrough,
    asked_through,
    counts,
    given,
    is_the_users,
    reported,
    undecided_gap,
    waits_for_user,
)
from interlock.core.engine.gates import question_of
from interlock.core.engine.run_checks import check_gap, check_refusal, checks_of, failed_check, unrun_check
from interlock.core.json_schema import artifact_violations, placeholders_left
from interlock.core.run import events as e
from interlock.core.run.commands import CheckResult, Decision, DueCheck, Terms
from interlock.core.run.outcomes import Awaited, NeedAnswer, NeedStep, Refusal
from interlock.core.run.output import Output
from interlock.core.run.preferences import Preferences
from interlock.core.run.questions import Question, Unanswered
from interlock.core.run.reasons import (
    Blocker,
    BlockerCode,
    CapabilityPointer,
    ContextKey,
    ContractPointer,
    Severity,
    WorkflowStep,
    as_gap,
    downgraded,
    ordered,
)
from interlock.core.run.state import CapabilityStatus, RunState, instance
from interlock.core.secrets import no_secret, note_without_secret, secret_in
from interlock.core.values import Json, set_names
from interlock.core.variables.roots import input_roots
from interlock.core.variables.sending import THE_ANSWER, example_answer
from interlock.core.variables.typed_values import example_of, fitting, placeholder, sound
from interlock.core.variables.writes import may_set, restored

ASSESSMENT = "wr.assessment"
OBSERVATION = ("wr.capability_observation", "capability_observation", "wr.contracts.capability_observation")
DIVERGENCE = ("wr.workflow_divergence", "workflow_divergence", "wr.contracts.workflow_divergence")
REASONS = (
    "missing_user_context",
    "capability_unavailable",
    "efficiency_skip",
    "safety_stop",
    "policy_constraint",
)
REJECTIONS = ("reject", "refused")
Held: TypeAlias = Severity | Literal["stop"]
STRONG = ("probe_step", "attempted_use")
RESULTS: Mapping[CapabilityStatus, str] = {"available": "success", "unavailable": "failure"}
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)
STATUSES: tuple[CapabilityStatus, ...] = get_args(CapabilityStatus)


class Verdict(Struct, frozen=True):
    """Reasons that stop the step, reasons that are only disclosed, and the user's answers that it needs.

    `unanswered` are the questions that stop it, where nothing else does; `handed_in` is what came of that
    which the step requires: kinds of artifacts, and names; `quoted` is what texts show of these artifacts.
    `ran` are the checks that were run for it, `unchecked` those that must run before it is known whether it
    is done.
    """

    stopping: tuple[Blocker, ...] = ()
    gaps: tuple[e.GapRecorded, ...] = ()
    answers: tuple[e.GateResolved, ...] = ()
    unanswered: tuple[Unanswered, ...] = ()
    handed_in: tuple[str, ...] = ()
    quoted: Mapping[str, Mapping[str, Json]] = {}
    ran: tuple[e.CheckRan, ...] = ()
    unchecked: tuple[DueCheck, ...] = ()

    @property
    def check_refusal(self) -> Refusal | None:
        """Refuse a step because a check has failed; None if none has."""
        failed = next((ran for ran in self.ran if not ran.passed), None)
        return None if failed is None else check_refusal(failed)

    @property
    def rejections(self) -> tuple[e.GateResolved, ...]:
        return tuple(answer for answer in self.answers if answer.option in REJECTIONS)


NOTHING_LACKS = Verdict()


class Submission(Struct, frozen=True):
    """What a call brings to be done with a step, and the user's terms for it.

    A variable that a `claimed` step of others' activity files has not set is a warning (rule 31). `offered`
    are the answers to the step's own questions that came as variables, `brought` what it sets once it is
    done, and `fixed` what the call cannot set.
    """

    terms: Terms
    output: Output = Output()
    decisions: Mapping[str, Decision] = {}
    checked: tuple[CheckResult, ...] = ()
    now: int = 0
    client: str = ""
    claimed: bool = False
    offered: Mapping[str, Json] = {}
    brought: Mapping[str, Json] = {}
    fixed: frozenset[str] = frozenset()


def examine(plan: Plan, state: RunState, step: Step, key: str, submission: Submission) -> Verdict:
    """Check the step against all its requirements, under the run's mode and risk policy."""
    stopping: list[Blocker] = []
    gaps: list[e.GapRecorded] = []
    output, scope = submission.output, plan.scope(state.variables)
    known = {*set_names(state.variables), *set_names(submission.brought)}
    may_lack = submission.claimed and plan.workflow.dialect.claims_may_lack_variables
    unset = () if may_lack else _unset(plan, state, known | submission.fixed, step, scope)
    unproven, unfounded = _unproven(step, output), _unfounded(output)
    for blocker in (*unmet(plan, step, output, scope, known), *unset, *unproven, *unfounded):
        severity = _hold(state.preferences, blocker)
        if severity == "stop":
            stopping.append(blocker)
        else:
            gaps.append(_gap(blocker, key, severity))
    own = _own_questions(plan, state, step, key, submission)
    ran, unchecked = checks_of(plan, step, key, scope, submission.checked)
    failed = [result for result in ran if not result.passed]
    if state.preferences.never_stops:
        gaps += map(check_gap, failed)
    else:
        stopping += map(failed_check, failed)
    if unchecked and not (stopping or own.stopping):
        return Verdict((unrun_check(step, unchecked[0]),), unchecked=unchecked)
    return Verdict(
        ordered((*stopping, *own.stopping)),
        (*gaps, *own.gaps),
        own.answers,
        () if stopping else own.unanswered,
        tuple(_handed_in(step, output, known)),
        _quoted(plan, step, output),
        ran,
    )


def open_inputs(plan: Plan, state: RunState, step: Step, terms: Terms) -> tuple[Unanswered, ...]:
    """Return the step's own questions that wait for an answer, whatever else the step lacks (rule 28)."""
    return _own_questions(plan, state, step, "", Submission(terms)).unanswered


class Asking(Struct, frozen=True):
    """How what is pending comes to the user: the open question or a confirmation, and the step's own one."""

    through: AskedThrough
    by_step: AskedThrough | None = None

    @property
    def only_user_answers(self) -> bool:
        return not {self.through, self.by_step}.isdisjoint(("inbox", "address"))


def asking_of(
    plan: Plan, state: RunState, pending: Awaited, terms: Terms, decided: Collection[str] = ()
) -> Asking:
    """Return how the user is asked for what is pending; `decided` are the digests of what was answered."""
    match pending:
        case NeedAnswer(key=key, gate=gate):
            return Asking(asked_through(state, key, terms, gate))
        case NeedStep(step=step):
            waiting = open_inputs(plan, state, step, terms)
            keys = (asked.key for asked in waiting if asked.question.digest not in decided)
            by_step = next((asked_through(state, key, terms) for key in keys), None)
            return Asking(asked_through(state, "", terms), by_step)
        case _:
            return Asking(asked_through(state, "", terms))


def asked_inputs(plan: Plan, state: RunState, step: Step) -> tuple[str, ...]:
    """Name the step's own questions that wait under the terms of the session."""
    waiting = open_inputs(plan, state, step, Terms().within(state.terms)) if step.user_input else ()
    return tuple(asked.question.id for asked in waiting)


def _hold(preferences: Preferences, blocker: Blocker, need: UserInput | None = None) -> Held:
    """Say whether a reason stops the step in this mode, or how severe a gap it is (rules 27 and 31).

    `need` is what only the user can give, which may be assumed outside guided mode.
    """
    if preferences.never_stops:
        return "critical"
    if need is not None:
        return "info" if need.is_assumable and not preferences.guided else "stop"
    return "warning" if downgraded(blocker, preferences) else "stop"


def _own_questions(plan: Plan, state: RunState, step: Step, key: str, submission: Submission) -> Verdict:
    """Check what only the user can give for the step."""
    stopping: list[Blocker] = []
    gaps: list[e.GapRecorded] = []
    answers: list[e.GateResolved] = []
    unanswered: list[Unanswered] = []
    for need in step.user_input:
        lacking = tuple(_unset_in_input(plan, state, need))
        if lacking and not state.preferences.never_stops:
            stopping += lacking  # questions are whole (rule 26)
            continue
        question = input_question(plan, state, step, need)
        decision, asked = submission.decisions.get(question.digest), instance(state, question.id)
        decision = decision or reported(submission.output, submission.client, question.id)
        value = None if decision is not None else given(state, need)
        if decision is None and value is None:
            value = submission.offered.get(need.key or "")
        if value is not None:
            approved = value is True and need.options
            decision = Decision(need.accepted if approved else text_of(value), "agent", submission.client)
        if decision is not None and not counts(decision, state, asked, submission.terms):
            decision = None
        instead = unfit(plan, need, decision.option if value is None else value) if decision else ""
        if instead:
            decision = None
        if decision is not None:
            answer = _answered(plan, state, question, need, decision, submission.now, value)
            answers.append(answer)
            gaps += (_gap(blocker, answer.key, "critical") for blocker in lacking)
            gaps += undecided_gap(state, answer)
        if decision is not None and (not need.options or decision.option == need.accepted):
            continue
        waits = waits_for_user(state, asked, submission.terms)
        blocker = _dependency(plan, step, need, question, decision, instead, waits=waits)
        severity = _hold(state.preferences, blocker, need)
        if severity == "stop":
            stopping.append(blocker)
            unanswered.append(Unanswered(asked, question))
        else:
            gaps.append(_gap(blocker, key, severity, need.reason))
    return Verdict(tuple(stopping), tuple(gaps), tuple(answers), tuple(unanswered))


def _unset_in_input(plan: Plan, state: RunState, need: UserInput) -> Iterator[Blocker]:
    """Name what a step's own question shows and nobody has set."""
    scope = plan.scope(state.variables)
    unset = [path for path in variables_in(need.question) if scope.lacks(path)]
    for name in dict.fromkeys(map(root, unset)):
        if name != need.key:
            text = f"The question '{need.question}' shows '{name}', which nobody has set."
            paths = [path for path in unset if root(path) == name]
            example: Json = example_of(plan, state.variables, paths)
            yield Blocker(BlockerCode.MISSING_REQUIRED_OUTPUT, ContextKey(name), text, example=example)


def _gap(blocker: Blocker, key: str, severity: Severity, detail: str = "") -> e.GapRecorded:
    gap = as_gap(blocker, severity, detail)
    return e.GapRecorded(gap.severity, gap.category, gap.detail, gap.summary, key)


def unmet(plan: Plan, step: Step, output: Output, scope: Scope, known: Collection[str]) -> Iterator[Blocker]:
    """Name every contract and criterion of the step that the output does not meet (rule 31).

    `known` are the variables that are set once the step is done.
    """
    for contract in step.contracts:
        candidates = [artifact for artifact in output.artifacts if _belongs(artifact, contract)]
        errors = [_errors(contract, artifact) for artifact in candidates]
        if not candidates and contract.required:
            kinds = sorted({str(artifact.get("kind", "without a kind")) for artifact in output.artifacts})
            also = f" Given: {', '.join(kinds)}." if kinds else ""
            text = f"This step needs an artifact of kind '{contract.artifact}'.{also}"
            if contract.artifact in kinds:
                text = f"This step needs the assessment '{_assessment_of(contract)}', and others were given."
            yield _of_contract(BlockerCode.MISSING_REQUIRED_OUTPUT, contract, text)
        elif candidates and all(errors):
            text = f"The artifact '{contract.artifact}' is not accepted: {'; '.join(errors[-1])}"
            yield _of_contract(BlockerCode.INVALID_REQUIRED_OUTPUT, contract, text)
    for name in step.hands_in:
        if not _hands_in(name, output, known):
            yield _missing(plan, step, name)
    lacks_notes = "notes" in step.hands_in and not output.notes.strip()
    if step.criteria is not None and not lacks_notes:
        yield from _unmet_criteria(step, output.text(), scope)


def _hands_in(name: str, output: Output, known: Collection[str]) -> bool:
    """Say whether what a step must hand in is there: in the output, or as a variable of that name."""
    match name:
        case "notes":
            return bool(output.notes.strip())
        case "artifacts":
            return bool(output.artifacts)
        case _:
            in_artifacts = any(
                name in artifact or artifact.get("kind") == name for artifact in output.artifacts
            )
            return name in known or in_artifacts or _letters(name) in _letters(output.notes)


def _letters(text: str) -> str:
    """Reduce a text to its letters and digits, so that `taskComplexity` is found in `Task complexity`."""
    return "".join(filter(str.isalnum, text.casefold()))


def _missing(plan: Plan, step: Step, name: str) -> Blocker:
    code, pointer = BlockerCode.MISSING_REQUIRED_OUTPUT, WorkflowStep(step.id)
    if name == "notes":
        wanted = requirement(step.criteria) if step.criteria is not None else ""
        return Blocker(code, pointer, f"Step '{step.id}' requires notes, and none were sent.", wanted)
    if name == "artifacts":
        return Blocker(code, pointer, f"Step '{step.id}' requires an artifact, and none was sent.")
    text = (
        f"Step '{step.id}' must hand in '{name}': as a variable, in an artifact, or by its name in the notes."
    )
    return Blocker(code, ContextKey(name), text, example={name: placeholder(plan, name)})


def _handed_in(step: Step, output: Output, known: Collection[str]) -> Iterator[str]:
    """Name what came of that which the step requires: kinds of artifacts, and what it must hand in."""
    for contract in step.contracts:
        if contract.required and any(_belongs(artifact, contract) for artifact in output.artifacts):
            yield contract.artifact
    yield from (name for name in step.hands_in if _hands_in(name, output, known))


def _quoted(plan: Plan, step: Step, output: Output) -> dict[str, Mapping[str, Json]]:
    """Return what texts quote of the step's artifacts; one that was not accepted has no fields."""
    quoted: dict[str, Mapping[str, Json]] = {}
    for contract in step.contracts:
        name = artifact_name(contract.artifact)
        if (fields := plan.quoted.get(name)) is None:
            continue
        of_kind = (artifact for artifact in output.artifacts if _belongs(artifact, contract))
        accepted = [artifact for artifact in of_kind if not _errors(contract, artifact)]
        last = accepted[-1] if accepted else {}
        quoted[name] = {field: last[field] for field in sorted(fields) if field in last}
    return quoted


def _unset(
    plan: Plan, state: RunState, known: Collection[str], step: Step, scope: Scope
) -> Iterator[Blocker]:
    """Name the variables that the step must set, that nobody has set, and that no question of it asks for."""
    asked = {need.key for need in step.user_input}
    for name in plan.produced(step, scope):
        if name not in known and name not in asked and may_set(plan, state, step, name):
            yield unset_variable(plan, step, name)


def unset_variable(plan: Plan, step: Step, name: str) -> Blocker:
    """Say which variable the step must set, with what is known of its values."""
    one_of = f" Its values: {choices}." if (choices := plan.choices(name).text) else ""
    needed = "decides what follows" if name in plan.decisive else "is shown later on"
    kind = f" ({plan.types[name]})" if name in plan.types else ""
    text = f"Step '{step.id}' must set '{name}'{kind}, which {needed}.{one_of}"
    example: Json = {name: placeholder(plan, name)}
    return Blocker(BlockerCode.MISSING_REQUIRED_OUTPUT, ContextKey(name), text, example=example)


def _belongs(artifact: Mapping[str, Json], contract: Contract) -> bool:
    if artifact.get("kind") not in (contract.artifact, contract.ref):
        return False
    wanted = _assessment_of(contract)
    return wanted is None or artifact.get("assessmentId", wanted) == wanted


def _assessment_of(contract: Contract) -> str | None:
    """The one assessment that this contract asks for, where a step asks for several."""
    example = contract.example
    if contract.artifact != ASSESSMENT or not isinstance(example, Mapping):
        return None
    named = example.get("assessmentId")
    return named if isinstance(named, str) else None


def _errors(contract: Contract, artifact: Mapping[str, Json]) -> list[str]:
    """Name the violations of the schema, else the guidance that the levels of an assessment call for."""
    if not contract.known:
        return []
    if left := sorted(placeholders_left(contract.shown_example, artifact)):
        return left
    if errors := artifact_violations(contract.schema, artifact):
        return errors
    dimensions = artifact.get("dimensions")
    rated = dimensions if isinstance(dimensions, Mapping) else {}
    levels = {name: it.get("level") if isinstance(it, Mapping) else it for name, it in rated.items()}
    named = (None, artifact.get("assessmentId"), _assessment_of(contract))
    errors = []
    for followup in contract.followups:
        at_level = [name for name, level in levels.items() if level == followup.level]
        if at_level and followup.assessment in named:
            are = "is" if len(at_level) == 1 else "are"
            errors.append(f"{', '.join(at_level)} {are} {followup.level}: {followup.guidance}")
    return errors


def _of_contract(code: BlockerCode, contract: Contract, message: str) -> Blocker:
    return Blocker(code, ContractPointer(contract.ref), message, example=contract.shown_example)


def _unmet_criteria(step: Step, text: str, scope: Scope) -> Iterator[Blocker]:
    failed = failed_checks(step.criteria, text if text.strip() else "", scope)
    pointer = WorkflowStep(step.id)
    if failed and not text.strip():
        message = "This step's output is checked, and none was sent."
        wanted = requirement(step.criteria) if step.criteria is not None else ""
        yield Blocker(BlockerCode.MISSING_REQUIRED_OUTPUT, pointer, message, wanted)
    elif text.strip():
        for failure in failed:
            yield Blocker(BlockerCode.INVALID_REQUIRED_OUTPUT, pointer, failure.message, failure.requirement)


def observations(output: Output) -> Iterator[e.CapabilityObserved]:
    """Read the capability observations among the artifacts; one outside the closed sets is none."""
    for artifact in output.of_kind(*OBSERVATION):
        capability, status = artifact.get("capability"), artifact.get("status")
        provenance = artifact.get("provenance")
        if capability not in CAPABILITIES or status not in STATUSES:
            continue
        origin: Mapping[str, Json] = (
            provenance if isinstance(provenance, Mapping) else {"kind": "manual_claim"}
        )
        shown = origin.get("kind") in STRONG and origin.get("result") == RESULTS.get(status)
        yield e.CapabilityObserved(capability, status, shown, origin)


def _unproven(step: Step, output: Output) -> Iterator[Blocker]:
    """Name what keeps a probe step from unlocking its capability: only strong provenance does."""
    observed = tuple(observations(output))
    if step.probes is None or not observed:
        return
    pointer = CapabilityPointer(step.probes)
    seen = [event for event in observed if event.capability == step.probes]
    strong = [event for event in seen if event.strong]
    if not strong:
        message = f"This workflow requires {step.probes}, and {_doubt(seen)}."
        example: Json = {
            "kind": OBSERVATION[0],
            "capability": step.probes,
            "status": "<available | unavailable>",
            "provenance": {
                "kind": "attempted_use",
                "attemptContext": "workflow_step",
                "result": "<success | failure>",
            },
        }
        yield Blocker(BlockerCode.REQUIRED_CAPABILITY_UNKNOWN, pointer, message, example=example)
    elif strong[-1].status == "unavailable":
        message = f"This workflow requires {step.probes}, and the probe found it unavailable."
        yield Blocker(BlockerCode.REQUIRED_CAPABILITY_UNAVAILABLE, pointer, message)


def _unfounded(output: Output) -> Iterator[Blocker]:
    """Name each divergence that gives no reason of the closed set, or does not say what was done instead."""
    for artifact in output.of_kind(*DIVERGENCE):
        summary = artifact.get("summary")
        if artifact.get("reason") in REASONS and isinstance(summary, str) and summary.strip():
            continue
        reasons = ", ".join(REASONS)
        message = f"A divergence has a summary of what was done instead, and one of these reasons: {reasons}."
        example: Json = {"kind": DIVERGENCE[0], "reason": REASONS[0], "summary": "<what was done instead>"}
        pointer = ContractPointer("wr.contracts.workflow_divergence")
        yield Blocker(BlockerCode.INVALID_REQUIRED_OUTPUT, pointer, message, example=example)


def _doubt(seen: list[e.CapabilityObserved]) -> str:
    """Say why observations do not show that a capability works."""
    if not seen:
        return "the observation is of another capability"
    if seen[-1].provenance.get("kind") not in STRONG:
        return "a claim alone does not show that it works"
    return f"the result of the attempt does not say that it is {seen[-1].status}"


def _answered(
    plan: Plan,
    state: RunState,
    question: Question,
    need: UserInput,
    decision: Decision,
    now: int,
    value: Json,
) -> e.GateResolved:
    """The record of the user's answer, which becomes a variable where the file names one."""
    passes = not need.options or decision.option == need.accepted
    answer = decision.option if value is None else value
    if need.options and plan.types.get(need.key or "") == "boolean":
        answer = True
    sets = fitting(plan, {need.key: answer}) if need.key and passes else {}
    return e.GateResolved(
        key=instance(state, question.id),
        gate=question.id,
        how="given",
        at=now,
        channel=decision.channel,
        shown=question.digest,
        question=question.text,
        options=tuple(option.id for option in question.options),
        option=decision.option,
        client=decision.client,
        note=note_without_secret(decision.note),
        sets=sets,
        restores=restored(state, question.id, sets),
        roots=question.roots,
        binds=is_the_users(decision, state.preferences),
    )


def unfit(plan: Plan, need: UserInput, answer: Json) -> str:
    """Say what to answer instead, where an answer is a secret or cannot become its variable; else nothing."""
    if answer == THE_ANSWER:
        return f"{THE_ANSWER} is the placeholder of the example; send what the user has answered."
    if need.is_secret and answer not in (True, *(option.id for option in need.options)):
        return "A secret is never taken. Answer 'provided' once the agent can use it, or 'refused'."
    if (kind := secret_in(text_of(answer))) is not None:
        return no_secret(kind)
    if need.options or need.key not in {*plan.types, *plan.legal}:
        return ""
    return next((notice.message for notice in sound(plan, {need.key: answer})[1]), "")


def user_values(
    plan: Plan, state: RunState, pending: Awaited, decisions: Mapping[str, Decision]
) -> dict[str, Json]:
    """Return what the user's answers to the pending step's own questions set, once a call uses them."""
    values: dict[str, Json] = {}
    if not isinstance(pending, NeedStep):
        return values
    for need in pending.step.user_input:
        question = input_question(plan, state, pending.step, need)
        if (decision := decisions.get(question.digest)) is not None:
            values |= _answered(plan, state, question, need, decision, 0, None).sets
    return values


def questions_at(plan: Plan, state: RunState, pending: Awaited) -> Iterator[Question]:
    """What the user may be asked at this position."""
    match pending:
        case NeedAnswer():
            yield question_of(plan, state, pending.gate, pending.confirms)
        case NeedStep():
            for need in pending.step.user_input:
                yield input_question(plan, state, pending.step, need)
            if pending.step.may_confirm:
                yield question_of(plan, state, confirmation(pending.step), pending.step)
        case _:
            return


def input_question(plan: Plan, state: RunState, step: Step, need: UserInput) -> Question:
    """A user-only dependency as it is put to the user."""
    scope = plan.scope(state.variables)
    roots = input_roots(plan.workflow, step, need)
    title, text = question_text(step.title, scope), question_text(need.question, scope)
    name = step.input_id(need)
    return Question(name, title, text, need.options, roots, instance(state, name))


def _dependency(
    plan: Plan,
    step: Step,
    need: UserInput,
    question: Question,
    decision: Decision | None,
    instead: str,
    *,
    waits: bool,
) -> Blocker:
    pointer = ContextKey(need.key) if need.key else WorkflowStep(step.id)
    text, example = question.text, example_answer(step, need)
    rejected = decision is not None and decision.option in REJECTIONS
    if rejected:
        text = f"The user has {'refused' if need.is_secret else 'rejected'} this: {question.text}"
    elif decision is not None:
        text = f"'{decision.option}' is neither approve nor reject: {question.text}"
    elif instead:
        text = f"{question.text} {instead}"
    if need.key:
        example = {need.key: example["optionId"] if need.options else placeholder(plan, need.key)}
    shown = None if waits else example
    return Blocker(BlockerCode.USER_ONLY_DEPENDENCY, pointer, text, example=shown, rejected=rejected)
