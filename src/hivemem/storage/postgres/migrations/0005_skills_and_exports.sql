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
