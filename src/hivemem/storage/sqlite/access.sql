-- Users, graphs and keys are no tables of a graph: a credential is looked up before its graph is known.

-- name: taken_names
SELECT user_id FROM users WHERE user_id = :user_id
UNION ALL
SELECT graph_id FROM graphs WHERE graph_id = :graph_id
UNION ALL
SELECT name FROM users WHERE name = :name

-- name: add_user
INSERT INTO users (user_id, name, created_at)
VALUES (:user_id, :name, :created_at)

-- name: add_graph
INSERT INTO graphs (graph_id, name, kind, owner_id, created_at)
VALUES (:graph_id, :name, :kind, :owner_id, :created_at)

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

-- name: same_key
SELECT key_id FROM api_keys WHERE key_id = :key_id OR hash = :hash

-- name: add_key
INSERT INTO api_keys (key_id, hash, name, user_id, graph_id, scope, created_at, revoked_at)
VALUES (:key_id, :hash, :name, :user_id, :graph_id, :scope, :created_at, :revoked_at)

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
