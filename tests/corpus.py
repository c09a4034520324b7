"""Real workflow files, kept beside a checkout and not in it. Tests that need them are skipped without."""

from __future__ import annotations

from pathlib import Path

import pytest

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
ABSENT = "needs the real workflow files of ../shared/corpus, which are not part of this repository"

needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=ABSENT)
