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
CREATE TABLE oauth_sign_ins (
    hash         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    client_id    TEXT COLLATE "C" NOT NULL REFERENCES oauth_clients ON DELETE CASCADE,
    request      TEXT COLLATE "C" NOT NULL,
    expires_at   BIGINT           NOT NULL,
    identity     TEXT COLLATE "C",
    consent_hash TEXT COLLATE "C"
);

CREATE INDEX oauth_sign_ins_by_client ON oauth_sign_ins (client_id);
CREATE INDEX oauth_sign_ins_by_end ON oauth_sign_ins (expires_at);
