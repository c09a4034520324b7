"""Write the JSON Schemas of the file formats: `python -m tools.schemas schemas`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from interlock.authoring.filetypes.published_schemas import published


def main() -> None:
    for name, schema in published().items():
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        Path(sys.argv[1], name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
