"""Workflows as prompts, which clients show as commands; with a log also `resume` and `inbox`.

A prompt tells the agent which tool to call. Nothing is started by reading one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from interlock.authoring.library import Diagnostic, Library
from interlock.core.definition.prompts import text_of
from interlock.core.definition.workflow import Variable
from interlock.ledger.decisions.inbox import inbox
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import recent_references
from interlock.surfaces.briefs import one_line
from interlock.surfaces.call import PromptTexts
from interlock.surfaces.shared.found_work import LEFT_OUT, found_work

GOAL = Variable("goal", description="What you want to achieve, in your own words.")
QUERY = Variable("query", description="Words about the work, or its id; empty: the latest.")
BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
MOST_COMPLETIONS = 100
ASK_USER = "Tell the user so, and ask what to look for. Continue nothing."


class Prompt(Struct, frozen=True):
    """A prompt as a client lists it."""

    name: str
    title: str
    description: str
    arguments: tuple[Variable, ...] = ()


class Prompts:
    """The prompts of one surface, in its own words."""

    def __init__(self, library: Library, ledger: Ledger | None, texts: PromptTexts) -> None:
        self._library = library
        self._ledger = ledger
        self._texts = texts

    def all(self) -> list[Prompt]:
        """Return every prompt: what a person may want to begin, then how to find back to it."""
        entries = self._library.listing().entries
        prompts = [
            Prompt(entry.id, entry.name, entry.description, (GOAL, *entry.inputs))
            for entry in entries
            if not entry.hidden and entry.kind == "workflow"
        ]
        if self._ledger is None:
            return prompts
        resume = Prompt("resume", "Resume earlier work", "Continue a run from where it stands.", (QUERY,))
        waiting = Prompt("inbox", "What waits for me", "Show the questions that wait for your decision.")
        return [*prompts, resume, waiting]

    def text(self, name: str, arguments: Mapping[str, str]) -> str | None:
        """Return what a prompt says to the agent; None if there is no such prompt."""
        if self._ledger is not None and name == "resume":
            return self._resume(self._ledger, arguments.get("query", ""))
        if self._ledger is not None and name == "inbox":
            return _inbox(self._ledger)
        loaded = self._library.load(name)
        if isinstance(loaded, Diagnostic):
            return None
        types = {variable.name: variable.type for variable in loaded.workflow.variables}
        values = {
            argument: _typed(value, types.get(argument, "string"))
            for argument, value in arguments.items()
            if value.strip()
        }
        inputs = self._texts.inputs.replace("{json}", msgspec.json.encode(values).decode()) if values else ""
        return self._texts.start.replace("{id}", loaded.workflow.id).replace("{inputs}", inputs)

    def completions(self, name: str, argument: str, beginning: str) -> list[str]:
        """Return values for an argument that begin as given."""
        offered: Sequence[str] = ()
        if name == "resume" and argument == "query" and self._ledger is not None:
            offered = recent_references(self._ledger, MOST_COMPLETIONS)
        elif (prompt := next((one for one in self.all() if one.name == name), None)) is not None:
            declared = [variable for variable in prompt.arguments if variable.name == argument]
            offered = [text_of(value) for variable in declared for value in variable.values]
            if not offered and any(variable.type == "boolean" for variable in declared):
                offered = ("true", "false")
        return [value for value in offered if value.startswith(beginning)][:MOST_COMPLETIONS]

    def _resume(self, ledger: Ledger, query: str) -> str:
        """Say which work to continue; finished work and work that only is the newest are never continued."""
        work = found_work(ledger, query)
        runs = [(found, found.run) for found in work.candidates if found.run is not None]
        listed = [
            f"- {one_line(found.session.title)} ({run.workflow_id}, {run.status})" for found, run in runs
        ]
        if not runs and not query.strip() and not work.left_out:
            return "No work is stored yet. Tell the user so. Continue nothing."
        if not work.matched or not runs:
            newest = ["", "The newest work is:", *listed] if listed else []
            left_out = [LEFT_OUT] if work.left_out else []
            return "\n".join([*left_out, f"Nothing stored matches{_quoted(query)}. {ASK_USER}", *newest])
        best, run = runs[0]
        text = self._texts.resume.replace("{token}", ledger.mint("st", best.handle, best.tip))
        text = text.replace("{id}", run.workflow_id)
        more = ["", "If the user meant other work, this fits too:", *listed[1:4]] if listed[1:] else []
        named = f"'{one_line(best.session.title)}' ({run.workflow_id})"
        if best.is_finished:
            done = f"{named} is not running any more ({run.status}): there is nothing to continue."
            return "\n".join([f"{done} Tell the user so. To see what was done: {text}", *more])
        return "\n".join([f"Continue {named}. {text}", *more])


def _quoted(query: str) -> str:
    return f" '{query.strip()}'" if query.strip() else ""


def _inbox(ledger: Ledger) -> str:
    questions = inbox(ledger)
    if not questions:
        return "Nothing waits for a decision. Tell the user so."
    lines = ["Show the user these questions, which wait for a decision. Do not answer them yourself.", ""]
    for question in questions:
        about = f"{one_line(question.title)} (session {question.ref})"
        lines.append(f"- {about}, {question.name}: {question.message}")
        lines += [f"  - {option.id}: {option.label}" for option in question.options]
    return "\n".join([*lines, "", "The user decides with `interlock inbox` and `interlock decide`."])


def _typed(value: str, kind: str) -> str | int | float | bool:
    """Read an argument, which is always text, as its variable wants it; what does not fit stays text."""
    if kind == "boolean":
        return BOOLEANS.get(value.strip().lower(), value)
    if kind in ("number", "integer"):
        try:
            number = int(value) if kind == "integer" else float(value)
            return number if math.isfinite(number) else value  # JSON has no other numbers
        except (ValueError, OverflowError):
            return value
    return value
