"""Count the bytes that an agent reads in a whole walk of each bundled workflow, on every surface.

    python -m bench.text_bytes [--workflow ID] [--surface NAME] [--show]

The agent is one of the tests: it knows only the text of each answer. Repeated is what stands word for word in
an earlier answer of the same run, in pieces of at least 40 characters; the footer is tokens, and the line
that says how to go on. Goal: both together are at most a quarter. `--show` prints every text.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.figures import Figure
from interlock.authoring.library import BUNDLED, Library
from interlock.core.run.commands import Terms
from interlock.ledger.ledger import Ledger
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.sqlite.store import open_store
from support.text_agents import AGENTS, TextAgent

PIECE = 40
MOST = 25.0  # percent
FOOTER = re.compile(
    rb"\n---\n(?:.+\n)?(?=\w+Token: )|(?:^\w+Token: .*\n?)+"  # execution: how to go on, and its tokens
    rb"|^(?:session_token|checkpoint_handle|digest|unchanged): .*$|^Next: .*$"
    rb'|"(?:session_token|checkpoint_handle|digest|state|newest_state|other_branch_state)":"[^"]*"'
    rb'|\{"action":"abandon"[^}]*\}',
    re.MULTILINE,
)
ROW = "{:<31} {:<10} {:>5} {:>9} {:>9} {:>8} {:>6}"


class Share(Struct, frozen=True):
    """What one walk has read: calls, bytes, and those of them that repeat an answer or are footer."""

    calls: int = 0
    total: int = 0
    repeated: int = 0
    footer: int = 0

    @property
    def percent(self) -> float:
        return (self.repeated + self.footer) / max(self.total, 1) * 100

    def plus(self, other: Share) -> Share:
        return Share(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))

    def row(self, workflow: str, surface: str) -> str:
        counts = (self.calls, f"{self.total:,}", f"{self.repeated:,}", f"{self.footer:,}")
        return ROW.format(workflow, surface, *counts, f"{self.percent:.0f} %")


def figures(folder: Path) -> Iterator[Figure]:
    """Yield the share of repeated and footer bytes of all bundled walks, by surface."""
    for surface in AGENTS:
        shares = [share_of(walked(folder / surface / name, surface, name).answers) for name in bundled()]
        name = f"repeated and footer bytes of the bundled walks, {surface}"
        yield Figure(name, _sum(shares).percent, "%", most=MOST)


def bundled() -> list[str]:
    """Name the bundled workflows."""
    return [entry.id for entry in Library([BUNDLED]).listing().entries]


def walked(folder: Path, surface: str, workflow_id: str) -> TextAgent:
    """Walk a workflow to its end, and return the agent with the answers that it has read."""
    folder.mkdir(parents=True)
    store, (agent, tools) = open_store(folder), AGENTS[surface]
    settings = Settings(terms=Terms(min_response_ms=0))
    walker = agent(tools(Ledger(store, Keys(folder), Library([BUNDLED]), settings)), workflow_id, "walrus")
    walker.walk()
    store.close()
    return walker


def share_of(answers: Sequence[str]) -> Share:
    """Count what the answers of one run repeat, and their footers; no byte counts as both."""
    earlier: set[bytes] = set()
    share = Share(calls=len(answers))
    for text in answers:
        data = text.encode()
        is_footer, is_repeated = bytearray(len(data)), bytearray(len(data))
        for found in FOOTER.finditer(data):
            is_footer[found.start() : found.end()] = b"\1" * len(found[0])
        pieces = [data[at : at + PIECE] for at in range(len(data) - PIECE + 1)]
        for at, piece in enumerate(pieces):
            if piece in earlier:
                is_repeated[at : at + PIECE] = b"\1" * PIECE
        earlier.update(pieces)
        repeats = sum(again and not end for again, end in zip(is_repeated, is_footer, strict=True))
        share = share.plus(Share(0, len(data), repeats, sum(is_footer)))
    return share


def _sum(shares: Sequence[Share]) -> Share:
    whole = Share()
    for share in shares:
        whole = whole.plus(share)
    return whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workflow", action="append", help="default: every bundled workflow")
    parser.add_argument("--surface", action="append", choices=AGENTS, help="default: every surface")
    parser.add_argument("--show", action="store_true", help="print every text that the agent reads")
    options = parser.parse_args()
    print(ROW.format("workflow", "surface", "calls", "bytes", "repeated", "footer", "share"))
    with TemporaryDirectory() as name:
        for surface in options.surface or AGENTS:
            shares: list[Share] = []
            for workflow_id in options.workflow or bundled():
                answers = walked(Path(name) / surface / workflow_id, surface, workflow_id).answers
                shares.append(share_of(answers))
                print(shares[-1].row(workflow_id, surface), flush=True)
                if options.show:
                    print("\n\n".join(f"[{number}] {text}" for number, text in enumerate(answers, 1)))
            print(_sum(shares).row("all", surface), flush=True)


if __name__ == "__main__":
    main()
