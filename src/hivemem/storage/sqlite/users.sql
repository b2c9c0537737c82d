-- Users and graphs are above graphs: a caller is looked up before a graph is known.

-- name: taken_user
SELECT user_id FROM users WHERE user_id = :user_id
UNION ALL
SELECT name FROM users WHERE name = :name

-- name: taken_graph
-- Also of a graph that is deleted, whose content may still be there.
SELECT graph_id FROM graphs WHERE graph_id = :graph_id
UNION ALL
SELECT graph_id FROM deleted_graphs WHERE graph_id = :graph_id

-- name: add_user
INSERT INTO users (user_id, name, created_at, operator, password_hash, write_organization_id)
VALUES (:user_id, :name, :created_at, :operator, :password_hash, :write_organization_id)

-- name: add_graph
INSERT INTO graphs (graph_id, name, owner_id, organization_id, created_at, is_default, frozen_at)
VALUES (:graph_id, :name, :owner_id, :organization_id, :created_at, :is_default, :frozen_at)

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

-- name: user_of_name
SELECT user_id FROM users WHERE name = :name

-- name: other_operator
SELECT user_id FROM users WHERE operator = 1 AND user_id <> :user_id LIMIT 1

-- name: organization
SELECT organization_id FROM organizations WHERE organization_id = :organization_id

-- name: put_user
UPDATE users
SET
    name = :name,
    operator = :operator,
    password_hash = :password_hash,
    write_organization_id = :write_organization_id
WHERE user_id = :user_id

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

-- name: drop_token_reports
DELETE FROM token_reports WHERE graph_id = :graph_id AND user_id = :user_id

-- name: drop_exports
DELETE FROM exports WHERE graph_id = :graph_id AND user_id = :user_id

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

-- name: clear_default
UPDATE graphs SET is_default = 0 WHERE owner_id = :owner_id AND is_default = 1

-- name: put_graph
UPDATE graphs
SET name = :name, is_default = :is_default, frozen_at = :frozen_at
WHERE graph_id = :graph_id

-- name: delete_graph
INSERT INTO deleted_graphs (graph_id, deleted_at) VALUES (:graph_id, :at)

-- name: drop_graph
DELETE FROM graphs WHERE graph_id = :graph_id

-- name: same_identity
SELECT user_id FROM external_identities WHERE issuer = :issuer AND subject = :subject

-- name: add_identity
INSERT INTO external_identities (issuer, subject, user_id, created_at)
VALUES (:issuer, :subject, :user_id, :created_at)

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
DELETE FROM external_identities WHERE issuer = :issuer AND subject = :subject
