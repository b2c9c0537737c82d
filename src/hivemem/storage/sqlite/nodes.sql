-- name: nodes
SELECT key, node_type, description, data, search_text, assets, enrichment_status,
       write_version, revision, created_at, updated_at
FROM nodes
WHERE graph_id = :graph_id AND key IN (SELECT value FROM json_each(:keys))

-- name: scan
SELECT key, node_type, description, data, search_text, assets, enrichment_status,
       write_version, revision, created_at, updated_at
FROM nodes
WHERE graph_id = :graph_id AND key > :after
ORDER BY key
LIMIT :limit

-- name: write_versions
SELECT key, write_version
FROM nodes
WHERE graph_id = :graph_id AND key IN (SELECT value FROM json_each(:keys))

-- name: counts
SELECT node_type, count(*)
FROM nodes
WHERE graph_id = :graph_id
GROUP BY node_type

-- name: add_node
-- Does nothing when there is such a node.
INSERT INTO nodes (
    graph_id, key, node_type, description, data, search_text, assets, enrichment_status,
    vector_model, write_version, revision, created_at, updated_at
)
VALUES (
    :graph_id, :key, :node_type, :description, :data, :search_text, :assets, :enrichment_status,
    :vector_model, :write_version, :revision, :created_at, :updated_at
)
ON CONFLICT DO NOTHING

-- name: change_node
-- Does nothing when the node is not at :expected. Its vectors stay with it, unless :replaces_vectors.
UPDATE nodes
SET node_type = :node_type,
    description = :description,
    data = :data,
    search_text = :search_text,
    assets = :assets,
    enrichment_status = :enrichment_status,
    vector_model = CASE WHEN :replaces_vectors THEN :vector_model ELSE vector_model END,
    write_version = :write_version,
    revision = :revision,
    created_at = :created_at,
    updated_at = :updated_at
WHERE graph_id = :graph_id AND key = :key AND write_version = :expected

-- name: delete_node
-- Takes vectors and session touches along.
DELETE FROM nodes
WHERE graph_id = :graph_id AND key = :key

-- name: put_vector
INSERT INTO node_vectors (graph_id, node_key, ordinal, model_id, source, text_start, text_end, vector)
VALUES (:graph_id, :node_key, :ordinal, :model_id, :source, :text_start, :text_end, :vector)

-- name: drop_vectors
DELETE FROM node_vectors
WHERE graph_id = :graph_id AND node_key = :node_key

-- name: mark_vectors
UPDATE nodes
SET vector_model = :vector_model, enrichment_status = :enrichment_status, revision = :revision
WHERE graph_id = :graph_id AND key = :key

-- name: without_vectors
-- Three ranges of one index, usually small: nodes without vectors, and nodes of other models. Without
-- INDEXED BY the planner walks all keys in order instead, to spare the sort (23 ms at 64,000 nodes).
SELECT key, node_type, description, data, search_text, assets, enrichment_status,
       write_version, revision, created_at, updated_at
FROM nodes
WHERE graph_id = :graph_id AND key IN (
    SELECT key FROM nodes INDEXED BY nodes_by_vector_model
    WHERE graph_id = :graph_id AND vector_model IS NULL AND enrichment_status <> 'placeholder'
    UNION ALL
    SELECT key FROM nodes INDEXED BY nodes_by_vector_model
    WHERE graph_id = :graph_id AND vector_model < :model_id AND enrichment_status <> 'placeholder'
    UNION ALL
    SELECT key FROM nodes INDEXED BY nodes_by_vector_model
    WHERE graph_id = :graph_id AND vector_model > :model_id AND enrichment_status <> 'placeholder'
    ORDER BY key
    LIMIT :limit
)
ORDER BY key

-- name: vector_models
SELECT vector_model, count(*)
FROM nodes
WHERE graph_id = :graph_id AND vector_model IS NOT NULL
GROUP BY vector_model
