"""Changed bytes in the files of a store: each is harmless or detected, and a repair loses no intact event."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from interlock.store.sqlite.schema import FILE
from interlock.store.sqlite.store import PAGE_SIZE
from support.byte_flips import STAGES, Subject, flip_at, flipped, in_structure, pages_of_commits
from support.proof import SEED, line, times

NAMES = {"folded": "everything in the database file", "wal": "everything in the log beside it"}
COUNT_OF_CELLS = 4  # where a page says how many rows it holds: the lower of two bytes
FINE = {"harmless", "repaired", "cut"}  # cut: events after a damaged one, kept beside the log


@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.parametrize("stage", STAGES)
def test_a_changed_byte_is_harmless_or_found_and_repaired(
    tmp_path: Path, stage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chance, subject = Random(SEED), Subject(tmp_path, stage)
    flips = [flipped(subject, tmp_path / "scratch", chance) for _ in range(times(200))]
    outcomes = Counter(flip.outcome for flip in flips)
    with capsys.disabled():
        print(line(f"byte flips, {NAMES[stage]}", flips=len(flips), **outcomes))
    assert [flip for flip in flips if flip.outcome not in FINE] == []


@pytest.mark.slow
@pytest.mark.proof
def test_a_changed_bit_in_the_structure_of_the_log_hides_no_event(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such bytes are few, so that changes at random seldom meet them."""
    chance, subject = Random(SEED), Subject(tmp_path, "folded")
    flips = [
        flip_at(subject, tmp_path / "scratch", FILE, in_structure(subject, chance), 1 << chance.randrange(8))
        for _ in range(times(200))
    ]
    outcomes = Counter(flip.outcome for flip in flips)
    with capsys.disabled():
        print(line("byte flips, the structure of the log's pages", flips=len(flips), **outcomes))
    assert [flip for flip in flips if flip.outcome not in FINE] == []


@pytest.mark.slow
def test_a_repair_ends_where_a_page_claims_to_hold_more_commits_than_it_does(tmp_path: Path) -> None:
    """What lies behind its last commit is read as commits too, with ids in any order."""
    subject = Subject(tmp_path, "folded")
    for page in pages_of_commits(subject):
        flip = flip_at(subject, tmp_path / "scratch", FILE, (page - 1) * PAGE_SIZE + COUNT_OF_CELLS, 0x80)
        assert flip.outcome in FINE, flip


@pytest.mark.slow
@pytest.mark.proof
def test_a_changed_bit_in_a_page_of_commits_costs_no_event(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The digest of a commit says which bit it was, so that nothing after it is cut."""
    chance, subject = Random(SEED), Subject(tmp_path, "folded")
    pages = pages_of_commits(subject)
    offsets = [
        (chance.choice(pages) - 1) * PAGE_SIZE + chance.randrange(PAGE_SIZE) for _ in range(times(200))
    ]
    flips = [
        flip_at(subject, tmp_path / "scratch", FILE, offset, 1 << chance.randrange(8)) for offset in offsets
    ]
    outcomes = Counter(flip.outcome for flip in flips)
    with capsys.disabled():
        print(line("byte flips, pages of commits", flips=len(flips), **outcomes))
    assert [flip for flip in flips if flip.outcome not in FINE - {"cut"}] == []
