"""Mutants that are made in the process that runs the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.live_mutants import SURVIVED, UNREACHED

ROOT = Path(__file__).parent.parent.parent
MODULE = """\
def grade(points):
    return "good" if points > 2 else "bad"


def names(pairs):
    return [name for name, points in pairs if points]


def is_lost(points):
    return 1 if not (points == [] or any(point > 1 for point in points)) else 2


def unused(points):
    return 1 if points else 2
"""
TESTS = """\
import graded
from graded import grade, is_lost, names


def test_points():
    assert grade(3) == "good"


def test_nothing_is_lost():
    assert is_lost([]) == 2


def test_names_without_looking():
    assert isinstance(names([("a", 1)]), list)


def test_that_fails_anyway():
    assert graded.names([]) == ["b"]
"""
RUN = """\
import sys
from pathlib import Path

import pytest
from msgspec import Struct

from tools.live_mutants import LiveMutants
from tools.search.engine_mutants import turned_around


class Mutant(Struct, frozen=True):
    text: str
    dotted: str = "graded"

    def source(self):
        return self.text


folder = Path(sys.argv[1])
mutants = [Mutant(source) for _, _, source in turned_around((folder / "graded.py").read_text())]
told = lambda number, by: (folder / f"told-{number}").write_text(by)
plugin = LiveMutants(mutants, folder, folder / "entered", folder, told, processes=2)
options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-c", "/dev/null"]
pytest.main([*options, str(folder)], plugins=[plugin])
"""


@pytest.mark.slow
def test_a_mutant_is_noticed_by_the_first_test_that_only_it_fails(tmp_path: Path) -> None:
    (tmp_path / "graded.py").write_text(MODULE)
    (tmp_path / "test_graded.py").write_text(TESTS)
    (tmp_path / "run.py").write_text(RUN)
    subprocess.run(
        [sys.executable, tmp_path / "run.py", tmp_path],
        env={"PYTHONPATH": f"{ROOT}:{tmp_path}"},
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    told = {file.read_text().rpartition("::")[2] for file in tmp_path.glob("told-*")}
    assert told == {"test_points", "test_nothing_is_lost", SURVIVED, UNREACHED}
