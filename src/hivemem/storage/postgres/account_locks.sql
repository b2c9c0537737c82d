-- Row locks of accounts. A held row stays until the end of the transaction; a locked one is also changed by
-- nobody else, and no row that names it can be added.

-- name: hold_organization
SELECT organization_id FROM organizations WHERE organization_id = :organization_id FOR KEY SHARE

-- name: lock_organization
SELECT organization_id FROM organizations WHERE organization_id = :organization_id FOR UPDATE

-- name: lock_organizations_of_user
SELECT organization_id
FROM organizations
WHERE organization_id IN (SELECT organization_id FROM memberships WHERE user_id = :user_id)
ORDER BY organization_id
FOR UPDATE

-- name: organizations_of_user
SELECT organization_id FROM memberships WHERE user_id = :user_id

-- name: hold_user
SELECT user_id FROM users WHERE user_id = :user_id FOR KEY SHARE

-- name: lock_user
SELECT user_id, name, created_at, operator, password_hash, write_organization_id
FROM users
WHERE user_id = :user_id
FOR UPDATE

-- name: lock_operators
SELECT pg_advisory_xact_lock(hashtextextended('hivemem operators ' || current_schema(), 0))

-- name: hold_graph
SELECT graph_id FROM graphs WHERE graph_id = :graph_id FOR KEY SHARE

-- name: lock_graph
SELECT graph_id, name, owner_id, organization_id, created_at, is_default, frozen_at
FROM graphs
WHERE graph_id = :graph_id
FOR UPDATE

-- name: lock_graphs_of_user
SELECT graph_id
FROM graphs
WHERE owner_id = :owner_id
ORDER BY graph_id
FOR UPDATE

-- name: hold_key
SELECT key_id FROM api_keys WHERE key_id = :key_id FOR KEY SHARE
