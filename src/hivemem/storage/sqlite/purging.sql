-- Graphs that were deleted. What they leave behind is found by the list of tables, in purging.py.

-- name: unfinished
SELECT graph_id, deleted_at, purged_at
FROM deleted_graphs
WHERE purged_at IS NULL
ORDER BY deleted_at, graph_id

-- name: since
SELECT graph_id, deleted_at, purged_at
FROM deleted_graphs
WHERE purged_at IS NULL OR deleted_at >= :since
ORDER BY deleted_at, graph_id

-- name: is_deleted
SELECT 1 FROM deleted_graphs WHERE graph_id = :graph_id

-- name: purged
UPDATE deleted_graphs SET purged_at = :at WHERE graph_id = :graph_id
