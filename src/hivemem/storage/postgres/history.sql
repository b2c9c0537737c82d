-- name: revision
SELECT revision
FROM graph_counters
WHERE graph_id = :graph_id

-- name: advance
-- The first statement of every write to a graph: it locks the counters' row until the commit, so that
-- the writes of one graph happen one after the other, in the order of their revisions.
INSERT INTO graph_counters (graph_id, revision, last_event_id)
VALUES (:graph_id, :revisions, :events)
ON CONFLICT (graph_id) DO UPDATE SET
    revision = graph_counters.revision + excluded.revision,
    last_event_id = graph_counters.last_event_id + excluded.last_event_id
RETURNING revision, last_event_id

-- name: wait_for_writes
-- Returns once no other write of the graph is under way, and holds off those that follow.
SELECT revision
FROM graph_counters
WHERE graph_id = :graph_id
FOR UPDATE

-- name: keep_versions
-- A batch may change a thing twice; its history has one state for each revision, the last.
INSERT INTO versions (graph_id, kind, id, revision, recorded_at, state)
SELECT :graph_id, :kind, id, revision, recorded_at, state
FROM unnest(:ids::text[], :revisions::bigint[], :recorded_at::bigint[], :states::text[])
    AS written (id, revision, recorded_at, state)
ON CONFLICT (graph_id, kind, id, revision)
    DO UPDATE SET recorded_at = excluded.recorded_at, state = excluded.state

-- name: versions
SELECT revision, recorded_at, state
FROM versions
WHERE graph_id = :graph_id AND kind = :kind AND id = :id
ORDER BY revision DESC

-- name: versions_before
SELECT before.id, before.revision, before.recorded_at, before.state
FROM unnest(:ids::text[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT id, revision, recorded_at, state
    FROM versions
    WHERE graph_id = :graph_id AND kind = :kind AND versions.id = wanted.id AND revision < :revision
    ORDER BY revision DESC
    LIMIT 1
) AS before

-- name: version_at
SELECT recorded_at, state
FROM versions
WHERE graph_id = :graph_id AND kind = :kind AND id = :id AND revision = :revision

-- name: put_tombstones
INSERT INTO tombstones (graph_id, kind, id, revision)
SELECT :graph_id, :kind, id, revision
FROM unnest(:ids::text[], :revisions::bigint[]) AS removed (id, revision)
ON CONFLICT (graph_id, kind, id) DO UPDATE SET revision = excluded.revision

-- name: drop_tombstones
DELETE FROM tombstones
WHERE graph_id = :graph_id AND kind = :kind AND id = ANY (:ids::text[])
