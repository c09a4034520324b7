"""Routines as templates: those of the package, and those beside a workflow in its own source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interlock.authoring.compile.templates import known_templates
from interlock.authoring.library import BUNDLED, Diagnostic, Library, Loaded, Source
from interlock.core.definition.conditions import AllOf, Compare
from interlock.core.definition.workflow import Loop, Step, walk
from interlock.core.values import Json
from support.authored import head, library, main, step, words, write

BUNDLED_ROUTINES = ["context-gathering", "hypothesis-challenge", "plan-generation"]


def calling(name: str, **args: str) -> str:
    call = {"templateId": f"wr.templates.routine.{name}", "args": args}
    return json.dumps(head({"id": "use", "title": "Use", "templateCall": call}))


def routine(name: str, prompt: str) -> str:
    return json.dumps(head({"id": "do", "title": "Do", "prompt": prompt}, id=f"t.routine-{name}"))


@pytest.mark.parametrize("name", BUNDLED_ROUTINES)
def test_a_bundled_routine_can_be_called_and_run(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"w.json": calling(name)})
    loaded = library(tmp_path).load("t.w")
    assert isinstance(loaded, Loaded), loaded
    assert loaded.diagnostics == ()
    steps = list(main(loaded).steps())
    assert len(steps) == 3
    assert all(step.id.startswith("use.") for step in steps)
    assert {step.provenance for step in steps} == {f"wr.templates.routine.{name}"}
    alone = Library([BUNDLED]).load(f"wr.routine-{name}")
    assert isinstance(alone, Loaded), alone
    assert (alone.workflow.kind, alone.diagnostics) == ("routine", ())


def test_every_bundled_routine_is_known() -> None:
    known = {ref.removeprefix("wr.templates.routine.") for ref in known_templates() if ".routine." in ref}
    assert known == set(BUNDLED_ROUTINES)


@pytest.mark.parametrize("folder", ["", "team/", "team/deep/"])
def test_a_routine_is_found_beside_the_workflow_or_above_it(tmp_path: Path, folder: str) -> None:
    write(
        tmp_path,
        {
            "routines/probe.json": routine("probe", "Look at {area}."),
            f"{folder}w.json": calling("probe", area="x"),
        },
    )
    loaded = library(tmp_path).load("t.w")
    assert isinstance(loaded, Loaded), loaded
    assert "Look at x." in words(step(loaded, "use.do"))


def test_the_nearest_routine_is_used_and_outranks_the_bundled_one(tmp_path: Path) -> None:
    name = BUNDLED_ROUTINES[0]
    files = {
        f"routines/{name}.json": routine(name, "Far."),
        f"team/routines/{name}.json": routine(name, "Near."),
        "team/w.json": calling(name),
    }
    loaded = library(write(tmp_path, files)).load("t.w")
    assert isinstance(loaded, Loaded), loaded
    assert "Near." in words(step(loaded, "use.do"))


def test_an_activity_calls_a_routine_of_its_source(tmp_path: Path) -> None:
    use = "{id: use, templateCall: {templateId: wr.templates.routine.probe}}"
    files = {
        "routines/probe.json": routine("probe", "Look."),
        "w/workflow.yaml": "id: w\nversion: 1.0.0\ntitle: W\ninitialActivity: a\n",
        "w/activities/01-a.yaml": f"id: a\nname: A\nversion: 1.0.0\nsteps: [{use}]\n",
    }
    loaded = library(write(tmp_path, files)).load("w")
    assert isinstance(loaded, Loaded), loaded
    assert "Look." in words(step(loaded, "use.do"))


def test_a_routine_of_another_source_is_not_found(tmp_path: Path) -> None:
    write(tmp_path, {"one/routines/probe.json": routine("probe", "Look."), "two/w.json": calling("prob")})
    both = Library([Source("user", tmp_path / "one"), Source("configured", tmp_path / "two")])
    error = both.load("t.w")
    assert isinstance(error, Diagnostic)
    assert error.code == "IL210"


def test_a_changed_routine_changes_what_calls_it(tmp_path: Path) -> None:
    write(tmp_path, {"w.json": calling("probe")})
    one = Library([Source("configured", tmp_path)], tmp_path / "cache")
    assert isinstance(one.load("t.w"), Diagnostic)
    for prompt in ("First.", "Second and longer."):
        write(tmp_path, {"routines/probe.json": routine("probe", prompt)})
        loaded = one.load("t.w")
        assert isinstance(loaded, Loaded), loaded
        assert prompt in words(step(loaded, "use.do"))


def test_a_broken_routine_is_reported_once_with_its_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"routines/bad.json": "{", "routines/good.json": routine("good", "Go."), "w.json": calling("good")},
    )
    one = library(tmp_path)
    assert isinstance(one.load("t.w"), Loaded)
    assert [(error.file, error.code) for error in one.listing().diagnostics] == [
        ("routines/bad.json", "IL004")
    ]


WHOLE = """
id: t.routine-whole
name: Whole
version: 1.0.0
agentRole: You are careful.
preconditions: ["{area} can be read."]
metaGuidance: ["Stay in {area}."]
features: [{ id: wr.features.output_contracts, config: { attempts: 2 } }]
variables: [{ name: done, type: boolean, defaultValue: false }]
references: [{ id: guide, title: Guide, source: docs/guide.md, purpose: How it is done }]
assessments:
  - { id: fit, purpose: Does it fit, dimensions: [{ id: size, levels: [small, large], purpose: Its size }] }
steps:
  - id: look
    title: Look
    promptBlocks: { goal: "Look at {area}." }
    assessmentRefs: [fit]
  - type: loop
    id: rounds
    title: Rounds
    loop: { type: until, condition: { var: done, equals: true }, maxIterations: 3 }
    body:
      - { id: work, title: Work, prompt: Work., runCondition: { var: done, equals: false } }
      - type: gate
        id: settled
        message: Is it settled?
        options:
          - { id: yes, label: Yes, effect: { setVariable: { done: true } } }
          - { id: no, label: No, effect: { setVariable: { done: false } } }
  - { type: loop, id: again, title: Again, loop: { type: for, count: 2, maxIterations: 2 }, body: once }
  - { id: once, title: Once, prompt: Once. }
"""
CALL = """
id: t.w
name: W
version: 1.0.0
variables: [{ name: wanted, type: boolean, defaultValue: true }]
steps:
  - id: use
    runCondition: { var: wanted, equals: true }
    templateCall: { templateId: wr.templates.routine.whole, args: { area: the cart } }
"""


def whole(tmp_path: Path, called: str = CALL, body: str = WHOLE) -> Library:
    return library(write(tmp_path, {"routines/whole.yaml": body, "w.yaml": called}))


def test_a_routine_brings_its_loops_gates_and_everything_that_its_steps_rest_on(tmp_path: Path) -> None:
    loaded = whole(tmp_path).load("t.w")
    assert isinstance(loaded, Loaded), loaded
    assert loaded.diagnostics == ()
    look, rounds, again = main(loaded).items
    assert isinstance(rounds, Loop)
    assert isinstance(again, Loop)
    assert [item.id for item in (look, *walk((rounds,)), *walk((again,)))] == [
        *("use.look", "use.rounds", "use.work", "use.settled"),
        *("use.again", "use.once"),
    ]
    text = words(step(loaded, "use.look"))
    for line in (
        "You are careful.",
        "Stay in the cart.",
        "the cart can be read.",
        "after 2 refusals",
    ):
        assert line in text
    assert "the cart can be read." not in words(step(loaded, "use.work"))
    assert "Stay in the cart." in words(step(loaded, "use.work"))
    assert {variable.name: variable.default for variable in loaded.workflow.variables} == {
        "wanted": True,
        "done": False,
    }
    assert [reference["id"] for reference in loaded.workflow.references] == ["guide"]
    assert {item.provenance for item in main(loaded).steps()} == {"wr.templates.routine.whole"}


def test_the_condition_of_a_call_is_added_to_those_of_its_items(tmp_path: Path) -> None:
    loaded = whole(tmp_path).load("t.w")
    assert isinstance(loaded, Loaded), loaded
    look, rounds, _ = main(loaded).items
    assert isinstance(look, Step)
    assert isinstance(rounds, Loop)
    wanted = Compare("wanted", "equals", True)
    assert (look.condition, rounds.run_condition) == (wanted, wanted)
    one = library(write(tmp_path / "one", {"routines/whole.yaml": GUARDED, "w.yaml": CALL})).load("t.w")
    assert isinstance(one, Loaded), one
    assert step(one, "use.do").condition == AllOf((wanted, Compare("rare", "equals", True)))


GUARDED = """
id: t.routine-whole
name: Whole
version: 1.0.0
variables: [{ name: rare, type: boolean, defaultValue: false }]
steps: [{ id: do, title: Do, prompt: "Do it in {area}.", runCondition: { var: rare, equals: true } }]
"""


PLAIN = "{ templateId: wr.templates.routine.whole, args: { area: x } }"


@pytest.mark.parametrize(
    ("call", "routine_fields", "code", "message"),
    [
        (PLAIN.replace("area: x", "area: x, aria: y"), "", "IL105", "the template has no argument 'aria'"),
        (f"{PLAIN}\n    requireConfirmation: true", "", "IL222", "'requireConfirmation' has no effect"),
        (PLAIN, "capabilities: { delegation: required }", "IL222", "says how it needs 'delegation'"),
        (PLAIN, "recommendedPreferences: { recommendedAutonomy: guided }", "IL222", "have no effect here"),
        (f"{PLAIN}\nvariables: [{{ name: done, type: string }}]", "", "IL222", "is declared otherwise"),
    ],
    ids=["unknown argument", "field of the call", "capability", "preferences", "other declaration"],
)
def test_what_does_not_come_along_is_an_error_in_a_file_of_ours(
    tmp_path: Path, call: str, routine_fields: str, code: str, message: str
) -> None:
    called = f"id: t.w\nname: W\nversion: 1.0.0\nsteps:\n  - id: use\n    templateCall: {call}\n"
    found = whole(tmp_path, called, WHOLE + routine_fields).load("t.w")
    assert isinstance(found, Diagnostic), found
    assert (found.code, found.file) == (code, "w.yaml")
    assert message in found.message


def test_a_routine_that_calls_itself_is_an_error(tmp_path: Path) -> None:
    def calls(name: str, other: str) -> str:
        call: Json = {"templateId": f"wr.templates.routine.{other}"}
        return json.dumps(head({"id": "on", "title": "On", "templateCall": call}, id=f"t.routine-{name}"))

    files = {"routines/a.json": calls("a", "b"), "routines/b.json": calls("b", "a"), "w.json": calling("a")}
    found = library(write(tmp_path, files)).load("t.w")
    assert isinstance(found, Diagnostic), found
    assert (found.code, found.file) == ("IL223", "w.json")
