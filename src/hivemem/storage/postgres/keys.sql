-- Keys, and what one read tells of the person behind a credential.

-- name: add_key
INSERT INTO api_keys
    (key_id, hash, name, user_id, graph_id, scope, created_at, revoked_at, admin, expires_at, last_used_at)
VALUES (
    :key_id, :hash, :name, :user_id, :graph_id, :scope, :created_at, :revoked_at, :admin, :expires_at,
    :last_used_at
)
ON CONFLICT DO NOTHING
RETURNING key_id

-- name: key_by_hash
SELECT key_id, hash, name, user_id, graph_id, scope, created_at, revoked_at, admin, expires_at, last_used_at
FROM api_keys
WHERE hash = :hash

-- name: keys
SELECT key_id, hash, name, user_id, graph_id, scope, created_at, revoked_at, admin, expires_at, last_used_at
FROM api_keys
ORDER BY created_at, key_id

-- name: keys_of_user
SELECT key_id, hash, name, user_id, graph_id, scope, created_at, revoked_at, admin, expires_at, last_used_at
FROM api_keys
WHERE user_id = :user_id
ORDER BY created_at, key_id

-- name: revoke_key
UPDATE api_keys
SET revoked_at = :at
WHERE key_id = :key_id AND revoked_at IS NULL
RETURNING key_id

-- name: revoked_at
SELECT revoked_at FROM api_keys WHERE key_id = :key_id

-- name: key_used
UPDATE api_keys
SET last_used_at = :at
WHERE key_id = :key_id AND (last_used_at IS NULL OR last_used_at < :at)

-- name: key_account
-- One row for each organization of the user, one without any.
SELECT
    k.key_id, k.hash, k.name, k.user_id, k.graph_id, k.scope, k.created_at, k.revoked_at, k.admin, k.expires_at,
    k.last_used_at,
    u.user_id, u.name, u.created_at, u.operator, u.password_hash, u.write_organization_id,
    g.graph_id, g.name, g.owner_id, g.organization_id, g.created_at, g.is_default, g.frozen_at,
    o.organization_id, o.name, og.graph_id, m.role, og.frozen_at
FROM api_keys AS k
JOIN users AS u ON u.user_id = k.user_id
JOIN graphs AS g ON g.graph_id = k.graph_id
LEFT JOIN memberships AS m ON m.user_id = k.user_id
LEFT JOIN organizations AS o ON o.organization_id = m.organization_id
LEFT JOIN graphs AS og ON og.organization_id = m.organization_id
WHERE k.hash = :hash

-- name: account
SELECT
    u.user_id, u.name, u.created_at, u.operator, u.password_hash, u.write_organization_id,
    g.graph_id, g.name, g.owner_id, g.organization_id, g.created_at, g.is_default, g.frozen_at,
    o.organization_id, o.name, og.graph_id, m.role, og.frozen_at
FROM users AS u
LEFT JOIN graphs AS g ON g.graph_id = :graph_id
LEFT JOIN memberships AS m ON m.user_id = u.user_id
LEFT JOIN organizations AS o ON o.organization_id = m.organization_id
LEFT JOIN graphs AS og ON og.organization_id = m.organization_id
WHERE u.user_id = :user_id

-- name: grants_of_user
-- Also what others granted with a key of the user.
SELECT grant_id FROM oauth_grants WHERE user_id = :user_id
UNION
SELECT g.grant_id
FROM api_keys AS k
JOIN oauth_grants AS g ON g.key_id = k.key_id
WHERE k.user_id = :user_id

-- name: grants_to_graph
SELECT grant_id FROM oauth_grants WHERE graph_id = :graph_id
UNION
SELECT g.grant_id
FROM api_keys AS k
JOIN oauth_grants AS g ON g.key_id = k.key_id
WHERE k.graph_id = :graph_id

-- name: grants_of_member
SELECT grant_id FROM oauth_grants WHERE user_id = :user_id AND graph_id = :graph_id
UNION
SELECT g.grant_id
FROM api_keys AS k
JOIN oauth_grants AS g ON g.key_id = k.key_id
WHERE k.user_id = :user_id AND k.graph_id = :graph_id

-- name: drop_sign_ins_of_user
-- Sign-ins end after minutes, so that there are few to look at.
DELETE FROM oauth_sign_ins WHERE identity::json ->> 'user_id' = :user_id

-- name: drop_sign_ins_to_graph
DELETE FROM oauth_sign_ins WHERE identity::json ->> 'graph_id' = :graph_id

-- name: drop_sign_ins_of_member
DELETE FROM oauth_sign_ins
WHERE identity::json ->> 'user_id' = :user_id AND identity::json ->> 'graph_id' = :graph_id

-- name: drop_codes
-- Before their grants, as whoever exchanges one locks it before it names the grant.
DELETE FROM oauth_codes WHERE grant_id = ANY (:grant_ids::text[])

-- name: drop_tokens
DELETE FROM oauth_tokens WHERE grant_id = ANY (:grant_ids::text[])

-- name: drop_grants
DELETE FROM oauth_grants WHERE grant_id = ANY (:grant_ids::text[])

-- name: drop_keys_of_user
DELETE FROM api_keys WHERE user_id = :user_id

-- name: drop_keys_to_graph
DELETE FROM api_keys WHERE graph_id = :graph_id

-- name: drop_keys_of_member
DELETE FROM api_keys WHERE user_id = :user_id AND graph_id = :graph_id
