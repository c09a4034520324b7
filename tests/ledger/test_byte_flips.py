"""Changed bytes in the files of a store: each is harmless or detected, and a repair loses no intact event."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random, randrange

import pytest

from support.byte_flips import STAGES, Subject, flipped

FINE = {"harmless", "repaired", "cut"}  # cut: events after a damaged one, kept beside the log


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_changed_byte_is_harmless_or_found_and_repaired(
    tmp_path: Path, stage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = randrange(10**6)
    chance, subject = Random(seed), Subject(tmp_path, stage)
    flips = [flipped(subject, tmp_path / "scratch", chance) for _ in range(20)]
    with capsys.disabled():
        print(f"\nseed {seed}, {stage}: {dict(Counter(flip.outcome for flip in flips))}")
    assert [flip for flip in flips if flip.outcome not in FINE] == []
