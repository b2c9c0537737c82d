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
