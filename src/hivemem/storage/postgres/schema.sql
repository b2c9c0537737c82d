-- The present schema. A new database is made from this file, an older one by migrations/;
-- a test holds that both ways end in the same place.
--
-- * Tables, columns and values are those of storage/sqlite/schema.sql, so that a memory can be copied
--   from one to the other row by row: times are microseconds since 1970-01-01 UTC, JSON is kept as the
--   text that was written, and COLLATE "C" compares texts by code points whatever the database's locale.
-- * Every table of a graph has graph_id as the first column of its primary key, and every statement
--   names it: no statement can reach into another graph.
-- * `revision` is the graph's change counter at the last change of the row: the changes since a
--   revision are read from the *_by_revision indexes, removals from tombstones.

-- What this program needs to know about the schema. version: the last migration that ran.
-- oldest_program: the oldest schema version whose programs can still work with these tables.
CREATE TABLE schema_version (
    version        BIGINT NOT NULL,
    oldest_program BIGINT NOT NULL
);

-- Who may use which graph -----------------------------------------------------------------------

-- operator: 1 when they run this server. write_organization_id: where their writes go, NULL for their own
-- memory; without a foreign key, since it ends by statements.
CREATE TABLE users (
    user_id               TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name                  TEXT COLLATE "C" NOT NULL UNIQUE,
    created_at            BIGINT           NOT NULL,
    operator              BIGINT           NOT NULL DEFAULT 0,
    password_hash         TEXT COLLATE "C",
    write_organization_id TEXT COLLATE "C"
);

CREATE INDEX users_by_operator ON users (user_id) WHERE operator = 1;
CREATE INDEX users_by_write_mode ON users (write_organization_id) WHERE write_organization_id IS NOT NULL;

CREATE TABLE organizations (
    organization_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name            TEXT COLLATE "C" NOT NULL UNIQUE,
    created_at      BIGINT           NOT NULL
);

-- Defaults of columns, here and above and below, are for servers of the version before, which leave them out.
-- kind: nothing reads it any more; those servers name it.
CREATE TABLE graphs (
    graph_id        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name            TEXT COLLATE "C" NOT NULL,
    kind            TEXT COLLATE "C" NOT NULL DEFAULT 'personal',
    owner_id        TEXT COLLATE "C" REFERENCES users,
    created_at      BIGINT           NOT NULL,
    organization_id TEXT COLLATE "C" UNIQUE REFERENCES organizations,
    is_default      BIGINT           NOT NULL DEFAULT 0,
    frozen_at       BIGINT,
    CHECK ((owner_id IS NULL) <> (organization_id IS NULL))
);

CREATE INDEX graphs_by_owner ON graphs (owner_id, created_at);
CREATE UNIQUE INDEX graphs_by_default ON graphs (owner_id) WHERE is_default = 1;

-- role: owner, admin or member.
CREATE TABLE memberships (
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations,
    user_id         TEXT COLLATE "C" NOT NULL REFERENCES users,
    role            TEXT COLLATE "C" NOT NULL,
    joined_at       BIGINT           NOT NULL,
    PRIMARY KEY (organization_id, user_id)
);

CREATE INDEX memberships_by_user ON memberships (user_id);

-- hash: SHA-256 of the secret in the link.
CREATE TABLE invitations (
    hash            TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations,
    role            TEXT COLLATE "C" NOT NULL,
    invited_by      TEXT COLLATE "C" NOT NULL REFERENCES users,
    created_at      BIGINT           NOT NULL,
    expires_at      BIGINT           NOT NULL,
    used_at         BIGINT,
    used_by         TEXT COLLATE "C"
);

CREATE INDEX invitations_by_organization ON invitations (organization_id, created_at, hash);
CREATE INDEX invitations_by_maker ON invitations (invited_by);

-- Who somebody is at an identity provider.
CREATE TABLE external_identities (
    issuer     TEXT COLLATE "C" NOT NULL,
    subject    TEXT COLLATE "C" NOT NULL,
    user_id    TEXT COLLATE "C" NOT NULL REFERENCES users,
    created_at BIGINT           NOT NULL,
    PRIMARY KEY (issuer, subject)
);

CREATE INDEX external_identities_by_user ON external_identities (user_id);

-- hash: SHA-256 of the whole key, in hexadecimal. The key itself is nowhere. admin: 1 when it may administer.
CREATE TABLE api_keys (
    key_id       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    hash         TEXT COLLATE "C" NOT NULL UNIQUE,
    name         TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL REFERENCES users,
    graph_id     TEXT COLLATE "C" NOT NULL REFERENCES graphs,
    scope        TEXT COLLATE "C" NOT NULL,
    created_at   BIGINT           NOT NULL,
    revoked_at   BIGINT,
    admin        BIGINT           NOT NULL DEFAULT 0,
    expires_at   BIGINT,
    last_used_at BIGINT
);

CREATE INDEX api_keys_by_user ON api_keys (user_id, created_at, key_id);
CREATE INDEX api_keys_by_graph ON api_keys (graph_id);

-- Graphs that are gone for everybody. purged_at: when the last of their content was removed.
CREATE TABLE deleted_graphs (
    graph_id   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    deleted_at BIGINT           NOT NULL,
    purged_at  BIGINT
);

CREATE INDEX deleted_graphs_by_time ON deleted_graphs (deleted_at, graph_id);

-- Every write to a graph calls this first. It waits for a deletion of the graph that is under way, holds off
-- those that follow until the write is committed, and fails when the graph is deleted.
CREATE FUNCTION hold_graph(held TEXT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(
        hashtextextended('hivemem graph ' || current_schema() || ' ' || held, 0)
    );
    IF EXISTS (SELECT FROM deleted_graphs WHERE graph_id = held) THEN
        RAISE EXCEPTION 'the memory ''%'' was deleted; sign in again, or use a key of another.', held
            USING ERRCODE = 'ZG001';
    END IF;
END
$$;

-- Who did what. Ids only; lines are added, never changed or removed.
CREATE TABLE audit_events (
    event_id        BIGINT           NOT NULL GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    at              BIGINT           NOT NULL,
    action          TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C",
    credential      TEXT COLLATE "C" NOT NULL,
    graph_id        TEXT COLLATE "C",
    organization_id TEXT COLLATE "C",
    target          TEXT COLLATE "C",
    address         TEXT COLLATE "C" NOT NULL,
    request_id      TEXT COLLATE "C" NOT NULL,
    detail          TEXT COLLATE "C" NOT NULL
);

CREATE INDEX audit_events_by_organization ON audit_events (organization_id, event_id);
CREATE INDEX audit_events_by_graph ON audit_events (graph_id, event_id);
CREATE INDEX audit_events_by_user ON audit_events (user_id, event_id);

CREATE FUNCTION refuse_change_of_audit_log() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
END
$$;

CREATE TRIGGER audit_events_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_audit_log();

-- A graph ---------------------------------------------------------------------------------------

-- Counters of a graph, apart from `graphs`: they change with every write, and every recall reads
-- the revision, so that the row stays small.
CREATE TABLE graph_counters (
    graph_id      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    revision      BIGINT           NOT NULL,
    last_event_id BIGINT           NOT NULL
);

-- vector_model: the model of the node's vectors, NULL when it has none. All vectors of a node are of
-- one model; the column finds the nodes that lack vectors without looking at every node.
CREATE TABLE nodes (
    graph_id          TEXT COLLATE "C" NOT NULL,
    key               TEXT COLLATE "C" NOT NULL,
    node_type         TEXT COLLATE "C" NOT NULL,
    description       TEXT COLLATE "C" NOT NULL,
    data              TEXT COLLATE "C" NOT NULL,
    search_text       TEXT COLLATE "C",
    assets            TEXT COLLATE "C" NOT NULL,
    enrichment_status TEXT COLLATE "C" NOT NULL,
    vector_model      TEXT COLLATE "C",
    write_version     BIGINT           NOT NULL,
    revision          BIGINT           NOT NULL,
    created_at        BIGINT           NOT NULL,
    updated_at        BIGINT           NOT NULL,
    PRIMARY KEY (graph_id, key)
);

CREATE INDEX nodes_by_revision ON nodes (graph_id, revision, key);
CREATE INDEX nodes_by_type ON nodes (graph_id, node_type);
CREATE INDEX nodes_by_vector_model ON nodes (graph_id, vector_model, enrichment_status, key);

-- vector: little-endian float32. ordinal: position in reading order, from 0.
-- text_start and text_end: code-point offsets into the field that `source` names.
CREATE TABLE node_vectors (
    graph_id   TEXT COLLATE "C" NOT NULL,
    node_key   TEXT COLLATE "C" NOT NULL,
    ordinal    BIGINT           NOT NULL,
    model_id   TEXT COLLATE "C" NOT NULL,
    source     TEXT COLLATE "C" NOT NULL,
    text_start BIGINT           NOT NULL,
    text_end   BIGINT           NOT NULL,
    vector     BYTEA            NOT NULL,
    PRIMARY KEY (graph_id, node_key, ordinal),
    FOREIGN KEY (graph_id, node_key) REFERENCES nodes (graph_id, key) ON DELETE CASCADE
);

-- Numbers of a vector do not compress.
ALTER TABLE node_vectors ALTER COLUMN vector SET STORAGE EXTERNAL;

CREATE TABLE edges (
    graph_id      TEXT COLLATE "C" NOT NULL,
    edge_id       TEXT COLLATE "C" NOT NULL,
    from_key      TEXT COLLATE "C" NOT NULL,
    to_key        TEXT COLLATE "C" NOT NULL,
    relationship  TEXT COLLATE "C" NOT NULL,
    description   TEXT COLLATE "C",
    data          TEXT COLLATE "C" NOT NULL,
    write_version BIGINT           NOT NULL,
    revision      BIGINT           NOT NULL,
    created_at    BIGINT           NOT NULL,
    updated_at    BIGINT           NOT NULL,
    PRIMARY KEY (graph_id, edge_id),
    FOREIGN KEY (graph_id, from_key) REFERENCES nodes (graph_id, key),
    FOREIGN KEY (graph_id, to_key) REFERENCES nodes (graph_id, key)
);

-- A label can be longer than an index entry may be, so that its digest stands in for it. (A backslash
-- begins an escape where text becomes BYTEA, and is doubled.)
CREATE UNIQUE INDEX edges_by_identity
    ON edges (graph_id, from_key, to_key, sha256(replace(relationship, '\', '\\')::bytea));
CREATE INDEX edges_by_revision ON edges (graph_id, revision, edge_id);
CREATE INDEX edges_by_source ON edges (graph_id, from_key, created_at, edge_id);
CREATE INDEX edges_by_target ON edges (graph_id, to_key, created_at, edge_id);

-- identity: SHA-256 of label and participants, hexadecimal. Not unique: two hyperedges can become the same when
-- a node of one of them is forgotten.
CREATE TABLE hyperedges (
    graph_id      TEXT COLLATE "C" NOT NULL,
    hyperedge_id  TEXT COLLATE "C" NOT NULL,
    identity      TEXT COLLATE "C" NOT NULL,
    relationship  TEXT COLLATE "C" NOT NULL,
    description   TEXT COLLATE "C",
    data          TEXT COLLATE "C" NOT NULL,
    write_version BIGINT           NOT NULL,
    revision      BIGINT           NOT NULL,
    created_at    BIGINT           NOT NULL,
    updated_at    BIGINT           NOT NULL,
    PRIMARY KEY (graph_id, hyperedge_id)
);

CREATE INDEX hyperedges_by_identity ON hyperedges (graph_id, identity);
CREATE INDEX hyperedges_by_revision ON hyperedges (graph_id, revision, hyperedge_id);

CREATE TABLE hyperedge_participants (
    graph_id     TEXT COLLATE "C" NOT NULL,
    hyperedge_id TEXT COLLATE "C" NOT NULL,
    node_key     TEXT COLLATE "C" NOT NULL,
    ordinal      BIGINT           NOT NULL,
    role         TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (graph_id, hyperedge_id, node_key),
    FOREIGN KEY (graph_id, hyperedge_id) REFERENCES hyperedges ON DELETE CASCADE,
    FOREIGN KEY (graph_id, node_key) REFERENCES nodes (graph_id, key)
);

CREATE INDEX hyperedge_participants_by_node ON hyperedge_participants (graph_id, node_key, hyperedge_id);

-- The state that a thing had at the end of a revision, as JSON; NULL when it was removed.
CREATE TABLE versions (
    graph_id    TEXT COLLATE "C" NOT NULL,
    kind        TEXT COLLATE "C" NOT NULL,
    id          TEXT COLLATE "C" NOT NULL,
    revision    BIGINT           NOT NULL,
    recorded_at BIGINT           NOT NULL,
    state       TEXT COLLATE "C",
    PRIMARY KEY (graph_id, kind, id, revision)
);

CREATE TABLE tombstones (
    graph_id TEXT COLLATE "C" NOT NULL,
    kind     TEXT COLLATE "C" NOT NULL,
    id       TEXT COLLATE "C" NOT NULL,
    revision BIGINT           NOT NULL,
    PRIMARY KEY (graph_id, kind, id)
);

CREATE INDEX tombstones_by_revision ON tombstones (graph_id, revision, kind, id);

-- Conversations and the diary -------------------------------------------------------------------

CREATE TABLE timeline (
    graph_id TEXT COLLATE "C" NOT NULL,
    event_id BIGINT           NOT NULL,
    at       BIGINT           NOT NULL,
    summary  TEXT COLLATE "C" NOT NULL,
    source   TEXT COLLATE "C" NOT NULL,
    tool     TEXT COLLATE "C",
    node_key TEXT COLLATE "C",
    meta     TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (graph_id, event_id)
);

CREATE INDEX timeline_by_time ON timeline (graph_id, at, event_id);
-- A key has at most 256 characters, but the diary may name what is none.
CREATE INDEX timeline_by_node ON timeline (graph_id, left(node_key, 256), at, event_id)
    WHERE node_key IS NOT NULL;

-- The words of the diary, by which it is searched: the index terms of `summary` as the analyser makes them,
-- with a blank around each. A search reads the lines from the newest on until it has enough.
CREATE TABLE timeline_terms (
    graph_id TEXT COLLATE "C" NOT NULL,
    event_id BIGINT           NOT NULL,
    terms    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (graph_id, event_id),
    FOREIGN KEY (graph_id, event_id) REFERENCES timeline (graph_id, event_id) ON DELETE CASCADE
);

CREATE TABLE sessions (
    graph_id      TEXT COLLATE "C" NOT NULL,
    session_id    TEXT COLLATE "C" NOT NULL,
    tool_calls    BIGINT           NOT NULL,
    first_call_at BIGINT           NOT NULL,
    last_call_at  BIGINT           NOT NULL,
    PRIMARY KEY (graph_id, session_id)
);

CREATE TABLE session_nodes (
    graph_id         TEXT COLLATE "C" NOT NULL,
    session_id       TEXT COLLATE "C" NOT NULL,
    node_key         TEXT COLLATE "C" NOT NULL,
    touch_count      BIGINT           NOT NULL,
    first_touched_at BIGINT           NOT NULL,
    last_touched_at  BIGINT           NOT NULL,
    PRIMARY KEY (graph_id, session_id, node_key),
    FOREIGN KEY (graph_id, session_id) REFERENCES sessions (graph_id, session_id),
    FOREIGN KEY (graph_id, node_key) REFERENCES nodes (graph_id, key) ON DELETE CASCADE
);

CREATE INDEX session_nodes_by_node ON session_nodes (graph_id, node_key);
CREATE INDEX session_nodes_by_time ON session_nodes (graph_id, session_id, last_touched_at);

-- What agents report of the tokens they used, as JSON; the first report of a turn stays.
CREATE TABLE token_reports (
    graph_id      TEXT COLLATE "C" NOT NULL,
    user_id       TEXT COLLATE "C" NOT NULL,
    session_id    TEXT COLLATE "C" NOT NULL,
    turn_sequence BIGINT           NOT NULL,
    event_id      TEXT COLLATE "C" NOT NULL,
    report        TEXT COLLATE "C" NOT NULL,
    recorded_at   BIGINT           NOT NULL,
    PRIMARY KEY (graph_id, user_id, session_id, turn_sequence)
);

-- Files of a node; their bytes are named by `sha256`. filename_folded: with small ASCII letters.
CREATE TABLE files (
    graph_id        TEXT COLLATE "C" NOT NULL,
    file_id         TEXT COLLATE "C" NOT NULL,
    filename        TEXT COLLATE "C" NOT NULL,
    filename_folded TEXT COLLATE "C" NOT NULL,
    file_type       TEXT COLLATE "C" NOT NULL,
    content_type    TEXT COLLATE "C" NOT NULL,
    size_bytes      BIGINT           NOT NULL,
    sha256          TEXT COLLATE "C" NOT NULL,
    node_key        TEXT COLLATE "C" NOT NULL,
    summary         TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT           NOT NULL,
    PRIMARY KEY (graph_id, file_id)
);

CREATE INDEX files_by_time ON files (graph_id, created_at, file_id);
CREATE INDEX files_by_content ON files (graph_id, sha256);

-- Bytes of a graph's files in pieces, under their SHA-256, so that every server has them.
CREATE TABLE blobs (
    graph_id   TEXT COLLATE "C" NOT NULL,
    sha256     TEXT COLLATE "C" NOT NULL,
    size_bytes BIGINT           NOT NULL,
    stored_at  BIGINT           NOT NULL,
    PRIMARY KEY (graph_id, sha256)
);

CREATE TABLE blob_chunks (
    graph_id TEXT COLLATE "C" NOT NULL,
    sha256   TEXT COLLATE "C" NOT NULL,
    ordinal  BIGINT           NOT NULL,
    content  BYTEA            NOT NULL,
    PRIMARY KEY (graph_id, sha256, ordinal),
    FOREIGN KEY (graph_id, sha256) REFERENCES blobs (graph_id, sha256) ON DELETE CASCADE
);

-- Skills that somebody published for the agents of a graph. files: JSON, a list of {path, content, content_type}.
CREATE TABLE skills (
    graph_id     TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    skill_id     TEXT COLLATE "C" NOT NULL,
    version      TEXT COLLATE "C" NOT NULL,
    content      TEXT COLLATE "C" NOT NULL,
    files        TEXT COLLATE "C" NOT NULL,
    published_at BIGINT           NOT NULL,
    PRIMARY KEY (graph_id, name)
);

CREATE UNIQUE INDEX skills_by_id ON skills (graph_id, skill_id);

-- Documents of a whole graph, made in the background. request: hash of who asked and under which key, so that
-- asking twice makes one. secret: signs the links to the document. document: which of the documents in
-- export_chunks it is, NULL before one is whole.
CREATE TABLE exports (
    graph_id   TEXT COLLATE "C" NOT NULL,
    export_id  TEXT COLLATE "C" NOT NULL,
    user_id    TEXT COLLATE "C" NOT NULL,
    request    TEXT COLLATE "C" NOT NULL,
    secret     TEXT COLLATE "C" NOT NULL,
    status     TEXT COLLATE "C" NOT NULL,
    created_at BIGINT           NOT NULL,
    expires_at BIGINT           NOT NULL,
    document   TEXT COLLATE "C",
    size_bytes BIGINT,
    sha256     TEXT COLLATE "C",
    node_count BIGINT,
    error_code TEXT COLLATE "C",
    PRIMARY KEY (graph_id, export_id)
);

CREATE UNIQUE INDEX exports_by_request ON exports (graph_id, request);
CREATE INDEX exports_by_end ON exports (graph_id, expires_at);

CREATE TABLE export_chunks (
    graph_id  TEXT COLLATE "C" NOT NULL,
    export_id TEXT COLLATE "C" NOT NULL,
    document  TEXT COLLATE "C" NOT NULL,
    ordinal   BIGINT           NOT NULL,
    content   BYTEA            NOT NULL,
    PRIMARY KEY (graph_id, export_id, document, ordinal),
    FOREIGN KEY (graph_id, export_id) REFERENCES exports (graph_id, export_id) ON DELETE CASCADE
);

-- Programs that sign in with OAuth --------------------------------------------------------------

-- Lists are JSON. secret_hash: SHA-256 of the program's secret, NULL when it has none.
CREATE TABLE oauth_clients (
    client_id      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name           TEXT COLLATE "C" NOT NULL,
    redirect_uris  TEXT COLLATE "C" NOT NULL,
    grant_types    TEXT COLLATE "C" NOT NULL,
    scopes         TEXT COLLATE "C" NOT NULL,
    authentication TEXT COLLATE "C" NOT NULL,
    secret_hash    TEXT COLLATE "C",
    created_at     BIGINT           NOT NULL,
    revoked_at     BIGINT
);

CREATE INDEX oauth_clients_by_time ON oauth_clients (created_at);

-- What a person granted. key_id: the API key that was shown, NULL when the person signed in without one.
CREATE TABLE oauth_grants (
    grant_id   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    client_id  TEXT COLLATE "C" NOT NULL REFERENCES oauth_clients,
    user_id    TEXT COLLATE "C" NOT NULL REFERENCES users,
    graph_id   TEXT COLLATE "C" NOT NULL REFERENCES graphs,
    key_id     TEXT COLLATE "C" REFERENCES api_keys,
    scopes     TEXT COLLATE "C" NOT NULL,
    resource   TEXT COLLATE "C" NOT NULL,
    created_at BIGINT           NOT NULL,
    revoked_at BIGINT
);

CREATE INDEX oauth_grants_by_client ON oauth_grants (client_id);
CREATE INDEX oauth_grants_by_user ON oauth_grants (user_id, created_at, grant_id);
CREATE INDEX oauth_grants_by_time ON oauth_grants (created_at);
CREATE INDEX oauth_grants_by_graph ON oauth_grants (graph_id);
CREATE INDEX oauth_grants_by_key ON oauth_grants (key_id);

-- hash, here and below: SHA-256 of a secret that is nowhere itself. kind: access or refresh.
CREATE TABLE oauth_tokens (
    hash       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind       TEXT COLLATE "C" NOT NULL,
    grant_id   TEXT COLLATE "C" NOT NULL REFERENCES oauth_grants ON DELETE CASCADE,
    scopes     TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT           NOT NULL,
    used_at    BIGINT
);

CREATE INDEX oauth_tokens_by_grant ON oauth_tokens (grant_id);
CREATE INDEX oauth_tokens_by_end ON oauth_tokens (expires_at);

CREATE TABLE oauth_codes (
    hash               TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    grant_id           TEXT COLLATE "C" NOT NULL REFERENCES oauth_grants ON DELETE CASCADE,
    redirect_uri       TEXT COLLATE "C" NOT NULL,
    redirect_uri_given BIGINT           NOT NULL,
    code_challenge     TEXT COLLATE "C" NOT NULL,
    expires_at         BIGINT           NOT NULL,
    used_at            BIGINT
);

CREATE INDEX oauth_codes_by_grant ON oauth_codes (grant_id);
CREATE INDEX oauth_codes_by_end ON oauth_codes (expires_at);

-- Sign-ins under way in a browser. request and identity are JSON; identity is NULL until somebody signed in.
-- external: JSON that an identity provider's answer must match.
CREATE TABLE oauth_sign_ins (
    hash         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    client_id    TEXT COLLATE "C" NOT NULL REFERENCES oauth_clients ON DELETE CASCADE,
    request      TEXT COLLATE "C" NOT NULL,
    expires_at   BIGINT           NOT NULL,
    identity     TEXT COLLATE "C",
    consent_hash TEXT COLLATE "C",
    external     TEXT COLLATE "C"
);

CREATE INDEX oauth_sign_ins_by_client ON oauth_sign_ins (client_id);
CREATE INDEX oauth_sign_ins_by_end ON oauth_sign_ins (expires_at);

-- Work of which one process at a time should do each piece --------------------------------------

CREATE TABLE leases (
    name       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    holder     TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT           NOT NULL
);

-- Counts of calls, by all servers together --------------------------------------------------------

-- full_at: when the bucket is full again, in microseconds. allowed: 1 when the last call was let through.
-- Unlogged: losing the counts in a crash fills every bucket, and costs nothing else.
CREATE UNLOGGED TABLE rate_limits (
    subject TEXT COLLATE "C" NOT NULL,
    bucket  TEXT COLLATE "C" NOT NULL,
    full_at BIGINT           NOT NULL,
    allowed BIGINT           NOT NULL,
    PRIMARY KEY (subject, bucket)
);

CREATE INDEX rate_limits_by_end ON rate_limits (full_at);
