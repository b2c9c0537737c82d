-- The present schema. A new database is made from this file, an older one by migrations/;
-- a test holds that both ways end in the same place.
--
-- * Every table of a graph has graph_id as the first column of its primary key, and every statement
--   names it: no statement can reach into another graph.
-- * Times are microseconds since 1970-01-01 UTC. data, meta and assets are JSON text.
-- * `revision` is the graph's change counter at the last change of the row: the changes since a
--   revision are read from the *_by_revision indexes, removals from tombstones.

-- Who may use which graph -----------------------------------------------------------------------

-- operator: 1 for who runs the server. password_hash: argon2id in PHC form, NULL without a password.
-- write_organization_id: the organization whose memory the user's writes go to.
CREATE TABLE users (
    user_id               TEXT    NOT NULL PRIMARY KEY,
    name                  TEXT    NOT NULL UNIQUE,
    created_at            INTEGER NOT NULL,
    operator              INTEGER NOT NULL,
    password_hash         TEXT,
    write_organization_id TEXT
) STRICT;

CREATE TABLE organizations (
    organization_id TEXT    NOT NULL PRIMARY KEY,
    name            TEXT    NOT NULL UNIQUE,
    created_at      INTEGER NOT NULL
) STRICT;

-- A graph is of one user or of one organization. is_default: 1 for the one that a user gets when none is named.
-- frozen_at: since when it can only be read.
CREATE TABLE graphs (
    graph_id        TEXT    NOT NULL PRIMARY KEY,
    name            TEXT    NOT NULL,
    owner_id        TEXT    REFERENCES users,
    organization_id TEXT    UNIQUE REFERENCES organizations,
    created_at      INTEGER NOT NULL,
    is_default      INTEGER NOT NULL,
    frozen_at       INTEGER,
    CHECK ((owner_id IS NULL) <> (organization_id IS NULL))
) STRICT;

CREATE INDEX graphs_by_owner ON graphs (owner_id, created_at);
CREATE UNIQUE INDEX graphs_by_default ON graphs (owner_id) WHERE is_default = 1;

-- role: owner, admin or member.
CREATE TABLE memberships (
    organization_id TEXT    NOT NULL REFERENCES organizations,
    user_id         TEXT    NOT NULL REFERENCES users,
    role            TEXT    NOT NULL,
    joined_at       INTEGER NOT NULL,
    PRIMARY KEY (organization_id, user_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX memberships_by_user ON memberships (user_id);

-- hash: SHA-256 of the secret in the link.
CREATE TABLE invitations (
    hash            TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL REFERENCES organizations,
    role            TEXT    NOT NULL,
    invited_by      TEXT    NOT NULL REFERENCES users,
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    used_at         INTEGER,
    used_by         TEXT
) STRICT;

CREATE INDEX invitations_by_organization ON invitations (organization_id, created_at, hash);
CREATE INDEX invitations_by_maker ON invitations (invited_by);

-- Who somebody is at an identity provider.
CREATE TABLE external_identities (
    issuer     TEXT    NOT NULL,
    subject    TEXT    NOT NULL,
    user_id    TEXT    NOT NULL REFERENCES users,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;

CREATE INDEX external_identities_by_user ON external_identities (user_id);

-- hash: SHA-256 of the whole key, in hexadecimal. The key itself is nowhere. admin: 1 when it may administer.
CREATE TABLE api_keys (
    key_id       TEXT    NOT NULL PRIMARY KEY,
    hash         TEXT    NOT NULL UNIQUE,
    name         TEXT    NOT NULL,
    user_id      TEXT    NOT NULL REFERENCES users,
    graph_id     TEXT    NOT NULL REFERENCES graphs,
    scope        TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    revoked_at   INTEGER,
    admin        INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER
) STRICT;

CREATE INDEX api_keys_by_user ON api_keys (user_id, created_at, key_id);
CREATE INDEX api_keys_by_graph ON api_keys (graph_id);

-- Graphs that are gone for everybody. purged_at: when the last of their content was removed.
CREATE TABLE deleted_graphs (
    graph_id   TEXT    NOT NULL PRIMARY KEY,
    deleted_at INTEGER NOT NULL,
    purged_at  INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX deleted_graphs_by_time ON deleted_graphs (deleted_at);

-- Who did what. Ids only; lines are added, never changed or removed.
CREATE TABLE audit_events (
    event_id        INTEGER NOT NULL PRIMARY KEY,
    at              INTEGER NOT NULL,
    action          TEXT    NOT NULL,
    user_id         TEXT,
    credential      TEXT    NOT NULL,
    graph_id        TEXT,
    organization_id TEXT,
    target          TEXT,
    address         TEXT    NOT NULL,
    request_id      TEXT    NOT NULL,
    detail          TEXT    NOT NULL
) STRICT;

CREATE INDEX audit_events_by_organization ON audit_events (organization_id, event_id);
CREATE INDEX audit_events_by_graph ON audit_events (graph_id, event_id);
CREATE INDEX audit_events_by_user ON audit_events (user_id, event_id);

CREATE TRIGGER audit_events_stay_as_they_are BEFORE UPDATE ON audit_events
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER audit_events_stay BEFORE DELETE ON audit_events
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

-- `INSERT OR REPLACE` removes a row without asking the trigger above.
CREATE TRIGGER audit_events_are_new BEFORE INSERT ON audit_events
WHEN NEW.event_id IN (SELECT event_id FROM audit_events)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

-- A graph ---------------------------------------------------------------------------------------

-- Counters of a graph, apart from `graphs`: they change with every write, and every recall reads
-- the revision, so that the row stays small.
CREATE TABLE graph_counters (
    graph_id      TEXT    NOT NULL PRIMARY KEY,
    revision      INTEGER NOT NULL,
    last_event_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- vector_model: the model of the node's vectors, NULL when it has none. All vectors of a node are of
-- one model; the column finds the nodes that lack vectors without looking at every node.
CREATE TABLE nodes (
    graph_id          TEXT    NOT NULL,
    key               TEXT    NOT NULL,
    node_type         TEXT    NOT NULL,
    description       TEXT    NOT NULL,
    data              TEXT    NOT NULL,
    search_text       TEXT,
    assets            TEXT    NOT NULL,
    enrichment_status TEXT    NOT NULL,
    vector_model      TEXT,
    write_version     INTEGER NOT NULL,
    revision          INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    PRIMARY KEY (graph_id, key)
) STRICT;

CREATE INDEX nodes_by_revision ON nodes (graph_id, revision, key);
CREATE INDEX nodes_by_type ON nodes (graph_id, node_type);
CREATE INDEX nodes_by_vector_model ON nodes (graph_id, vector_model, enrichment_status, key);

-- vector: little-endian float32. ordinal: position in reading order, from 0.
-- text_start and text_end: code-point offsets into the field that `source` names.
CREATE TABLE node_vectors (
    graph_id   TEXT    NOT NULL,
    node_key   TEXT    NOT NULL,
    ordinal    INTEGER NOT NULL,
    model_id   TEXT    NOT NULL,
    source     TEXT    NOT NULL,
    text_start INTEGER NOT NULL,
    text_end   INTEGER NOT NULL,
    vector     BLOB    NOT NULL,
    PRIMARY KEY (graph_id, node_key, ordinal),
    FOREIGN KEY (graph_id, node_key) REFERENCES nodes (graph_id, key) ON DELETE CASCADE
) STRICT;

CREATE TABLE edges (
    graph_id      TEXT    NOT NULL,
    edge_id       TEXT    NOT NULL,
    from_key      TEXT    NOT NULL,
    to_key        TEXT    NOT NULL,
    relationship  TEXT    NOT NULL,
    description   TEXT,
    data          TEXT    NOT NULL,
    write_version INTEGER NOT NULL,
    revision      INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    PRIMARY KEY (graph_id, edge_id),
    FOREIGN KEY (graph_id, from_key) REFERENCES nodes (graph_id, key),
    FOREIGN KEY (graph_id, to_key) REFERENCES nodes (graph_id, key)
) STRICT;

CREATE UNIQUE INDEX edges_by_identity ON edges (graph_id, from_key, to_key, relationship);
CREATE INDEX edges_by_revision ON edges (graph_id, revision, edge_id);
CREATE INDEX edges_by_source ON edges (graph_id, from_key, created_at, edge_id);
CREATE INDEX edges_by_target ON edges (graph_id, to_key, created_at, edge_id);

-- identity: SHA-256 of label and participants, hexadecimal. Not unique: two hyperedges can become the same when
-- a node of one of them is forgotten.
CREATE TABLE hyperedges (
    graph_id      TEXT    NOT NULL,
    hyperedge_id  TEXT    NOT NULL,
    identity      TEXT    NOT NULL,
    relationship  TEXT    NOT NULL,
    description   TEXT,
    data          TEXT    NOT NULL,
    write_version INTEGER NOT NULL,
    revision      INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    PRIMARY KEY (graph_id, hyperedge_id)
) STRICT;

CREATE INDEX hyperedges_by_identity ON hyperedges (graph_id, identity);
CREATE INDEX hyperedges_by_revision ON hyperedges (graph_id, revision, hyperedge_id);

CREATE TABLE hyperedge_participants (
    graph_id     TEXT    NOT NULL,
    hyperedge_id TEXT    NOT NULL,
    node_key     TEXT    NOT NULL,
    ordinal      INTEGER NOT NULL,
    role         TEXT    NOT NULL,
    PRIMARY KEY (graph_id, hyperedge_id, node_key),
    FOREIGN KEY (graph_id, hyperedge_id) REFERENCES hyperedges ON DELETE CASCADE,
    FOREIGN KEY (graph_id, node_key) REFERENCES nodes (graph_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX hyperedge_participants_by_node ON hyperedge_participants (graph_id, node_key, hyperedge_id);

-- The state that a thing had at the end of a revision, as JSON; NULL when it was removed.
CREATE TABLE versions (
    graph_id    TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    id          TEXT    NOT NULL,
    revision    INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    state       TEXT,
    PRIMARY KEY (graph_id, kind, id, revision)
) STRICT;

CREATE TABLE tombstones (
    graph_id TEXT    NOT NULL,
    kind     TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (graph_id, kind, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX tombstones_by_revision ON tombstones (graph_id, revision, kind, id);

-- Conversations and the diary -------------------------------------------------------------------

CREATE TABLE timeline (
    graph_id TEXT    NOT NULL,
    event_id INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    summary  TEXT    NOT NULL,
    source   TEXT    NOT NULL,
    tool     TEXT,
    node_key TEXT,
    meta     TEXT    NOT NULL,
    PRIMARY KEY (graph_id, event_id)
) STRICT;

CREATE INDEX timeline_by_time ON timeline (graph_id, at, event_id);
CREATE INDEX timeline_by_node ON timeline (graph_id, node_key, at, event_id) WHERE node_key IS NOT NULL;

-- The words of the diary, by which it is searched: the index terms of `summary` as the analyser makes them,
-- with a blank around each. A search reads the lines from the newest on until it has enough.
CREATE TABLE timeline_terms (
    graph_id TEXT    NOT NULL,
    event_id INTEGER NOT NULL,
    terms    TEXT    NOT NULL,
    PRIMARY KEY (graph_id, event_id),
    FOREIGN KEY (graph_id, event_id) REFERENCES timeline ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    graph_id      TEXT    NOT NULL,
    session_id    TEXT    NOT NULL,
    tool_calls    INTEGER NOT NULL,
    first_call_at INTEGER NOT NULL,
    last_call_at  INTEGER NOT NULL,
    PRIMARY KEY (graph_id, session_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE session_nodes (
    graph_id         TEXT    NOT NULL,
    session_id       TEXT    NOT NULL,
    node_key         TEXT    NOT NULL,
    touch_count      INTEGER NOT NULL,
    first_touched_at INTEGER NOT NULL,
    last_touched_at  INTEGER NOT NULL,
    PRIMARY KEY (graph_id, session_id, node_key),
    FOREIGN KEY (graph_id, session_id) REFERENCES sessions,
    FOREIGN KEY (graph_id, node_key) REFERENCES nodes (graph_id, key) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX session_nodes_by_node ON session_nodes (graph_id, node_key);
CREATE INDEX session_nodes_by_time ON session_nodes (graph_id, session_id, last_touched_at);

-- What agents report of the tokens they used, as JSON; the first report of a turn stays.
CREATE TABLE token_reports (
    graph_id      TEXT    NOT NULL,
    user_id       TEXT    NOT NULL,
    session_id    TEXT    NOT NULL,
    turn_sequence INTEGER NOT NULL,
    event_id      TEXT    NOT NULL,
    report        TEXT    NOT NULL,
    recorded_at   INTEGER NOT NULL,
    PRIMARY KEY (graph_id, user_id, session_id, turn_sequence)
) STRICT;

-- Files of a node; their bytes are named by `sha256`. filename_folded: with small ASCII letters.
CREATE TABLE files (
    graph_id        TEXT    NOT NULL,
    file_id         TEXT    NOT NULL,
    filename        TEXT    NOT NULL,
    filename_folded TEXT    NOT NULL,
    file_type       TEXT    NOT NULL,
    content_type    TEXT    NOT NULL,
    size_bytes      INTEGER NOT NULL,
    sha256          TEXT    NOT NULL,
    node_key        TEXT    NOT NULL,
    summary         TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (graph_id, file_id)
) STRICT;

CREATE INDEX files_by_time ON files (graph_id, created_at, file_id);
CREATE INDEX files_by_content ON files (graph_id, sha256);

-- Skills that somebody published for the agents of a graph. files: JSON, a list of {path, content, content_type}.
CREATE TABLE skills (
    graph_id     TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    skill_id     TEXT    NOT NULL,
    version      TEXT    NOT NULL,
    content      TEXT    NOT NULL,
    files        TEXT    NOT NULL,
    published_at INTEGER NOT NULL,
    PRIMARY KEY (graph_id, name)
) STRICT;

CREATE UNIQUE INDEX skills_by_id ON skills (graph_id, skill_id);

-- Documents of a whole graph, made in the background. request: hash of who asked and under which key, so that
-- asking twice makes one. secret: signs the links to the document. document: which of the documents in
-- export_chunks it is, NULL before one is whole.
CREATE TABLE exports (
    graph_id   TEXT    NOT NULL,
    export_id  TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    request    TEXT    NOT NULL,
    secret     TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    document   TEXT,
    size_bytes INTEGER,
    sha256     TEXT,
    node_count INTEGER,
    error_code TEXT,
    PRIMARY KEY (graph_id, export_id)
) STRICT;

CREATE UNIQUE INDEX exports_by_request ON exports (graph_id, request);
CREATE INDEX exports_by_end ON exports (graph_id, expires_at);

CREATE TABLE export_chunks (
    graph_id  TEXT    NOT NULL,
    export_id TEXT    NOT NULL,
    document  TEXT    NOT NULL,
    ordinal   INTEGER NOT NULL,
    content   BLOB    NOT NULL,
    PRIMARY KEY (graph_id, export_id, document, ordinal),
    FOREIGN KEY (graph_id, export_id) REFERENCES exports ON DELETE CASCADE
) STRICT;

-- Programs that sign in with OAuth --------------------------------------------------------------

-- Lists are JSON. secret_hash: SHA-256 of the program's secret, NULL when it has none.
CREATE TABLE oauth_clients (
    client_id      TEXT    NOT NULL PRIMARY KEY,
    name           TEXT    NOT NULL,
    redirect_uris  TEXT    NOT NULL,
    grant_types    TEXT    NOT NULL,
    scopes         TEXT    NOT NULL,
    authentication TEXT    NOT NULL,
    secret_hash    TEXT,
    created_at     INTEGER NOT NULL,
    revoked_at     INTEGER
) STRICT;

CREATE INDEX oauth_clients_by_time ON oauth_clients (created_at);

-- What a person granted. key_id: the API key that was shown, NULL when the person signed in without one.
CREATE TABLE oauth_grants (
    grant_id   TEXT    NOT NULL PRIMARY KEY,
    client_id  TEXT    NOT NULL REFERENCES oauth_clients,
    user_id    TEXT    NOT NULL REFERENCES users,
    graph_id   TEXT    NOT NULL REFERENCES graphs,
    key_id     TEXT    REFERENCES api_keys,
    scopes     TEXT    NOT NULL,
    resource   TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

CREATE INDEX oauth_grants_by_client ON oauth_grants (client_id);
CREATE INDEX oauth_grants_by_user ON oauth_grants (user_id, created_at, grant_id);
CREATE INDEX oauth_grants_by_time ON oauth_grants (created_at);
CREATE INDEX oauth_grants_by_graph ON oauth_grants (graph_id);
CREATE INDEX oauth_grants_by_key ON oauth_grants (key_id);

-- hash, here and below: SHA-256 of a secret that is nowhere itself. kind: access or refresh.
CREATE TABLE oauth_tokens (
    hash       TEXT    NOT NULL PRIMARY KEY,
    kind       TEXT    NOT NULL,
    grant_id   TEXT    NOT NULL REFERENCES oauth_grants ON DELETE CASCADE,
    scopes     TEXT    NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER
) STRICT;

CREATE INDEX oauth_tokens_by_grant ON oauth_tokens (grant_id);
CREATE INDEX oauth_tokens_by_end ON oauth_tokens (expires_at);

CREATE TABLE oauth_codes (
    hash               TEXT    NOT NULL PRIMARY KEY,
    grant_id           TEXT    NOT NULL REFERENCES oauth_grants ON DELETE CASCADE,
    redirect_uri       TEXT    NOT NULL,
    redirect_uri_given INTEGER NOT NULL,
    code_challenge     TEXT    NOT NULL,
    expires_at         INTEGER NOT NULL,
    used_at            INTEGER
) STRICT;

CREATE INDEX oauth_codes_by_grant ON oauth_codes (grant_id);
CREATE INDEX oauth_codes_by_end ON oauth_codes (expires_at);

-- Sign-ins under way in a browser. request and identity are JSON; identity is NULL until somebody signed in.
-- external: JSON that an identity provider's answer must match.
CREATE TABLE oauth_sign_ins (
    hash         TEXT    NOT NULL PRIMARY KEY,
    client_id    TEXT    NOT NULL REFERENCES oauth_clients ON DELETE CASCADE,
    request      TEXT    NOT NULL,
    expires_at   INTEGER NOT NULL,
    identity     TEXT,
    consent_hash TEXT,
    external     TEXT
) STRICT;

CREATE INDEX oauth_sign_ins_by_client ON oauth_sign_ins (client_id);
CREATE INDEX oauth_sign_ins_by_end ON oauth_sign_ins (expires_at);

-- Work of which one process at a time should do each piece --------------------------------------

CREATE TABLE leases (
    name       TEXT    NOT NULL PRIMARY KEY,
    holder     TEXT    NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
