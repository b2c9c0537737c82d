-- name: add_export
INSERT INTO exports (
    graph_id, export_id, user_id, request, secret, status, created_at, expires_at, document, size_bytes,
    sha256, node_count, error_code
)
VALUES (
    :graph_id, :export_id, :user_id, :request, :secret, :status, :created_at, :expires_at, :document, :size_bytes,
    :content_hash, :node_count, :error_code
)
ON CONFLICT (graph_id, request) DO NOTHING

-- name: export_of_request
SELECT export_id, user_id, request, secret, status, created_at, expires_at, document, size_bytes, sha256,
    node_count, error_code
FROM exports
WHERE graph_id = :graph_id AND request = :request

-- name: export
SELECT export_id, user_id, request, secret, status, created_at, expires_at, document, size_bytes, sha256,
    node_count, error_code
FROM exports
WHERE graph_id = :graph_id AND export_id = :export_id

-- name: advance
UPDATE exports
SET status = :status, expires_at = :expires_at, document = :document, size_bytes = :size_bytes,
    sha256 = :content_hash, node_count = :node_count, error_code = :error_code
WHERE graph_id = :graph_id AND export_id = :export_id AND status IN ('queued', 'running')

-- name: add_chunk
-- Nothing when the export is gone meanwhile.
INSERT INTO export_chunks (graph_id, export_id, document, ordinal, content)
SELECT :graph_id, :export_id, :document, :ordinal, :content
FROM exports
WHERE graph_id = :graph_id AND export_id = :export_id
ON CONFLICT (graph_id, export_id, document, ordinal) DO NOTHING

-- name: chunk
SELECT content
FROM export_chunks
WHERE graph_id = :graph_id AND export_id = :export_id AND document = :document AND ordinal = :ordinal

-- name: expire
UPDATE exports
SET status = 'expired', document = NULL
WHERE graph_id = :graph_id AND expires_at <= :at AND status <> 'expired'

-- name: forget
DELETE FROM exports
WHERE graph_id = :graph_id AND expires_at <= :before

-- name: drop_chunks
-- Those of no export that is published or under way, and those of another worker's document.
DELETE FROM export_chunks
WHERE graph_id = :graph_id
  AND NOT EXISTS (
    SELECT 1
    FROM exports
    WHERE exports.graph_id = :graph_id
      AND exports.export_id = export_chunks.export_id
      AND (exports.document = export_chunks.document OR exports.status IN ('queued', 'running'))
  )
