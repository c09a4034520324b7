"""`interlock play ID`: work through a workflow yourself, as an agent would."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress

import click
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.authoring.library import Loaded
from interlock.cli.interactive import choose, require_pin, require_terminal
from interlock.cli.options import with_ledger, workflow_argument
from interlock.cli.references import workflow_of
from interlock.cli.screen import block_of, inform, line_of, markdown, paint, paragraph, say
from interlock.core.definition.program import confirmation
from interlock.core.run.commands import AcknowledgeStep, CheckResult, Decision, DueCheck
from interlock.core.run.outcomes import Ask, NeedAnswer, NeedInput, NeedStep, Refusal, RunChecks
from interlock.core.run.output import Output
from interlock.core.run.questions import Question
from interlock.core.run.reasons import ContextKey
from interlock.core.run.surface_policy import EXECUTION
from interlock.core.values import Json, Variables
from interlock.ledger.errors import LedgerError, response_lost
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import find_session, handle_of, ref_of
from interlock.ledger.repeatable import Replayed
from interlock.ledger.retry import until_recorded
from interlock.ledger.runs.check_runs import check_result
from interlock.ledger.runs.position import Position, View
from interlock.ledger.tokens.tokens import Pointer
from interlock.store.protocol import SessionRow
from interlock.surfaces.execution.render import Pending, answer, pending_of
from interlock.surfaces.refusals import sentence

CLIENT = "interlock play"
LOOK_SECONDS = 0.2
HELP = """\
An empty line ends your notes and completes the step.
:set NAME=VALUE    set a variable (JSON, or text)
:artifact {…}      send an artifact, as JSON on one line
:back              rewind to the step before; continuing makes a branch
:quit              leave; the run can be continued later"""


@click.command(epilog="Example: interlock play wr.small_task --goal 'Try it out'")
@workflow_argument
@click.option("--goal", metavar="TEXT", help="What the run is about.")
@with_ledger
def command(ledger: Ledger, workflow_id: str, goal: str | None) -> None:
    """Work through a workflow in the terminal, in a real run. ID may also be a session to continue."""
    require_terminal("Playing")
    require_pin(ledger)
    session = None
    with suppress(LedgerError):
        session = find_session(ledger, workflow_id)
    if session is not None:
        run = PlayedRun.resumed(ledger, session)
    else:
        loaded = workflow_of(ledger.library, workflow_id)
        say(paint(loaded.workflow.name, "strong"))
        say(paragraph(loaded.workflow.description))
        run = PlayedRun.started(ledger, loaded, {"goal": goal} if goal else {})
    inform(paint("Type :help for the commands.", "quiet"))
    try:
        _play(run)
    except (click.Abort, KeyboardInterrupt, EOFError):
        inform("")
        _leave(run)
        raise click.exceptions.Exit(1) from None


def _play(run: PlayedRun) -> None:
    while (pending := pending_of(run.view)) is not None:
        for blocker in run.view.blockers:
            inform(f"Blocked: {block_of(blocker.message)}")
            if blocker.example is not None:
                how = ":set" if isinstance(blocker.pointer, ContextKey) else ":artifact"
                inform(f"Send it with {how}, for example {msgspec.json.encode(blocker.example).decode()}")
        for notice in run.view.notices.listed:
            inform(f"Warning: {block_of(notice.message)}")
        say()
        say(f"{paint(line_of(pending.title), 'strong')}  {paint(pending.stepId, 'quiet')}")
        if not run.view.blockers:
            markdown(pending.prompt)
        match turn := _turn(run, pending):
            case ":quit":
                _leave(run)
                return
            case ":back":
                if not run.step_back():
                    inform("This is the start of the run.")
            case Turn():
                error = run.advance(turn)
                if error is not None:
                    reason = sentence(error) if isinstance(error, Refusal) else error.message
                    inform(f"interlock: {reason}")
    if (given_up := run.view.state.abandoned) is not None:
        say(
            f"The run was {line_of(given_up.text)}. See: interlock tree {ref_of(run.view.session.session_id)}"
        )
        return
    gaps = f", open gaps: {run.view.state.gaps.open}" if run.view.state.gaps.open else ""
    say(f"{paint('Complete', 'good')}{gaps}. See: interlock tree {ref_of(run.view.session.session_id)}")


def _leave(run: PlayedRun) -> None:
    inform(f"The run is saved. Continue with: interlock play {ref_of(run.view.session.session_id)}")


def _turn(run: PlayedRun, pending: Pending) -> Turn | str:
    """Ask for what the run awaits; `:back` and `:quit` are returned as they are."""
    match run.view.awaited:
        case NeedAnswer(gate=gate):
            choice = choose([*(option.id for option in gate.options), ":back", ":quit"])
            return choice if choice.startswith(":") else Turn(decisions={gate.id: _decision(choice)})
        case NeedInput(variables=names):
            return Turn(variables={name: _value(click.prompt(name, err=True)) for name in names})
        case NeedStep() as need:
            return _step(need, pending)
        case _:
            raise AssertionError("the execution surface awaits nothing else")


def _step(need: NeedStep, pending: Pending) -> Turn | str:
    """Read notes, variables and artifacts, then ask for what only the user can give."""
    notes: list[str] = []
    artifacts: list[dict[str, Json]] = []
    variables: dict[str, Json] = {}
    while line := str(click.prompt("notes", default="", show_default=False, err=True)).replace("\0", ""):
        match line.partition(" "):
            case (":quit" | ":back") as word, _, _:
                return word
            case ":help", _, _:
                inform(HELP)
            case ":set", _, rest:
                name, _, value = rest.partition("=")
                variables[name.strip()] = _value(value)
            case ":artifact", _, rest:
                artifact = _value(rest)
                if isinstance(artifact, dict) and isinstance(artifact.get("kind"), str):
                    artifacts.append(artifact)
                else:
                    inform('An artifact is a JSON object with a kind, such as {"kind": "wr.decision"}.')
            case _:
                notes.append(line)
    decisions: dict[str, Decision] = {}
    for wanted in need.step.user_input:
        if wanted.options:
            inform(line_of(wanted.question))
            answer = choose([option.id for option in wanted.options])
        else:
            answer = click.prompt(line_of(wanted.question), err=True)
        decisions[need.step.input_id(wanted)] = _decision(answer)
    if pending.requireConfirmation:
        good = click.confirm("Good enough to continue? (No repeats the step.)", default=True, err=True)
        decisions[confirmation(need.step).id] = _decision("proceed" if good else "revise")
    return Turn(Output("\n".join(notes), tuple(artifacts)), variables, decisions)


def _value(text: str) -> Json:
    """Read JSON; other text is a string."""
    try:
        value: Json = msgspec.json.decode(text.strip())
    except msgspec.DecodeError:
        return text.strip()
    return value


def _decision(option: str) -> Decision:
    return Decision(option, "cli", CLIENT)


class Turn(Struct, frozen=True):
    """What a person sends for the pending item."""

    output: Output = Output()
    variables: Variables = {}
    decisions: Mapping[str, Decision] = {}


class PlayedRun:
    """A run, and the view of its current node: the same ledger and recorded answers as an agent's."""

    def __init__(self, ledger: Ledger, view: View, handle: bytes) -> None:
        self.ledger = ledger
        self.view = view
        self.handle = handle

    @classmethod
    def started(cls, ledger: Ledger, loaded: Loaded, context: Variables) -> PlayedRun:
        """Start a run."""
        start = ledger.start(loaded, context)
        ledger.record_start(start)
        return cls(ledger, start.view, start.handle)

    @classmethod
    def resumed(cls, ledger: Ledger, session: SessionRow) -> PlayedRun:
        """Continue a session from its head."""
        if session.head_node is None:
            raise LedgerError(
                "CONFLICT", "This session has no run yet.", "Play a workflow by its id instead."
            )
        position = ledger.position(session.session_id)
        return cls(ledger, ledger.rehydrate(position), handle_of(ledger, session.session_id))

    @until_recorded
    def advance(self, turn: Turn) -> Refusal | None:
        """Send a turn for the pending item; the view shows the outcome."""
        view, pointer = self.view, Pointer("st", self.handle, self.view.node)
        request: dict[str, Json] = {"context": turn.variables, "output": {"notesMarkdown": turn.output.notes}}
        attempt = self.ledger.attempt(pointer, view.attempt, request)
        if isinstance(attempt, Replayed):
            raise response_lost()
        position = attempt.position
        command = AcknowledgeStep(
            policy=EXECUTION,
            now=attempt.now,
            terms=replace(position.terms, asks_by="cli"),
            output=turn.output,
            variables={**position.kept, **turn.variables},
            decisions=position.decisions,
            client=CLIENT,
        )
        decided = attempt.position.decide(command)
        while isinstance(decided, (Ask, RunChecks)):
            if isinstance(decided, RunChecks):
                results = [self._checked(position, due) for due in decided.checks]
                command = replace(command, checked=(*command.checked, *results))
            else:
                for question in decided.questions:
                    command = _told(command, question, turn)
            decided = attempt.position.decide(command)
        if isinstance(decided, Refusal):
            return decided
        after = attempt.view(decided, command.terms)
        attempt.record(
            decided,
            answer(after),
            surface="execution",
            notices=after.notices,
            output=turn.output,
            variables=command.variables,
        )
        self.view = after
        return None

    def _checked(self, position: Position, due: DueCheck) -> CheckResult:
        """Run a check and wait for it: a terminal has nothing else to do."""
        while (result := check_result(self.ledger, position, due, may_wait=True)) is None:
            time.sleep(LOOK_SECONDS)
        return result

    def step_back(self) -> bool:
        """Rewind to the node before; advancing from there makes a branch (rule 8)."""
        position = self.ledger.position(self.view.session.session_id, self.view.node)
        if position.node.parent is None:
            return False
        self.view = self.ledger.rehydrate(self.ledger.position(position.session_id, position.node.parent))
        return True


def _told(command: AcknowledgeStep, question: Question, turn: Turn) -> AcknowledgeStep:
    """Answer a question with what the user has said in this turn."""
    decision = turn.decisions.get(question.id)
    if decision is None:
        return replace(command, declined=(*command.declined, question.digest))
    return replace(command, decisions={**command.decisions, question.digest: decision})
