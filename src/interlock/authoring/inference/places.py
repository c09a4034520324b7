"""Where the gates of an activity file stand in its program (rule 23).

Such a file lists its checkpoints beside its steps, so the compiler decides the one place of each and
says why.
A gate that is written among the steps already has its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from interlock.authoring.compile.items.draft import CompileDraft
from interlock.authoring.compile.items.gate import with_check_step
from interlock.authoring.diagnostics.codes import did_you_mean
from interlock.authoring.inference.prose import names_gate, uses_answer
from interlock.core.definition.condition_uses import item_conditions, names_read
from interlock.core.definition.conditions import tests_of, variables_of
from interlock.core.definition.expressions import root, variables_in
from interlock.core.definition.variable_sets import action_sets, activity_sets, item_sets
from interlock.core.definition.workflow import Activity, Gate, Item, Loop, Step, Workflow, rewritten, walk
from interlock.core.variables.roots import wanted_by_absence

Side = Literal["before", "after", "end of"]


class Slot(NamedTuple):
    """A place beside an item, or at the end of a loop; without an item, at the end of the activity."""

    side: Side
    item: Item | None

    @property
    def key(self) -> tuple[Side, type, str]:
        return self.side, type(self.item), self.item.id if self.item else ""


class Place(Struct, frozen=True):
    """Where a gate stands, and in words where and why."""

    slot: Slot
    words: str


def end_of(loop: Loop | None) -> str:
    """Say that a gate ends a round of a loop or, without a loop, the activity."""
    return f"at the end of the loop '{loop.id}'" if loop else "at the end of the activity"


def with_places(workflow: Workflow, draft: CompileDraft) -> Workflow:
    """Put every listed checkpoint of every activity into its one place, and report where that is."""
    sets = {activity.id: set(_roots_set(activity)) for activity in workflow.activities}
    given = {variable.name for variable in workflow.variables if variable.required}
    activities = []
    for activity in workflow.activities:
        elsewhere = given.union(*(roots for name, roots in sets.items() if name != activity.id))
        elsewhere.update(root(each.name) for each in action_sets(activity.entry_actions))
        placer = _Placer(workflow, activity, elsewhere, draft)
        activities.append(replace(activity, items=placer.items()))
    _check_settings(workflow, draft)
    return replace(workflow, activities=tuple(activities))


def _check_settings(workflow: Workflow, draft: CompileDraft) -> None:
    """Report a place that the settings give to a checkpoint which this workflow does not list."""
    gates = [f"{workflow.id}/{name}/{gate}" for name, listed in draft.listed_gates.items() for gate in listed]
    for key in draft.settings.places:
        if key.partition("/")[0] == workflow.id and key not in gates and draft.settings_at:
            at = (draft.settings_at / "places").key(key)
            draft.report.add("IL518", f"unknown checkpoint '{key}'", at, did_you_mean(key, gates))


def _roots_set(activity: Activity) -> Iterator[str]:
    yield from (root(each.name) for each in activity_sets(activity))
    yield from (name for item in walk(activity.items) for name in _set_by(item))


class _Placer:
    """One activity: its items without the listed gates, and the gates by the slots that they stand in."""

    def __init__(
        self, workflow: Workflow, activity: Activity, elsewhere: Set[str], draft: CompileDraft
    ) -> None:
        self._workflow = workflow
        self._activity = activity
        self._elsewhere = set(elsewhere)  # what is set before the activity begins, or may be
        self._draft = draft
        self._listed = draft.listed_gates.get(activity.id, {})
        self._declared = {gate_id: index for index, gate_id in enumerate(self._listed)}
        self._body = rewritten(
            activity.items,
            lambda item: () if isinstance(item, Gate) and item.id in self._listed else (item,),
        )
        self._slots: dict[tuple[Side, type, str], list[Gate]] = {}
        self._places: dict[str, Place] = {}

    def items(self) -> tuple[Item, ...]:
        """Return the activity's items with every gate in its place."""
        gates = [item for item in walk(self._activity.items) if isinstance(item, Gate)]
        for gate in _readers_first([gate for gate in gates if gate.id in self._listed]):
            program = self._program(gate)
            place = self._overridden(gate) or self._place(gate, program)
            self._places[gate.id] = place
            self._insert(replace(gate, place=place.words), place.slot)
            self._report(gate, place)
        return rewritten(self._assembled(self._body, None), self._with_check_step)

    def _insert(self, gate: Gate, slot: Slot) -> None:
        """Add a gate to its slot in declared order, but before a gate whose condition reads its answer."""
        gates, declared = self._slots.setdefault(slot.key, []), self._declared
        later = (
            index
            for index, other in enumerate(gates)
            if _feeds(gate, other) or (declared[other.id] > declared[gate.id] and not _feeds(other, gate))
        )
        gates.insert(next(later, len(gates)), gate)

    def _assembled(self, items: Iterable[Item], loop: Loop | None) -> Iterator[Item]:
        for item in items:
            yield from self._slots.get(("before", type(item), item.id), ())
            if isinstance(item, Loop):
                yield replace(item, body=tuple(self._assembled(item.body, item)))
            else:
                yield item
            yield from self._slots.get(("after", type(item), item.id), ())
        yield from self._slots.get(Slot("end of", loop).key, ())

    def _with_check_step(self, item: Item) -> tuple[Item, ...]:
        """Return a listed gate with its checks before it, once nothing else is to be placed."""
        if isinstance(item, Gate) and item.id in self._listed:
            return with_check_step(item, self._activity.id, self._draft)
        return (item,)

    def _own_loop(self, gate: Gate) -> Loop | None:
        """Return the loop whose checkpoints list the gate; None if the activity does."""
        loops = (item for item in walk(self._body) if isinstance(item, Loop))
        return next((loop for loop in loops if loop.id == self._listed[gate.id]), None)

    def _program(self, gate: Gate) -> list[Item]:
        """Return the items among which a gate is placed, in order, with the gates that have their place."""
        loop = self._own_loop(gate)
        return list(walk(tuple(self._assembled(loop.body if loop else self._body, loop))))

    def _place(self, gate: Gate, program: list[Item]) -> Place:
        if gate.bound_to is not None:
            return self._bound_place(gate, program)
        place = (
            self._place_before_use(gate, program)
            or self._place_after_mention(gate, program)
            or self._place_before_producer(gate, program)
            or self._place_in_loop(gate, program)
        )
        loop = self._own_loop(gate)
        return self._after_need(gate, place or Place(Slot("end of", loop), end_of(loop)), program)

    def _bound_place(self, gate: Gate, program: list[Item]) -> Place:
        index = next(
            i for i, item in enumerate(program) if isinstance(item, Step) and item.id == gate.bound_to
        )
        step = program[index]
        assert isinstance(step, Step)
        earlier = self._elsewhere.union(*(_set_by(item) for item in program[:index]))
        if itself := _needed(gate) & _set_by(step) - earlier:
            return Place(Slot("after", step), f"after its step '{step.id}', which sets {_listed(itself)}")
        return Place(Slot("before", step), "")

    def _place_before_use(self, gate: Gate, program: list[Item]) -> Place | None:
        """Rule 23 (a): the first item that depends on the answer."""
        answered = _set_by(gate) - {root(path) for path in variables_of(gate.condition)}
        only_answered = answered - self._elsewhere - self._workflow.defaults().keys()
        only_answered = only_answered.difference(*(_set_by(item) for item in program))
        for item in program:
            if shown := _brings(gate, item):
                return self._place_beside(item, f"before '{item.id}', which shows {_listed(shown)}")
            if read := answered & _read_by(item):
                return self._place_before_reader(item, read)
            if isinstance(item, Step) and (
                uses_answer(_text(item), gate.id, gate.name)
                or only_answered & {root(path) for path in variables_in(_text(item))}
            ):
                return Place(Slot("before", item), f"before '{item.id}', whose text uses its answer")
        return None

    def _place_before_reader(self, item: Item, read: Set[str]) -> Place:
        if isinstance(item, Loop) and _repeats_by(item, read):
            return Place(Slot("end of", item), f"{end_of(item)}, which repeats by {_listed(read)}")
        return self._place_beside(item, f"before '{item.id}', whose condition reads {_listed(read)}")

    def _place_beside(self, item: Item, words: str) -> Place:
        placed = self._places.get(item.id) if isinstance(item, Gate) else None
        return Place(placed.slot if placed else Slot("before", item), words)

    def _place_after_mention(self, gate: Gate, program: list[Item]) -> Place | None:
        """Rule 23 (b): the step whose text names the gate."""
        steps = (item for item in program if isinstance(item, Step))
        step = next((step for step in steps if names_gate(_text(step), gate.id, gate.name)), None)
        if step is None:
            return None
        return Place(Slot("after", step), f"after '{step.id}', whose text names it")

    def _place_before_producer(self, gate: Gate, program: list[Item]) -> Place | None:
        """Rule 23 (c): the first step that must itself produce what the options set."""
        for step in (item for item in program if isinstance(item, Step)):
            produced = {root(action.produces) for action in step.actions if action.produces}
            if own := produced & _set_by(gate):
                return Place(Slot("before", step), f"before '{step.id}', which itself sets {_listed(own)}")
        return None

    def _place_in_loop(self, gate: Gate, program: list[Item]) -> Place | None:
        """Rule 23 (d): the loop that binds a name which the gate shows."""
        for loop in (item for item in program if isinstance(item, Loop)):
            if bound := set(loop.variables()) & _needed(gate):
                words = f"{end_of(loop)}, which binds {_listed(bound)}"
                return Place(Slot("end of", loop), words)
        return None

    def _after_need(self, gate: Gate, place: Place, program: list[Item]) -> Place:
        """Move a place that is before the first step which sets what the gate needs to after that step."""
        start = _index_of(place.slot, program)
        missing = (
            _needed(gate) - self._elsewhere - set[str]().union(*(_set_by(item) for item in program[:start]))
        )
        for item in reversed(program[start:]):
            if isinstance(item, Step) and (late := missing & _set_by(item)):
                first = next(step for step in program[start:] if late & _set_by(step))
                if first is item:
                    words = f"after '{item.id}', the first step that sets {_listed(late)}"
                    return Place(Slot("after", item), words)
        return place

    def _overridden(self, gate: Gate) -> Place | None:
        """Return the place that the settings of the source give to a gate."""
        settings, at = self._draft.settings, self._draft.settings_at
        key = f"{self._workflow.id}/{self._activity.id}/{gate.id}"
        if (wanted := settings.places.get(key)) is None:
            return None
        side, _, item_id = wanted.partition(" ")
        items = {item.id: item for item in walk(self._body) if isinstance(item, (Step, Loop))}
        words = f"{wanted}, as the source's settings say"
        if wanted == "end":
            return Place(Slot("end of", None), f"at the {words}")
        if side in ("before", "after") and item_id in items:
            return Place(Slot("before" if side == "before" else "after", items[item_id]), words)
        message = f"'{wanted}' is not a place in the activity '{self._activity.id}'"
        if at is not None:
            self._draft.report.add("IL518", message, at / "places" / key, did_you_mean(item_id, items))
        return None

    def _report(self, gate: Gate, place: Place) -> None:
        location = self._draft.locations[self._activity.id, "gate", gate.id] / "id"
        if gate.bound_to is None:
            message = f"no step names the checkpoint '{gate.id}'; it is asked {place.words}"
            self._draft.report.add("IL508", message, location)
        elif place.words:
            self._draft.report.add("IL517", f"the checkpoint '{gate.id}' is asked {place.words}", location)


def _readers_first(gates: list[Gate]) -> Iterator[Gate]:
    """Yield bound gates, then each gate after those whose conditions read its answer."""
    pending = sorted(gates, key=lambda gate: gate.bound_to is None)
    while pending:
        free = (gate for gate in pending if gate.bound_to or not any(_feeds(gate, one) for one in pending))
        gate = next(free, pending[0])
        pending.remove(gate)
        yield gate


def _feeds(gate: Gate, reader: Gate) -> bool:
    """Say whether one gate decides what the condition of another reads, or asks for what it shows."""
    own = {root(path) for path in variables_of(gate.condition)}
    decides = _read_by(reader) & _set_by(gate) - own
    return gate.id != reader.id and bool(decides or _brings(gate, reader))


def _brings(gate: Gate, item: Item) -> Set[str]:
    """Name what a required gate asks for by its absence, and another shows: its answer may bring it."""
    if not gate.required or not isinstance(item, Gate) or item.id == gate.id:
        return frozenset()
    return wanted_by_absence(gate.condition) & _needed(item)


def _index_of(slot: Slot, program: list[Item]) -> int:
    """Return how many items of the program come before the slot."""
    indexes = {(type(item), item.id): index for index, item in enumerate(program)}
    if slot.item is None or (type(slot.item), slot.item.id) not in indexes:
        return len(program)
    index = indexes[type(slot.item), slot.item.id]
    inner = len(list(walk(slot.item.body))) if isinstance(slot.item, Loop) else 0
    return index if slot.side == "before" else index + 1 + inner


def _set_by(item: Item) -> set[str]:
    """Name the variables that an item sets: a step by its work or its actions, a gate by its options."""
    inferred = item.inferred if isinstance(item, Step) else ()
    return {*inferred, *(root(each.name) for each in item_sets(item) if each.by not in ("user", "loop"))}


def _read_by(item: Item) -> set[str]:
    """Name the variables that the conditions of an item read; a loop also reads its items."""
    repeated_over = item.repeats_over if isinstance(item, Loop) else ()
    return names_read(item_conditions(item), {"run", "repeat"}) | set(map(root, repeated_over))


def _repeats_by(loop: Loop, names: Set[str]) -> bool:
    """Say whether a loop asks these variables before each round, and nothing in it sets them."""
    uses = list(item_conditions(loop))
    repeats = names_read(uses, {"repeat"})
    entered = names_read(uses, {"run"})
    set_inside = set[str]().union(*(_set_by(item) for item in walk(loop.body)))
    return bool(names & repeats - entered) and not names & set_inside


def _needed(gate: Gate) -> set[str]:
    """Name what a gate shows or its condition reads, but for what its condition wants to be absent."""
    read = (test.variable for test in tests_of(gate.condition) if test.operator != "notExists")
    return set(map(root, (*gate.shown_paths(), *read)))


def _text(step: Step) -> str:
    return "\n".join((step.title, step.description or "", *(fragment.text for fragment in step.prompt)))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
