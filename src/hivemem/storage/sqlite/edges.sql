-- name: edges
SELECT edge_id, from_key, to_key, relationship, description, data,
       write_version, revision, created_at, updated_at
FROM edges
WHERE graph_id = :graph_id AND edge_id IN (SELECT value FROM json_each(:ids))

-- name: edges_by_identity
-- CROSS JOIN keeps this order: one index look-up for each wanted triple.
SELECT edge_id, from_key, to_key, relationship, description, data,
       write_version, revision, created_at, updated_at
FROM json_each(:identities) AS wanted
CROSS JOIN edges
WHERE graph_id = :graph_id
  AND from_key = json_extract(wanted.value, '$[0]')
  AND to_key = json_extract(wanted.value, '$[1]')
  AND relationship = json_extract(wanted.value, '$[2]')

-- name: edges_of_node
-- Two ranges in order of age, merged: a hub with many edges costs no more than the limit.
SELECT edge_id, from_key, to_key, relationship, description, data,
       write_version, revision, created_at, updated_at
FROM edges
WHERE graph_id = :graph_id AND from_key = :key
UNION ALL
SELECT edge_id, from_key, to_key, relationship, description, data,
       write_version, revision, created_at, updated_at
FROM edges
WHERE graph_id = :graph_id AND to_key = :key
ORDER BY created_at DESC, edge_id DESC
LIMIT :limit

-- name: edge_total_of_node
SELECT (SELECT count(*) FROM edges WHERE graph_id = :graph_id AND from_key = :key)
     + (SELECT count(*) FROM edges WHERE graph_id = :graph_id AND to_key = :key)

-- name: edge_ids_of_node
SELECT edge_id FROM edges WHERE graph_id = :graph_id AND from_key = :key
UNION ALL
SELECT edge_id FROM edges WHERE graph_id = :graph_id AND to_key = :key

-- name: count_edges
SELECT count(*)
FROM edges
WHERE graph_id = :graph_id

-- name: put_edge
INSERT INTO edges (
    graph_id, edge_id, from_key, to_key, relationship, description, data,
    write_version, revision, created_at, updated_at
)
VALUES (
    :graph_id, :edge_id, :from_key, :to_key, :relationship, :description, :data,
    :write_version, :revision, :created_at, :updated_at
)
ON CONFLICT (graph_id, edge_id) DO UPDATE SET
    from_key = excluded.from_key,
    to_key = excluded.to_key,
    relationship = excluded.relationship,
    description = excluded.description,
    data = excluded.data,
    write_version = excluded.write_version,
    revision = excluded.revision,
    created_at = excluded.created_at,
    updated_at = excluded.updated_at

-- name: delete_edge
DELETE FROM edges
WHERE graph_id = :graph_id AND edge_id = :edge_id
