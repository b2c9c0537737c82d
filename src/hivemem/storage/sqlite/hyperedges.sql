-- name: hyperedges
SELECT hyperedge_id, relationship, description, data, write_version, revision, created_at, updated_at
FROM hyperedges
WHERE graph_id = :graph_id AND hyperedge_id IN (SELECT value FROM json_each(:ids))

-- name: participants
SELECT hyperedge_id, node_key, role, ordinal
FROM hyperedge_participants
WHERE graph_id = :graph_id AND hyperedge_id IN (SELECT value FROM json_each(:ids))
ORDER BY ordinal

-- name: ids_by_identity
-- CROSS JOIN keeps this order: one index look-up for each wanted digest. Oldest first.
SELECT hyperedge_id
FROM json_each(:identities) AS wanted
CROSS JOIN hyperedges
WHERE graph_id = :graph_id AND identity = wanted.value
ORDER BY created_at, hyperedge_id

-- name: ids_of_node
SELECT hyperedges.hyperedge_id
FROM hyperedge_participants
JOIN hyperedges USING (graph_id, hyperedge_id)
WHERE graph_id = :graph_id AND node_key = :key
ORDER BY created_at DESC, hyperedges.hyperedge_id DESC
LIMIT :limit

-- name: total_of_node
SELECT count(*)
FROM hyperedge_participants
WHERE graph_id = :graph_id AND node_key = :key

-- name: count_hyperedges
SELECT count(*)
FROM hyperedges
WHERE graph_id = :graph_id AND substr(relationship, 1, length(:session_prefix)) <> :session_prefix

-- name: put_hyperedge
INSERT INTO hyperedges (
    graph_id, hyperedge_id, identity, relationship, description, data,
    write_version, revision, created_at, updated_at
)
VALUES (
    :graph_id, :hyperedge_id, :identity, :relationship, :description, :data,
    :write_version, :revision, :created_at, :updated_at
)
ON CONFLICT (graph_id, hyperedge_id) DO UPDATE SET
    identity = excluded.identity,
    relationship = excluded.relationship,
    description = excluded.description,
    data = excluded.data,
    write_version = excluded.write_version,
    revision = excluded.revision,
    created_at = excluded.created_at,
    updated_at = excluded.updated_at

-- name: drop_participants
DELETE FROM hyperedge_participants
WHERE graph_id = :graph_id AND hyperedge_id = :hyperedge_id

-- name: put_participant
INSERT INTO hyperedge_participants (graph_id, hyperedge_id, node_key, ordinal, role)
VALUES (:graph_id, :hyperedge_id, :node_key, :ordinal, :role)

-- name: delete_hyperedge
-- Takes its participants along.
DELETE FROM hyperedges
WHERE graph_id = :graph_id AND hyperedge_id = :hyperedge_id
