"""Write every generated page: `python -m tools.pages docs`."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.pages import clauses, commands, diagnostics, file_formats


def main() -> None:
    docs = Path(sys.argv[1])
    written = {**clauses.pages(docs), **commands.pages(docs), **diagnostics.pages(), **file_formats.pages()}
    for name, text in written.items():
        (docs / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
