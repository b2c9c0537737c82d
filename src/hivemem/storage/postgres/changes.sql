-- One page of changes is read in one round trip: the first statement finds where the page ends and notes
-- it in a variable of the transaction, which the others read.

-- name: find_page
-- Four index ranges, merged in order; stops after :limit rows and one. All rows fit when there are no
-- more than :limit; else the page ends before the revision of the row too many, which is not whole on
-- it, unless it is the only one.
WITH revisions AS (
    SELECT revision FROM nodes WHERE graph_id = :graph_id AND revision > :since
    UNION ALL
    SELECT revision FROM edges WHERE graph_id = :graph_id AND revision > :since
    UNION ALL
    SELECT revision FROM hyperedges WHERE graph_id = :graph_id AND revision > :since
    UNION ALL
    SELECT revision FROM tombstones WHERE graph_id = :graph_id AND revision > :since
    ORDER BY revision
    LIMIT :limit + 1
),
present AS (
    SELECT coalesce((SELECT revision FROM graph_counters WHERE graph_id = :graph_id), 0) AS revision
),
page AS (
    SELECT CASE
        WHEN (SELECT count(*) FROM revisions) <= :limit THEN (SELECT revision FROM present)
        ELSE (
            SELECT coalesce(max(revision) FILTER (WHERE revision < beyond), max(beyond))
            FROM revisions
            CROSS JOIN (SELECT max(revision) AS beyond FROM revisions) AS last
        )
    END AS until
)
SELECT until, revision, set_config('hivemem.until', until::text, true)
FROM page
CROSS JOIN present

-- name: changed_nodes
SELECT key, node_type, description, data, search_text, assets, enrichment_status,
       write_version, revision, created_at, updated_at
FROM nodes
WHERE graph_id = :graph_id AND revision > :since AND revision <= current_setting('hivemem.until')::bigint
ORDER BY revision, key

-- name: changed_vectors
SELECT nodes.key, source, text_start, text_end, vector
FROM nodes
JOIN node_vectors
    ON node_vectors.graph_id = :graph_id AND node_vectors.node_key = nodes.key
WHERE nodes.graph_id = :graph_id
  AND nodes.revision > :since
  AND nodes.revision <= current_setting('hivemem.until')::bigint
  AND model_id = :model_id
ORDER BY nodes.revision, nodes.key, ordinal

-- name: changed_edges
SELECT edge_id, from_key, to_key, relationship, description, data,
       write_version, revision, created_at, updated_at
FROM edges
WHERE graph_id = :graph_id AND revision > :since AND revision <= current_setting('hivemem.until')::bigint
ORDER BY revision, edge_id

-- name: changed_hyperedges
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
WHERE graph_id = :graph_id AND revision > :since AND revision <= current_setting('hivemem.until')::bigint
ORDER BY revision, hyperedge_id

-- name: removals
SELECT kind, id, revision
FROM tombstones
WHERE graph_id = :graph_id AND revision > :since AND revision <= current_setting('hivemem.until')::bigint
ORDER BY revision, kind, id
