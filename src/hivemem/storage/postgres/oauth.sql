-- OAuth is no part of a graph: a credential is looked up before its graph is known.

-- name: put_client
-- What a program says of itself may change; that it was revoked stays.
INSERT INTO oauth_clients
    (client_id, name, redirect_uris, grant_types, scopes, authentication, secret_hash, created_at)
VALUES
    (:client_id, :name, :redirect_uris, :grant_types, :scopes, :authentication, :secret_hash, :created_at)
ON CONFLICT (client_id) DO UPDATE SET
    name = excluded.name,
    redirect_uris = excluded.redirect_uris,
    grant_types = excluded.grant_types,
    scopes = excluded.scopes,
    authentication = excluded.authentication,
    secret_hash = excluded.secret_hash

-- name: client
SELECT client_id, name, redirect_uris, grant_types, scopes, authentication, secret_hash, created_at, revoked_at
FROM oauth_clients
WHERE client_id = :client_id

-- name: revoke_client
UPDATE oauth_clients
SET revoked_at = COALESCE(revoked_at, :at)
WHERE client_id = :client_id

-- name: add_sign_in
INSERT INTO oauth_sign_ins (hash, client_id, request, expires_at)
VALUES (:hash, :client_id, :request, :expires_at)
ON CONFLICT (hash) DO NOTHING

-- name: sign_in
SELECT hash, request, expires_at, identity, consent_hash, external
FROM oauth_sign_ins
WHERE hash = :hash

-- name: send_out
UPDATE oauth_sign_ins
SET external = :external
WHERE hash = :hash
RETURNING hash

-- name: identify
UPDATE oauth_sign_ins
SET identity = :identity, consent_hash = :consent_hash
WHERE hash = :hash
RETURNING hash

-- name: end_sign_in
DELETE FROM oauth_sign_ins
WHERE hash = :hash
RETURNING hash

-- name: add_grant
INSERT INTO oauth_grants (grant_id, client_id, user_id, graph_id, key_id, scopes, resource, created_at)
VALUES (:grant_id, :client_id, :user_id, :graph_id, :key_id, :scopes, :resource, :created_at)

-- name: grants
SELECT grant_id, client_id, user_id, graph_id, key_id, scopes, resource, created_at, revoked_at
FROM oauth_grants
WHERE user_id = :user_id
ORDER BY created_at DESC, grant_id DESC

-- name: revoke_grant
UPDATE oauth_grants
SET revoked_at = COALESCE(revoked_at, :at)
WHERE grant_id = :grant_id

-- name: add_code
INSERT INTO oauth_codes (hash, grant_id, redirect_uri, redirect_uri_given, code_challenge, expires_at)
VALUES (:hash, :grant_id, :redirect_uri, :redirect_uri_given, :code_challenge, :expires_at)

-- name: code
SELECT hash, redirect_uri, redirect_uri_given, code_challenge, expires_at, used_at,
    grant_id, client_id, user_id, graph_id, key_id, scopes, resource, created_at, revoked_at
FROM oauth_codes
JOIN oauth_grants USING (grant_id)
WHERE hash = :hash

-- name: use_code
UPDATE oauth_codes
SET used_at = :at
WHERE hash = :hash AND used_at IS NULL
RETURNING hash

-- name: add_token
-- It is there already when a commit had happened whose answer was lost.
INSERT INTO oauth_tokens (hash, kind, grant_id, scopes, expires_at)
VALUES (:hash, :kind, :grant_id, :scopes, :expires_at)
ON CONFLICT (hash) DO NOTHING

-- name: token
SELECT t.hash, t.kind, t.scopes, t.expires_at, t.used_at,
    g.grant_id, g.client_id, g.user_id, g.graph_id, g.key_id, g.scopes, g.resource, g.created_at, g.revoked_at,
    c.revoked_at,
    k.key_id, k.hash, k.name, k.user_id, k.graph_id, k.scope, k.created_at, k.revoked_at, k.admin, k.expires_at,
    k.last_used_at
FROM oauth_tokens AS t
JOIN oauth_grants AS g ON g.grant_id = t.grant_id
JOIN oauth_clients AS c ON c.client_id = g.client_id
LEFT JOIN api_keys AS k ON k.key_id = g.key_id
WHERE t.hash = :hash

-- name: token_account
-- One row for each organization of the user, one without any.
SELECT t.hash, t.kind, t.scopes, t.expires_at, t.used_at,
    g.grant_id, g.client_id, g.user_id, g.graph_id, g.key_id, g.scopes, g.resource, g.created_at, g.revoked_at,
    c.revoked_at,
    k.key_id, k.hash, k.name, k.user_id, k.graph_id, k.scope, k.created_at, k.revoked_at, k.admin, k.expires_at,
    k.last_used_at,
    u.user_id, u.name, u.created_at, u.operator, u.password_hash, u.write_organization_id,
    place.graph_id, place.name, place.owner_id, place.organization_id, place.created_at, place.is_default,
    place.frozen_at,
    o.organization_id, o.name, og.graph_id, m.role, og.frozen_at
FROM oauth_tokens AS t
JOIN oauth_grants AS g ON g.grant_id = t.grant_id
JOIN oauth_clients AS c ON c.client_id = g.client_id
LEFT JOIN api_keys AS k ON k.key_id = g.key_id
JOIN users AS u ON u.user_id = g.user_id
LEFT JOIN graphs AS place ON place.graph_id = COALESCE(:graph_id, g.graph_id)
LEFT JOIN memberships AS m ON m.user_id = g.user_id
LEFT JOIN organizations AS o ON o.organization_id = m.organization_id
LEFT JOIN graphs AS og ON og.organization_id = m.organization_id
WHERE t.hash = :hash

-- name: use_refresh_token
UPDATE oauth_tokens
SET used_at = COALESCE(used_at, :at)
WHERE hash = :hash AND (used_at IS NULL OR used_at >= :reusable_from)
RETURNING hash

-- name: drop_sign_ins
DELETE FROM oauth_sign_ins
WHERE expires_at <= :now

-- name: drop_codes
DELETE FROM oauth_codes
WHERE expires_at <= :before

-- name: drop_tokens
DELETE FROM oauth_tokens
WHERE expires_at <= :now

-- name: drop_grants
DELETE FROM oauth_grants
WHERE created_at <= :before
  AND NOT EXISTS (SELECT 1 FROM oauth_tokens WHERE oauth_tokens.grant_id = oauth_grants.grant_id)
  AND NOT EXISTS (SELECT 1 FROM oauth_codes WHERE oauth_codes.grant_id = oauth_grants.grant_id)

-- name: drop_clients
-- Revoked ones stay, or a program whose id is an address could come back.
DELETE FROM oauth_clients
WHERE created_at <= :before
  AND revoked_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM oauth_grants WHERE oauth_grants.client_id = oauth_clients.client_id)
  AND NOT EXISTS (SELECT 1 FROM oauth_sign_ins WHERE oauth_sign_ins.client_id = oauth_clients.client_id)
