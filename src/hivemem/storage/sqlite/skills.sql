-- name: put_skill
-- A name keeps its id.
INSERT INTO skills (graph_id, name, skill_id, version, content, files, published_at)
VALUES (:graph_id, :name, :skill_id, :version, :content, :files, :published_at)
ON CONFLICT (graph_id, name) DO UPDATE
SET version = excluded.version, content = excluded.content, files = excluded.files,
    published_at = excluded.published_at

-- name: skills
SELECT skill_id, name, version, content, files, published_at
FROM skills
WHERE graph_id = :graph_id
ORDER BY name

-- name: skill
SELECT skill_id, name, version, content, files, published_at
FROM skills
WHERE graph_id = :graph_id AND name = :name

-- name: remove_skill
DELETE FROM skills
WHERE graph_id = :graph_id AND name = :name
