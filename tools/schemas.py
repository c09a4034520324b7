"""Write the JSON Schemas of the file formats: `python -m tools.schemas schemas`."""

from __future__ import annotations

import sys
from pathlib import Path

from interlock.authoring.filetypes.schemas.published_schemas import published, schema_text


def main() -> None:
    for name, schema in published().items():
        Path(sys.argv[1], name).write_text(schema_text(schema), encoding="utf-8")


if __name__ == "__main__":
    main()
