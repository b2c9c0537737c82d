-- Users and graphs are above graphs: a caller is looked up before a graph is known.

-- name: add_user
-- No row when the id or the name is taken, also by a transaction that commits meanwhile.
INSERT INTO users (user_id, name, created_at, operator, password_hash, write_organization_id)
VALUES (:user_id, :name, :created_at, :operator, :password_hash, :write_organization_id)
ON CONFLICT DO NOTHING
RETURNING user_id

-- name: add_graph
-- No row when the id is taken, also by a graph that is deleted: its content may still be there.
INSERT INTO graphs (graph_id, name, owner_id, organization_id, created_at, is_default, frozen_at)
SELECT :graph_id, :name, :owner_id, :organization_id, :created_at, :is_default, :frozen_at
WHERE NOT EXISTS (SELECT 1 FROM deleted_graphs WHERE graph_id = :graph_id)
ON CONFLICT (graph_id) DO NOTHING
RETURNING graph_id

-- name: user
SELECT user_id, name, created_at, operator, password_hash, write_organization_id
FROM users
WHERE user_id = :user_id

-- name: user_by_name
SELECT user_id, name, created_at, operator, password_hash, write_organization_id
FROM users
WHERE name = :name

-- name: users
SELECT user_id, name, created_at, operator, password_hash, write_organization_id
FROM users
ORDER BY created_at, user_id

-- name: other_operator
SELECT user_id FROM users WHERE operator = 1 AND user_id <> :user_id LIMIT 1

-- name: put_user
-- Fails at the unique index when somebody else has the name.
UPDATE users
SET
    name = :name,
    operator = :operator,
    password_hash = :password_hash,
    write_organization_id = :write_organization_id
WHERE user_id = :user_id
RETURNING user_id

-- name: left_without_owner
-- An organization of which nobody but this user is an owner.
SELECT m.organization_id
FROM memberships AS m
WHERE m.user_id = :user_id
  AND m.role = 'owner'
  AND NOT EXISTS (
      SELECT 1
      FROM memberships AS other
      WHERE other.organization_id = m.organization_id AND other.role = 'owner' AND other.user_id <> m.user_id
  )
ORDER BY m.organization_id
LIMIT 1

-- name: drop_memberships
DELETE FROM memberships WHERE user_id = :user_id

-- name: drop_invitations
DELETE FROM invitations WHERE invited_by = :user_id

-- name: drop_identities
DELETE FROM external_identities WHERE user_id = :user_id

-- name: drop_user
DELETE FROM users WHERE user_id = :user_id

-- name: graph
SELECT graph_id, name, owner_id, organization_id, created_at, is_default, frozen_at
FROM graphs
WHERE graph_id = :graph_id

-- name: graphs
SELECT graph_id, name, owner_id, organization_id, created_at, is_default, frozen_at
FROM graphs
WHERE owner_id = :owner_id
ORDER BY created_at, graph_id

-- name: graph_ids
SELECT graph_id FROM graphs ORDER BY graph_id

-- name: shared_graph_ids
-- Where somebody can have left something who does not own the graph.
SELECT graph_id FROM graphs WHERE organization_id IS NOT NULL ORDER BY organization_id

-- name: clear_default
UPDATE graphs
SET is_default = 0
WHERE owner_id = :owner_id AND is_default = 1 AND graph_id <> :graph_id

-- name: put_graph
UPDATE graphs
SET name = :name, is_default = :is_default, frozen_at = :frozen_at
WHERE graph_id = :graph_id
RETURNING graph_id

-- name: drop_graph
DELETE FROM graphs WHERE graph_id = :graph_id

-- name: add_identity
INSERT INTO external_identities (issuer, subject, user_id, created_at)
VALUES (:issuer, :subject, :user_id, :created_at)
ON CONFLICT (issuer, subject) DO NOTHING
RETURNING user_id

-- name: identity
SELECT issuer, subject, user_id, created_at
FROM external_identities
WHERE issuer = :issuer AND subject = :subject

-- name: user_by_identity
SELECT u.user_id, u.name, u.created_at, u.operator, u.password_hash, u.write_organization_id
FROM external_identities AS i
JOIN users AS u ON u.user_id = i.user_id
WHERE i.issuer = :issuer AND i.subject = :subject

-- name: identities
SELECT issuer, subject, user_id, created_at
FROM external_identities
WHERE user_id = :user_id
ORDER BY created_at, issuer, subject

-- name: remove_identity
DELETE FROM external_identities
WHERE issuer = :issuer AND subject = :subject
RETURNING user_id
