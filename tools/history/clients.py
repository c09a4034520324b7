"""Clients that share runs: one walks, others repeat its calls with words of their own, read, and decide.

They know nothing of how a call gets to a server: `send` does that, and raises Lost where no answer came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from tools.history.model import DONE, IGNORED
from tools.history.record import History

Result = Mapping[str, Any]
Send = Callable[..., Result]
Shown = Callable[[str], Any]
Decide = Callable[[Any], bool]

WORKFLOW = "test.flow"


class Lost(Exception):
    """No answer came, or one that says that nobody knows: the call may have had its effect, or not."""


class Refused(Exception):
    """A call was refused for good: its code. No run of these clients explains that."""


class SharedRun:
    """A run that several clients call. `newest` is the last position that anybody was told, with tokens."""

    def __init__(self, name: str, items: Sequence[str], gate: int) -> None:
        self.history = History(name)
        self.items, self.gate = items, gate
        self.session = ""
        self.newest: tuple[int, Mapping[str, str]] = (-1, {})
        self.is_over = False

    def position(self, body: Mapping[str, Any]) -> int:
        """Return the position that an answer shows."""
        return len(self.items) if body["isComplete"] else self.items.index(body["pending"]["stepId"])

    def reached(self, at: int, body: Mapping[str, Any]) -> None:
        """Keep the tokens of a position for all, unless somebody is further."""
        tokens = {name: body[name] for name in ("stateToken", "ackToken") if name in body}
        if at > self.newest[0] or (at == self.gate == self.newest[0] and body["kind"] == "blocked"):
            self.newest = at, tokens


class Caller:
    """One client of one run."""

    def __init__(self, name: str, run: SharedRun, send: Send, chance: Random) -> None:
        self.name, self.run, self.send, self.chance = name, run, send, chance

    def advance(self, at: int, tokens: Mapping[str, str], note: str) -> None:
        """Acknowledge the step at a position, once."""
        number = self.run.history.invoke(self.name, "advance", at, note)
        self.told(number, "continue_workflow", **tokens, output={"notesMarkdown": note})

    def read(self) -> None:
        """Ask where the run is now."""
        number = self.run.history.invoke(self.name, "read")
        result = self.answer(number, "resume_session", resumeRef=self.run.session)
        self.run.history.answered(number, "at", self.run.position(result["structuredContent"]["best"]))

    def answer(self, number: int, tool: str, **arguments: Any) -> Result:
        """Send a call; a refusal is recorded as its answer."""
        try:
            return self.send(tool, **arguments)
        except Refused as refused:
            self.run.history.answered(number, "refused", str(refused))
            raise

    def told(self, number: int, tool: str, **arguments: Any) -> None:
        """Send a call that advances the run, and record what it was told."""
        result = self.answer(number, tool, **arguments)
        body = result["structuredContent"]
        self.run.session = body["session"]["sessionId"]
        at = self.run.position(body)
        answer = ("waits",) if body["kind"] == "blocked" else ("at", at)
        self.run.history.answered(number, *answer, how(result))
        self.run.reached(at, body)


def how(result: Result) -> str:
    """Say whether a call was carried out, now or before, or was a repeat with other arguments."""
    return IGNORED if "interlock/replay" in result.get("_meta", {}) else DONE


class WalkingClient(Caller):
    """Walks a run to its end, and sends again what got no answer; sometimes also what did."""

    def walk(self) -> None:
        """Walk until the run is complete or a call is refused."""
        try:
            self.until_answered(self.start)
            while self.run.newest[0] < len(self.run.items):
                at, tokens = self.run.newest
                if at == self.run.gate:
                    self.until_answered(partial(self.ask, tokens))
                    continue
                note = f"{self.name}-{at}"
                self.until_answered(partial(self.advance, at, tokens, note))
                if self.chance.random() < 0.2:
                    self.until_answered(partial(self.advance, at, tokens, note))
        except Refused:
            pass
        finally:
            self.run.is_over = True

    def until_answered(self, call: Callable[[], None]) -> None:
        while True:
            try:
                call()
                return
            except Lost:
                pass

    def start(self) -> None:
        number = self.run.history.invoke(self.name, "start")
        self.told(number, "start_workflow", workflowId=WORKFLOW, requestId=self.run.history.name)

    def ask(self, tokens: Mapping[str, str]) -> None:
        """Try to pass the gate."""
        number = self.run.history.invoke(self.name, "ask", self.run.gate, tokens["ackToken"])
        self.told(number, "continue_workflow", **tokens, waitSeconds=1)


class RivalClient(Caller):
    """Holds the same tokens as the client that walks, sends its own words with them, and reads."""

    def act(self) -> None:
        """Make one call, whatever becomes of it."""
        at, tokens = self.run.newest
        if not self.run.session or not tokens:
            return
        try:
            if at in (self.run.gate, len(self.run.items)) or self.chance.random() < 0.5:
                self.read()
            else:
                self.advance(at, tokens, f"{self.name}-{at}-{self.chance.randrange(10**6)}")
        except (Lost, Refused):
            pass


class DecidingClient:
    """Decides at the gate; what it was shown may be decided by another meanwhile."""

    def __init__(self, name: str, run: SharedRun, shown: Shown, decide: Decide) -> None:
        self.name, self.run, self._shown, self._decide = name, run, shown, decide

    def act(self) -> None:
        """Answer the run's question, if there is one."""
        try:
            question = self._shown(self.run.session) if self.run.session else None
            if question is not None:
                number = self.run.history.invoke(self.name, "answer")
                is_decided = self._decide(question)
                self.run.history.answered(number, "decided" if is_decided else "refused")
        except Lost:
            pass
