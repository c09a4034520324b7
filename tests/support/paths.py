"""Where the tests find what they read: the repository, the golden files, and the corpus beside it."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
SOURCE = ROOT / "src" / "interlock"
DOCS = ROOT / "docs"
SCHEMAS = ROOT / "schemas"
GOLDEN = TESTS / "golden"
FIXTURES = TESTS / "fixtures"
CORPUS = ROOT.parent / "shared" / "corpus"
