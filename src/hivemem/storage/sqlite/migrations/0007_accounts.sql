-- People share memory in organizations, keys get an end and a reach, and there is an audit log.
--
-- Tables that change are made anew under their own names: a renamed one would be spelt otherwise than in
-- schema.sql. Foreign keys are off meanwhile, and name tables, so that they find the new ones.

CREATE TABLE users_before AS SELECT * FROM users;
DROP TABLE users;

CREATE TABLE users (
    user_id               TEXT    NOT NULL PRIMARY KEY,
    name                  TEXT    NOT NULL UNIQUE,
    created_at            INTEGER NOT NULL,
    operator              INTEGER NOT NULL,
    password_hash         TEXT,
    write_organization_id TEXT
) STRICT;

-- Whoever came first runs the server.
INSERT INTO users (user_id, name, created_at, operator)
SELECT
    user_id,
    name,
    created_at,
    user_id = (SELECT user_id FROM users_before ORDER BY created_at, user_id LIMIT 1)
FROM users_before;

DROP TABLE users_before;

CREATE TABLE organizations (
    organization_id TEXT    NOT NULL PRIMARY KEY,
    name            TEXT    NOT NULL UNIQUE,
    created_at      INTEGER NOT NULL
) STRICT;

CREATE TABLE graphs_before AS SELECT * FROM graphs;
DROP TABLE graphs;

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

-- The oldest graph of each user is the default.
INSERT INTO graphs (graph_id, name, owner_id, created_at, is_default)
SELECT
    graph_id,
    name,
    owner_id,
    created_at,
    graph_id = (
        SELECT graph_id
        FROM graphs_before AS own
        WHERE own.owner_id = graphs_before.owner_id
        ORDER BY created_at, graph_id
        LIMIT 1
    )
FROM graphs_before;

DROP TABLE graphs_before;

CREATE TABLE memberships (
    organization_id TEXT    NOT NULL REFERENCES organizations,
    user_id         TEXT    NOT NULL REFERENCES users,
    role            TEXT    NOT NULL,
    joined_at       INTEGER NOT NULL,
    PRIMARY KEY (organization_id, user_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX memberships_by_user ON memberships (user_id);

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

CREATE TABLE external_identities (
    issuer     TEXT    NOT NULL,
    subject    TEXT    NOT NULL,
    user_id    TEXT    NOT NULL REFERENCES users,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;

CREATE INDEX external_identities_by_user ON external_identities (user_id);

CREATE TABLE api_keys_before AS SELECT * FROM api_keys;
DROP TABLE api_keys;

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

INSERT INTO api_keys (key_id, hash, name, user_id, graph_id, scope, created_at, revoked_at, admin)
SELECT key_id, hash, name, user_id, graph_id, scope, created_at, revoked_at, 0
FROM api_keys_before;

DROP TABLE api_keys_before;

CREATE TABLE deleted_graphs (
    graph_id   TEXT    NOT NULL PRIMARY KEY,
    deleted_at INTEGER NOT NULL,
    purged_at  INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX deleted_graphs_by_time ON deleted_graphs (deleted_at);

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

CREATE INDEX oauth_grants_by_graph ON oauth_grants (graph_id);
CREATE INDEX oauth_grants_by_key ON oauth_grants (key_id);

CREATE TABLE oauth_sign_ins_before AS SELECT * FROM oauth_sign_ins;
DROP TABLE oauth_sign_ins;

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

INSERT INTO oauth_sign_ins (hash, client_id, request, expires_at, identity, consent_hash)
SELECT hash, client_id, request, expires_at, identity, consent_hash
FROM oauth_sign_ins_before;

DROP TABLE oauth_sign_ins_before;
