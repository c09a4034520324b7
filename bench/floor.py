"""The floor: the least that a Python server on the same libraries does for a durable step.

It parses a call, makes one FULL commit of as many bytes in the same three rows as Interlock, and answers a
line of the same length. `bench.execution_walk` starts it, with these sizes, beside the real server.

    python -m bench.floor FILE BYTES_OF_COMMIT BYTES_OF_NODE BYTES_OF_ANSWER
"""

from __future__ import annotations

import os
import sys

import apsw
import msgspec

TABLES = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE sessions (id TEXT PRIMARY KEY, head INTEGER NOT NULL, digest BLOB NOT NULL);
CREATE TABLE commits (session TEXT NOT NULL, last INTEGER NOT NULL, body BLOB NOT NULL);
CREATE UNIQUE INDEX commits_key ON commits (session, last);
CREATE TABLE nodes (session TEXT NOT NULL, node INTEGER NOT NULL, state BLOB NOT NULL);
CREATE UNIQUE INDEX nodes_key ON nodes (session, node);
INSERT INTO sessions VALUES ('one', 0, zeroblob(32));
"""


def main() -> None:
    path, *sizes = sys.argv[1:]
    commit, node, answer = map(int, sizes)
    connection = apsw.Connection(path)
    list(connection.execute(TABLES))
    for number, line in enumerate(sys.stdin.buffer):
        message = msgspec.json.decode(line)
        if message["method"] == "tools/call":
            with connection:
                execute = connection.execute
                execute("UPDATE sessions SET head = ?, digest = ? WHERE id = 'one'", (number, os.urandom(32)))
                execute("INSERT INTO commits VALUES ('one', ?, ?)", (number, os.urandom(commit)))
                execute("INSERT INTO nodes VALUES ('one', ?, ?)", (number, os.urandom(node)))
        body = {"jsonrpc": "2.0", "id": message["id"], "result": "x" * answer}
        sys.stdout.buffer.write(msgspec.json.encode(body) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
