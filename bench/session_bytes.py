"""Count the bytes of a whole walk through the session surface, as it is sent and with every text whole.

    python -m bench.session_bytes [--workflows FOLDER] [--workflow ID]

The agent follows the document: at every visit it reads the activity, the skill of every step that names one,
and every resource that the skill names. The server remembers what it has sent; with `full` it sends every
text again. Walks every workflow of the folder. Drives the real server over stdio.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.server import Server
from bench.session_walk import CORPUS, Agent, enter, load_workflow
from interlock.core.definition.workflow import Workflow


class Reader:
    """An agent that reads all that it is pointed to."""

    def __init__(self, agent: Agent, full: bool) -> None:
        self.agent = agent
        self.full = full
        self.resources: dict[str, list[str]] = {}

    def read(self, tool: str, **arguments: Any) -> str:
        """Read a text, or hear that it was read before."""
        text: str = self.agent.call(tool, **arguments, full=self.full)["content"][0]["text"]
        return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workflow", help="default: every workflow of the folder")
    parser.add_argument("--workflows", type=Path, help="default: the corpus, else the bundled work-package")
    options = parser.parse_args()
    folder = options.workflows or (CORPUS if CORPUS.is_dir() and not options.workflow else None)
    for name in [options.workflow] if options.workflow else names_in(folder):
        workflow, source_bytes = load_workflow(name, folder)
        print(f"{name}: {source_bytes:,} bytes in its folder")
        short, whole = (bytes_of_walk(workflow, folder, full=full) for full in (False, True))
        print(f"  {short:,} bytes; with every text whole {whole:,}: {short / whole:.3f} of it")


def names_in(folder: Path | None) -> list[str]:
    """Name the workflows of a folder, or the bundled one that is measured where there is no folder."""
    return sorted(path.parent.name for path in folder.glob("*/workflow.*")) if folder else ["work-package"]


def bytes_of_walk(workflow: Workflow, folder: Path | None, *, full: bool) -> int:
    """Count the bytes that one agent receives in a walk."""
    arguments = ["--surface", "session", "--min-response-seconds", "0"]
    if folder:
        arguments += ["--workflows", str(folder)]
    with TemporaryDirectory() as data:
        server = Server(Path(data), *arguments)
        agent = Agent(server)
        reader = Reader(agent, full)
        agent.call("discover")
        agent.call("list_workflows")
        agent.call("start_session", agent_id="agent", workflow_id=workflow.id)
        reader.read("get_skills")
        reader.read("get_workflow")
        walk(reader, workflow)
        server.close()
    received: int = server.bytes_received
    return received


def walk(reader: Reader, workflow: Workflow) -> None:
    """Visit every activity in the order of the files, then end."""
    visits: Counter[str] = Counter()
    done: list[dict[str, Any]] = []
    for activity in workflow.activities:
        enter(reader.agent, activity.id, workflow, visits, done)
        done = [{"step_id": step.id, "output": "done"} for step in activity.steps()]
        reader.read("get_activity")
        if activity.primary_skill:
            read_skill(reader, activity.primary_skill)
        for step in activity.steps():
            if step.skill is not None:
                read_skill(reader, step.skill, step_id=step.id)
    enter(reader.agent, "__terminal__", workflow, visits, done)


def read_skill(reader: Reader, name: str, **arguments: Any) -> None:
    """Read a skill and every resource that it names."""
    skill = reader.read("get_skill", **arguments)
    listed = re.search(r"^resources\[\d+\]:.*(?:\n  - .*)*", skill, re.MULTILINE)
    named = re.findall(r"[\w-]+/\d+|(?<!\[)\b\d+\b(?!\])", listed[0]) if listed else []
    if listed is not None:
        reader.resources[name] = named
    for ref in reader.resources.get(name, ()):
        reader.read("get_resource", resource_id=ref)


if __name__ == "__main__":
    main()
