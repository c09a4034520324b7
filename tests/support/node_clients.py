"""The official Node clients and a Node that is new enough for them, installed once for all test workers."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, NoReturn

import pytest

from support.paths import ROOT, TESTS

SCRIPTS = TESTS / "node"
BUILD = ROOT / "build"
INSTALLED_FROM = ("package.json", "package-lock.json", ".npmrc")
INSTALL_PATIENCE = 900
PATIENCE = 180
STAMP = re.compile(r"^server-|-\d{4}-\d\d-\d\dT.*")  # around the name of a scenario's results

Checks = list[tuple[str, str]]  # each with its status
Scenarios = dict[str, Checks]


class NodeClients(NamedTuple):
    """A folder with the scripts of the tests and the packages that they import."""

    folder: Path

    def run(self, script: str, *arguments: str) -> bytes:
        """Run one of the scripts and return what it printed."""
        return self._output([str(self._bin / "node"), str(self.folder / script), *arguments])

    def inspector(self, *arguments: str) -> bytes:
        """Run the command line of the Inspector, which finds its Node on the PATH."""
        return self._output([str(self._bin / "mcp-inspector"), "--cli", *arguments])

    def conformance(self, suite: str, url: str, *arguments: str) -> Scenarios:
        """Run a version of the official conformance suite against a server."""
        script = self.folder / "node_modules" / suite / "dist" / "index.js"
        command = [str(self._bin / "node"), str(script), "server", "--url", url, *arguments]
        with TemporaryDirectory(dir=self.folder) as results:
            subprocess.run([*command, "-o", results], capture_output=True, timeout=PATIENCE, check=False)
            return {
                STAMP.sub("", folder.name): [
                    (check["id"], check["status"])
                    for check in json.loads((folder / "checks.json").read_bytes())
                ]
                for folder in Path(results).iterdir()
            }

    @property
    def _bin(self) -> Path:
        return self.folder / "node_modules" / ".bin"

    def _output(self, command: list[str]) -> bytes:
        env = {**os.environ, "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False, env=env)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> NodeClients:
    """The clients, with a copy of the scripts that belongs to this worker alone."""
    packages = installed_packages()
    folder = tmp_path_factory.mktemp("node")
    (folder / "node_modules").symlink_to(packages)
    for script in SCRIPTS.glob("*.mjs"):
        shutil.copy(script, folder)
    return NodeClients(folder)


def installed_packages() -> Path:
    """Return the official clients, and a Node that is new enough for them."""
    packages = installed_from(SCRIPTS)
    if not (packages / ".bin" / "node").exists():
        absent("the npm registry has no Node for this platform")
    return packages


def installed_from(source: Path) -> Path:
    """Install what a folder's lock file names unless that is done; workers that come meanwhile wait."""
    npm = shutil.which("npm") or absent("npm is not installed, so packages of Node cannot be used")
    # A changed lock file gets a folder of its own.
    digest = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()[:12]
    target = BUILD / f"node-{digest}"
    BUILD.mkdir(exist_ok=True)
    with (BUILD / "node.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _install(npm, source, target)
    return target / "node_modules"


def _install(npm: str, source: Path, target: Path) -> None:
    """Fill a temporary folder and rename it, so that the target is complete or absent."""
    with TemporaryDirectory(prefix=".node-", dir=BUILD) as parent:
        folder = Path(parent, "install")
        folder.mkdir()
        for name in INSTALLED_FROM:
            shutil.copy(source / name, folder)
        command = [npm, "ci", "--loglevel=error"]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, check=False, timeout=INSTALL_PATIENCE
            )
        except subprocess.TimeoutExpired:
            absent(f"npm did not install the packages of Node within {INSTALL_PATIENCE} seconds")
        if done.returncode != 0:
            absent(f"npm could not install the packages of Node: {done.stderr[-500:]}")
        folder.rename(target)


def claude_code() -> Path:
    """Return the program of Claude Code; it is large and not made for every platform, so CI may lack it."""
    try:
        packages = installed_from(SCRIPTS / "claude") / "@anthropic-ai"
    except pytest.fail.Exception as error:
        pytest.skip(f"Claude Code cannot be installed: {error}")
    program = next(packages.glob("claude-code-*/claude"), None)
    return program or pytest.skip("Claude Code has no program for this platform")


def packaging_tools() -> Path:
    """Return the folder of the programs that check plugins and bundles; large, so CI may lack them too."""
    try:
        return installed_from(SCRIPTS / "packaging") / ".bin"
    except pytest.fail.Exception as error:
        pytest.skip(f"the tools that check plugins cannot be installed: {error}")


def absent(reason: str) -> NoReturn:
    """Skip what needs something that is not installed; in CI that is an error."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
