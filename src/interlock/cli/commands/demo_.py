"""`interlock demo`: a scripted agent drives a bundled workflow through the real stdio server."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from interlock.cli.clients import CLIENTS
from interlock.cli.commands.tree_ import draw
from interlock.cli.compose import ledger_of
from interlock.cli.config import Config
from interlock.cli.screen import line_of, paint, paragraph, say
from interlock.cli.scripted import Answer, ScriptedAgent
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.ledger.queries.status import find_session
from interlock.ledger.queries.tree import trees_of

GOAL = "Make the login test reliable"
REPORT: Answer = {
    "kind": "wr.verification_report",
    "verdict": "pass",
    "checks": [{"name": "login test, 100 runs", "result": "pass", "evidence": "100 passed"}],
}


@click.command(epilog="Example: interlock demo")
def command() -> None:
    """Show Interlock at work: a block, a gate, a kill -9, a resume and a rewind, in a few seconds."""
    with tempfile.TemporaryDirectory(prefix="interlock-demo-") as folder, _quietly(Path(folder)) as story:
        story.opening()
        story.blocked()
        story.killed()
        story.gate()
        story.rewound()
        story.tree()
    _connect()


@contextmanager
def _quietly(folder: Path) -> Iterator[Story]:
    story = Story(folder)
    try:
        yield story
    finally:
        story.agent.leave()


class Story:
    """What the scripted agent does, told as it happens."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.agent = ScriptedAgent(folder)
        self.session = ""
        self.before_change: Json = None

    def opening(self) -> None:
        _scene("An agent starts a workflow and is handed one step at a time.")
        body = self.agent.call("start_workflow", workflowId="wr.small_task", context={"goal": GOAL})
        session = body["session"]
        assert isinstance(session, Mapping)
        self.session = str(session["sessionId"])
        _told("start_workflow wr.small_task", body)
        checks: list[Json] = ["The login test passes 100 times in a row"]
        body = self.agent.done("One test fails at random. Only that test is in scope.", acceptance=checks)
        self.before_change = body["stateToken"]
        _told("continue_workflow", body)
        _told("continue_workflow", self.agent.done("Replaced the sleep by a wait for the form."))

    def blocked(self) -> None:
        _scene("It claims the check is done, without the report that the step demands.")
        _told("continue_workflow", self.agent.done("Looks fine."))
        _aside("So it runs the check and hands the report in.")
        _told("continue_workflow + report", self.agent.done("100 runs, 100 passed.", REPORT))

    def killed(self) -> None:
        _scene("The server is killed (kill -9) and the chat is lost.")
        gone = self.agent.pid
        self.agent.kill()
        self.agent = ScriptedAgent(self.folder)
        _aside(f"Process {gone} is gone. A new chat, process {self.agent.pid}, knows nothing but a word:")
        found = self.agent.call("resume_session", query="login")
        candidates = found["candidates"]
        assert isinstance(candidates, list)
        _line("resume_session login", f"found “{line_of(str(candidates[0]['title']))}”")
        body = self.agent.look(candidates[0]["stateToken"])
        recap = body["recap"]
        assert isinstance(recap, Mapping)
        notes = recap["entries"]
        assert isinstance(notes, list)
        _told("continue_workflow", body)
        _aside(f"Nothing was lost: its recap holds all {len(notes)} notes.")

    def gate(self) -> None:
        _scene("Here a person decides. The agent tries to walk past.")
        _told("continue_workflow", self.agent.done("I would accept it."))
        _aside("The user looks at it and asks for another round.")
        _told("continue_workflow + decision", self.agent.done("", _decision("rework")))

    def rewound(self) -> None:
        _scene("The user rewinds the chat to before the change and lets it try another way.")
        body = self.agent.look(self.before_change)
        _told("continue_workflow, old token", body)
        _aside("Work already went on from here: this becomes a branch, the first one stays.")
        _told("continue_workflow", self.agent.done("Made the form announce that it is ready."))
        _told("continue_workflow + report", self.agent.done("100 runs, 100 passed.", REPORT))
        _told("continue_workflow + decision", self.agent.done("", _decision("accept")))
        _told("continue_workflow", self.agent.done("Fixed at the root; the sleep is gone."))

    def tree(self) -> None:
        _scene("What is on record, as `interlock tree` draws it:")
        ledger = ledger_of(Config(data_dir=str(self.folder)))
        session = find_session(ledger, self.session, ledger.settings.owner)
        assert not isinstance(session, LedgerError), "the demo has just worked on it"
        draw(trees_of(ledger, session)[0])
        ledger.store.close()


def _decision(option: str) -> Answer:
    return {"kind": "wr.decision", "checkpointId": "accept-result", "optionId": option}


def _scene(text: str) -> None:
    say()
    say(paint(paragraph(text), "strong"))


def _aside(text: str) -> None:
    say(paint(paragraph(text, "  "), "quiet"))


def _told(call: str, body: Mapping[str, Json]) -> None:
    """One call and what came of it."""
    pending, blockers = body.get("pending"), body.get("blockers")
    if isinstance(blockers, list):
        _line(call, paint(f"blocked: {blockers[0]['code']}", "warn"))
    elif isinstance(pending, Mapping):
        verb = "decision" if "decision" in pending else "next"
        _line(call, f"{verb}: {line_of(str(pending['title']))}")
    else:
        _line(call, paint("complete", "good"))


def _line(call: str, outcome: str) -> None:
    say(f"{paint(f'  {call:<29}', 'accent')} {outcome}")


def _connect() -> None:
    here, anywhere = _own_command()
    say()
    say(paint("Connect your own client:", "strong"))
    say(f"  {here} install claude-code")
    say(paragraph(f"It installs into {', '.join(CLIENTS)}. Any other client starts the server with:"))
    say(f"  {anywhere} mcp")
    say("Then ask your agent to start a workflow. Or walk one yourself:")
    say(f"  {here} play wr.small_task")


def _own_command() -> tuple[str, str]:
    """How to type this command in this folder, and in any: by its name only where the PATH leads to it."""
    script = Path(sys.executable).with_name("interlock")
    if not script.is_file():
        module = shlex.join([sys.executable, "-m", "interlock"])
        return module, module
    found = shutil.which("interlock")
    if found and script.samefile(found):
        return "interlock", "interlock"
    is_below = Path.cwd() in script.parents[1:]
    here = script.relative_to(Path.cwd()) if is_below else script
    return shlex.quote(str(here)), shlex.quote(str(script))
