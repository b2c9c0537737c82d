-- name: nodes
SELECT key, node_type, description, data, search_text, assets, enrichment_status,
       write_version, revision, created_at, updated_at
FROM nodes
WHERE graph_id = :graph_id AND key = ANY (:keys::text[])

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
WHERE graph_id = :graph_id AND key = ANY (:keys::text[])

-- name: counts
-- Without a profile that is still blank.
SELECT node_type, count(*)
FROM nodes
WHERE graph_id = :graph_id AND NOT (key = :profile AND enrichment_status = 'placeholder')
GROUP BY node_type

-- name: put_nodes
-- Each key once. The vectors that a node has stay with it, unless :replaces_vectors.
INSERT INTO nodes (
    graph_id, key, node_type, description, data, search_text, assets, enrichment_status,
    vector_model, write_version, revision, created_at, updated_at
)
SELECT :graph_id, key, node_type, description, data, search_text, assets, enrichment_status,
       vector_model, write_version, revision, created_at, updated_at
FROM unnest(
    :key::text[], :node_type::text[], :description::text[], :data::text[], :search_text::text[],
    :assets::text[], :enrichment_status::text[], :vector_model::text[], :write_version::bigint[],
    :revision::bigint[], :created_at::bigint[], :updated_at::bigint[]
) AS written (
    key, node_type, description, data, search_text, assets, enrichment_status, vector_model,
    write_version, revision, created_at, updated_at
)
ON CONFLICT (graph_id, key) DO UPDATE SET
    node_type = excluded.node_type,
    description = excluded.description,
    data = excluded.data,
    search_text = excluded.search_text,
    assets = excluded.assets,
    enrichment_status = excluded.enrichment_status,
    vector_model = CASE WHEN :replaces_vectors THEN excluded.vector_model ELSE nodes.vector_model END,
    write_version = excluded.write_version,
    revision = excluded.revision,
    created_at = excluded.created_at,
    updated_at = excluded.updated_at

-- name: delete_node
-- Takes vectors and session touches along.
DELETE FROM nodes
WHERE graph_id = :graph_id AND key = :key

-- name: put_vectors
INSERT INTO node_vectors (graph_id, node_key, ordinal, model_id, source, text_start, text_end, vector)
SELECT :graph_id, node_key, ordinal, model_id, source, text_start, text_end, vector
FROM unnest(
    :node_key::text[], :ordinal::bigint[], :model_id::text[], :source::text[], :text_start::bigint[],
    :text_end::bigint[], :vector::bytea[]
) AS written (node_key, ordinal, model_id, source, text_start, text_end, vector)

-- name: drop_vectors
DELETE FROM node_vectors
WHERE graph_id = :graph_id AND node_key = ANY (:keys::text[])

-- name: mark_vectors
-- Runs after `advance`, in its transaction.
UPDATE nodes
SET vector_model = :vector_model,
    enrichment_status = :enrichment_status,
    revision = (SELECT revision FROM graph_counters WHERE graph_id = :graph_id)
WHERE graph_id = :graph_id AND key = :key

-- name: without_vectors
-- Three ranges of one index, usually small: nodes without vectors, and nodes of other models.
SELECT key, node_type, description, data, search_text, assets, enrichment_status,
       write_version, revision, created_at, updated_at
FROM nodes
WHERE graph_id = :graph_id AND key = ANY (ARRAY(
    SELECT key FROM nodes
    WHERE graph_id = :graph_id AND vector_model IS NULL AND enrichment_status <> 'placeholder'
    UNION ALL
    SELECT key FROM nodes
    WHERE graph_id = :graph_id AND vector_model < :model_id AND enrichment_status <> 'placeholder'
    UNION ALL
    SELECT key FROM nodes
    WHERE graph_id = :graph_id AND vector_model > :model_id AND enrichment_status <> 'placeholder'
    ORDER BY key
    LIMIT :limit
))
ORDER BY key

-- name: vector_models
SELECT vector_model, count(*)
FROM nodes
WHERE graph_id = :graph_id AND vector_model IS NOT NULL
GROUP BY vector_model
