"""The tables of the embedded store, as a list of migrations that only grows.

Keys begin with the session id; words for the search follow their rows by trigger, so that no caller can
forget them; events refuse every update.
"""

from __future__ import annotations

TIPS = 2**40  # one word index holds both, so that a commit flushes once: outputs below, tips above

FIRST = f"""
CREATE TABLE sessions (
    session_id TEXT NOT NULL, owner TEXT NOT NULL, title TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    head_index INTEGER NOT NULL, head_digest BLOB NOT NULL, next_node INTEGER NOT NULL,
    head_run INTEGER, head_node INTEGER, parent_session TEXT,
    health TEXT NOT NULL, health_reason TEXT NOT NULL, keep INTEGER NOT NULL
);
CREATE UNIQUE INDEX sessions_key ON sessions (session_id);
CREATE INDEX sessions_recent ON sessions (updated_at);

CREATE TABLE tombstones (session_id TEXT NOT NULL, removed_at INTEGER NOT NULL);
CREATE UNIQUE INDEX tombstones_key ON tombstones (session_id);

CREATE TABLE handles (handle BLOB NOT NULL, session_id TEXT NOT NULL, agent TEXT NOT NULL);
CREATE UNIQUE INDEX handles_key ON handles (session_id, agent);
CREATE UNIQUE INDEX handles_secret ON handles (handle);

CREATE TABLE runs (
    session_id TEXT NOT NULL, run INTEGER NOT NULL, run_id TEXT NOT NULL,
    workflow_id TEXT NOT NULL, workflow_hash TEXT NOT NULL, status TEXT NOT NULL, tip INTEGER NOT NULL,
    started_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, awaiting TEXT NOT NULL
);
CREATE UNIQUE INDEX runs_key ON runs (session_id, run);
CREATE INDEX runs_id ON runs (run_id);
CREATE INDEX runs_awaiting ON runs (session_id) WHERE awaiting <> '';

CREATE TABLE nodes (
    session_id TEXT NOT NULL, node INTEGER NOT NULL, run INTEGER NOT NULL, parent INTEGER,
    kind TEXT NOT NULL, depth INTEGER NOT NULL, entries INTEGER NOT NULL,
    state BLOB NOT NULL, state_digest BLOB NOT NULL, event_index INTEGER NOT NULL, created_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX nodes_key ON nodes (session_id, node);
CREATE INDEX nodes_parent ON nodes (session_id, parent, node);

CREATE TABLE attempts (
    session_id TEXT NOT NULL, node INTEGER NOT NULL, attempt INTEGER NOT NULL, outcome TEXT NOT NULL,
    request_digest BLOB NOT NULL, response BLOB NOT NULL, response_digest BLOB NOT NULL,
    child INTEGER, successor INTEGER, kept BLOB NOT NULL
);
CREATE UNIQUE INDEX attempts_key ON attempts (session_id, node, attempt);

CREATE TABLE outputs (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL, node INTEGER NOT NULL, attempt INTEGER NOT NULL, ordinal INTEGER NOT NULL,
    kind TEXT NOT NULL, step TEXT NOT NULL, body TEXT NOT NULL, child INTEGER, recorded_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX outputs_key ON outputs (session_id, node, attempt, ordinal);

CREATE TABLE events (
    session_id TEXT NOT NULL, "index" INTEGER NOT NULL, kind TEXT NOT NULL, payload BLOB NOT NULL,
    digest BLOB NOT NULL, recorded_at INTEGER NOT NULL, run INTEGER, node INTEGER, dedupe_key TEXT
);
CREATE UNIQUE INDEX events_key ON events (session_id, "index");
CREATE UNIQUE INDEX events_once ON events (session_id, dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TABLE contents (digest TEXT NOT NULL, deflated INTEGER NOT NULL, body BLOB NOT NULL);
CREATE UNIQUE INDEX contents_key ON contents (digest);

CREATE TABLE observations (session_id TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL);
CREATE UNIQUE INDEX observations_key ON observations (session_id, key);
CREATE INDEX observations_value ON observations (key, value);

CREATE TABLE settings (key TEXT NOT NULL, value TEXT NOT NULL);
CREATE UNIQUE INDEX settings_key ON settings (key);

CREATE TABLE search (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL, title TEXT NOT NULL, notes TEXT NOT NULL, workflows TEXT NOT NULL
);
CREATE UNIQUE INDEX search_key ON search (session_id);
CREATE VIRTUAL TABLE words USING fts5 (
    title, notes, workflows, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2'
);
CREATE TRIGGER search_added AFTER INSERT ON search BEGIN
    INSERT INTO words (rowid, title, notes, workflows)
    VALUES (new.id + {TIPS}, new.title, new.notes, new.workflows);
END;
CREATE TRIGGER search_removed AFTER DELETE ON search BEGIN
    DELETE FROM words WHERE rowid = old.id + {TIPS};
END;
CREATE TRIGGER outputs_added AFTER INSERT ON outputs BEGIN
    INSERT INTO words (rowid, notes) VALUES (new.id, new.body);
END;
CREATE TRIGGER outputs_removed AFTER DELETE ON outputs BEGIN
    DELETE FROM words WHERE rowid = old.id;
END;
"""

MIGRATIONS: tuple[str, ...] = (FIRST,)

OF_A_SESSION = (
    "events",
    "nodes",
    "attempts",
    "outputs",
    "runs",
    "handles",
    "observations",
    "search",
    "sessions",
)
PROJECTIONS = ("nodes", "attempts", "outputs", "runs", "observations", "search", "sessions")
TABLES = (*OF_A_SESSION, "tombstones", "contents", "settings")
