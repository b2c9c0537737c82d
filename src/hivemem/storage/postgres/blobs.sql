-- name: put_blob
-- The row is locked until the end, so that two who put the same bytes do so one after the other.
INSERT INTO blobs (graph_id, sha256, size_bytes, stored_at)
VALUES (:graph_id, :content_hash, :size_bytes, :stored_at)
ON CONFLICT (graph_id, sha256) DO UPDATE SET size_bytes = excluded.size_bytes, stored_at = excluded.stored_at

-- name: drop_chunks
DELETE FROM blob_chunks
WHERE graph_id = :graph_id AND sha256 = :content_hash

-- name: put_chunk
INSERT INTO blob_chunks (graph_id, sha256, ordinal, content)
VALUES (:graph_id, :content_hash, :ordinal, :content)

-- name: blob
SELECT size_bytes, stored_at
FROM blobs
WHERE graph_id = :graph_id AND sha256 = :content_hash

-- name: chunk
SELECT content
FROM blob_chunks
WHERE graph_id = :graph_id AND sha256 = :content_hash AND ordinal = :ordinal

-- name: delete_blob
DELETE FROM blobs
WHERE graph_id = :graph_id AND sha256 = :content_hash
RETURNING sha256

-- name: blobs
SELECT sha256, size_bytes, stored_at
FROM blobs
WHERE graph_id = :graph_id AND sha256 > :after
ORDER BY sha256
LIMIT :limit
