"""A project that only the client knows: the server asks for its folders, and waits for nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock.transport.results import MOST_ROOTS, folders_of
from support.stdio_pipe import ENVELOPE, Pipe, call, notification, request, response

WORKFLOW = "id: team.flow\nname: Flow\nversion: 1.0.0\nsteps: [{id: one, title: One, prompt: Do it.}]\n"
ROOTS = {"capabilities": {"roots": {"listChanged": True}}}
INITIALIZED = notification("notifications/initialized")


def project(folder: Path, settings: str = "") -> Path:
    flows = folder / ".interlock" / "workflows"
    flows.mkdir(parents=True)
    (flows / "flow.yaml").write_text(WORKFLOW)
    (folder / ".interlock" / "config.toml").write_text(settings)
    return folder


@contextmanager
def server(tmp_path: Path, *arguments: str, **variables: str) -> Iterator[Pipe]:
    """Start the real server in a folder that has no project around it."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    env = {name: value for name, value in os.environ.items() if name != "CLAUDE_PROJECT_DIR"} | variables
    data = ("mcp", "--data-dir", str(tmp_path / "data"))
    with Pipe(*data, *arguments, module="interlock", env=env, cwd=elsewhere) as pipe:
        yield pipe


def asked(pipe: Pipe) -> dict[str, Any]:
    """Send `initialized` and return the server's own request."""
    question: dict[str, Any] = pipe.ask(INITIALIZED)
    return question


def answer_with(pipe: Pipe, question: dict[str, Any], *folders: Path) -> None:
    roots = [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]
    pipe.send(response(question["id"], {"roots": roots}))


def listed(pipe: Pipe) -> str:
    text: str = pipe.ask(call(9, "list_workflows"))["result"]["content"][0]["text"]
    return text


def test_the_project_of_the_clients_folders_is_used(tmp_path: Path) -> None:
    inside = project(tmp_path / "my project") / "src"
    inside.mkdir()
    with server(tmp_path) as pipe:
        pipe.initialize(**ROOTS)
        question = asked(pipe)
        assert (question["method"], question["params"]) == ("roots/list", {})
        assert "team.flow" not in listed(pipe), "no call waits for the answer"
        answer_with(pipe, question, tmp_path / "nothing here", inside)
        assert "team.flow" in listed(pipe)
        started = pipe.ask(call(10, "start_workflow", workflowId="team.flow"))
        assert "Do it." in started["result"]["content"][0]["text"]


def test_the_project_may_tighten_the_terms_of_what_starts_then(tmp_path: Path) -> None:
    gate = "{type: gate, id: ask, message: Go?, options: [{id: go, label: Go}, {id: no, label: No}]}"
    folder = project(tmp_path / "project", 'decisions = "user"\n')
    (folder / ".interlock" / "workflows" / "flow.yaml").write_text(
        f"id: team.flow\nname: Flow\nversion: 1.0.0\nsteps: [{gate}]\n"
    )
    with server(tmp_path) as pipe:
        pipe.initialize(**ROOTS)
        answer_with(pipe, asked(pipe), folder)
        started = pipe.ask(call(10, "start_workflow", workflowId="team.flow"))["result"]
        assert "interlock inbox" in started["content"][0]["text"]


def test_folders_that_change_are_asked_for_again_until_a_project_is_found(tmp_path: Path) -> None:
    with server(tmp_path) as pipe:
        pipe.initialize(**ROOTS)
        answer_with(pipe, asked(pipe), tmp_path)
        again = pipe.ask(notification("notifications/roots/list_changed"))
        answer_with(pipe, again, project(tmp_path / "one"))
        assert "team.flow" in listed(pipe)


@pytest.mark.parametrize("named", ["client", "flag", "variable", "directory", "modern"])
def test_nobody_is_asked_where_the_client_has_no_roots_or_the_project_is_known(
    tmp_path: Path, named: str
) -> None:
    folder = str(project(tmp_path / "elsewhere" if named == "directory" else tmp_path / "one"))
    flags = ("--project", folder) if named == "flag" else ()
    variables = {"CLAUDE_PROJECT_DIR": folder} if named == "variable" else {}
    with server(tmp_path, *flags, **variables) as pipe:
        if named == "modern":
            pipe.send(request(1, "tools/list", {"_meta": ENVELOPE}))
        else:
            pipe.send(
                request(
                    1, "initialize", {"protocolVersion": "2025-11-25", **({} if named == "client" else ROOTS)}
                )
            )
        assert pipe.read()["id"] == 1
        pipe.send(INITIALIZED, request(2, "ping", {"_meta": ENVELOPE} if named == "modern" else {}))
        assert pipe.read()["id"] == 2, "the next line answers the ping"


def test_a_project_with_a_bad_file_is_not_used_and_said_on_stderr(tmp_path: Path) -> None:
    with server(tmp_path) as pipe:
        pipe.initialize(**ROOTS)
        answer_with(pipe, asked(pipe), project(tmp_path / "one", 'surface = "gated"\n'))
        assert "team.flow" not in listed(pipe)
        assert pipe.end() == 0
        assert b"is not used: " in pipe.stderr.read()


def checkout(folder: Path, branch: str) -> Path:
    """A git checkout without a project, as far as it is looked at."""
    (folder / ".git" / "refs" / "heads").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    (folder / ".git" / "refs" / "heads" / branch).write_text("0123456789" * 4 + "\n")
    return folder


@pytest.mark.parametrize("named", ["directory", "variable", "roots", "flag"])
def test_a_plain_checkout_is_recorded_wherever_it_is_known_from(tmp_path: Path, named: str) -> None:
    below = checkout(tmp_path / ("elsewhere" if named == "directory" else "one"), "topic") / "src"
    below.mkdir()
    flags = ("--project", str(below)) if named == "flag" else ()
    variables = {"CLAUDE_PROJECT_DIR": str(below)} if named == "variable" else {}
    with server(tmp_path, *flags, **variables) as pipe:
        pipe.initialize(**(ROOTS if named == "roots" else {}))
        if named == "roots":
            answer_with(pipe, asked(pipe), below)
        pipe.ask(call(10, "start_workflow", workflowId="wr.small_task", context={"goal": "x"}))
        found = pipe.ask(call(11, "resume_session", query="topic"))["result"]["structuredContent"]
        assert [candidate["whyMatched"] for candidate in found["candidates"]] == ["matched_branch"]


@pytest.mark.parametrize(
    ("result", "folders"),
    [
        ({"roots": [{"uri": "file:///a/b%20c"}, {"uri": "file://localhost/d"}]}, ["/a/b c", "/d"]),
        ({"roots": [{"uri": "https://host/a"}, {"uri": "file://host/a"}, {"uri": 3}, "x", {}]}, []),
        ({"roots": [{"uri": "file://[/a"}]}, []),
        ({"roots": {"uri": "file:///a"}}, []),
        (None, []),
    ],
)
def test_only_local_folders_count(result: Any, folders: list[str]) -> None:
    assert [str(folder) for folder in folders_of(result)] == folders


def test_no_more_than_a_few_folders_are_looked_at() -> None:
    assert len(folders_of({"roots": [{"uri": "file:///a"}] * 1000})) == MOST_ROOTS
