"""Proposes the checks of a project from what lies in its folder; nothing is run to find out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

HEADER = """# What the checks run that workflows name. The server runs them once you have trusted them:
# interlock trust. What is changed here is untrusted again.
"""


def proposed_checks(folder: Path) -> dict[str, str]:
    """Return commands by the name of their check, the first that fits for each."""
    found: dict[str, str] = {}
    for name, run in _found(folder):
        found.setdefault(name, run)
    return found


def checks_file(checks: dict[str, str]) -> str:
    """Return the file that defines these checks."""
    return HEADER + "".join(f"{name}: {json.dumps(run)}\n" for name, run in checks.items())


def _found(folder: Path) -> Iterator[tuple[str, str]]:
    makefile, python = _text(folder / "Makefile"), _text(folder / "pyproject.toml")
    for target, name in (("test", "tests"), ("check", "tests"), ("lint", "lint"), ("build", "build")):
        if re.search(rf"^{target}\s*:(?!=)", makefile, re.MULTILINE):
            yield name, f"make {target}"
    if "pytest" in python or (folder / "pytest.ini").exists() or any(folder.glob("test*/**/test_*.py")):
        yield "tests", "pytest -q"
    if "[tool.ruff" in python or (folder / "ruff.toml").exists():
        yield "lint", "ruff check ."
    for script, name in (("test", "tests"), ("lint", "lint"), ("build", "build")):
        if script in _scripts(folder / "package.json"):
            yield name, f"npm run {script}" if script != "test" else "npm test"
    if (folder / "Cargo.toml").exists():
        yield from (("tests", "cargo test"), ("build", "cargo build"))
    if (folder / "go.mod").exists():
        yield from (("tests", "go test ./..."), ("build", "go build ./..."))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _scripts(path: Path) -> dict[str, object]:
    try:
        package = json.loads(_text(path) or "{}")
    except ValueError:
        return {}
    scripts = package.get("scripts") if isinstance(package, dict) else None
    return scripts if isinstance(scripts, dict) else {}
