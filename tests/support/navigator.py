"""An agent at the navigation surface that knows nothing but what `availableActions` tells it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from support.harness import filled

Payload = dict[str, Any]
Call = Callable[..., Payload]

PARAMETER = {
    "complete_step": ("step_id", "step"),
    "respond_to_checkpoint": ("checkpoint_id", "checkpoint"),
    "transition": ("activity_id", "activity"),
    "advance_loop": ("loop_id", "loop"),
}
QUOTED = re.compile("contains '([^']*)'")
CLAIM = re.compile(r"([\w.-]+) == (true|false|\"[^\"]*\"|-?\d+)")


class Navigator:
    """Takes required actions in turn; at a repeated place it tries the next choice, so that it gets out."""

    def __init__(self, call: Call, notes: str = "done") -> None:
        self.call = call
        self.notes = notes
        self.seen: Counter[str] = Counter()
        self.taken: list[str] = []

    def walk(self, workflow_id: str, most: int = 3000) -> Payload:
        """Walk to the end, and return the last answer."""
        answer = self.call("nav_start", workflow_id=workflow_id)
        assert answer["success"], answer
        while answer.get("status") != "completed":
            assert len(self.taken) < most, f"no end after {most} actions: {self.taken[-8:]}"
            answer = self.step(answer)
        return answer

    def step(self, answer: Payload) -> Payload:
        """Take one action that is listed, with the parameters that it lists."""
        arguments = self.choose(answer)
        self.taken.append(arguments["action"])
        after = self.call("nav_action", state=answer["state"], **arguments)
        assert after["success"], (arguments, after["error"])
        return after

    def choose(self, answer: Payload) -> Payload:
        required = answer["availableActions"]["required"]
        if not required:
            return self._persuaded(answer)
        turn = self._turn(answer, required)
        offers = [*required, *(offer for offer in answer["availableActions"]["optional"] if _is_move(offer))]
        moves = offers if required[0]["action"] == "transition" and turn else required
        return self._arguments(moves[turn % len(moves)])

    def _turn(self, answer: Payload, required: list[Payload]) -> int:
        target = json.dumps([answer["position"]["activity"], [offer["action"] for offer in required]])
        self.seen[target] += 1
        return self.seen[target] - 1 if required[0]["action"] == "transition" else 0

    def _arguments(self, offer: Payload) -> Payload:
        name, field = PARAMETER[offer["action"]]
        arguments: Payload = {"action": offer["action"], name: offer[field]}
        if "options" in offer:
            key = f"option:{offer[field]}"
            arguments["option_id"] = offer["options"][self.seen[key] % len(offer["options"])]
            self.seen[key] += 1
        if "loop_items" in offer:
            arguments["loop_items"] = filled(offer["loop_items"]) * 2
        variables = {key: self._filled(value) for key, value in offer.get("example", {}).items()}
        output: Payload = {}
        for need in offer.get("needs", []):
            match need["parameter"]:
                case "variables":
                    variables.update({key: self._filled(value) for key, value in need["example"].items()})
                case "output.artifacts":
                    output.setdefault("artifacts", []).append(filled(need["example"]))
                case _:
                    output["notesMarkdown"] = " ".join([self.notes, *QUOTED.findall(need["message"])])
        return {
            **arguments,
            **({"variables": variables} if variables else {}),
            **({"output": output} if output else {}),
        }

    def _filled(self, value: Any) -> Any:
        """Take one of the choices that a placeholder lists, each in turn; anything else is filled in."""
        if not isinstance(value, str) or " | " not in value:
            return 2 if value in ("<a number>", "<a whole number>") else filled(value)
        choices = value.strip("<>").split(" | ")
        self.seen[value] += 1
        return choices[(self.seen[value] - 1) % len(choices)]

    def _persuaded(self, answer: Payload) -> Payload:
        """Where no exit is open, set the variables that the reason of a blocked one names."""
        blocked = [offer for offer in answer["availableActions"]["blocked"] if "variables" in offer]
        assert blocked, answer
        claimed = dict(CLAIM.findall(blocked[0]["reason"]))
        assert claimed, blocked[0]
        variables = {name: json.loads(value) for name, value in claimed.items()}
        return {"action": "transition", "activity_id": blocked[0]["activity"], "variables": variables}


def _is_move(offer: Payload) -> bool:
    return offer["action"] == "transition"
