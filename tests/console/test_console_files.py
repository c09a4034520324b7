"""The page that is committed is the one that its sources make, and it is small."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from interlock.console.console import built_page
from support.node_clients import installed_from, installed_packages
from support.paths import ROOT
from tools.console_types import TARGET, typescript

SOURCES = ROOT / "console"
PAGE = ROOT / "src" / "interlock" / "console" / "page"
MOST_BYTES = 250_000
PATIENCE = 300


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_types_of_the_page_are_those_of_the_server() -> None:
    assert TARGET.read_text() == typescript(), "run python -m tools.console_types, then build the page"


def test_the_page_is_small() -> None:
    sizes = {name: len(gzip.compress(body)) for name, body in files_in(PAGE).items()}
    assert sum(sizes.values()) < MOST_BYTES, sizes


def test_the_page_asks_nobody_but_its_own_server() -> None:
    script = (built_page() / "assets" / "console.js").read_text()
    hosts = {part.split("/")[0].split('"')[0] for part in script.split("https://")[1:]}
    assert hosts <= {"react.dev"}, "only links in texts of errors"
    assert "dangerouslySetInnerHTML:" not in "".join(
        path.read_text() for path in (SOURCES / "src").rglob("*.ts*")
    )
    shell = (built_page() / "index.html").read_text()
    assert "http" not in shell
    assert "<script>" not in shell


@pytest.mark.slow
def test_a_build_of_the_sources_gives_the_committed_page(tmp_path: Path) -> None:
    folder = tmp_path / "interlock" / "console"
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("node_modules"))
    (folder / "node_modules").symlink_to(installed_from(SOURCES))
    node = installed_packages() / ".bin"
    env = {**os.environ, "PATH": f"{node}{os.pathsep}{os.environ['PATH']}"}
    built = subprocess.run(
        ["npm", "run", "build"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    made = files_in(tmp_path / "interlock" / "src" / "interlock" / "console" / "page")
    assert made == files_in(PAGE), "run npm ci and npm run build in console/"
