"""Play the example of the README for real: the agent's side as text, the user's side as a picture.

`python -m tools.readme_gate` prints the transcript and writes docs/images/gate.svg. A test compares both with
what the product does today.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from interlock.cli.scripted_agent import Answer, ScriptedAgent
from interlock.core.values import Json

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "gate.svg"
SHOWN_ID = "hmc3gzdk"
COLUMNS = 64


class Example(NamedTuple):
    """The lines of the agent's side, and what the user's terminal showed, with its colours."""

    transcript: list[str]
    screen: str


def play(folder: Path) -> Example:
    """Let a scripted agent run into the gate of the README's workflow, and decide as the user."""
    readme = (ROOT / "README.md").read_text("utf-8")
    workflow = re.search(r"^```yaml deploy\.yaml\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert workflow, "the README shows deploy.yaml"
    (folder / "deploy.yaml").write_text(workflow[1], "utf-8")
    agent = ScriptedAgent(folder / "data", "--workflows", str(folder / "deploy.yaml"), "--decisions", "user")
    try:
        return _play(agent, folder / "data")
    finally:
        agent.disconnect()


def _play(agent: ScriptedAgent, data: Path) -> Example:
    started = agent.call("start_workflow", workflowId="team.deploy", context={"goal": "Deploy release 2.4.0"})
    lines = ["agent   start_workflow team.deploy", _reply(started)]
    notes = "Built 2.4.0, all tests pass."
    lines += [f"agent   continue_workflow: {notes}", _reply(agent.acknowledge(notes, release="2.4.0"))]
    notes = "The user would surely approve."
    decision: Answer = {"kind": "wr.decision", "checkpointId": "approve", "optionId": "deploy"}
    lines += [f"agent   continue_workflow: {notes}", _reply(agent.acknowledge(notes, decision))]

    session = started["session"]
    assert isinstance(session, Mapping)
    ref = str(session["sessionId"]).removeprefix("sess_")[:8]
    screen = ""
    for command in ("inbox", f"decide {ref} deploy"):
        screen += f"\x1b[1m$ interlock {command}\x1b[0m\n{_at_a_terminal(command, data)}\n"
    shown = screen.replace(ref, SHOWN_ID).strip() + "\n"
    answer = re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines()[-1]
    lines += [f"user    interlock decide {SHOWN_ID} deploy", f"server  {answer}"]
    lines += ["agent   continue_workflow", _reply(agent.acknowledge(""))]
    return Example(lines, shown)


def _reply(body: Mapping[str, Json]) -> str:
    """Say on one line what the server answered: a blocker, or the pending item with its prompt."""
    blockers, pending = body.get("blockers"), body["pending"]
    if isinstance(blockers, list):
        return f"server  BLOCKED ({blockers[0]['code']})"
    assert isinstance(pending, Mapping)
    return f"server  {pending['title']}: {str(pending['prompt']).splitlines()[0]}"


def _at_a_terminal(command: str, data: Path) -> str:
    """Run a command at a terminal, and answer its question with yes."""
    master, slave = pty.openpty()
    settings = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    settings.pop("NO_COLOR", None)
    environment = {**settings, "INTERLOCK_DATA_DIR": str(data), "COLUMNS": str(COLUMNS), "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-m", "interlock", *command.split()],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
    )
    os.close(slave)
    printed = ""
    for chunk in _chunks(master):
        printed += chunk
        if printed.endswith("[Y/n]: "):
            os.write(master, b"y\n")
    os.close(master)
    process.wait()
    return printed.replace("\r\n", "\n")


def _chunks(master: int) -> Iterator[str]:
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # Linux reports the end of a pseudo-terminal as an error
            return
        if not chunk:
            return
        yield chunk.decode()


def picture(screen: str) -> str:
    """Draw a terminal screen as SVG."""
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen), soft_wrap=True)
    svg = console.export_svg(title="The user decides", unique_id="gate")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # browsers load no fonts for a picture


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        example = play(Path(folder))
    print("\n".join(example.transcript))
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(example.screen), "utf-8")
