"""The console as a user gets it: from the wheel, with an empty HOME and without Node."""

from __future__ import annotations

import re
import subprocess
import urllib.request
from pathlib import Path

import pytest

from support.installation import PATIENCE, install

pytestmark = pytest.mark.slow

PARTS = ("", "assets/console.js", "assets/index.css", "icon.svg", "inbox.json", "builtins.json")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    return install(tmp_path)


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
            for path in PARTS:
                request = urllib.request.Request(f"{origin}/console/{path}", headers={"Cookie": cookie})
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    assert answer.status == 200
                    assert answer.read()
        finally:
            server.terminate()
