"""Rule 35: where a run begins if the head file does not say so."""

from __future__ import annotations

from pathlib import Path

from interlock.authoring.library import Diagnostic, Loaded
from support.authored import library, write


def load(folder: Path, exits: dict[str, str]) -> Loaded | Diagnostic:
    """Load a workflow without `initialActivity` whose activities end with these fields."""
    files = {"w/workflow.yaml": "id: w\nversion: 1.0.0\ntitle: W\n"}
    for name, rest in exits.items():
        files[f"w/activities/{name}.yaml"] = (
            f"id: {name}\nname: {name.upper()}\nsteps:\n  - {{id: s, name: S, description: Do it.}}\n{rest}"
        )
    return library(write(folder, files)).load("w")


def beginning(loaded: Loaded | Diagnostic) -> tuple[str | None, list[str]]:
    assert isinstance(loaded, Loaded), loaded
    return loaded.workflow.initial, [diagnostic.code for diagnostic in loaded.diagnostics]


def to(*targets: str) -> str:
    return "transitions: [" + ", ".join(f"{{to: {target}, isDefault: true}}" for target in targets) + "]\n"


def test_a_run_begins_with_the_only_activity_that_no_other_leads_to(tmp_path: Path) -> None:
    """Whatever the order of the files; the validator says so."""
    loaded = load(tmp_path, {"deploy": "", "review": to("deploy")})
    assert beginning(loaded) == ("review", ["IL225"])


def test_an_activity_that_leads_to_itself_may_be_the_first(tmp_path: Path) -> None:
    again = "decisions: [{id: d, branches: [{id: x, transitionTo: review, isDefault: true}]}]\n"
    assert beginning(load(tmp_path, {"deploy": "", "review": to("deploy") + again}))[0] == "review"


def test_decisions_options_and_loops_lead_somewhere_too(tmp_path: Path) -> None:
    decision = "decisions: [{id: d, branches: [{id: x, transitionTo: asked, isDefault: true}]}]\n"
    option = "{id: yes, label: Y, effect: {transitionTo: repeated}}"
    gate = f"checkpoints: [{{id: g, message: M, options: [{option}]}}]\n"
    loop = "loops: [{id: l, type: forEach, over: files, activities: [inlined]}]\n"
    loaded = load(tmp_path, {"asked": gate, "first": decision, "inlined": "", "repeated": loop})
    assert beginning(loaded)[0] == "first"


def test_several_beginnings_are_an_error(tmp_path: Path) -> None:
    refused = load(tmp_path, {"deploy": "", "hotfix": to("deploy"), "review": to("deploy")})
    assert isinstance(refused, Diagnostic)
    assert (refused.code, refused.next_action) == (
        "IL226",
        "add 'initialActivity' with one of hotfix, review",
    )


def test_a_circle_without_a_beginning_is_an_error(tmp_path: Path) -> None:
    refused = load(tmp_path, {"deploy": to("review"), "review": to("deploy")})
    assert isinstance(refused, Diagnostic)
    assert refused.code == "IL226"


def test_activities_that_lead_nowhere_are_independent(tmp_path: Path) -> None:
    """A transition to the end leads to no activity."""
    assert beginning(load(tmp_path, {"one": "", "two": to("__terminal__")})) == (None, [])
