"""Agents that know only the text of each answer, as a model does, and walk any workflow to its end.

One that is `forgetful` loses everything at every third call but what its user can say: the goal. At execution
it searches for its work itself; elsewhere the user runs the prompt `resume`, whose text names a token. Where
a `person` decides, forms are filled in at once; what waits in the inbox is decided when a call has returned,
and the agent is then told to go on.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import toon_format
from msgspec import Struct

from interlock.surfaces.call import Call, Client, Elicit, Reply
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.gated import GatedSurface
from interlock.surfaces.ledger_surface import LedgerSurface
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.session import SessionSurface
from interlock.surfaces.tool import call_tool
from support.persons import Person

MOST_CALLS = 600
WORDY = "did what it said, because of requirements; tests; edge cases "


class TextAgent(ABC):
    """Calls tools, reads the text, and remembers only what it needs for its next call."""

    def __init__(
        self,
        surface: LedgerSurface,
        workflow_id: str,
        goal: str,
        *,
        forgetful: bool = False,
        inputs: Mapping[str, Any] | None = None,
        person: Person | None = None,
    ) -> None:
        self.surface = surface
        self.workflow_id = workflow_id
        self.goal = goal
        self.inputs = {"goal": goal, **(inputs or {})}
        self.forgetful = forgetful
        self.answers: list[str] = []
        self.person = person
        self.seen: Counter[str] = Counter()
        self.sent: list[Any] = []
        self.kinds: dict[str, str] = {}

    def walk(self) -> str:
        """Walk from the start to the end, and return the last text."""
        text = self.begin()
        while not self.has_ended(text):
            assert self.calls < MOST_CALLS, text
            is_lost = self.forgetful and self.calls % 3 == 0
            text = self.remember() if is_lost or self.has_been_decided() else self.go_on(text)
        return text

    def has_been_decided(self) -> bool:
        """Let the person decide what waits in the inbox; say whether anything did."""
        return self.person is not None and self.person.decide()

    def offered(self, examples: list[Any]) -> list[Any]:
        """Return the examples of a refusal, none of which was just sent: an example passes (rule 31).

        One with a choice may come again: not every choice passes.
        """
        for example in examples:
            is_choice = " | " in json.dumps(example)
            assert is_choice or example not in self.sent, f"was sent, and is asked for again: {example}"
        self.sent = examples
        return examples

    def resume_prompt(self) -> str:
        """Return what the client sends when the user wants to go on with the work on the goal."""
        text = self.surface.prompts().text("resume", {"query": f"please resume my work about {self.goal}"})
        assert text is not None
        return text

    @property
    def calls(self) -> int:
        return len(self.answers)

    def call(self, tool: str, **arguments: Any) -> str:
        given = {name: value for name, value in arguments.items() if value is not None}
        for field in given.keys() & {"context", "variables", "initial_variables"}:
            given[field] = {name: self.typed(name, value) for name, value in given[field].items()}
        reply = self._asking(tool, given, Call(Client(can_elicit=self.person is not None)))
        assert isinstance(reply, Reply), reply
        self.answers.append(reply.text)
        self.kinds.update(re.findall(r"'([\w-]+)' is not taken: it is declared as (\w+)", reply.text))
        return reply.text

    def _asking(self, tool: str, given: dict[str, Any], call: Call) -> object:
        """Make a call, with the forms that it is held up by."""
        reply = call_tool(self.surface, tool, given, call)
        while isinstance(reply, Elicit):
            assert self.person is not None, reply
            answers = {**call.answers, **self.person.fill_in(reply)}
            call = Call(call.client, answers, reply.state)
            reply = call_tool(self.surface, tool, given, call)
        return reply

    def typed(self, name: str, value: Any) -> Any:
        """Return a value of the type that the server has said a variable has."""
        match self.kinds.get(name):
            case "boolean":
                return value if isinstance(value, bool) else self.rotate([True, False], name)
            case "number":
                return 1
            case "array":
                return value if isinstance(value, list) else ["one"]
            case "object":
                return value if isinstance(value, dict) else {"name": "one"}
            case _:
                return value

    def rotate(self, choices: list[Any], where: str) -> Any:
        """Take another choice each time, so that no way is taken for ever."""
        self.seen[where] += 1
        return choices[(self.seen[where] - 1) % len(choices)]

    def filled(self, value: Any, where: str) -> Any:
        """Put something in the place of a placeholder; anything else is sent as it stands."""
        if isinstance(value, str) and value.startswith("<a number, such as "):
            return json.loads(value.strip("<>").rpartition(" ")[2])
        if value in ("<a whole number>", "<a number>"):
            return 1
        if isinstance(value, str) and where.endswith(".level"):  # the best of a scale comes last
            return self.rotate(value.strip("<>").split(" | ")[::-1], where)
        if value == "<true | false>":
            return self.rotate([True, False], where)
        if isinstance(value, str) and value.startswith("<") and value.endswith(">"):
            return self.rotate(value.strip("<>").split(" | "), where)
        if isinstance(value, dict):
            return {name: self.filled(member, f"{where}.{name}") for name, member in value.items()}
        return [self.filled(member, where) for member in value] if isinstance(value, list) else value

    def decisive(self, text: str, where: str) -> dict[str, Any]:
        """Choose values for the variables that a step is said to set, and for what ends its loops."""
        chosen: dict[str, Any] = {}
        for name, values in re.findall(r"^- (?:context|variables)\.([\w-]+)[^:]*: (.+)$", text, re.MULTILINE):
            legal = values.partition("; or in")[0]
            if legal.startswith("<") and legal.endswith(">"):
                chosen[name] = self.filled(legal if " | " in legal or "number" in legal else "yes", where)
                continue
            options = ["yes" if value.startswith("<") else json.loads(value) for value in legal.split(" | ")]
            chosen[name] = self.filled(self.rotate(options, f"{where}:{name}"), where)
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
        """Forget everything, and return the text of the one call that a lost agent begins with."""

    @abstractmethod
    def go_on(self, text: str) -> str: ...


class ExecutionTextAgent(TextAgent):
    """Reads tokens, blocks, examples and questions from the text of the execution surface."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)

    def begin(self) -> str:
        return self.call("start_workflow", workflowId=self.workflow_id, context=self.inputs)

    def has_ended(self, text: str) -> bool:
        return "The workflow is complete" in text

    def remember(self) -> str:
        text = self.call("resume_session", query=f"please resume my work about {self.goal}")
        return text.partition("The best match, ready to go on:")[2]

    step = ""  # the last one that was read

    def go_on(self, text: str) -> str:
        tokens = dict(re.findall(r"^(stateToken|ackToken): (\S+)$", text, re.MULTILINE))
        if text.startswith("BLOCKED"):  # it says only what is missing
            text = f"{text}\n\n{self.step}"
        else:
            self.step = text
        found = re.findall(r"^## .* \(([^()]+)\)$", text, re.MULTILINE)
        where = found[-1] if found else ""
        artifacts: list[Any] = []
        context = self.decisive(text, where)
        shown = [json.loads(example) for example in re.findall(r"^  Example: (.+)$", text, re.MULTILINE)]
        for example in self.offered(shown):
            filled = self.filled(example, where)
            if "kind" in filled:
                artifacts.append(filled)
            else:
                context.update(filled)
        for asked in re.findall(r"^- output\.artifacts [^:]*: ({.+)$", text, re.MULTILINE):
            example, _ = json.JSONDecoder().raw_decode(asked)
            named = [(artifact["kind"], artifact.get("assessmentId")) for artifact in artifacts]
            if (example["kind"], example.get("assessmentId")) not in named:
                artifacts.append(self.filled(example, where))
        for shape in re.findall(r"^Send in context: ({.+})$", text, re.MULTILINE):
            context = {**self.filled(json.loads(shape), where), **context}
        prompt = text.rpartition("\n---\n")[0].rpartition("\n## ")[2]
        notes = f"{WORDY * 4}{' '.join(re.findall(r'^  (.+)$', text, re.MULTILINE))[:2000]} {prompt[-2000:]}"
        output = {"notesMarkdown": notes, **({"artifacts": artifacts} if artifacts else {})}
        return self.call("continue_workflow", **tokens, context=context or None, output=output)


class NavigationTextAgent(TextAgent):
    """Takes the first required action of the JSON text, with what it says that it needs."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)

    def begin(self) -> str:
        return self.call("nav_start", workflow_id=self.workflow_id, initial_variables=self.inputs)

    def has_ended(self, text: str) -> bool:
        return bool(json.loads(text).get("status") == "completed")

    def remember(self) -> str:
        token = re.search(r'nav_situation with state "([^"]+)"', self.resume_prompt())
        assert token is not None
        return self.call("nav_situation", state=token[1])

    def go_on(self, text: str) -> str:
        body = json.loads(text)
        chose = "is not accepted" in body["message"]  # of the choices in an example, not each passes
        assert body["success"] or chose, f"an action was taken as it was offered, and failed: {text}"
        offered = body["availableActions"]
        actions = offered["required"] or offered["optional"]
        assert actions, text
        action = self.rotate(actions, str([action.get("activity") for action in actions]))
        return self.call("nav_action", **self.arguments(body, action))

    def arguments(self, body: dict[str, Any], action: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of an offered action: its own, and what it says that it needs."""
        given = {name: value for name, value in action.items() if name == "action" or name.endswith("_id")}
        where = str(given)
        loop, described = body["position"]["loop"] or {}, action.get("description", "")
        told = f"{described}\n\n{loop.get('round', '')}"
        variables = self.decisive(told, where) if action["action"] == "complete_step" else {}
        if "example" in action:
            variables.update(self.filled(action["example"], where))
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
        if "loop_items" in action:
            given["loop_items"] = self.filled(action["loop_items"], where)
        told = f"{json.dumps(action.get('needs', ''))[:2000]} {described[:2000]}"
        output = {"notesMarkdown": WORDY * 4 + told, "artifacts": artifacts}
        return {"state": body["state"], **given, "variables": variables or None, "output": output}


class Visit(Struct):
    """What an agent keeps in mind while it works on one activity."""

    outputs: dict[str, Any] = {}
    variables: dict[str, Any] = {}
    again: list[dict[str, Any]] = []  # what steps of a loop hand in for further rounds
    target: str | None = None


class ActivityTextAgent(TextAgent):
    """What the agents of session and gated do alike: they read an activity, and hand in what it asks for."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.token = ""
        self.visit = Visit()
        self.read: dict[str, Any] = {}  # activities, by their digests

    def forget(self) -> None:
        self.token, self.visit, self.read = "", Visit(), {}

    def has_ended(self, text: str) -> bool:
        return '"status":"completed"' in text

    def tell(self, tool: str, **arguments: Any) -> str:
        return self.call(tool, session_token=self.token, **arguments)

    def progress(self, tool: str, **arguments: Any) -> str:
        """Make a call that takes the work along: a manifest of the steps, and the variables they set."""
        manifest = [{"step_id": step, "output": output} for step, output in self.visit.outputs.items()]
        manifest += self.visit.again
        return self.tell(tool, step_manifest=manifest, variables=self.visit.variables, **arguments)

    def read_token(self, text: str) -> None:
        found = re.findall(r'"session_token":"(\S+?)"|^session_token: (\S+)$', text, re.MULTILINE)
        if found:
            self.token = "".join(found[-1])

    def take_in(self, activity: dict[str, Any]) -> None:
        """Do the steps of an activity: notes, the artifacts that are shown by example, variables."""
        for step in steps_in(activity):
            artifacts = [
                self.filled(asked.get("example", {"kind": asked["kind"]}), step["id"])
                for asked in listed(step.get("output"))
                if isinstance(asked, dict) and "kind" in asked
            ]
            notes = WORDY * 4 + str(step.get("description", step.get("prompt", "")))[:2000]
            self.visit.outputs[step["id"]] = {"notesMarkdown": notes, "artifacts": artifacts}
            for action in listed(step.get("actions")):
                if isinstance(action, dict) and action.get("action") == "set" and "value" not in action:
                    self.visit.variables[action["target"]] = (
                        "yes" if action["target"] != "goal" else self.goal
                    )
        for loop in listed(activity.get("loops")):
            if "over" in loop:
                self.visit.variables[loop["over"].partition(".")[0]] = ["one"]

    def take_missing(self, told: str) -> bool:
        """Take in the variables that a text asks for; say whether it asks for any."""
        shapes = [json.loads(found) for found in re.findall(r"[Ss]end in variables: ({.+?})\.(?:\s|$)", told)]
        for shape in shapes:
            self.visit.variables.update(self.filled(shape, "missing"))
        return bool(shapes)

    def end_loop(self, told: str) -> bool:
        """Take in the variable that ends a loop whose next round is due; say whether the text names one."""
        due = re.search(
            r"is due: it goes on (while|until) ([\w.-]+) (==|!=) (\S+?)[.;]?(?: |$)", told, re.MULTILINE
        )
        if due is None:
            return False
        how, name, sign, text = due.groups()
        value = json.loads(text)
        ends_at_value = (how == "until") == (sign == "==")
        other = not value if isinstance(value, bool) else "another"
        self.visit.variables[name] = value if ends_at_value else other
        return True

    def take_requirements(self, told: str) -> None:
        """Take in what the outputs of steps must be like, as it is said beside the steps."""
        for step, wanted in re.findall(r"([\w.-]+) \((the output [^()]+(?:\([^()]*\)[^()]*)*)\)", told):
            if step in self.visit.outputs:
                self.visit.outputs[step]["notesMarkdown"] += wanted
        for step, example in re.findall(
            r"artifact of step '([^']+)' in step_manifest. Example: ({.*?})\.", told
        ):
            self.visit.outputs[step]["artifacts"].append(self.filled(json.loads(example), step))

    def supply(self, text: str) -> str | None:
        """Take in what a refusal asks for; return its text if it asks for nothing that is understood."""
        step = re.search(
            r"^Next: (?:Send what|Ask the user, then send the answer as an artifact of) step '([^']+)'",
            text,
            re.MULTILINE,
        )
        examples = re.findall(r"^Example of an artifact: (.+)$", text, re.MULTILINE)
        shown = self.offered([json.loads(example) for example in examples])
        if step is not None:
            output = self.visit.outputs.setdefault(step[1], {"notesMarkdown": WORDY * 4, "artifacts": []})
            output["notesMarkdown"] += text
            output["artifacts"] += [self.filled(example, step[1]) for example in shown]
        elif first := re.search(
            r"^Next: Call next_activity with activity_id '([^']+)' first", text, re.MULTILINE
        ):
            self.visit.target = first[1]
        elif self.take_due(text):
            self.end_loop(text)
        elif not self.take_missing(text):
            return text
        return None

    def take_due(self, told: str) -> bool:
        """Do the steps of a round that a text says is due; say whether it does."""
        due = re.search(
            r"(?:Do its steps and send them in|Do the steps of this one, and say in) step_manifest"
            r"(?: what came of it)?: ([\w, -]+)\.",
            told,
        )
        if due is not None:
            self.visit.again += [self.another_round(step) for step in due[1].split(", ")]
        return due is not None

    def another_round(self, step: str) -> dict[str, Any]:
        """Return what a step of a loop hands in once more; its decision ends the loop."""
        sent = self.visit.outputs.get(step, {"notesMarkdown": WORDY, "artifacts": []})
        notes = f"{sent['notesMarkdown']} Round {len(self.visit.again) + 2}."
        artifacts = [
            {**artifact, "decision": "stop"} if artifact.get("kind") == "wr.loop_control" else artifact
            for artifact in sent["artifacts"]
        ]
        return {"step_id": step, "output": {"notesMarkdown": notes, "artifacts": artifacts}}


class SessionTextAgent(ActivityTextAgent):
    """Orchestrator and worker at once: reads TOON and JSON, yields and answers every checkpoint."""

    def begin(self) -> str:
        return self.call("start_session", agent_id="lone", workflow_id=self.workflow_id)

    def remember(self) -> str:
        self.forget()
        token = re.search(r'start_session with session_token "([^"]+)"', self.resume_prompt())
        assert token is not None
        return self.call("start_session", agent_id="lone", session_token=token[1])

    def go_on(self, text: str) -> str:
        self.read_token(text)
        if text.startswith("{"):
            return self._after(json.loads(text))
        if first := re.search(r"^initialActivity: (\S+)$", text, re.MULTILINE):
            return self._enter(first[1])
        if independent := re.search(
            r"^activities\[\d+\]\{id,name,required\}:\n  (\S+?),", text, re.MULTILINE
        ):
            return self._enter(independent[1])
        if exits := re.search(r"^exits: (.+)$", text, re.MULTILINE):
            return self._work(text, exits[1])
        if handle := re.search(r"^checkpoint_handle: (\S+)$", text, re.MULTILINE):
            options = re.findall(r"^  - id: (\S+)$", text.partition("\noptions[")[2], re.MULTILINE)
            chosen = self.rotate(options, text.partition("\n")[0])
            return self.call("respond_checkpoint", checkpoint_handle=handle[1], option_id=chosen)
        return self._put_right(text)

    def _enter(self, activity: str) -> str:
        self.visit = Visit()
        return self.tell("next_activity", activity_id=activity, variables=self.inputs)

    def _after(self, body: dict[str, Any]) -> str:
        """Follow what a JSON answer says: what was yielded, resolved, entered, or taken up again."""
        if body.get("status") == "yielded":
            return self.call("present_checkpoint", checkpoint_handle=body["checkpoint_handle"])
        if body.get("resolved"):
            return self.tell("resume_checkpoint")
        action = body.get("next_action", "Call get_workflow" if "workflow" in body else "Call get_activity")
        if "present_checkpoint with session_token" in action:
            return self.tell("present_checkpoint")
        return self.tell("get_workflow" if action.startswith("Call get_workflow") else "get_activity")

    def _work(self, text: str, exits: str) -> str:
        """Do the steps, stop at the next checkpoint, or leave by the expected exit."""
        self.visit = Visit()
        digest = text.partition("digest: ")[2].partition("\n")[0]
        if "\nunchanged: true" not in text:
            self.read[digest] = text
        self.take_in(toon_in(self.read[digest]))
        self.visit.variables.update(self.decisive(text, text))
        missing = re.search(r"^before next_activity: (.+)$", text, re.MULTILINE)
        self.take_missing(missing[1] if missing else "")
        self.take_requirements(missing[1] if missing else "")
        self.take_due(missing[1] if missing else "")
        open_exits = [exit_.partition(" ")[0] for exit_ in exits.split("; ")]
        expected = [exit_.partition(" ")[0] for exit_ in exits.split("; ") if exit_.endswith("(expected)")]
        self.visit.target = self.rotate([*expected * 3, *open_exits], exits)
        if gate := re.search(
            r"^before next_activity: .*yield_checkpoint with checkpoint_id '([^']+)'", text, re.MULTILINE
        ):
            return self.progress("yield_checkpoint", checkpoint_id=gate[1])
        return self.progress("next_activity", activity_id=self.visit.target)

    def _put_right(self, text: str) -> str:
        if gate := re.search(r"yield_checkpoint with checkpoint_id '([^']+)'", text):
            return self.progress("yield_checkpoint", checkpoint_id=gate[1])
        assert self.supply(text) is None, text
        return self.progress("next_activity", activity_id=self.visit.target)


class GatedTextAgent(ActivityTextAgent):
    """Answers every pending checkpoint of the activity that `next_activity` returns, then goes on."""

    missing = ""
    _again: Callable[[], str]

    def begin(self) -> str:
        return self.call("start_session", workflow_id=self.workflow_id)

    def remember(self) -> str:
        self.forget()
        token = re.search(r'workflow_id "([^"]+)" and session_token "([^"]+)"', self.resume_prompt())
        assert token is not None
        return self.call("start_session", workflow_id=token[1], session_token=token[2])

    def go_on(self, text: str) -> str:
        self.read_token(text)
        if gate := re.search(
            r"^Next: Call respond_checkpoint with checkpoint_id: ([\w.-]+)\.(?: |$)", text, re.MULTILINE
        ):
            return self._answer(gate[1], {})
        if "\nNext: Go on with the activity." in text:
            return self._work({"resolved": True, "remaining_checkpoints": []})
        if held := re.search(r"^Cannot dismiss checkpoint '([^']+)': its condition holds", text):
            return self._answer(held[1], {})
        if not text.startswith("{"):
            assert self.supply(text) is None, text
            return self._again()
        body = json.loads(text)
        if again := re.search(r"activity_id '([^']+)' to read", body.get("next_action", "")):
            self.missing = body["next_action"]
            return self.tell("next_activity", activity_id=again[1])
        if "workflow" in body:
            return self.tell("get_workflow")
        if "initialActivity" in body or "activities" in body:
            self.visit = Visit()
            first = body.get("initialActivity") or body["activities"][0]["id"]
            return self.tell("next_activity", activity_id=first, variables=self.inputs)
        return self._work(body)

    def _work(self, body: dict[str, Any]) -> str:
        """Answer one pending checkpoint; with none left, leave by the expected exit."""
        if "pending_checkpoints" in body:
            self.visit = Visit()
            if body.get("unchanged"):
                body = {**self.read[body["digest"]], **body}
            self.read[body["digest"]] = body
            self.take_in(body)
            self.take_missing(self.missing)
            self.take_requirements(self.missing)
            self.take_due(self.missing)
            named = re.search(r"Call respond_checkpoint with checkpoint_id: ([\w.-]+)\.", self.missing)
            self.activity, self.missing = body, ""
            if named is not None and not body["pending_checkpoints"]:
                return self._answer(named[1], {})
        if "resolved" in body:
            body = {"pending_checkpoints": body["remaining_checkpoints"], **body}
        if pending := body["pending_checkpoints"]:
            return self._answer(pending[0], body)
        targets = [move["to"] for move in self.activity.get("transitions", [])]
        branches = [branch for point in self.activity.get("decisions", []) for branch in point["branches"]]
        targets += [branch["transitionTo"] for branch in branches if branch.get("transitionTo")]
        expected = [body["expected_next"]] if "expected_next" in body else []
        self.visit.target = self.rotate([*expected * 3, *targets], self.activity["id"])
        self._again = lambda: self.progress("next_activity", activity_id=self.visit.target)
        return self._again()

    def _answer(self, gate: str, body: dict[str, Any]) -> str:
        if gate in body.get("dismissible_checkpoints", []):
            return self._respond(gate, condition_not_met=True)
        shown = next(asked for asked in self.activity["checkpoints"] if asked["id"] == gate)
        chosen = self.rotate([option["id"] for option in shown["options"]], gate)
        return self._respond(gate, option_id=chosen)

    def _respond(self, gate: str, **how: Any) -> str:
        self._again = lambda: self.progress("respond_checkpoint", checkpoint_id=gate, **how)
        return self._again()


def toon_in(text: str) -> dict[str, Any]:
    """Read the activity under the header, as well as it can be read."""
    body = toon_format.decode(text.partition("\n\n")[2], strict=False)
    return body if isinstance(body, dict) else {}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


def steps_in(activity: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the steps of an activity and of its loops."""
    owners = [activity, *listed(activity.get("loops"))]
    steps = [step for owner in owners for step in listed(owner.get("steps"))]
    return [step for step in steps if isinstance(step, dict) and "id" in step]


AGENTS: dict[str, tuple[type[TextAgent], type[LedgerSurface]]] = {
    "execution": (ExecutionTextAgent, ExecutionSurface),
    "session": (SessionTextAgent, SessionSurface),
    "gated": (GatedTextAgent, GatedSurface),
    "navigation": (NavigationTextAgent, NavigationSurface),
}
