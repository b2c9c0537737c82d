-- name: revision
SELECT revision
FROM graph_counters
WHERE graph_id = :graph_id

-- name: advance
INSERT INTO graph_counters (graph_id, revision, last_event_id)
VALUES (:graph_id, 1, 0)
ON CONFLICT (graph_id) DO UPDATE SET revision = revision + 1
RETURNING revision

-- name: keep_version
-- A batch may change a thing twice; its history has one state for each revision, the last.
INSERT INTO versions (graph_id, kind, id, revision, recorded_at, state)
VALUES (:graph_id, :kind, :id, :revision, :recorded_at, :state)
ON CONFLICT (graph_id, kind, id, revision)
    DO UPDATE SET recorded_at = excluded.recorded_at, state = excluded.state

-- name: versions
SELECT revision, recorded_at, state
FROM versions
WHERE graph_id = :graph_id AND kind = :kind AND id = :id
ORDER BY revision DESC

-- name: versions_before
SELECT versions.id, versions.revision, versions.recorded_at, versions.state
FROM json_each(:ids) AS wanted
CROSS JOIN versions
    ON versions.graph_id = :graph_id AND versions.kind = :kind AND versions.id = wanted.value
    AND versions.revision = (
        SELECT max(earlier.revision)
        FROM versions AS earlier
        WHERE earlier.graph_id = :graph_id AND earlier.kind = :kind AND earlier.id = wanted.value
            AND earlier.revision < :revision
    )

-- name: put_tombstone
INSERT INTO tombstones (graph_id, kind, id, revision)
VALUES (:graph_id, :kind, :id, :revision)
ON CONFLICT (graph_id, kind, id) DO UPDATE SET revision = excluded.revision

-- name: drop_tombstone
DELETE FROM tombstones
WHERE graph_id = :graph_id AND kind = :kind AND id = :id
