-- The audit log. Its lines name graphs, and belong to none. What is NULL among the conditions does not matter.

-- name: add
INSERT INTO audit_events
    (at, action, user_id, credential, graph_id, organization_id, target, address, request_id, detail)
SELECT at, action, user_id, credential, graph_id, organization_id, target, address, request_id, detail
FROM unnest(
    :at::bigint[], :action::text[], :user_id::text[], :credential::text[], :graph_id::text[],
    :organization_id::text[], :target::text[], :address::text[], :request_id::text[], :detail::text[]
) WITH ORDINALITY AS told (
    at, action, user_id, credential, graph_id, organization_id, target, address, request_id, detail, place
)
ORDER BY place
RETURNING event_id

-- name: claim
-- Waits for a transaction that adds the line of this number; no row when it did.
INSERT INTO audit_events (event_id, at, action, credential, address, request_id, detail)
VALUES (:event_id, 0, '', '', '', '', '')
ON CONFLICT (event_id) DO NOTHING
RETURNING event_id

-- name: of_organization
SELECT
    event_id, at, action, user_id, credential, graph_id, organization_id, target, address, request_id, detail
FROM audit_events
WHERE organization_id = :organization_id
  AND event_id < :before_id
  AND (:graph_id::text IS NULL OR graph_id = :graph_id)
  AND (:user_id::text IS NULL OR user_id = :user_id)
  AND (:action::text IS NULL OR action = :action)
  AND (:since::bigint IS NULL OR at >= :since)
ORDER BY event_id DESC
LIMIT :limit

-- name: of_graph
SELECT
    event_id, at, action, user_id, credential, graph_id, organization_id, target, address, request_id, detail
FROM audit_events
WHERE graph_id = :graph_id
  AND event_id < :before_id
  AND (:user_id::text IS NULL OR user_id = :user_id)
  AND (:action::text IS NULL OR action = :action)
  AND (:since::bigint IS NULL OR at >= :since)
ORDER BY event_id DESC
LIMIT :limit

-- name: of_user
SELECT
    event_id, at, action, user_id, credential, graph_id, organization_id, target, address, request_id, detail
FROM audit_events
WHERE user_id = :user_id
  AND event_id < :before_id
  AND (:action::text IS NULL OR action = :action)
  AND (:since::bigint IS NULL OR at >= :since)
ORDER BY event_id DESC
LIMIT :limit

-- name: all
SELECT
    event_id, at, action, user_id, credential, graph_id, organization_id, target, address, request_id, detail
FROM audit_events
WHERE event_id < :before_id
  AND (:action::text IS NULL OR action = :action)
  AND (:since::bigint IS NULL OR at >= :since)
ORDER BY event_id DESC
LIMIT :limit
