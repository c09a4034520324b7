"""The commands for people who write workflows, as real processes: what they print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interlock.authoring.library import BUNDLED
from support import paths
from support.authored import write
from support.cli_process import Ran, Terminal, interlock

pytestmark = pytest.mark.slow

GOLDEN = paths.GOLDEN / "authoring"

GOOD = "id: t.good\nname: Good\nversion: 1.0.0\nsteps:\n  - {id: ask, title: Ask, prompt: Ask.}\n"
WARNED = GOOD.replace("t.good", "t.warned").replace("prompt:", "promt: x, prompt:") + "$lenient: true\n"
BROKEN = GOOD.replace("t.good", "t.broken").replace(
    "prompt: Ask.", "runCondition: {var: x, eqals: 1}, prompt: P"
)


@pytest.fixture
def flows(tmp_path: Path) -> Path:
    files = {"good.yaml": GOOD, "warned.yaml": WARNED, "broken.yaml": BROKEN}
    return write(tmp_path / "flows", files)


def run(folder: Path, *arguments: str) -> Ran:
    return interlock(folder.parent / "data", *arguments)


def told(ran: Ran, folder: Path) -> str:
    return ran.out.replace(str(folder), "flows")


def test_validate_prints_place_code_message_and_fix(flows: Path) -> None:
    ran = run(flows, "validate", str(flows))
    assert told(ran, flows) == (GOLDEN / "validate.txt").read_text("utf-8")
    assert ran.err == "2 workflows usable, 1 error, 1 warning.\n"
    assert ran.code == 1


def test_validate_as_json_says_the_same(flows: Path) -> None:
    found = run(flows, "validate", str(flows), "--json").json
    assert found["workflows"] == 2
    assert [(problem["code"], problem["line"], problem["column"]) for problem in found["problems"]] == [
        ("IL301", 5, 50),
        ("IL105", 5, 27),
    ]


@pytest.mark.parametrize(("strict", "code"), [((), 0), (("--strict",), 1)])
def test_warnings_fail_only_when_strict(flows: Path, strict: tuple[str, ...], code: int) -> None:
    assert run(flows, "validate", str(flows / "warned.yaml"), *strict).code == code


@pytest.mark.parametrize(("path", "code"), [("nowhere", 3), ("empty", 3), ("good.yaml", 0)])
def test_validate_ends_by_what_it_found(flows: Path, path: str, code: int) -> None:
    (flows / "empty").mkdir()
    assert run(flows, "validate", str(flows / path)).code == code


@pytest.mark.parametrize("path", [".", "../flows", "..", "good.yaml"])
@pytest.mark.parametrize("command", ["validate", "test"])
def test_a_path_is_seen_from_the_working_folder(
    flows: Path, monkeypatch: pytest.MonkeyPatch, command: str, path: str
) -> None:
    monkeypatch.chdir(flows)
    ran = run(flows, command, path)
    assert "Traceback" not in ran.err
    assert ran.code == {"test": 3, "validate": 0 if path == "good.yaml" else 1}[command]


def test_a_file_of_a_folder_stands_for_the_folder(tmp_path: Path) -> None:
    path = BUNDLED.path / "meta" / "activities" / "02-end-workflow.yaml"
    assert run(tmp_path / "x", "validate", str(path)).err == "1 workflow usable, no errors.\n"


def test_validate_knows_the_children_that_other_sources_bring(tmp_path: Path) -> None:
    text = "id: a\nname: A\nsteps:\n  - {id: s, name: S, description: D, triggers: [{workflow: %s}]}\n"
    head = "id: w\nversion: 1.0.0\ntitle: W\ninitialActivity: a\n"
    folder = write(tmp_path / "w", {"workflow.yaml": head, "activities/a.yaml": text % "work-package"})
    assert run(folder, "validate", "--strict", str(folder)).code == 0
    write(folder, {"activities/a.yaml": text % "work-pakage"})
    assert "did you mean 'work-package'?" in run(folder, "validate", str(folder)).out


def test_a_mount_lets_reserved_names_pass(tmp_path: Path) -> None:
    """Rule 38."""
    folder = write(tmp_path / "flows", {"w.yaml": GOOD.replace("t.good", "wr.good")})
    assert run(folder, "validate", str(folder)).code == 1
    assert run(folder, "validate", f"team={folder}").code == 0


def test_explain_tells_what_a_code_means(tmp_path: Path) -> None:
    ran = run(tmp_path / "x", "explain", "il503")
    assert ran.out == (GOLDEN / "explain.txt").read_text("utf-8")


def test_explain_suggests_the_nearest_code(tmp_path: Path) -> None:
    ran = run(tmp_path / "x", "explain", "IL599")
    assert (ran.code, ran.out) == (3, "")
    assert "did you mean 'IL5" in ran.err


def test_explain_without_a_code_lists_all(tmp_path: Path) -> None:
    from interlock.authoring.diagnostics.codes import CODES

    assert [line.split()[0] for line in run(tmp_path / "x", "explain").out.splitlines()] == list(CODES)


@pytest.mark.slow
@pytest.mark.parametrize(("template", "name"), [("steps", "team.trip"), ("activities", "trip-plan")])
def test_a_new_workflow_is_right_from_the_start(tmp_path: Path, template: str, name: str) -> None:
    folder = tmp_path / "new"
    assert run(folder, "init", str(folder), "--template", template, "--id", name).code == 0
    assert run(folder, "validate", "--strict", str(folder)).err == "1 workflow usable, no errors.\n"
    assert run(folder, "test", str(folder), "--min-coverage", "100").code == 0
    assert run(folder, "simulate", str(folder), "--strict").code == 0


@pytest.mark.parametrize("template", ["steps", "activities"])
def test_editors_find_the_schema_that_a_new_file_names(tmp_path: Path, template: str) -> None:
    import jsonschema_rs
    import yaml

    folder = tmp_path / "new"
    name = "team.trip" if template == "steps" else "trip"
    run(folder, "init", str(folder), "--template", template, "--id", name)
    named = [path for path in folder.rglob("*.yaml") if path.read_text("utf-8").startswith("# yaml-language")]
    assert len(named) == (2 if template == "steps" else 5)
    for path in named:
        first, _, rest = path.read_text("utf-8").partition("\n")
        schema = json.loads((path.parent / first.partition("$schema=")[2]).read_text("utf-8"))
        assert jsonschema_rs.validator_for(schema).is_valid(yaml.safe_load(rest))


@pytest.mark.parametrize(
    ("template", "name", "code"),
    [
        ("steps", "trip", 2),
        ("steps", "wr.trip", 2),
        ("steps", "Team.trip", 2),
        ("activities", "team.trip", 2),
        ("activities", "trip", 0),
    ],
)
def test_a_new_workflow_needs_a_proper_id(tmp_path: Path, template: str, name: str, code: int) -> None:
    """Rule 38."""
    folder = tmp_path / "new"
    assert run(folder, "init", str(folder), "--template", template, "--id", name).code == code
    assert folder.exists() is (code == 0)


def test_a_folder_may_give_the_name(tmp_path: Path) -> None:
    folder = tmp_path / "team.trip"
    assert run(folder, "init", str(folder)).code == 0
    assert (folder / "trip.yaml").is_file()


def test_a_folder_without_a_namespace_gets_one(tmp_path: Path) -> None:
    folder = tmp_path / "My trip"
    assert run(folder, "init", str(folder)).code == 0
    assert "id: user.my_trip\n" in (folder / "my_trip.yaml").read_text("utf-8")
    assert run(folder, "validate", str(folder)).code == 0


def test_nothing_is_overwritten_by_a_new_workflow(tmp_path: Path) -> None:
    folder = write(tmp_path / "new", {"trip.yaml": "mine"})
    ran = run(folder, "init", str(folder), "--id", "team.trip")
    assert ran.code == 5
    assert [path.name for path in folder.iterdir()] == ["trip.yaml"]


def test_the_schemas_are_printed_as_they_are_published(tmp_path: Path) -> None:
    listed = run(tmp_path / "x", "schema").out
    for file in paths.SCHEMAS.glob("*.schema.json"):
        name = file.name.removesuffix(".schema.json")
        assert name in listed
        assert run(tmp_path / "x", "schema", name).out == file.read_text("utf-8")
    ran = run(tmp_path / "x", "schema", "workflow")
    assert (ran.code, "step-workflow" in ran.err) == (2, True)


def test_two_new_workflows_share_a_folder_and_its_schemas(tmp_path: Path) -> None:
    folder = tmp_path / "flows"
    for name in ("team.one", "team.two"):
        assert run(folder, "init", str(folder), "--id", name).code == 0
    assert run(folder, "test", str(folder)).code == 0
    assert run(folder, "init", str(folder), "--id", "team.two").code == 0  # nothing would change
    (folder / "two.yaml").write_text("mine")
    assert run(folder, "init", str(folder), "--id", "team.two").code == 5


def test_validate_watches_until_it_is_interrupted(tmp_path: Path) -> None:
    write(tmp_path, {"flows/w.yaml": BROKEN})
    terminal = Terminal(tmp_path / "data", "validate", "--watch", str(tmp_path / "flows"))
    assert "IL301" in terminal.until("Watching for changes.")
    (tmp_path / "flows" / "w.yaml").write_text(GOOD)
    assert "1 workflow usable, no errors." in terminal.until("Watching for changes.")
    (tmp_path / "flows" / "w.scenario.yaml").write_text("workflow: t.good\nscenaris: []\n")
    assert "did you mean 'scenarios'?" in terminal.until("Watching for changes.")
    for name in ("w.scenario.yaml", "w.yaml"):
        (tmp_path / "flows" / name).unlink()
    terminal.until("There is no workflow in")
    (tmp_path / "flows" / "w.yaml").write_text(GOOD)
    terminal.until("1 workflow usable, no errors.")
    code, rest = terminal.interrupt()
    assert (code, "Traceback" in rest) == (0, False)
    ran = run(tmp_path / "flows", "validate", "--watch", "--json", str(tmp_path / "flows"))
    assert (ran.code, "--watch prints text" in ran.err) == (2, True)
