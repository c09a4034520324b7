"""`interlock play ID`: a person walks a workflow as an agent would."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec
from msgspec import Struct

from interlock.authoring.library import Diagnostic
from interlock.cli.exits import NOT_FOUND
from interlock.cli.person import choose, need_pin, need_terminal
from interlock.cli.playing import CLIENT, PlayedRun, Turn
from interlock.cli.reach import give_up, with_ledger, workflow_argument
from interlock.cli.screen import block_of, line_of, markdown, paint, paragraph, say, stop, talk
from interlock.core.definition.program import confirmation
from interlock.core.engine.requirements import input_id
from interlock.core.run.commands import Decision
from interlock.core.run.outcomes import NeedAnswer, NeedInput, NeedStep, Refusal
from interlock.core.run.output import Output
from interlock.core.run.reasons import ContextKey
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import find_session, ref_of
from interlock.surfaces.execution.render import Pending, pending_of
from interlock.surfaces.refusals import sentence

HELP = """\
An empty line ends your notes and closes the step.
:set NAME=VALUE    set a variable (JSON, or text)
:artifact {…}      hand in an artifact, as JSON on one line
:back              rewind to the step before; going on makes a branch
:quit              leave; the run stays where it is"""


@click.command(epilog="Example: interlock play wr.small_task --goal 'Try it out'")
@workflow_argument
@click.option("--goal", metavar="TEXT", help="What the run is about.")
@with_ledger
def command(ledger: Ledger, workflow_id: str, goal: str | None) -> None:
    """Walk a workflow in the terminal: a real run. ID may also be a session to go on with."""
    need_terminal("Playing")
    need_pin(ledger)
    walk = _begun(ledger, workflow_id, goal)
    talk(paint("Type :help for what you can do.", "quiet"))
    try:
        _play(walk)
    except (click.Abort, KeyboardInterrupt, EOFError):
        talk("")
        _leave(walk)
        raise click.exceptions.Exit(1) from None


def _begun(ledger: Ledger, name: str, goal: str | None) -> PlayedRun:
    with ledger.store.reading() as reader:
        session = find_session(reader, name, ledger.settings.owner)
    if not isinstance(session, LedgerError):
        walk = PlayedRun.taken_up(ledger, session)
    else:
        loaded = ledger.library.load(name)
        if isinstance(loaded, Diagnostic):
            stop(NOT_FOUND, f"{loaded.message}; {loaded.fix or 'see `interlock list`'}.")
        say(paint(loaded.workflow.name, "strong"))
        say(paragraph(loaded.workflow.description))
        walk = PlayedRun.started(ledger, loaded, {"goal": goal} if goal else {})
    return give_up(walk) if isinstance(walk, LedgerError) else walk


def _play(walk: PlayedRun) -> None:
    while (pending := pending_of(walk.view)) is not None:
        _show(walk, pending)
        said = _ask(walk, pending)
        match said:
            case ":quit":
                _leave(walk)
                return
            case ":back":
                if not walk.step_back():
                    talk("This is where the run began.")
            case Turn():
                refused = walk.hand_in(said)
                if refused is not None:
                    talk(
                        f"interlock: {sentence(refused) if isinstance(refused, Refusal) else refused.message}"
                    )
    gaps = f", with {walk.view.state.gaps} recorded gaps" if walk.view.state.gaps else ""
    say(f"{paint('Complete', 'good')}{gaps}. See: interlock tree {ref_of(walk.view.session.session_id)}")


def _leave(walk: PlayedRun) -> None:
    talk(f"The run stays where it is. Go on with: interlock play {ref_of(walk.view.session.session_id)}")


def _show(walk: PlayedRun, pending: Pending) -> None:
    for blocker in walk.view.blockers:
        talk(f"Blocked: {block_of(blocker.message)}")
        if blocker.example is not None:
            exit_ = ":set" if isinstance(blocker.pointer, ContextKey) else ":artifact"
            talk(f"Hand it in with {exit_}, such as {msgspec.json.encode(blocker.example).decode()}")
    for notice in walk.view.notices:
        talk(f"Warning: {block_of(notice.message)}")
    say()
    say(f"{paint(line_of(pending.title), 'strong')}  {paint(pending.stepId, 'quiet')}")
    if not walk.view.blockers:
        markdown(pending.prompt)


def _ask(walk: PlayedRun, pending: Pending) -> Turn | str:
    match walk.view.awaited:
        case NeedAnswer(gate=gate):
            options = [one.id for one in gate.options]
            chosen = choose([*options, ":back", ":quit"])
            return chosen if chosen.startswith(":") else Turn(decisions={gate.id: _ruling(chosen)})
        case NeedInput(variables=names):
            return Turn(variables={name: _value(click.prompt(name, err=True)) for name in names})
        case NeedStep() as need:
            return _step(need, pending)
        case _:
            raise AssertionError("the execution surface never stops here")


def _ruling(option: str) -> Decision:
    return Decision(option, "cli", CLIENT)


class _Typed(Struct):
    """What was typed for a step so far."""

    notes: list[str]
    artifacts: list[dict[str, Json]]
    variables: dict[str, Json]


def _step(need: NeedStep, pending: Pending) -> Turn | str:
    typed = _Typed([], [], {})
    for line in _lines():
        match line.partition(" "):
            case (":quit" | ":back") as word, _, _:
                return word
            case ":help", _, _:
                talk(HELP)
            case ":set", _, rest:
                name, _, value = rest.partition("=")
                typed.variables[name.strip()] = _value(value)
            case ":artifact", _, rest:
                _add_artifact(typed, rest)
            case _:
                typed.notes.append(line)
    decisions = dict(_answers(need, pending))
    return Turn(Output("\n".join(typed.notes), tuple(typed.artifacts)), typed.variables, decisions)


def _lines() -> Iterator[str]:
    """Lines until an empty one."""
    while line := str(click.prompt("notes", default="", show_default=False, err=True)).replace("\0", ""):
        yield line


def _value(text: str) -> Json:
    """JSON where it is JSON, else the text itself."""
    try:
        value: Json = msgspec.json.decode(text.strip())
    except msgspec.DecodeError:
        return text.strip()
    return value


def _add_artifact(typed: _Typed, text: str) -> None:
    value = _value(text)
    if isinstance(value, dict) and isinstance(value.get("kind"), str):
        typed.artifacts.append(value)
    else:
        talk('An artifact is a JSON object with a kind, such as {"kind": "wr.decision"}.')


def _answers(need: NeedStep, pending: Pending) -> Iterator[tuple[str, Decision]]:
    """What only the person can say about a step: its dependencies, and whether it is good enough."""
    for one in need.step.user_input:
        yield input_id(need.step, one), _ruling(click.prompt(line_of(one.question), err=True))
    if pending.requireConfirmation:
        good = click.confirm("Good enough to go on? (No: the step is done again.)", default=True, err=True)
        yield confirmation(need.step).id, _ruling("proceed" if good else "revise")
