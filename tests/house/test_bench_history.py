"""What the benchmark has measured is kept, a line a run, and drawn."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from bench.figures import Figure
from bench.history import append, measured, plot


def test_a_run_is_added_to_those_before_it_and_drawn_beside_those_of_its_machine(tmp_path: Path) -> None:
    history, drawn = tmp_path / "history.jsonl", tmp_path / "history.svg"
    first = measured([Figure("an advance", 2.0), Figure("a session", 4000, "bytes")])
    elsewhere = replace(first, machine="another", figures={"an advance": (90.0, "ms")})
    last = replace(first, figures={**first.figures, "an advance": (1.5, "ms")})
    for run in (first, elsewhere):
        append(run, history)
    runs = append(last, history)
    assert runs == [first, elsewhere, last]
    plot(runs, drawn)
    picture = drawn.read_text("utf-8")
    assert "an advance" in picture
    assert "a session" not in picture, "only milliseconds are on one scale"
    assert ">3<" not in picture, "another machine is not compared with"
