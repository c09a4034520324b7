"""Rule 23: the compiler decides the one place of every listed checkpoint, and says why."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from interlock.authoring.library import Library, Loaded, Source
from interlock.core.definition.workflow import Activity, Gate, Item, Loop
from support.authored import library, write
from support.corpus import needs_corpus
from support.paths import CORPUS, GOLDEN

HEAD = "id: w\nversion: 1.0.0\ntitle: W\ninitialActivity: a\n"
LOOKED_AT = "{ variable: risky, operator: ==, value: true }"


def step(name: str, text: str = "Do it.", **fields: str) -> str:
    rest = "".join(f", {key}: {value}" for key, value in fields.items())
    return f'  - {{ id: {name}, name: {name.title()}, description: "{text}"{rest} }}\n'


def gate(name: str = "ask", message: str = "Go on?", effect: str = "", condition: str = "") -> str:
    option = f"{{ id: yes, effect: {{ setVariable: {{ {effect} }} }} }}" if effect else "{ id: yes }"
    when = f", condition: {condition}" if condition else ""
    return f'  - {{ id: {name}, name: Big {name}, message: "{message}", options: [{option}]{when} }}\n'


def compile_activity(folder: Path, *lists: str, **files: str) -> Activity:
    """Compile an activity of a file of others, with its lists in this order; `b` is another activity."""
    text = "$lenient: true\nid: a\nname: A\n" + "".join(lists)
    others = {f"w/activities/{name}.yaml": body for name, body in files.items()}
    write(folder, {"w/workflow.yaml": HEAD, "w/activities/a.yaml": text, **others})
    loaded = library(folder).load("w")
    assert isinstance(loaded, Loaded), loaded
    activity = loaded.workflow.activity("a")
    assert activity is not None
    return activity


def order(items: Iterable[Item]) -> str:
    return " ".join(f"{item.id}({order(item.body)})" if isinstance(item, Loop) else item.id for item in items)


def place(activity: Activity, gate_id: str = "ask") -> str:
    found = activity.gate(gate_id)
    assert found is not None
    return found.place


def test_a_bound_gate_is_asked_before_its_step(tmp_path: Path) -> None:
    steps = "steps:\n" + step("look") + step("deploy", checkpoint="ask")
    activity = compile_activity(tmp_path, steps, "checkpoints:\n" + gate())
    assert (order(activity.items), place(activity)) == ("look ask deploy", "")


@pytest.mark.parametrize(
    "asked",
    [gate(message="Deploy to {{target}}?"), gate(condition="{ variable: target, operator: exists }")],
    ids=["shows", "reads"],
)
@pytest.mark.parametrize("text", ["Choose where to. Set target.", "Choose where to."])
def test_it_is_asked_after_its_step_if_only_that_sets_what_it_shows_or_reads(
    tmp_path: Path, asked: str, text: str
) -> None:
    declared = {} if "Set" in text else {"sets": "[target]"}
    steps = "steps:\n" + step("choose", text, checkpoint="ask", **declared) + step("deploy")
    activity = compile_activity(tmp_path, steps, "checkpoints:\n" + asked)
    assert order(activity.items) == "choose ask deploy"
    assert place(activity) == "after its step 'choose', which sets target"


def test_not_if_an_earlier_step_or_another_activity_sets_it(tmp_path: Path) -> None:
    asked = "checkpoints:\n" + gate(message="Deploy to {{target}}?")
    choose = step("choose", checkpoint="ask", sets="[target]")
    earlier = compile_activity(tmp_path / "1", "steps:\n" + step("find", sets="[target]") + choose, asked)
    assert order(earlier.items) == "find ask choose"
    b = "id: b\nname: B\ntransitions: [{ to: a, isDefault: true }]\nsteps:\n" + step("find", sets="[target]")
    elsewhere = compile_activity(tmp_path / "2", "steps:\n" + choose, asked, b=b)
    assert order(elsewhere.items) == "ask choose"


def test_a_an_unbound_gate_is_asked_before_the_first_item_whose_condition_reads_its_answer(
    tmp_path: Path,
) -> None:
    steps = "steps:\n" + step("look") + step("repair", condition=LOOKED_AT) + step("close")
    activity = compile_activity(tmp_path, steps, "checkpoints:\n" + gate(effect="risky: true"))
    assert order(activity.items) == "look ask repair close"
    assert place(activity) == "before 'repair', whose condition reads risky"


def test_a_inside_the_loop_of_that_item(tmp_path: Path) -> None:
    body = "[{ id: look, name: Look, description: D }, { id: fix, name: Fix, description: D, condition: %s }]"
    loops = "loops:\n  - { id: each, type: forEach, over: parts, steps: " + body % LOOKED_AT + " }\n"
    activity = compile_activity(tmp_path, loops, "checkpoints:\n" + gate(effect="risky: true"))
    assert order(activity.items) == "each(look ask fix)"


def test_a_but_not_by_what_its_own_condition_reads(tmp_path: Path) -> None:
    steps = "steps:\n" + step("repair", condition=LOOKED_AT) + step("close")
    asked = gate(effect="risky: false", condition=LOOKED_AT)
    assert order(compile_activity(tmp_path, steps, "checkpoints:\n" + asked).items) == "repair close ask"


@pytest.mark.parametrize(
    "text",
    [
        "Do what was selected by the user at the big-ask checkpoint.",
        "If it is risky (set by the big-ask checkpoint): stop.",
        "After the Big Ask checkpoint, go on.",
        "Go on according to the `big-ask` checkpoint.",
        "Deploy to {{target}}.",
    ],
)
def test_a_before_the_step_whose_text_uses_its_answer(tmp_path: Path, text: str) -> None:
    asked = gate("big-ask", effect="target: here").replace("Big big-ask", "Big Ask")
    activity = compile_activity(
        tmp_path, "steps:\n" + step("look") + step("deploy", text) + step("close"), "checkpoints:\n" + asked
    )
    assert order(activity.items) == "look big-ask deploy close"
    assert place(activity, "big-ask") == "before 'deploy', whose text uses its answer"


def test_a_gate_whose_answer_another_gate_reads_comes_first(tmp_path: Path) -> None:
    asked = gate("why", condition=LOOKED_AT) + gate("ask", effect="risky: true")
    activity = compile_activity(tmp_path, "steps:\n" + step("look"), "checkpoints:\n" + asked)
    assert order(activity.items) == "look ask why"
    assert place(activity) == "before 'why', whose condition reads risky"


@pytest.mark.parametrize("bound", [True, False])
def test_a_gate_that_asks_for_a_name_by_its_absence_comes_before_the_gate_that_shows_it(
    tmp_path: Path, bound: bool
) -> None:
    """Its answer may bring the name, which the other question would wait for."""
    asks = gate("ask", condition="{ variable: url, operator: notExists }")
    steps = "steps:\n" + step("look") + step("deploy", **({"checkpoint": "show"} if bound else {}))
    listed = "checkpoints:\n" + gate("show", "Deploy to {{url}}?") + asks
    activity = compile_activity(tmp_path, steps, listed)
    assert order(activity.items) == ("look ask show deploy" if bound else "look deploy ask show")
    assert place(activity) == "before 'show', which shows url"


def test_a_gate_that_decides_whether_a_loop_goes_on_ends_its_rounds(tmp_path: Path) -> None:
    """Asked only before the loop, its answer could never end it."""
    body = "[{ id: fix, name: Fix, description: D }]"
    loops = f"loops:\n  - {{ id: again, type: doWhile, condition: {LOOKED_AT}, steps: {body} }}\n"
    activity = compile_activity(tmp_path, loops, "checkpoints:\n" + gate(effect="risky: true"))
    assert order(activity.items) == "again(fix ask)"
    assert place(activity) == "at the end of the loop 'again', which repeats by risky"


def test_b_else_after_the_step_whose_text_names_it(tmp_path: Path) -> None:
    steps = "steps:\n" + step("look", "Collect it via the big-ask checkpoint.") + step("close")
    activity = compile_activity(tmp_path, steps, "checkpoints:\n" + gate("big-ask"))
    assert order(activity.items) == "look big-ask close"
    assert place(activity, "big-ask") == "after 'look', whose text names it"


def test_b_a_word_that_is_also_an_id_names_nothing(tmp_path: Path) -> None:
    steps = "steps:\n" + step("look", "Ask around.") + step("close")
    assert order(compile_activity(tmp_path, steps, "checkpoints:\n" + gate()).items) == "look close ask"


def test_c_else_before_the_first_step_that_must_produce_what_it_sets(tmp_path: Path) -> None:
    steps = "steps:\n" + step("look") + step("apply", sets="[mode]") + step("close")
    asked = gate(effect="mode: deep", condition="{ variable: mode, operator: notExists }")
    activity = compile_activity(tmp_path, steps, "checkpoints:\n" + asked)
    assert order(activity.items) == "look ask apply close"
    assert place(activity) == "before 'apply', which itself sets mode"


def test_d_else_at_the_end_of_the_loop_whose_name_it_shows(tmp_path: Path) -> None:
    body = "[{ id: look, name: Look, description: D }]"
    loops = f"loops:\n  - {{ id: each, type: forEach, over: parts, variable: part, steps: {body} }}\n"
    steps = "steps:\n" + step("close")
    activity = compile_activity(
        tmp_path, loops, steps, "checkpoints:\n" + gate(message="Keep {{part.name}}?")
    )
    assert order(activity.items) == "each(look ask) close"
    assert place(activity) == "at the end of the loop 'each', which binds part"


def test_e_else_at_the_end_in_declared_order(tmp_path: Path) -> None:
    asked = "checkpoints:\n" + gate("first") + gate("second")
    activity = compile_activity(tmp_path, asked, "steps:\n" + step("look"))
    assert order(activity.items) == "look first second"
    assert place(activity, "first") == "at the end of the activity"


def test_never_before_the_first_step_that_sets_what_it_shows(tmp_path: Path) -> None:
    steps = step("choose", sets="[target]") + step("repair", condition=LOOKED_AT)
    asked = "checkpoints:\n" + gate(message="To {{target}}?", effect="risky: true")
    fine = compile_activity(tmp_path / "1", "steps:\n" + steps, asked)
    assert order(fine.items) == "choose ask repair"
    late = compile_activity(tmp_path / "2", "steps:\n" + step("try", condition=LOOKED_AT) + steps, asked)
    assert order(late.items) == "try choose ask repair"
    assert place(late) == "after 'choose', the first step that sets target"


def test_unless_another_activity_sets_it(tmp_path: Path) -> None:
    steps = "steps:\n" + step("try", condition=LOOKED_AT) + step("choose", sets="[target]")
    asked = "checkpoints:\n" + gate(message="To {{target}}?", effect="risky: true")
    b = "id: b\nname: B\ntransitions: [{ to: a, isDefault: true }]\nsteps:\n" + step("find", sets="[target]")
    assert order(compile_activity(tmp_path, steps, asked, b=b).items) == "ask try choose"


def test_a_gate_among_the_steps_stays_where_the_author_put_it(tmp_path: Path) -> None:
    option = "{ id: y, effect: { setVariable: { risky: true } } }"
    inline = f"  - {{ type: gate, id: ask, message: M, options: [{option}] }}\n"
    steps = "steps:\n" + step("look", condition=LOOKED_AT) + inline + step("close")
    activity = compile_activity(tmp_path, steps)
    assert (order(activity.items), place(activity)) == ("look ask close", "")


def test_a_gate_of_a_loop_stays_in_it(tmp_path: Path) -> None:
    inner = "{ id: ask, message: M, options: [{ id: y, effect: { setVariable: { risky: true } } }] }"
    body = f"steps: [{{ id: look, name: L, description: D }}], checkpoints: [{inner}]"
    loops = f"loops:\n  - {{ id: each, type: forEach, over: parts, {body} }}\n"
    activity = compile_activity(tmp_path, loops, "steps:\n" + step("close", condition=LOOKED_AT))
    assert order(activity.items) == "each(look ask) close"


def test_a_gate_that_ends_a_round_comes_after_the_activities_that_the_loop_runs(tmp_path: Path) -> None:
    loops = "loops:\n  - { id: each, type: forEach, over: parts, variable: part, activities: [b] }\n"
    b = "id: b\nname: B\nsteps:\n" + step("build")
    activity = compile_activity(tmp_path, loops, "checkpoints:\n" + gate(message="Keep {{part}}?"), b=b)
    assert order(activity.items) == "each(build ask)"


def test_every_chosen_place_is_reported(tmp_path: Path) -> None:
    steps = "steps:\n" + step("look", checkpoint="bound", sets="[target]")
    asked = "checkpoints:\n" + gate("bound", "To {{target}}?") + gate("ask")
    compile_activity(tmp_path, steps, asked)
    found = [(one.code, one.line, one.message) for one in library(tmp_path).listing().diagnostics]
    after = "the checkpoint 'bound' is asked after its step 'look', which sets target"
    end = "no step names the checkpoint 'ask'; it is asked at the end of the activity"
    assert [one for one in found if one[0] in ("IL508", "IL517")] == [("IL517", 7, after), ("IL508", 8, end)]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [("before close", "look ask close"), ("after look", "look ask close"), ("end", "look close ask")],
)
def test_a_source_may_override_a_place(tmp_path: Path, wanted: str, expected: str) -> None:
    write(tmp_path, {"interlock.yaml": f"places:\n  w/a/ask: {wanted}\n"})
    activity = compile_activity(
        tmp_path, "steps:\n" + step("look") + step("close"), "checkpoints:\n" + gate()
    )
    assert order(activity.items) == expected
    assert place(activity).endswith(f"{wanted}, as the source's settings say")


@pytest.mark.parametrize("entry", ["w/a/ask: before nothing", "w/a/ask: later", "w/a/nobody: end"])
def test_a_place_that_does_not_exist_is_an_error(tmp_path: Path, entry: str) -> None:
    text = "id: a\nname: A\nsteps:\n" + step("look") + "checkpoints:\n" + gate()
    files = {"w/workflow.yaml": HEAD, "w/activities/a.yaml": text, "interlock.yaml": f"places:\n  {entry}\n"}
    found = library(write(tmp_path, files)).listing().diagnostics
    assert ("IL518", "interlock.yaml", 2) in [(one.code, one.file, one.line) for one in found]


def places_of(source: Source) -> list[str]:
    known, lines = Library([source]), list[str]()
    for entry in known.listing().entries:
        loaded = known.load(entry.id)
        assert isinstance(loaded, Loaded)
        for activity in loaded.workflow.activities:
            lines += [f"{entry.id}/{activity.id}/{asked.id}: {_words(asked)}" for asked in activity.gates()]
    return lines


def _words(gate: Gate) -> str:
    return gate.place or (f"before its step '{gate.bound_to}'" if gate.bound_to else "where it is written")


@needs_corpus
def test_the_places_of_real_files_are_those_that_a_person_judged() -> None:
    """Each line was read against its file; a change must be judged by hand again."""
    expected = (GOLDEN / "authoring" / "places.txt").read_text(encoding="utf-8").splitlines()
    assert places_of(Source("configured", CORPUS / "activities")) == expected
