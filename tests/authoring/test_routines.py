"""Routines as templates: those of the package, and those beside a workflow in its own source (finding F6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interlock.authoring.compile.templates import known_templates
from interlock.authoring.library import BUNDLED, Diagnostic, Library, Loaded, Source
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
