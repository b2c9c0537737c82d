-- Participants come as three arrays beside their hyperedge, in their order.

-- name: hyperedges
SELECT hyperedge_id, relationship, description, data, write_version, revision, created_at, updated_at,
       keys, roles, ordinals
FROM hyperedges
CROSS JOIN LATERAL (
    SELECT array_agg(node_key ORDER BY ordinal) AS keys,
           array_agg(role ORDER BY ordinal) AS roles,
           array_agg(ordinal ORDER BY ordinal) AS ordinals
    FROM hyperedge_participants
    WHERE graph_id = :graph_id AND hyperedge_participants.hyperedge_id = hyperedges.hyperedge_id
) AS participants
WHERE graph_id = :graph_id AND hyperedge_id = ANY (:ids::text[])

-- name: hyperedges_by_identity
-- Oldest first.
SELECT hyperedge_id, relationship, description, data, write_version, revision, created_at, updated_at,
       keys, roles, ordinals
FROM hyperedges
CROSS JOIN LATERAL (
    SELECT array_agg(node_key ORDER BY ordinal) AS keys,
           array_agg(role ORDER BY ordinal) AS roles,
           array_agg(ordinal ORDER BY ordinal) AS ordinals
    FROM hyperedge_participants
    WHERE graph_id = :graph_id AND hyperedge_participants.hyperedge_id = hyperedges.hyperedge_id
) AS participants
WHERE graph_id = :graph_id AND identity = ANY (:identities::text[])
ORDER BY created_at, hyperedge_id

-- name: hyperedges_of_nodes
-- For each key the newest.
SELECT wanted.key, hyperedge_id, relationship, description, data,
       write_version, revision, created_at, updated_at, keys, roles, ordinals
FROM unnest(:keys::text[]) AS wanted (key)
CROSS JOIN LATERAL (
    SELECT hyperedges.*
    FROM hyperedge_participants
    JOIN hyperedges USING (graph_id, hyperedge_id)
    WHERE graph_id = :graph_id AND node_key = wanted.key
    ORDER BY created_at DESC, hyperedge_id DESC
    LIMIT :limit
) AS newest
CROSS JOIN LATERAL (
    SELECT array_agg(node_key ORDER BY ordinal) AS keys,
           array_agg(role ORDER BY ordinal) AS roles,
           array_agg(ordinal ORDER BY ordinal) AS ordinals
    FROM hyperedge_participants
    WHERE graph_id = :graph_id AND hyperedge_participants.hyperedge_id = newest.hyperedge_id
) AS participants
ORDER BY created_at DESC, hyperedge_id DESC

-- name: hyperedge_totals_of_nodes
SELECT key,
       (SELECT count(*) FROM hyperedge_participants WHERE graph_id = :graph_id AND node_key = wanted.key)
FROM unnest(:keys::text[]) AS wanted (key)

-- name: count_hyperedges
SELECT count(*)
FROM hyperedges
WHERE graph_id = :graph_id AND left(relationship, length(:session_prefix)) <> :session_prefix

-- name: put_hyperedges
-- Each id once.
INSERT INTO hyperedges (
    graph_id, hyperedge_id, identity, relationship, description, data,
    write_version, revision, created_at, updated_at
)
SELECT :graph_id, hyperedge_id, identity, relationship, description, data,
       write_version, revision, created_at, updated_at
FROM unnest(
    :hyperedge_id::text[], :identity::text[], :relationship::text[], :description::text[], :data::text[],
    :write_version::bigint[], :revision::bigint[], :created_at::bigint[], :updated_at::bigint[]
) AS written (
    hyperedge_id, identity, relationship, description, data, write_version, revision, created_at, updated_at
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
WHERE graph_id = :graph_id AND hyperedge_id = ANY (:ids::text[])

-- name: put_participants
INSERT INTO hyperedge_participants (graph_id, hyperedge_id, node_key, ordinal, role)
SELECT :graph_id, hyperedge_id, node_key, ordinal, role
FROM unnest(:hyperedge_id::text[], :node_key::text[], :ordinal::bigint[], :role::text[])
    AS written (hyperedge_id, node_key, ordinal, role)

-- name: delete_hyperedges
-- Takes their participants along.
DELETE FROM hyperedges
WHERE graph_id = :graph_id AND hyperedge_id = ANY (:ids::text[])
