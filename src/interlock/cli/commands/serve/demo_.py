"""`interlock demo`: a scripted agent works through a bundled workflow on the real stdio server."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click

from interlock.cli.clients import CLIENTS
from interlock.cli.commands.sessions.tree_ import draw
from interlock.cli.compose import ledger_of
from interlock.cli.config import Config
from interlock.cli.screen import line_of, paint, paragraph, say
from interlock.cli.scripted_agent import Answer, ScriptedAgent
from interlock.core.values import Json
from interlock.ledger.queries.status import find_session
from interlock.ledger.queries.tree import trees_of
from interlock.ledger.runs.whole_session import WholeSession

GOAL = "Make the login test reliable"
REPORT: Answer = {
    "kind": "wr.verification_report",
    "verdict": "pass",
    "checks": [{"name": "login test, 100 runs", "result": "pass", "evidence": "100 passed"}],
    "summary": "The login test passed 100 times.",
}


@click.command(epilog="Example: interlock demo")
def command() -> None:
    """Show Interlock at work, without a client.

    A scripted agent meets a blocked step, a kill -9, a gate and a rewind. Nothing is kept.
    """
    with tempfile.TemporaryDirectory(prefix="interlock-demo-") as folder:
        story = Story(Path(folder))
        try:
            story.opening()
            story.blocked()
            story.killed()
            story.gate()
            story.rewound()
            story.tree()
        finally:
            story.agent.disconnect()
    here, anywhere = _own_command()
    say()
    say(paint("Connect your own client:", "strong"))
    say(f"  {here} install claude-code")
    say(paragraph(f"It installs into {', '.join(CLIENTS)}. Any other client starts the server with:"))
    say(f"  {anywhere} mcp")
    say("Then ask your agent to start a workflow. Or work through one yourself:")
    say(f"  {here} play wr.small_task")


class Story:
    """What the scripted agent does, printed as it happens."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.agent = ScriptedAgent(folder)
        self.session = ""
        self.before_change: Json = None

    def opening(self) -> None:
        _scene("An agent starts a workflow and gets one step at a time.")
        body = self.agent.call("start_workflow", workflowId="wr.small_task", context={"goal": GOAL})
        session = body["session"]
        assert isinstance(session, Mapping)
        self.session = str(session["sessionId"])
        _report("start_workflow wr.small_task", body)
        checks: list[Json] = ["The login test passes 100 times in a row"]
        body = self.agent.acknowledge(
            "One test fails at random. Only that test is in scope.", acceptance=checks
        )
        self.before_change = body["stateToken"]
        _report("continue_workflow", body)
        _report("continue_workflow", self.agent.acknowledge("Replaced the sleep by a wait for the form."))

    def blocked(self) -> None:
        _scene("It says that the check is done, without the report that the step requires.")
        _report("continue_workflow", self.agent.acknowledge("Looks fine."))
        _aside("So it runs the check and sends the report.")
        _report(
            "continue_workflow + report",
            self.agent.acknowledge("100 runs, 100 passed.", REPORT, checked="pass, 100 of 100 runs"),
        )

    def killed(self) -> None:
        _scene("The server is killed (kill -9) and the chat is lost.")
        killed = self.agent.pid
        self.agent.kill()
        self.agent = ScriptedAgent(self.folder)
        _aside(f"Process {killed} is gone. A new chat, process {self.agent.pid}, knows only one word:")
        candidates = self.agent.call("resume_session", query="login")["candidates"]
        assert isinstance(candidates, list)
        _line("resume_session login", f"found '{line_of(str(candidates[0]['title']))}'")
        body = self.agent.rehydrate(candidates[0]["stateToken"])
        recap = body["recap"]
        assert isinstance(recap, Mapping)
        notes = recap["entries"]
        assert isinstance(notes, list)
        _report("continue_workflow", body)
        _aside(f"Nothing was lost: its recap holds all {len(notes)} notes.")

    def gate(self) -> None:
        _scene("At a gate, a person decides. The agent tries to continue without an answer.")
        _report("continue_workflow", self.agent.acknowledge("I would accept it."))
        _aside("The user reviews the result and asks for another round.")
        _report("continue_workflow + decision", self.agent.acknowledge("", _decision("rework")))

    def rewound(self) -> None:
        _scene("The user rewinds the chat to before the change, to try another approach.")
        body = self.agent.rehydrate(self.before_change)
        _report("continue_workflow, old token", body)
        _aside("Continuing from an old step makes a branch; the first one stays.")
        _report("continue_workflow", self.agent.acknowledge("Made the form announce that it is ready."))
        _report(
            "continue_workflow + report",
            self.agent.acknowledge("100 runs, 100 passed.", REPORT, checked="pass, 100 of 100 runs"),
        )
        _report("continue_workflow + decision", self.agent.acknowledge("", _decision("accept")))
        _report("continue_workflow", self.agent.acknowledge("Fixed at the root; the sleep is gone."))

    def tree(self) -> None:
        _scene("The record, as `interlock tree` draws it:")
        ledger = ledger_of(Config(data_dir=str(self.folder)))
        session = find_session(ledger, self.session)
        draw(trees_of(WholeSession(ledger, session))[0])
        ledger.close()


def _decision(option: str) -> Answer:
    return {"kind": "wr.decision", "checkpointId": "accept-result", "optionId": option}


def _scene(text: str) -> None:
    say()
    say(paint(paragraph(text), "strong"))


def _aside(text: str) -> None:
    say(paint(paragraph(text, "  "), "quiet"))


def _report(call: str, body: Mapping[str, Json]) -> None:
    """Print a call and its outcome."""
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


def _own_command() -> tuple[str, str]:
    """Return how to type this command in this folder and in any; by its name only if it is on the PATH."""
    script = Path(sys.executable).with_name("interlock")
    if not script.is_file():
        module = shlex.join([sys.executable, "-m", "interlock"])
        return module, module
    on_path = shutil.which("interlock")
    if on_path and script.samefile(on_path):
        return "interlock", "interlock"
    is_below = Path.cwd() in script.parents[1:]
    here = script.relative_to(Path.cwd()) if is_below else script
    return shlex.quote(str(here)), shlex.quote(str(script))
