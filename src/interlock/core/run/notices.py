"""What a caller should know beside the result: one value that every surface renders (rule 18)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from interlock.core.run import events as e
from interlock.core.run.channels import is_at_least
from interlock.core.run.commands import Decision
from interlock.core.run.keys import item_of
from interlock.core.run.output import NOTES_BYTES, Output
from interlock.core.run.preferences import Preferences, exceeds
from interlock.core.run.questions import Question
from interlock.core.run.state import RunState
from interlock.core.values import Json

PASSED_OVER = "PASSED_OVER"
USER_ANSWERED = "USER_ANSWERED"
APPROVERS_DECIDE = "APPROVERS_DECIDE"


class Notice(Struct, frozen=True, omit_defaults=True):
    """Something the caller should know; it never blocks, and names no tool."""

    code: str
    message: str


class Notices(Struct, frozen=True):
    """Warnings, gaps, drift, ignored output, passed-over steps and limits, each once, in order."""

    listed: tuple[Notice, ...] = ()

    def plus(self, more: Iterable[Notice]) -> Notices:
        """Return these and more; what was said already is not said again."""
        return Notices(tuple(dict.fromkeys((*self.listed, *more))))

    @property
    def messages(self) -> tuple[str, ...]:
        """Each in one line."""
        return tuple(" ".join(notice.message.split()) for notice in self.listed)

    @property
    def text(self) -> str:
        """What a model reads: a line each, after the result."""
        return "\n".join(
            message if notice.code in (USER_ANSWERED, APPROVERS_DECIDE) else f"Warning: {message}"
            for notice, message in zip(self.listed, self.messages, strict=True)
        )

    @property
    def fields(self) -> list[Json]:
        """What a program reads."""
        return [
            {"code": notice.code, "message": message}
            for notice, message in zip(self.listed, self.messages, strict=True)
        ]


NO_NOTICES = Notices()
VARIABLES_UNREAD = Notice(
    "ARGUMENTS_IGNORED", "The variables of this call were not read: the run is given up."
)
USERS_GAPS = "Only the user can resolve them: interlock gaps."
GAP_CLOSED = '{"kind":"wr.gaps","resolved":[{"gap":<number>,"summary":"<how>"}]}'
HOW_GAPS_CLOSE = f"Once a gap is closed, say so with the step that closed it: output artifact {GAP_CLOSED}"


def of_events(events: Iterable[e.Event], state: RunState) -> Iterator[Notice]:
    """Disclose what happened by the way: what was passed over, and gaps when made and all at the end."""
    happened = list(events)
    first = state.gaps.ever + 1 - sum(isinstance(event, e.GapRecorded) for event in happened)
    yield from _passed_over(happened)
    yield from _unfit(happened)
    for gap in state.gaps.newest:
        if state.finished or gap.number >= first:
            yield Notice("GAP", gap.text)
    for_agents = [gap.number for gap in state.gaps.newest if not gap.users and gap.severity != "info"]
    if for_agents and for_agents[0] >= first and not state.finished:
        yield Notice("GAP_OPEN", HOW_GAPS_CLOSE)
    if state.finished and (left_out := state.gaps.ever - len(state.gaps.newest)):
        yield Notice("GAPS_OMITTED", f"{left_out} earlier gaps are not listed here; the log has them all.")


def _unfit(events: Iterable[e.Event]) -> Iterator[Notice]:
    """Name the variables that were not declared to have a value which the workflow itself gives them."""
    for event in events:
        match event:
            case e.GateResolved():
                names, where = event.unfit, f"effect of checkpoint '{event.gate}'"
            case e.LoopEntered() | e.LoopIterated():
                names = tuple(name for name, value in event.sets.items() if value is None)
                where = f"item of loop '{event.loop}'"
            case _:
                continue
        for name in names:
            text = f"'{name}' is not taken: the {where} is not a value that is declared for it."
            yield Notice("VALUE_NOT_TAKEN", text)


def _passed_over(events: Iterable[e.Event]) -> Iterator[Notice]:
    """Name the steps, gates, exits, loops and effects that unset variables alone passed over (rule 20).

    What has the same cause is named in one notice.
    """
    causes: dict[str, dict[str, dict[str, None]]] = {}
    for event in events:
        match event:
            case e.StepSkipped(unset=unset) if unset:
                kind, name, condition = "step", event.step, f" ({event.condition})"
            case e.GatePassed(unset=unset) if unset:
                kind, name, condition = "checkpoint", event.gate, f" ({event.condition})"
            case e.ActivityLeft(unset=unset) if unset:
                kind, name, condition = "an exit of activity", event.activity, ""
            case e.LoopLeft(unset=unset) if unset:
                kind, name, condition = "loop", event.loop, ""
            case e.GateResolved(unset=unset) if unset:
                kind, name, condition = "effect of checkpoint", event.gate, ""
            case _:
                continue
        missing = ", ".join(f"'{variable}'" for variable in unset)
        kinds = causes.setdefault(f"nobody has set {missing}{condition}.", {})
        kinds.setdefault(kind, {})[f"'{name}'"] = None
    for cause, kinds in causes.items():
        listed = " and ".join(f"{kind} {', '.join(names)}" for kind, names in kinds.items())
        verb = "was" if sum(map(len, kinds.values())) == 1 else "were"
        yield Notice(PASSED_OVER, f"{listed[0].upper()}{listed[1:]} {verb} passed over: {cause}")


def of_output(output: Output, step: str = "") -> Iterator[Notice]:
    """Disclose that notes were too long to be kept whole."""
    if len(output.notes.encode()) > NOTES_BYTES:
        whose = f"The notes of step '{step}'" if step else "Your notes"
        text = f"{whose} were longer than {NOTES_BYTES} bytes and were cut at the end."
        yield Notice("NOTES_TRUNCATED", text)


def of_abandonment(state: RunState) -> Iterator[Notice]:
    """Disclose that a run which is read was given up (rule 35)."""
    if state.abandoned is not None:
        yield Notice("ABANDONED", f"The run was {state.abandoned.text.rstrip('.')}. It cannot go on.")


def of_answers(
    state: RunState, asked: Iterable[Question], decisions: Mapping[str, Decision]
) -> Iterator[Notice]:
    """Say what the user has answered in this visit, and to what is pending, which the next call uses."""
    answers = {
        gate: Decision(chosen.option, chosen.channel, note=state.replies.note_on(gate))
        for gate in (item_of(key) for key in state.visit.answers)
        if (chosen := state.replies.chosen.get(gate)) is not None and is_at_least(chosen.channel, "client")
    }
    unused = {question.id: decisions.get(question.digest) for question in asked}
    for gate, decision in {**answers, **unused}.items():
        if decision is not None:
            by = f"{decision.channel}, {decision.client}" if decision.client else decision.channel
            note = f", and says: {decision.note}" if decision.note else ""
            answered = f"The user has answered '{gate}': {decision.option} ({by}){note}"
            if decision.channel == "time":
                answered = f"Nobody has decided '{gate}' in time, so it is: {decision.option}"
            yield Notice(USER_ANSWERED, answered)


def of_mode(preferences: Preferences, recommended: Preferences | None) -> Iterator[Notice]:
    """Disclose a mode that goes beyond what the author recommends."""
    if recommended is not None and (over := exceeds(preferences, recommended)):
        text = f"The mode goes beyond what this workflow recommends ({', '.join(over)}); recommended: "
        yield Notice(
            "MODE_EXCEEDS_RECOMMENDATION", f"{text}{recommended.autonomy}, {recommended.risk_policy}."
        )
