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
