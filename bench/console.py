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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from bench.seeded import seed
from bench.timing import milliseconds, percentile
from interlock.console.console import built_page
from interlock.store.sqlite.store import open_store
from tools.console_seed import seed as demo

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
    """Make a few sessions of every kind, and copies of finished ones until there are so many."""
    if count == 0:
        return
    demo(folder, time.time_ns() // 1_000_000)
    store = open_store(folder)
    seed(store, count)
    store.close()


@contextmanager
def console(folder: Path) -> Iterator[str]:
    """Serve the console while the block runs; yields the address that lets a browser in."""
    command = [sys.executable, "-m", "interlock", "console", "--no-open", "--data-dir", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            printed = server.stderr.readline() + server.stderr.readline()
            found = re.search(r"http://\S+/console/enter\S+", printed)
            assert found is not None, printed
            yield found[0]
        finally:
            server.terminate()


def measure(folder: Path, count: int) -> None:
    """Ask a server for every page a few times and print the medians."""
    with console(folder) as entrance:
        host, _, path = entrance.removeprefix("http://").partition("/")
        connection = http.client.HTTPConnection(host, timeout=600)
        connection.request("GET", f"/{path}")
        response = connection.getresponse()
        response.read()
        cookie = {"Cookie": (response.getheader("set-cookie") or "").partition(";")[0]}
        pages = dict(PAGES)
        connection.request("GET", "/console/runs.json", headers=cookie)
        if lines := msgspec.json.decode(connection.getresponse().read())["lines"]:
            pages["one session"] = f"sessions/{lines[0]['sessionId']}.json"
        medians = []
        for name, page in pages.items():
            times = [milliseconds(partial(ask, connection, page, cookie)) for _ in range(TIMES)]
            medians.append(f"{name} {percentile(times, 0.5):.1f} (first {times[0]:.0f})")
        print(f"{count} sessions, ms: {', '.join(medians)}", flush=True)
        connection.close()


def ask(connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str]) -> None:
    """Ask for a page and read it."""
    connection.request("GET", f"/console/{path}", headers=dict(headers))
    response = connection.getresponse()
    response.read()
    assert response.status == 200, path


if __name__ == "__main__":
    main()
