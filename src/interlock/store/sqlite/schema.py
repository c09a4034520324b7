"""The tables of the embedded store, as a list of migrations that only grows.

A command writes few rows, so few pages: the session's head, one commit, one node. Commits refuse updates.
What neither a digest nor an event covers stands in an index too, so that SQLite's own check compares both.
"""

from __future__ import annotations

from interlock.store.portable_sql import PROJECTIONS

FILE = "interlock.db"
TIPS = 2**40  # one word index holds both, so that a commit flushes once: outputs below, tips above

FIRST = """
CREATE TABLE sessions (
    session_id TEXT NOT NULL, owner TEXT NOT NULL, title TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    head_index INTEGER NOT NULL, head_digest BLOB NOT NULL, next_node INTEGER NOT NULL,
    head_run INTEGER, head_node INTEGER, visit_index INTEGER NOT NULL, visit_node INTEGER,
    parent_session TEXT, health TEXT NOT NULL, health_reason TEXT NOT NULL, keep INTEGER NOT NULL,
    unindexed INTEGER NOT NULL DEFAULT 1, recent_at INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX sessions_key ON sessions (session_id);
CREATE INDEX sessions_kept ON sessions (session_id) WHERE keep;
CREATE INDEX sessions_unindexed ON sessions (session_id) WHERE unindexed;
CREATE INDEX sessions_recent ON sessions (owner, recent_at) WHERE NOT unindexed;

CREATE TABLE tombstones (session_id TEXT NOT NULL, owner TEXT NOT NULL, removed_at INTEGER NOT NULL);
CREATE UNIQUE INDEX tombstones_key ON tombstones (session_id);
CREATE INDEX tombstones_copy ON tombstones (session_id, owner, removed_at);

CREATE TABLE handles (handle BLOB NOT NULL, session_id TEXT NOT NULL, agent TEXT NOT NULL);
CREATE UNIQUE INDEX handles_key ON handles (session_id, agent);
CREATE UNIQUE INDEX handles_secret ON handles (handle);

CREATE TABLE starts (
    owner TEXT NOT NULL, request_id BLOB NOT NULL, request_digest BLOB NOT NULL,
    session_id TEXT NOT NULL, handle BLOB NOT NULL, response BLOB NOT NULL, started_at INTEGER NOT NULL,
    digest BLOB NOT NULL
);
CREATE UNIQUE INDEX starts_key ON starts (owner, request_id);
CREATE INDEX starts_session ON starts (session_id);

CREATE TABLE runs (
    session_id TEXT NOT NULL, run INTEGER NOT NULL, run_id TEXT NOT NULL,
    workflow_id TEXT NOT NULL, workflow_hash TEXT NOT NULL, surface TEXT NOT NULL, status TEXT NOT NULL,
    tip INTEGER NOT NULL, started_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, awaiting TEXT NOT NULL
);
CREATE UNIQUE INDEX runs_key ON runs (session_id, run);
CREATE INDEX runs_id ON runs (run_id);
CREATE INDEX runs_awaiting ON runs (session_id) WHERE awaiting <> '';

CREATE TABLE nodes (
    session_id TEXT NOT NULL, node INTEGER NOT NULL, run INTEGER NOT NULL, parent INTEGER,
    kind TEXT NOT NULL, depth INTEGER NOT NULL, entries INTEGER NOT NULL,
    state BLOB NOT NULL, state_digest BLOB NOT NULL, event_index INTEGER NOT NULL,
    created_at INTEGER NOT NULL, attempt INTEGER, request_digest BLOB NOT NULL,
    response_digest BLOB NOT NULL, response BLOB NOT NULL, outputs BLOB NOT NULL
);
CREATE UNIQUE INDEX nodes_key ON nodes (session_id, node);
CREATE UNIQUE INDEX nodes_parent ON nodes (session_id, parent, attempt);  -- any number without an attempt

CREATE TABLE blocked (
    session_id TEXT NOT NULL, node INTEGER NOT NULL, attempt INTEGER NOT NULL, successor INTEGER NOT NULL,
    event_index INTEGER NOT NULL, recorded_at INTEGER NOT NULL, request_digest BLOB NOT NULL,
    response_digest BLOB NOT NULL, response BLOB NOT NULL, kept BLOB NOT NULL, outputs BLOB NOT NULL
);
CREATE UNIQUE INDEX blocked_key ON blocked (session_id, node, attempt);

CREATE TABLE modes (
    session_id TEXT NOT NULL, node INTEGER NOT NULL, event_index INTEGER NOT NULL, preferences BLOB NOT NULL
);
CREATE UNIQUE INDEX modes_key ON modes (session_id, node, event_index);

CREATE TABLE commits (
    session_id TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, recorded_at INTEGER NOT NULL,
    digest BLOB NOT NULL, body BLOB NOT NULL, key TEXT
);
CREATE UNIQUE INDEX commits_key ON commits (session_id, last);
CREATE UNIQUE INDEX commits_once ON commits (session_id, key) WHERE key IS NOT NULL;
CREATE TRIGGER commits_stay BEFORE UPDATE ON commits
    BEGIN SELECT RAISE(ABORT, 'commits are append-only'); END;

CREATE TABLE contents (digest TEXT NOT NULL, deflated INTEGER NOT NULL, body BLOB NOT NULL);
CREATE UNIQUE INDEX contents_key ON contents (digest);

CREATE TABLE observations (session_id TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL);
CREATE UNIQUE INDEX observations_key ON observations (session_id, key);
CREATE INDEX observations_value ON observations (key, value);

CREATE TABLE settings (owner TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL);
CREATE UNIQUE INDEX settings_key ON settings (owner, key);
CREATE INDEX settings_copy ON settings (owner, key, value);

CREATE TABLE traces (
    session_id TEXT NOT NULL, after_index INTEGER NOT NULL, at INTEGER NOT NULL, body BLOB NOT NULL
);
CREATE INDEX traces_key ON traces (session_id, after_index, at);

CREATE TABLE search (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL, owner TEXT NOT NULL, title TEXT NOT NULL, notes TEXT NOT NULL,
    workflows TEXT NOT NULL,
    indexed_to INTEGER NOT NULL
);
CREATE UNIQUE INDEX search_key ON search (session_id);
CREATE TABLE indexed_outputs (id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, owner TEXT NOT NULL);
CREATE INDEX indexed_outputs_session ON indexed_outputs (session_id);
CREATE VIRTUAL TABLE words USING fts5 (
    title, notes, workflows, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2'
);
"""

BY_STATUS = "CREATE INDEX runs_status ON runs (status, session_id);"

BY_TIME = "CREATE INDEX sessions_latest ON sessions (recent_at) WHERE NOT unindexed;"  # of all owners

LATE_NOTES = "ALTER TABLE runs ADD COLUMN late_notes INTEGER NOT NULL DEFAULT 0;"

DECLINED = "ALTER TABLE runs ADD COLUMN declined TEXT NOT NULL DEFAULT '';"

LINES = """
ALTER TABLE nodes ADD COLUMN line BLOB NOT NULL DEFAULT x'';
UPDATE nodes SET line = coalesce((
    SELECT substr(digest, 1, 3) FROM commits
    WHERE commits.session_id = nodes.session_id AND last >= event_index ORDER BY last LIMIT 1
), x'');
"""

REMOVED_HEADS = """
ALTER TABLE tombstones ADD COLUMN head_index INTEGER NOT NULL DEFAULT -1;
ALTER TABLE tombstones ADD COLUMN head_digest BLOB NOT NULL DEFAULT x'';
DROP INDEX tombstones_copy;
CREATE INDEX tombstones_copy ON tombstones (session_id, owner, removed_at, head_index, head_digest);
"""

OUTBOX = """
CREATE TABLE outbox (
    session_id TEXT NOT NULL, message_id TEXT NOT NULL, channel TEXT NOT NULL, kind TEXT NOT NULL,
    body BLOB NOT NULL, due_at INTEGER NOT NULL, created_at INTEGER NOT NULL, attempts INTEGER NOT NULL,
    state TEXT NOT NULL, error TEXT NOT NULL
);
CREATE UNIQUE INDEX outbox_key ON outbox (session_id, message_id, channel);
CREATE INDEX outbox_due ON outbox (due_at) WHERE state = 'waiting';
"""

POLLS = "ALTER TABLE runs ADD COLUMN polls TEXT NOT NULL DEFAULT '';"

MIGRATIONS: tuple[str, ...] = (
    FIRST,
    BY_STATUS,
    BY_TIME,
    LATE_NOTES,
    DECLINED,
    LINES,
    REMOVED_HEADS,
    OUTBOX,
    POLLS,
)

TABLES = (
    "commits",
    *PROJECTIONS,
    "handles",
    "starts",
    "traces",
    "tombstones",
    "contents",
    "settings",
    "outbox",
)
