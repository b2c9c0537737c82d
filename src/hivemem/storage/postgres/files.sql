-- name: add_file
INSERT INTO files (
    graph_id, file_id, filename, filename_folded, file_type, content_type, size_bytes, sha256, node_key,
    summary, created_at
)
VALUES (
    :graph_id, :file_id, :filename, :filename_folded, :file_type, :content_type, :size_bytes, :content_hash,
    :node_key, :summary, :created_at
)
ON CONFLICT (graph_id, file_id) DO NOTHING
RETURNING file_id

-- name: file
SELECT file_id, filename, file_type, content_type, size_bytes, sha256, node_key, summary, created_at
FROM files
WHERE graph_id = :graph_id
  AND file_id = :file_id
  AND EXISTS (SELECT 1 FROM nodes WHERE nodes.graph_id = :graph_id AND nodes.key = files.node_key)

-- name: files
SELECT file_id, filename, file_type, content_type, size_bytes, sha256, node_key, summary, created_at
FROM files
WHERE graph_id = :graph_id
  AND (:file_type::text IS NULL OR file_type = :file_type)
  AND (:search::text IS NULL OR position(:search IN filename_folded) > 0)
  AND EXISTS (SELECT 1 FROM nodes WHERE nodes.graph_id = :graph_id AND nodes.key = files.node_key)
ORDER BY created_at DESC, file_id DESC
LIMIT :limit

-- name: drop_forgotten_files
DELETE FROM files
WHERE graph_id = :graph_id
  AND created_at < :before
  AND NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.graph_id = :graph_id AND nodes.key = files.node_key)
RETURNING file_id

-- name: used_blobs
SELECT DISTINCT sha256
FROM files
WHERE graph_id = :graph_id AND sha256 = ANY (:hashes::text[])
