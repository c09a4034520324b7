"""Write every generated page: `python -m tools.pages docs`."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.pages import commands, diagnostics


def write_all(docs: Path) -> None:
    """Write each page to its file."""
    for name, text in {**commands.pages(docs), **diagnostics.pages()}.items():
        (docs / name).write_text(text, encoding="utf-8")


write_all(Path(sys.argv[1]))
