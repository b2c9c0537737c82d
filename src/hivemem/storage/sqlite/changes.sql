-- name: revisions_of_changes
-- Four index ranges, merged in order; stops after :limit rows.
SELECT revision FROM nodes WHERE graph_id = :graph_id AND revision > :since
UNION ALL
SELECT revision FROM edges WHERE graph_id = :graph_id AND revision > :since
UNION ALL
SELECT revision FROM hyperedges WHERE graph_id = :graph_id AND revision > :since
UNION ALL
SELECT revision FROM tombstones WHERE graph_id = :graph_id AND revision > :since
ORDER BY revision
LIMIT :limit

-- name: changed_nodes
SELECT key, node_type, description, data, search_text, assets, enrichment_status,
       write_version, revision, created_at, updated_at
FROM nodes
WHERE graph_id = :graph_id AND revision > :since AND revision <= :until
ORDER BY revision, key

-- name: changed_vectors
SELECT nodes.key, source, text_start, text_end, vector
FROM nodes
CROSS JOIN node_vectors
    ON node_vectors.graph_id = nodes.graph_id AND node_vectors.node_key = nodes.key
WHERE nodes.graph_id = :graph_id AND nodes.revision > :since AND nodes.revision <= :until
  AND model_id = :model_id
ORDER BY nodes.revision, nodes.key, ordinal

-- name: changed_edges
SELECT edge_id, from_key, to_key, relationship, description, data,
       write_version, revision, created_at, updated_at
FROM edges
WHERE graph_id = :graph_id AND revision > :since AND revision <= :until
ORDER BY revision, edge_id

-- name: changed_hyperedges
SELECT hyperedge_id, relationship, description, data, write_version, revision, created_at, updated_at
FROM hyperedges
WHERE graph_id = :graph_id AND revision > :since AND revision <= :until
ORDER BY revision, hyperedge_id

-- name: removals
SELECT kind, id, revision
FROM tombstones
WHERE graph_id = :graph_id AND revision > :since AND revision <= :until
ORDER BY revision, kind, id
