"""The console as a user gets it: from the wheel, with an empty HOME and without Node."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from support.paths import ROOT

pytestmark = pytest.mark.slow

PATIENCE = 300
PARTS = ("", "assets/console.js", "assets/index.css", "icon.svg", "inbox.json", "builtins.json")


def pip(*arguments: str) -> None:
    """Run pip; where it cannot install, because nothing can be downloaded, the test says so."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"pip could not install within {PATIENCE} seconds")
    if done.returncode != 0:
        pytest.skip(f"pip cannot install here: {done.stderr[-1000:]}")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A new virtual environment with `interlock[serve]` from the wheel; returns its folder of programs."""
    pip("wheel", "--no-deps", "-w", str(tmp_path / "dist"), str(ROOT))
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    programs = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    lock = str(ROOT / "requirements-dev.lock")
    install = ["--python", str(programs / "python"), "install", "--no-compile", "-c", lock]
    pip(*install, f"interlock[serve] @ {wheel.as_uri()}")
    return programs


def test_the_console_works_from_the_wheel_with_an_empty_home_and_no_node(
    installed: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    env = {"HOME": str(home), "PATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(installed / "interlock"), "console", "--no-open", "--port", "0"]
    with subprocess.Popen(command, cwd=home, env=env, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            entrance = next(
                (found[0] for line in server.stderr if (found := re.search(r"http://\S+/enter\S+", line))), ""
            )
            assert entrance, "the server printed no address"
            with urllib.request.urlopen(entrance, timeout=PATIENCE) as answer:
                cookie = answer.headers["set-cookie"].partition(";")[0]
            origin = entrance.partition("/console")[0]
            for path in (
                "",
                "assets/console.js",
                "assets/index.css",
                "icon.svg",
                "inbox.json",
                "builtins.json",
            ):
                request = urllib.request.Request(f"{origin}/console/{path}", headers={"Cookie": cookie})
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    assert answer.status == 200
                    assert answer.read()
        finally:
            server.terminate()
