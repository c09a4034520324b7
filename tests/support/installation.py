"""Interlock as a user gets it: the wheel and its dependencies in a virtual environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.paths import ROOT

PATIENCE = 300


def install(folder: Path, extras: str = "", root: Path = ROOT) -> Path:
    """Install the wheel, with extras if any are named; returns the folder of its programs."""
    pip("wheel", "--no-deps", "-w", str(folder / "dist"), str(root))
    (wheel,) = (folder / "dist").glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    lock = str(ROOT / "requirements-dev.lock")
    into = ["--python", str(programs / "python"), "install", "--no-compile", "-c", lock]
    pip(*into, f"interlock[{extras}] @ {wheel.as_uri()}")
    return programs


def pip(*arguments: str) -> None:
    """Run pip; where it cannot install, because nothing can be downloaded, the test says so."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"pip could not install within {PATIENCE} seconds")
    if done.returncode != 0:
        pytest.skip(f"pip cannot install here: {done.stderr[-1000:]}")
