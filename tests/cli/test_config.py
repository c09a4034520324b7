"""Settings: flag over variable over project over user; a project may only tighten (rule 29)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interlock.cli.compose import library_of
from interlock.cli.config import BadConfig, Config, resolve
from support.authored import head


def write(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text)


def resolved(
    tmp_path: Path, *, user: str = "", project: str = "", env: dict[str, str] | None = None, **flags: str
) -> Config:
    write(tmp_path / "data", user)
    write(tmp_path / "project" / ".interlock", project)
    places = {"data-dir": str(tmp_path / "data"), "project": str(tmp_path / "project")}
    return resolve({**places, **{name.replace("_", "-"): value for name, value in flags.items()}}, env or {})


def test_a_flag_outranks_a_variable_a_project_and_the_user(tmp_path: Path) -> None:
    user, env = 'enforcement = "advisory"', {"INTERLOCK_ENFORCEMENT": "advisory"}
    project = 'enforcement = "strict"'
    assert resolved(tmp_path, user=user).enforcement == "advisory"
    assert resolved(tmp_path, user=user, project=project).enforcement == "strict"
    assert resolved(tmp_path, user=user, project=project, env=env).enforcement == "advisory"
    assert resolved(tmp_path, user=user, env=env, enforcement="strict").enforcement == "strict"


@pytest.mark.parametrize("line", ['surface = "execution"', 'surface = "session"', 'store = "sqlite:///x.db"'])
def test_a_project_sets_neither_surface_nor_store(tmp_path: Path, line: str) -> None:
    """Rule 29."""
    name = line.split(maxsplit=1)[0]
    with pytest.raises(BadConfig) as refused:
        resolved(tmp_path, project=line)
    assert f"a project cannot set '{name}'; use --{name}, INTERLOCK_{name.upper()}" in str(refused.value)
    assert ".interlock/config.toml" in str(refused.value)


def test_a_project_is_found_around_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client starts the server in the project, or names it in a variable."""
    write(tmp_path / "project" / ".interlock", 'decisions = "user"')
    (tmp_path / "project" / "src" / "deep").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    data = {"data-dir": str(tmp_path / "data")}
    monkeypatch.chdir(tmp_path / "project" / "src" / "deep")
    assert resolve(data, {}).project == str(tmp_path / "project")
    assert resolve(data, {}).decisions == "user"
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert resolve(data, {}).project is None
    environment = {"CLAUDE_PROJECT_DIR": str(tmp_path / "project")}
    assert resolve(data, environment).project == str(tmp_path / "project")
    named = {**data, "project": str(tmp_path / "elsewhere")}
    assert resolve(named, environment).project == str(tmp_path / "elsewhere")


def test_a_projects_workflows_neither_replace_nor_outrank_the_users(tmp_path: Path) -> None:
    """Rule 38a."""
    for name in ("own", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "w.json").write_text(json.dumps({**head(), "name": name}))
    user, project = f'workflows = ["{tmp_path}/own"]', f'workflows = ["{tmp_path}/theirs"]'
    config = resolved(tmp_path, user=user, project=project)
    assert (config.workflows, config.project_workflows) == ((f"{tmp_path}/own",), (f"{tmp_path}/theirs",))
    listing = library_of(config).listing()
    assert [entry.name for entry in listing.entries if entry.id == "t.w"] == ["own"]
    assert [(item.source, item.by_source) for item in listing.shadowed] == [("project", "--workflows own")]


@pytest.mark.parametrize(
    ("setting", "user", "project", "effective"),
    [
        ("decisions", "auto", "user", "user"),
        ("decisions", "auto", "client", "client"),
        ("decisions", "user", "client", "user"),
        ("decisions", "auto", "agent", "auto"),
        ("decisions", "user", "auto", "user"),
        ("enforcement", "strict", "advisory", "strict"),
        ("enforcement", "advisory", "strict", "strict"),
        ("mode", "stop", "guided", "guided"),
        ("mode", "guided", "never-stop", "guided"),
    ],
)
def test_a_project_may_only_tighten(
    tmp_path: Path, setting: str, user: str, project: str, effective: str
) -> None:
    config = resolved(tmp_path, user=f'{setting} = "{user}"', project=f'{setting} = "{project}"')
    assert getattr(config, setting) == effective


def test_a_project_cannot_loosen_what_nobody_set(tmp_path: Path) -> None:
    assert resolved(tmp_path, project='mode = "never-stop"').mode is None
    assert resolved(tmp_path, project='decisions = "agent"').decisions == "auto"


def test_a_project_cannot_move_the_data_or_shorten_the_wait(tmp_path: Path) -> None:
    config = resolved(tmp_path, project='data-dir = "/elsewhere"\nmin-response-seconds = 0')
    assert config.min_response_seconds == 3.0
    assert config.folder == tmp_path / "data"


@pytest.mark.parametrize("text", ["surface = 7", 'surface = "kitchen"', "colour = 1", "not toml at all ="])
def test_a_bad_file_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadConfig):
        resolved(tmp_path, user=text)


def test_many_folders_come_from_one_variable(tmp_path: Path) -> None:
    import os

    config = resolved(tmp_path, env={"INTERLOCK_WORKFLOWS": os.pathsep.join(["a", "team=b"])})
    assert config.workflows == ("a", "team=b")


def test_a_store_names_the_database_file_and_the_data_directory_keeps_the_rest(tmp_path: Path) -> None:
    config = resolved(tmp_path, store=f"sqlite://{tmp_path}/elsewhere/work.db")
    assert (config.folder, config.database) == (tmp_path / "data", tmp_path / "elsewhere" / "work.db")
    assert resolved(tmp_path).database == tmp_path / "data" / "interlock.db"


def test_a_store_may_be_set_in_the_users_file(tmp_path: Path) -> None:
    config = resolved(tmp_path, user=f'store = "sqlite://{tmp_path}/work.db"')
    assert config.database == tmp_path / "work.db"


@pytest.mark.parametrize(
    "url", ["work.db", "sqlite://work.db", "sqlite:///{folder}", "sqlite:///folder/", "mysql://host/name"]
)
def test_a_store_that_is_no_database_file_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(BadConfig, match=r"use sqlite:///PATH/TO/FILE\.db"):
        _ = Config(store=url.format(folder=tmp_path)).database


@pytest.mark.parametrize(
    ("setting", "value", "choices"),
    [
        ("surface", "foo", "execution, session, gated, navigation, lookup"),
        ("mode", "reckless", "guided, stop, never-stop"),
        ("decisions", "nobody", "agent, auto, client, user"),
        ("enforcement", "lax", "strict, advisory"),
    ],
)
def test_a_wrong_value_is_answered_with_the_choices(
    tmp_path: Path, setting: str, value: str, choices: str
) -> None:
    with pytest.raises(BadConfig) as refused:
        resolved(tmp_path, **{setting: value})
    assert str(refused.value) == f"{setting} (flag): '{value}' is not valid; use one of {choices}"


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("port", "99999", "expected a whole number <= 65535"),
        ("port", "-1", "expected a whole number >= 0"),
        ("rate-limit", "0", "expected a number > 0.0"),
        ("rate-limit", "nan", "expected a number > 0.0"),
        ("concurrency-limit", "0", "expected a whole number >= 1"),
        ("min-response-seconds", "soon", "expected a number"),
    ],
)
def test_a_wrong_number_is_answered_with_what_it_must_be(
    tmp_path: Path, setting: str, value: str, expected: str
) -> None:
    with pytest.raises(BadConfig) as refused:
        resolved(tmp_path, **{setting: value})
    assert str(refused.value) == f"{setting} (flag): '{value}' is not valid; {expected}"


def test_a_project_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"^project: there is no folder .*/mistyped$"):
        resolve({"data-dir": str(tmp_path / "data"), "project": str(tmp_path / "mistyped")}, {})
