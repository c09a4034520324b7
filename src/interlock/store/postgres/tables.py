"""The tables of the shared store, as a list of migrations that only grows.

Every unique key of a session's rows begins with the session id, and no sequence orders anything. Nothing that
a command changes in the head row is indexed, so that PostgreSQL updates it in place.
"""

from __future__ import annotations

PARTITIONS = 8

FIRST = """
CREATE TABLE sessions (
    session_id text COLLATE "C" PRIMARY KEY, owner text COLLATE "C" NOT NULL, title text NOT NULL,
    created_at int8 NOT NULL, updated_at int8 NOT NULL,
    head_index int8 NOT NULL, head_digest bytea NOT NULL, next_node int8 NOT NULL,
    head_run int8, head_node int8, visit_index int8 NOT NULL, visit_node int8,
    parent_session text COLLATE "C", health text NOT NULL, health_reason text NOT NULL, keep bool NOT NULL,
    unindexed bool NOT NULL DEFAULT true, recent_at int8 NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX sessions_unindexed ON sessions (session_id) WHERE unindexed;
CREATE INDEX sessions_recent ON sessions (owner, recent_at) WHERE NOT unindexed;

CREATE TABLE tombstones (
    session_id text COLLATE "C" PRIMARY KEY, owner text COLLATE "C" NOT NULL, removed_at int8 NOT NULL
);

CREATE TABLE handles (
    handle bytea PRIMARY KEY, session_id text COLLATE "C" NOT NULL, agent text COLLATE "C" NOT NULL,
    UNIQUE (session_id, agent)
);

CREATE TABLE starts (
    owner text COLLATE "C" NOT NULL, request_id bytea NOT NULL, request_digest bytea NOT NULL,
    session_id text COLLATE "C" NOT NULL, handle bytea NOT NULL, response bytea NOT NULL,
    started_at int8 NOT NULL, digest bytea NOT NULL,
    PRIMARY KEY (owner, request_id)
);
CREATE INDEX starts_session ON starts (session_id);

CREATE TABLE runs (
    session_id text COLLATE "C" NOT NULL, run int8 NOT NULL, run_id text COLLATE "C" NOT NULL,
    workflow_id text NOT NULL, workflow_hash text NOT NULL, surface text NOT NULL, status text NOT NULL,
    tip int8 NOT NULL, started_at int8 NOT NULL, updated_at int8 NOT NULL, awaiting text NOT NULL,
    PRIMARY KEY (session_id, run)
) WITH (fillfactor = 80);
CREATE INDEX runs_id ON runs (run_id);
CREATE INDEX runs_awaiting ON runs (session_id) WHERE awaiting <> '';

CREATE TABLE nodes (
    session_id text COLLATE "C" NOT NULL, node int8 NOT NULL, run int8 NOT NULL, parent int8,
    kind text NOT NULL, depth int8 NOT NULL, entries int8 NOT NULL,
    state bytea NOT NULL, state_digest bytea NOT NULL, event_index int8 NOT NULL,
    created_at int8 NOT NULL, attempt int8, request_digest bytea NOT NULL,
    response_digest bytea NOT NULL, response bytea NOT NULL, outputs bytea NOT NULL,
    PRIMARY KEY (session_id, node)
) PARTITION BY HASH (session_id);
CREATE UNIQUE INDEX nodes_parent ON nodes (session_id, parent, attempt) WHERE parent IS NOT NULL;

CREATE TABLE blocked (
    session_id text COLLATE "C" NOT NULL, node int8 NOT NULL, attempt int8 NOT NULL, successor int8 NOT NULL,
    event_index int8 NOT NULL, recorded_at int8 NOT NULL, request_digest bytea NOT NULL,
    response_digest bytea NOT NULL, response bytea NOT NULL, kept bytea NOT NULL, outputs bytea NOT NULL,
    PRIMARY KEY (session_id, node, attempt)
);

CREATE TABLE modes (
    session_id text COLLATE "C" NOT NULL, node int8 NOT NULL, event_index int8 NOT NULL,
    preferences bytea NOT NULL,
    PRIMARY KEY (session_id, node, event_index)
);

CREATE TABLE commits (
    session_id text COLLATE "C" NOT NULL, first int8 NOT NULL, last int8 NOT NULL, recorded_at int8 NOT NULL,
    digest bytea NOT NULL, body bytea NOT NULL, key text COLLATE "C",
    PRIMARY KEY (session_id, last)
) PARTITION BY HASH (session_id);
CREATE UNIQUE INDEX commits_once ON commits (session_id, key) WHERE key IS NOT NULL;

CREATE TABLE contents (digest text COLLATE "C" PRIMARY KEY, body bytea NOT NULL);

CREATE TABLE observations (
    session_id text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, value text COLLATE "C" NOT NULL,
    observed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (session_id, key)
);
CREATE INDEX observations_value ON observations (key, value, observed_at);

CREATE TABLE settings (
    owner text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, value text NOT NULL,
    PRIMARY KEY (owner, key)
);

CREATE TABLE traces (
    session_id text COLLATE "C" NOT NULL, after_index int8 NOT NULL, at int8 NOT NULL, body bytea NOT NULL
);
CREATE INDEX traces_key ON traces (session_id, after_index, at);

CREATE TABLE search (
    session_id text COLLATE "C" PRIMARY KEY, owner text COLLATE "C" NOT NULL, title text NOT NULL,
    notes text NOT NULL, workflows text NOT NULL, indexed_to int8 NOT NULL,
    indexed_at timestamptz NOT NULL DEFAULT clock_timestamp(), words tsvector NOT NULL
);
CREATE INDEX search_words ON search USING gin (words);
CREATE INDEX search_latest ON search (owner, indexed_at);
CREATE TABLE indexed_outputs (
    session_id text COLLATE "C" NOT NULL, owner text COLLATE "C" NOT NULL,
    indexed_at timestamptz NOT NULL DEFAULT clock_timestamp(), number int8 NOT NULL, words tsvector NOT NULL
);
CREATE INDEX indexed_outputs_session ON indexed_outputs (session_id);
CREATE INDEX indexed_outputs_words ON indexed_outputs USING gin (words);
CREATE INDEX indexed_outputs_latest ON indexed_outputs (owner, indexed_at, number);
""" + "".join(
    f"CREATE TABLE {table}_{number} PARTITION OF {table}"
    f" FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {number});\n"
    for table in ("nodes", "commits")
    for number in range(PARTITIONS)
)

BLOCKED = "CREATE INDEX runs_blocked ON runs (session_id) WHERE status = 'blocked';"

BY_TIME = "CREATE INDEX sessions_latest ON sessions (recent_at) WHERE NOT unindexed;"  # of all owners

LATE_NOTES = "ALTER TABLE runs ADD COLUMN late_notes int8 NOT NULL DEFAULT 0;"

DECLINED = "ALTER TABLE runs ADD COLUMN declined text NOT NULL DEFAULT '';"

LINES = """
ALTER TABLE nodes ADD COLUMN line bytea NOT NULL DEFAULT '';
UPDATE nodes SET line = coalesce((
    SELECT substr(digest, 1, 3) FROM commits
    WHERE commits.session_id = nodes.session_id AND last >= event_index ORDER BY last LIMIT 1
), '');
"""

REMOVED_HEADS = """
ALTER TABLE tombstones ADD COLUMN head_index int8 NOT NULL DEFAULT -1;
ALTER TABLE tombstones ADD COLUMN head_digest bytea NOT NULL DEFAULT '';
"""

OUTBOX = """
CREATE TABLE outbox (
    session_id text COLLATE "C" NOT NULL, message_id text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL, kind text NOT NULL, body bytea NOT NULL, due_at int8 NOT NULL,
    created_at int8 NOT NULL, attempts int8 NOT NULL, state text NOT NULL, error text NOT NULL,
    PRIMARY KEY (session_id, message_id, channel)
);
CREATE INDEX outbox_due ON outbox (due_at) WHERE state = 'waiting';
"""

POLLS = "ALTER TABLE runs ADD COLUMN polls text NOT NULL DEFAULT '';"

MIGRATIONS: tuple[str, ...] = (
    FIRST,
    BLOCKED,
    BY_TIME,
    LATE_NOTES,
    DECLINED,
    LINES,
    REMOVED_HEADS,
    OUTBOX,
    POLLS,
)

# Part of every statement that writes: an older version never writes to tables that a newer one has migrated.
IS_KNOWN = f"NOT EXISTS (SELECT FROM interlock_schema WHERE version > {len(MIGRATIONS)})"
