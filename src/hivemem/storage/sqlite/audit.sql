-- The audit log. Its lines name graphs, and belong to none. What is NULL among the conditions does not matter.

-- name: add
INSERT INTO audit_events
    (at, action, user_id, credential, graph_id, organization_id, target, address, request_id, detail)
VALUES
    (:at, :action, :user_id, :credential, :graph_id, :organization_id, :target, :address, :request_id, :detail)

-- name: of_organization
SELECT
    event_id, at, action, user_id, credential, graph_id, organization_id, target, address, request_id, detail
FROM audit_events
WHERE organization_id = :organization_id
  AND event_id < :before_id
  AND (:graph_id IS NULL OR graph_id = :graph_id)
  AND (:user_id IS NULL OR user_id = :user_id)
  AND (:action IS NULL OR action = :action)
  AND (:since IS NULL OR at >= :since)
ORDER BY event_id DESC
LIMIT :limit

-- name: of_graph
SELECT
    event_id, at, action, user_id, credential, graph_id, organization_id, target, address, request_id, detail
FROM audit_events
WHERE graph_id = :graph_id
  AND event_id < :before_id
  AND (:user_id IS NULL OR user_id = :user_id)
  AND (:action IS NULL OR action = :action)
  AND (:since IS NULL OR at >= :since)
ORDER BY event_id DESC
LIMIT :limit

-- name: of_user
SELECT
    event_id, at, action, user_id, credential, graph_id, organization_id, target, address, request_id, detail
FROM audit_events
WHERE user_id = :user_id
  AND event_id < :before_id
  AND (:action IS NULL OR action = :action)
  AND (:since IS NULL OR at >= :since)
ORDER BY event_id DESC
LIMIT :limit

-- name: all
SELECT
    event_id, at, action, user_id, credential, graph_id, organization_id, target, address, request_id, detail
FROM audit_events
WHERE event_id < :before_id
  AND (:action IS NULL OR action = :action)
  AND (:since IS NULL OR at >= :since)
ORDER BY event_id DESC
LIMIT :limit
