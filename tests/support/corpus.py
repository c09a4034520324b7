"""Real workflow files, kept beside a checkout and not in it; tests that need them are skipped without."""

from __future__ import annotations

import pytest

from support.paths import CORPUS

ABSENT = "needs the real workflow files of ../shared/corpus, which are not part of this repository"

needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=ABSENT)
