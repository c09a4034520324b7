"""A real run on a small repository with pytest: its check is attested, and verified elsewhere."""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from interlock.authoring.library import Loaded
from interlock.cli.compose import ledger_of
from interlock.cli.config import resolve
from interlock.ledger.decisions.trust import give_trust, trustable
from support.cli_process import environment, interlock
from support.installation import PATIENCE, install
from support.server import Server

pytestmark = pytest.mark.slow

PYTEST = shlex.join([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"])
FLOW = {
    "id": "team.work",
    "name": "Work",
    "version": "1.0.0",
    "steps": [
        {"id": "build", "title": "Build", "prompt": "Build.", "checks": [{"id": "tests", "run": PYTEST}]},
        {
            "type": "gate",
            "id": "review",
            "message": "Tests: {{checks.tests}}",
            "options": [{"id": "ok", "label": "Accept"}, {"id": "no", "label": "Reject"}],
        },
        {"id": "close", "title": "Close", "prompt": "Close."},
    ],
}
ACCEPTED = {"artifacts": [{"kind": "wr.decision", "checkpointId": "review", "optionId": "ok"}]}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with one test and a workflow that runs it."""
    folder = tmp_path / "project"
    (folder / ".interlock" / "workflows").mkdir(parents=True)
    (folder / ".interlock" / "workflows" / "work.json").write_bytes(msgspec.json.encode(FLOW))
    (folder / "test_sum.py").write_text("def test_sum():\n    assert 1 + 1 == 2\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=me", "-c", "user.email=me@example.com", "commit", "-qm", "First")
    return folder


def git(folder: Path, *arguments: str) -> str:
    ran = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def trust_checks(data: Path, project: Path) -> None:
    ledger = ledger_of(resolve({"data-dir": str(data), "project": str(project)}))
    loaded = ledger.library.load("team.work")
    assert isinstance(loaded, Loaded), loaded
    for check in trustable(ledger, loaded.workflow, project):
        give_trust(ledger, check, project, "cli")
    ledger.store.close()


def test_a_real_check_is_attested_and_verified_elsewhere(repository: Path, tmp_path: Path) -> None:
    data, there = tmp_path / "data", tmp_path / "there"
    trust_checks(data, repository)
    with Server(data, "--project", str(repository)) as server:
        gate = server.ack(server.call("start_workflow", workflowId="team.work"), "Built; 100 tests pass.")
        assert "Tests: passed (run by the server" in gate["_text"]
        server.ack(server.ack(gate, output=ACCEPTED), "Closed.")
    files = [str(tmp_path / name) for name in ("attestation.json", "session.json")]
    assert interlock(data, "signing", "create").code == 0
    attested = interlock(data, "attest", gate["session"]["sessionId"], "--out", files[0])
    assert attested.code == 0, attested.err
    assert interlock(data, "export", gate["session"]["sessionId"], "--output", files[1]).code == 0
    statement = json.loads(base64.b64decode(json.loads(Path(files[0]).read_bytes())["payload"]))
    head = git(repository, "rev-parse", "HEAD")
    (check,) = statement["predicate"]["checks"]
    assert statement["subject"] == [{"name": "git", "digest": {"gitCommit": head}}]
    assert (check["strength"], check["passed"], check["gitCommit"]) == ("run by the server", True, head)
    assert {report["strength"] for report in statement["predicate"]["reports"]} == {"claimed by the agent"}

    there.mkdir()
    public = str(data / "keys" / "signing.pub.pem")
    command = [str(install(there, "sign") / "interlock"), "verify", *files, "--signed-by", public]
    env = environment(INTERLOCK_DATA_DIR=str(there / "data"))
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("checks run by the server: 1, passed: 1") == 2
