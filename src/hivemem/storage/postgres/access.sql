-- Users, graphs and keys are no tables of a graph: a credential is looked up before its graph is known.

-- name: add_user
-- No row when the id or the name is taken, also by a transaction that commits meanwhile.
INSERT INTO users (user_id, name, created_at)
VALUES (:user_id, :name, :created_at)
ON CONFLICT DO NOTHING
RETURNING user_id

-- name: add_graph
INSERT INTO graphs (graph_id, name, kind, owner_id, created_at)
SELECT :graph_id, :graph_name, :kind, user_id, :graph_created_at
FROM users
WHERE user_id = :user_id AND name = :name
ON CONFLICT DO NOTHING
RETURNING graph_id

-- name: users
SELECT user_id, name, created_at
FROM users
ORDER BY created_at, user_id

-- name: graphs
SELECT graph_id, name, kind, owner_id, created_at
FROM graphs
WHERE owner_id = :owner_id
ORDER BY created_at, graph_id

-- name: user
SELECT user_id FROM users WHERE user_id = :user_id

-- name: graph
SELECT graph_id FROM graphs WHERE graph_id = :graph_id

-- name: add_key
INSERT INTO api_keys (key_id, hash, name, user_id, graph_id, scope, created_at, revoked_at)
SELECT :key_id, :hash, :name, user_id, graph_id, :scope, :created_at, :revoked_at
FROM users
CROSS JOIN graphs
WHERE user_id = :user_id AND graph_id = :graph_id
ON CONFLICT DO NOTHING
RETURNING key_id

-- name: key_by_hash
SELECT key_id, hash, name, user_id, graph_id, scope, created_at, revoked_at
FROM api_keys
WHERE hash = :hash

-- name: keys
SELECT key_id, hash, name, user_id, graph_id, scope, created_at, revoked_at
FROM api_keys
ORDER BY created_at, key_id

-- name: revoke_key
UPDATE api_keys
SET revoked_at = :at
WHERE key_id = :key_id AND revoked_at IS NULL
RETURNING key_id

-- name: revoked_at
SELECT revoked_at FROM api_keys WHERE key_id = :key_id
