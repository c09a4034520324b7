"""What a session costs an agent that is sent each text once, counted in bytes of text and `_meta`."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from interlock.authoring.library import BUNDLED, Library, Loaded
from interlock.authoring.sources.sources import Source
from interlock.core.definition.workflow import Workflow
from support.corpus import needs_corpus
from support.harness import Bench, compile_cache
from support.paths import CORPUS
from support.session_agents import QUICK, Answer, SessionAgent, session, start_flow


class Reader:
    """Reads all that it is pointed to at every visit, as the document says, and counts the bytes."""

    def __init__(self, agent: SessionAgent, full: bool) -> None:
        self.agent = agent
        self.full = full
        self.resources: dict[str, list[str]] = {}
        self.received = 0

    def call(self, tool: str, **arguments: Any) -> Answer:
        answer = self.agent.tell(tool, **arguments)
        self.received += len(answer.text.encode()) + len(json.dumps(answer.meta))
        return answer

    def read(self, tool: str, **arguments: Any) -> str:
        return self.call(tool, **arguments, full=self.full).text

    def read_skill(self, name: str, **arguments: Any) -> None:
        """Read a skill and every resource that it names."""
        text = self.read("get_skill", **arguments)
        named = re.search(r"^resources\[\d+\]:.*(?:\n  - .*)*", text, re.MULTILINE)
        if named is not None:
            self.resources[name] = re.findall(r"[\w-]+/\d+|(?<!\[)\b\d+\b(?!\])", named[0])
        for ref in self.resources.get(name, ()):
            self.read("get_resource", resource_id=ref)

    def walk(self, workflow: Workflow) -> None:
        """Visit every activity in the order of the files, whatever leads there."""
        self.agent.call("start_session", agent_id="a", workflow_id=workflow.id)
        self.read("get_skills")
        self.read("get_workflow")
        for activity in workflow.activities:
            self.agent.go(activity.id, variables={"analysis_units": []})
            self.read("get_activity")
            if activity.primary_skill:
                self.read_skill(activity.primary_skill)
            for step in activity.steps():
                if step.skill is not None:
                    self.read_skill(step.skill, step_id=step.id)


@needs_corpus
@pytest.mark.parametrize(("name", "most"), [("cicd-pipeline-security-audit", 0.31), ("prism", 0.44)])
def test_sending_each_text_once_saves_most_of_what_a_large_folder_costs(
    bench: Bench, name: str, most: float
) -> None:
    library = Library([BUNDLED, Source("configured", CORPUS / "activities")], compile_cache())
    loaded = library.load(name)
    assert isinstance(loaded, Loaded)
    received = {}
    for full in (False, True):
        agent = session(bench, QUICK)
        agent.ledger.library = library
        reader = Reader(agent, full)
        reader.walk(loaded.workflow)
        received[full] = reader.received
    assert received[False] / received[True] <= most, received


def test_a_value_does_not_make_an_activity_new(bench: Bench) -> None:
    agent = start_flow(bench)
    agent.tell("get_activity")
    agent.go("build", variables={"goal": "bread"})
    again = agent.tell("get_activity").text
    assert "\nvalues: goal=bread\nunchanged: true" in again
    assert "Is bread the goal?" in agent.tell("get_activity", full=True).text


def test_a_checkpoint_that_cannot_apply_any_more_is_left_out_and_named(bench: Bench) -> None:
    agent = start_flow(bench)
    assert "Is it worth it?" in agent.tell("get_activity").text
    agent.go("build", variables={"risky": False})
    text = agent.tell("get_activity").text
    assert "\nleft out, because their conditions are false in this run: danger\n" in text
    assert "Is it worth it?" not in text
