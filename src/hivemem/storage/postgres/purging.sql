-- Graphs that were deleted. What they leave behind is found by the list of tables, in purging.py.

-- name: hold_graph
SELECT hold_graph(:graph_id)

-- name: wait_for_writers
-- Returns once no write to the graph is under way, and holds off those that follow; see hold_graph in schema.sql.
SELECT pg_advisory_xact_lock(
    hashtextextended('hivemem graph ' || current_schema() || ' ' || :graph_id::text, 0)
)

-- name: delete_graph
INSERT INTO deleted_graphs (graph_id, deleted_at)
VALUES (:graph_id, :at)
ON CONFLICT (graph_id) DO NOTHING

-- name: is_deleted
SELECT graph_id FROM deleted_graphs WHERE graph_id = :graph_id

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

-- name: purged
UPDATE deleted_graphs SET purged_at = :at WHERE graph_id = :graph_id

-- name: forget_token_reports
DELETE FROM token_reports WHERE graph_id = ANY (:graph_ids::text[]) AND user_id = :user_id

-- name: forget_exports
DELETE FROM exports WHERE graph_id = ANY (:graph_ids::text[]) AND user_id = :user_id
