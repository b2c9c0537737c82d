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
