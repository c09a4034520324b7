"""What whole searches came to, kept in a file so that a run that was stopped goes on with the same sources.

A whole search comes to the same whatever the seed: the seed gives the order of the workflows.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

ROOT = Path(__file__).parent.parent.parent
KEPT = ROOT / "build"
ROOMS = ("src/interlock", "tools/search")

Plain: TypeAlias = Mapping[str, Any]  # the figures of a workflow


class Kept:
    """The figures of workflows that were searched whole, by name; several processes add to them."""

    def __init__(self) -> None:
        files = sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py"))
        digest = sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
        self.file = KEPT / f"searched-{digest[:12]}.jsonl"
        lines = self.file.read_bytes().splitlines() if self.file.exists() else []
        self.figures: dict[str, Plain] = dict(map(msgspec.json.decode, lines))

    def keep(self, name: str, figures: Plain) -> None:
        """Keep what the searches of one workflow came to."""
        KEPT.mkdir(exist_ok=True)
        with self.file.open("ab") as file:
            file.write(msgspec.json.encode((name, figures)) + b"\n")
