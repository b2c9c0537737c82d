-- name: edges
SELECT edge_id, from_key, to_key, relationship, description, data,
       write_version, revision, created_at, updated_at
FROM edges
WHERE graph_id = :graph_id AND edge_id = ANY (:ids::text[])

-- name: edges_by_identity
-- Each wanted triple once; one index look-up for each.
SELECT edge_id, edges.from_key, edges.to_key, edges.relationship, description, data,
       write_version, revision, created_at, updated_at
FROM unnest(:from_keys::text[], :to_keys::text[], :labels::text[]) AS wanted (from_key, to_key, label)
JOIN edges
    ON graph_id = :graph_id
    AND edges.from_key = wanted.from_key
    AND edges.to_key = wanted.to_key
    AND edges.relationship = wanted.label

-- name: edges_of_nodes
-- For each key two ranges in order of age, merged: a hub with many edges costs no more than the limit.
SELECT wanted.key, found.*
FROM unnest(:keys::text[]) AS wanted (key)
CROSS JOIN LATERAL (
    (
        SELECT edge_id, from_key, to_key, relationship, description, data,
               write_version, revision, created_at, updated_at
        FROM edges
        WHERE graph_id = :graph_id AND from_key = wanted.key
        ORDER BY created_at DESC, edge_id DESC
        LIMIT :limit
    )
    UNION ALL
    (
        SELECT edge_id, from_key, to_key, relationship, description, data,
               write_version, revision, created_at, updated_at
        FROM edges
        WHERE graph_id = :graph_id AND to_key = wanted.key
        ORDER BY created_at DESC, edge_id DESC
        LIMIT :limit
    )
    ORDER BY created_at DESC, edge_id DESC
    LIMIT :limit
) AS found
ORDER BY created_at DESC, edge_id DESC

-- name: edge_totals_of_nodes
SELECT key,
       (SELECT count(*) FROM edges WHERE graph_id = :graph_id AND from_key = wanted.key)
     + (SELECT count(*) FROM edges WHERE graph_id = :graph_id AND to_key = wanted.key)
FROM unnest(:keys::text[]) AS wanted (key)

-- name: edge_ids_of_node
SELECT edge_id FROM edges WHERE graph_id = :graph_id AND from_key = :key
UNION ALL
SELECT edge_id FROM edges WHERE graph_id = :graph_id AND to_key = :key

-- name: count_edges
SELECT count(*)
FROM edges
WHERE graph_id = :graph_id

-- name: put_edges
-- Each id once, in order: a later edge may take the identity that an earlier one gives up.
INSERT INTO edges (
    graph_id, edge_id, from_key, to_key, relationship, description, data,
    write_version, revision, created_at, updated_at
)
SELECT :graph_id, edge_id, from_key, to_key, relationship, description, data,
       write_version, revision, created_at, updated_at
FROM unnest(
    :edge_id::text[], :from_key::text[], :to_key::text[], :relationship::text[], :description::text[],
    :data::text[], :write_version::bigint[], :revision::bigint[], :created_at::bigint[], :updated_at::bigint[]
) AS written (
    edge_id, from_key, to_key, relationship, description, data, write_version, revision, created_at,
    updated_at
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

-- name: delete_edges
DELETE FROM edges
WHERE graph_id = :graph_id AND edge_id = ANY (:ids::text[])
