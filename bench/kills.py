"""Kill the server a thousand times during a stream of advances, and count the lost and the doubled steps.

    python -m bench.kills [--kills 1000]

Each round starts the real stdio server, kills it at a random moment, and sends the interrupted call again to
the next one. Prints kills, acknowledged steps, lost and doubled ones; the last two must be 0.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from time import perf_counter
from typing import Any

import msgspec

from bench.server import Server, ServerGone
from interlock.ledger.log.chain import logged
from interlock.ledger.log.records import OutputAppended
from interlock.store.sqlite.store import open_store

Answer = dict[str, Any]
STEPS_PER_RUN = 900
WARM_SHARE = 0.9  # of the servers advance once before the time to the kill runs; others may die at start-up
WORKFLOW = {
    "id": "bench.stream",
    "name": "Stream",
    "description": "One step, again and again.",
    "version": "1.0.0",
    "steps": [
        {
            "id": "again",
            "type": "loop",
            "title": "Again",
            "loop": {"type": "for", "count": 1000, "maxIterations": 1000},
            "body": [{"id": "once", "title": "Once", "prompt": "Do it."}],
        }
    ],
}


class Stream:
    """A stream of advances that survives the death of its servers."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.acknowledged: list[str] = []
        self.steps = 0
        self.runs = 0
        self.position: Answer = {}

    def run_until_killed(self, longest: float) -> None:
        """Advance until the server is killed; the interrupted call is sent again in the next round."""
        server = self._start_server()
        if self.random.random() < WARM_SHARE:
            self._advance(server)
        killer = Timer(self.random.uniform(0, longest), server.kill)
        killer.start()
        try:
            while True:
                self._advance(server)
        except ServerGone:
            killer.join()
            server.kill()

    def finish(self) -> None:
        """Send the call that is still interrupted to a server that is not killed."""
        server = self._start_server()
        self._advance(server)
        server.close()

    def _start_server(self) -> Server:
        return Server(self.folder, "--workflows", str(self.folder / "workflows"))

    def _advance(self, server: Server) -> None:
        if self.steps // STEPS_PER_RUN == self.runs:
            self.position = answered(server, "start_workflow", workflowId="bench.stream")
            self.runs += 1
        tokens = {name: self.position[name] for name in ("stateToken", "ackToken")}
        note = f"step {self.steps}"
        self.position = answered(server, "continue_workflow", **tokens, output={"notesMarkdown": note})
        self.acknowledged.append(note)
        self.steps += 1


def answered(server: Server, tool: str, **arguments: Any) -> Answer:
    """Call a tool that must not refuse."""
    result = server.call(tool, **arguments)
    answer: Answer = result["structuredContent"]
    if result.get("isError"):
        raise SystemExit(f"refused: {answer}")
    return answer


def recorded_notes(folder: Path) -> Counter[str]:
    """Return how often each note is in the log."""
    store = open_store(folder)
    with store.reading() as reader:
        notes = Counter(
            row.event.notes
            for session_id in reader.session_ids("", 10_000)
            for row in logged(reader.commits(session_id))
            if isinstance(row.event, OutputAppended)
        )
    store.close()
    return notes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=0.03, help="most seconds that a server lives")
    parser.add_argument("--dir", type=Path, help="a folder on the disk to use")
    options = parser.parse_args()
    started = perf_counter()
    with TemporaryDirectory(dir=options.dir) as name:
        folder = Path(name)
        (folder / "workflows").mkdir()
        (folder / "workflows" / "bench.stream.json").write_bytes(msgspec.json.encode(WORKFLOW))
        stream = Stream(folder, options.seed)
        for _ in range(options.kills):
            stream.run_until_killed(options.longest)
        stream.finish()
        notes = recorded_notes(folder)
    lost = [note for note in stream.acknowledged if note not in notes]
    doubled = [note for note, times in notes.items() if times > 1]
    print(f"kills        {options.kills:6}   in {perf_counter() - started:.0f} s")
    print(f"acknowledged {len(stream.acknowledged):6}")
    print(f"lost         {len(lost):6}")
    print(f"doubled      {len(doubled):6}")
    sys.exit(bool(lost or doubled))


if __name__ == "__main__":
    main()
