-- Organizations, their members and invitations; above graphs, as users are.

-- name: add
-- No row when the id or the name is taken, also by a transaction that commits meanwhile.
INSERT INTO organizations (organization_id, name, created_at)
VALUES (:organization_id, :name, :created_at)
ON CONFLICT DO NOTHING
RETURNING organization_id

-- name: organization
SELECT o.organization_id, o.name, g.graph_id, o.created_at
FROM organizations AS o
JOIN graphs AS g ON g.organization_id = o.organization_id
WHERE o.organization_id = :organization_id

-- name: organizations
SELECT o.organization_id, o.name, g.graph_id, o.created_at
FROM organizations AS o
JOIN graphs AS g ON g.organization_id = o.organization_id
ORDER BY o.created_at, o.organization_id

-- name: rename
-- Fails at the unique index when another one has the name.
UPDATE organizations
SET name = :name
WHERE organization_id = :organization_id
RETURNING organization_id

-- name: end_write_modes
UPDATE users SET write_organization_id = NULL WHERE write_organization_id = :organization_id

-- name: end_write_mode
UPDATE users
SET write_organization_id = NULL
WHERE user_id = :user_id AND write_organization_id = :organization_id

-- name: drop_memberships
DELETE FROM memberships WHERE organization_id = :organization_id

-- name: drop_invitations
DELETE FROM invitations WHERE organization_id = :organization_id

-- name: drop_organization
DELETE FROM organizations WHERE organization_id = :organization_id

-- name: members
SELECT m.user_id, u.name, m.role, m.joined_at
FROM memberships AS m
JOIN users AS u ON u.user_id = m.user_id
WHERE m.organization_id = :organization_id
ORDER BY m.joined_at, m.user_id

-- name: role
SELECT role FROM memberships WHERE organization_id = :organization_id AND user_id = :user_id

-- name: other_owner
SELECT user_id
FROM memberships
WHERE organization_id = :organization_id AND role = 'owner' AND user_id <> :user_id
LIMIT 1

-- name: put_member
INSERT INTO memberships (organization_id, user_id, role, joined_at)
VALUES (:organization_id, :user_id, :role, :at)
ON CONFLICT (organization_id, user_id) DO UPDATE SET role = excluded.role

-- name: drop_member
DELETE FROM memberships WHERE organization_id = :organization_id AND user_id = :user_id

-- name: add_invitation
-- It is there already when a commit had happened whose answer was lost.
INSERT INTO invitations (hash, organization_id, role, invited_by, created_at, expires_at, used_at, used_by)
VALUES (:hash, :organization_id, :role, :invited_by, :created_at, :expires_at, :used_at, :used_by)
ON CONFLICT (hash) DO NOTHING

-- name: invitation
SELECT hash, organization_id, role, invited_by, created_at, expires_at, used_at, used_by
FROM invitations
WHERE hash = :hash

-- name: invitations
SELECT hash, organization_id, role, invited_by, created_at, expires_at, used_at, used_by
FROM invitations
WHERE organization_id = :organization_id
ORDER BY created_at DESC, hash DESC

-- name: use_invitation
-- Of those who use it at the same time the second one waits for the first, and gets no row.
UPDATE invitations
SET used_at = :at, used_by = :user_id
WHERE hash = :hash AND used_at IS NULL AND expires_at > :at
RETURNING hash

-- name: remove_invitation
DELETE FROM invitations
WHERE hash = :hash
RETURNING hash
