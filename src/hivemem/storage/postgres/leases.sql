-- Leases are about work, not about a graph's content: the name of one may hold a graph's id.

-- name: acquire
-- No row while somebody else's lease runs.
INSERT INTO leases (name, holder, expires_at)
VALUES (:name, :holder, :expires_at)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
WHERE leases.holder = excluded.holder OR leases.expires_at <= :at
RETURNING name

-- name: release
DELETE FROM leases
WHERE name = :name AND holder = :holder
