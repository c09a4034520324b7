"""Agents that know only the text of each answer, as a model does, and walk any workflow to its end.

One that is `forgetful` loses everything at every third call. At execution it finds its work by its goal;
elsewhere it keeps the one token that a session or state is named by, and asks where it is.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from typing import Any

from interlock.surfaces.call import Call, Reply
from interlock.surfaces.tool import Surface, call_tool

MOST_CALLS = 1500
WORDY = "did what it said, because of requirements; tests; edge cases "


class TextAgent(ABC):
    """Calls tools, reads the text, and remembers only what it needs for its next call."""

    def __init__(self, surface: Surface, workflow_id: str, goal: str, *, forgetful: bool = False) -> None:
        self.surface = surface
        self.workflow_id = workflow_id
        self.goal = goal
        self.forgetful = forgetful
        self.calls = 0
        self.seen: Counter[str] = Counter()

    def walk(self) -> str:
        """Walk from the start to the end, and return the last text."""
        text = self.begin()
        while not self.has_ended(text):
            assert self.calls < MOST_CALLS, text
            if self.forgetful and self.calls % 3 == 0:
                text = self.remember()
            text = self.go_on(text)
        return text

    def call(self, tool: str, **arguments: Any) -> str:
        self.calls += 1
        given = {name: value for name, value in arguments.items() if value is not None}
        reply = call_tool(self.surface, tool, given, Call())
        assert isinstance(reply, Reply), reply
        return reply.text

    def rotate(self, choices: list[Any], where: str) -> Any:
        """Take another choice each time, so that no way is taken for ever."""
        self.seen[where] += 1
        return choices[(self.seen[where] - 1) % len(choices)]

    def filled(self, value: Any, where: str) -> Any:
        """Put something in the place of a placeholder; anything else is sent as it stands."""
        if isinstance(value, str) and value.startswith("<") and value.endswith(">"):
            return self.rotate(value.strip("<>").split(" | "), where)
        if isinstance(value, dict):
            return {name: self.filled(member, f"{where}.{name}") for name, member in value.items()}
        return [self.filled(member, where) for member in value] if isinstance(value, list) else value

    def decisive(self, text: str, where: str) -> dict[str, Any]:
        """Choose values for the variables that a step is said to set, and for what ends its loops."""
        chosen: dict[str, Any] = {}
        told = text.partition("which decide what follows")[2].partition("\n\n")[0]
        for name, values in re.findall(r"^- `([\w.-]+)`(?:: (.+))?$", told, re.MULTILINE):
            options = [json.loads(value) for value in values.split(" | ")] if values else ["yes"]
            chosen[name] = self.rotate(options, f"{where}:{name}")
        for kind, name, test, value in re.findall(
            r"it (?:goes on|ends early) (until|while|when) ([\w.]+) (==|!=|in) (\[.*?\]|\"[^\"]*\"|\w+)", text
        ):
            wanted = json.loads(value)
            wanted = wanted[0] if isinstance(wanted, list) else wanted
            ends = (kind == "while") == (test == "!=")
            if "." not in name and name not in chosen:
                chosen[name] = wanted if ends else (not wanted if isinstance(wanted, bool) else "other")
        return chosen

    @abstractmethod
    def begin(self) -> str: ...

    @abstractmethod
    def has_ended(self, text: str) -> bool: ...

    @abstractmethod
    def remember(self) -> str:
        """Return the text that a lost agent starts from again."""

    @abstractmethod
    def go_on(self, text: str) -> str: ...


class ExecutionTextAgent(TextAgent):
    """Reads tokens, blocks, examples and questions from the text of the execution surface."""

    def begin(self) -> str:
        return self.call("start_workflow", workflowId=self.workflow_id, context={"goal": self.goal})

    def has_ended(self, text: str) -> bool:
        return "The workflow is complete" in text

    def remember(self) -> str:
        text = self.call("resume_session", query=f"please resume my work about {self.goal}")
        return text.partition("The best match, ready to go on:")[2]

    def go_on(self, text: str) -> str:
        tokens = dict(re.findall(r"^(stateToken|ackToken): (\S+)$", text, re.MULTILINE))
        found = re.findall(r"^## .* \(([^()]+)\)$", text, re.MULTILINE)
        where = found[-1] if found else ""
        artifacts: list[Any] = []
        context = self.decisive(text, where)
        for example in map(json.loads, re.findall(r"^  Example: (.+)$", text, re.MULTILINE)):
            filled = self.filled(example, where)
            if "kind" in filled:
                artifacts.append(filled)
            else:
                context.update(filled)
        for asked in re.findall(r"output\.artifacts: (\[.+\])$", text, re.MULTILINE):
            artifacts = [self.filled(example, where) for example in json.loads(asked)]
        for line in re.findall(r"^Send in context: (.+)\.$", text, re.MULTILINE):
            context.update({name: context.get(name, ["one"]) for name in line.split(", ")})
        notes = WORDY * 4 + " ".join(re.findall(r"^  (.+)$", text, re.MULTILINE))[:2000]
        output = {"notesMarkdown": notes, **({"artifacts": artifacts} if artifacts else {})}
        return self.call("continue_workflow", **tokens, context=context or None, output=output)


class NavigationTextAgent(TextAgent):
    """Takes the first required action of the JSON text, with what it says that it needs."""

    state = ""

    def begin(self) -> str:
        return self.call("nav_start", workflow_id=self.workflow_id, initial_variables={"goal": self.goal})

    def has_ended(self, text: str) -> bool:
        body = json.loads(text)
        self.state = body.get("state", self.state)
        return body.get("status") == "completed"

    def remember(self) -> str:
        return self.call("nav_situation", state=self.state)

    def go_on(self, text: str) -> str:
        body = json.loads(text)
        offered = body["availableActions"]
        actions = offered["required"] or offered["optional"]
        assert actions, text
        action = self.rotate(actions, str([action.get("activity") for action in actions]))
        names = ("step", "checkpoint", "activity", "loop")
        given = {f"{name}_id": action.get(f"{name}_id", action.get(name)) for name in names}
        where = str(given)
        round_text = (body["position"]["loop"] or {}).get("round", "")
        variables = self.decisive(f"{action.get('description', '')}\n\n{round_text}", where)
        artifacts: list[Any] = []
        for need in action.get("needs", []):
            filled = self.filled(need.get("example"), where)
            if need["parameter"] == "variables":
                variables.update(filled)
            elif filled is not None:
                artifacts.append(filled)
        for name in action.get("variables", []):
            variables.setdefault(name, 1)
        if action.get("options"):
            given["option_id"] = self.rotate(action["options"], where)
        notes = WORDY * 4 + json.dumps(action.get("needs", ""))[:2000]
        return self.call(
            "nav_action",
            state=body["state"],
            action=action["action"],
            loop_items=["one"] if "loop_items" in action else None,
            variables=variables or None,
            output={"notesMarkdown": notes, "artifacts": artifacts},
            **given,
        )
