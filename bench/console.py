"""Measure how fast the console answers on stores of growing size, and how large its page is.

    python -m bench.console [--sessions 0,1000,100000]

Prints the median time of each page's JSON over HTTP on loopback, and the compressed size of the built files.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from bench.timing import milliseconds, percentile
from interlock.authoring.library import BUNDLED, Library
from interlock.console.console import built_page
from interlock.ledger.ids import new_id
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.rebuild import session_rows
from interlock.ledger.queries.indexing import catch_up
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.ledger.tokens.tokens import new_handle
from interlock.ledger.transfer.bundle import commit_rows, rebuilt_as
from interlock.ledger.transfer.export_import import export_session
from interlock.store.protocol import HandleRow, SessionFilter
from interlock.store.sqlite.store import open_store
from tools.console_seed import seed

BATCH = 500
TIMES = 30
PAGES = {
    "inbox": "inbox.json",
    "runs": "runs.json",
    "runs, page 20": "runs.json?offset=950",
    "runs, by status": "runs.json?status=complete",
    "search": "search.json?q=login",
    "workflows": "workflows.json",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", default="0,1000,100000")
    parser.add_argument("--dir", type=Path, help="a folder on the disk to measure")
    options = parser.parse_args()
    page = built_page()
    files = [*page.iterdir(), *(page / "assets").iterdir()]
    size = sum(len(gzip.compress(file.read_bytes())) for file in files if file.is_file())
    print(f"page: {size / 1000:.0f} kB compressed")
    for count in map(int, options.sessions.split(",")):
        with TemporaryDirectory(dir=options.dir) as name:
            folder = Path(name)
            fill(folder, count)
            measure(folder, count)


def fill(folder: Path, count: int) -> None:
    """Copy one seeded, finished session under other ids until there are so many."""
    if count == 0:
        return
    seed(folder, time.time_ns() // 1_000_000)
    store = open_store(folder)
    ledger = Ledger(store, Keys(folder), Library([BUNDLED], folder / "cache"), Settings())
    with store.reading() as reader:
        finished = reader.sessions(SessionFilter("local", status="complete", limit=1))[0]
    body = export_session(store, finished, ledger.pins, ledger.clock()).session
    responses = {(each.node, each.attempt): each.body.encode() for each in body.responses}
    for first in range(0, count, BATCH):
        with store.writing() as writer:
            for _ in range(first, min(first + BATCH, count)):
                session_id = new_id("sess")
                rebuilt = rebuilt_as(body, session_id)
                writer.replace_session(session_rows(rebuilt, commit_rows(body, session_id), responses))
                writer.add_handle(HandleRow(new_handle(), session_id))
    catch_up(store, ledger.pins)  # as an idle server would have done
    store.close()


def measure(folder: Path, count: int) -> None:
    """Ask a server for every page a few times and print the medians."""
    command = [sys.executable, "-m", "interlock", "console", "--no-open", "--data-dir", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            printed = server.stderr.readline() + server.stderr.readline()
            found = re.search(r"http://([^:]+):(\d+)(/console/enter\S+)", printed)
            assert found is not None, printed
            connection = http.client.HTTPConnection(found[1], int(found[2]), timeout=600)
            connection.request("GET", found[3])
            response = connection.getresponse()
            response.read()
            cookie = {"Cookie": (response.getheader("set-cookie") or "").partition(";")[0]}
            pages = dict(PAGES)
            connection.request("GET", "/console/runs.json", headers=cookie)
            if lines := msgspec.json.decode(connection.getresponse().read())["lines"]:
                pages["one session"] = f"sessions/{lines[0]['sessionId']}.json"
            medians = []
            for name, path in pages.items():
                times = [milliseconds(partial(ask, connection, path, cookie)) for _ in range(TIMES)]
                medians.append(f"{name} {percentile(times, 0.5):.1f}")
            print(f"{count} sessions, ms: {', '.join(medians)}", flush=True)
            connection.close()
        finally:
            server.terminate()


def ask(connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str]) -> None:
    """Ask for a page and read it."""
    connection.request("GET", f"/console/{path}", headers=dict(headers))
    response = connection.getresponse()
    response.read()
    assert response.status == 200, path


if __name__ == "__main__":
    main()
