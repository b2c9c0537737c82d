-- name: count_call
INSERT INTO sessions (graph_id, session_id, tool_calls, first_call_at, last_call_at)
VALUES (:graph_id, :session_id, 1, :at, :at)
ON CONFLICT (graph_id, session_id) DO UPDATE SET
    tool_calls = tool_calls + 1,
    first_call_at = min(first_call_at, excluded.first_call_at),
    last_call_at = max(last_call_at, excluded.last_call_at)

-- name: touch_nodes
-- Keys that do not exist are passed over. (WHERE also keeps ON CONFLICT from reading as a join.)
INSERT INTO session_nodes (
    graph_id, session_id, node_key, touch_count, first_touched_at, last_touched_at
)
SELECT graph_id, :session_id, key, 1, :at, :at
FROM nodes
WHERE graph_id = :graph_id AND key IN (SELECT value FROM json_each(:keys))
ON CONFLICT (graph_id, session_id, node_key) DO UPDATE SET
    touch_count = touch_count + 1,
    first_touched_at = min(first_touched_at, excluded.first_touched_at),
    last_touched_at = max(last_touched_at, excluded.last_touched_at)

-- name: session
SELECT tool_calls, first_call_at, last_call_at
FROM sessions
WHERE graph_id = :graph_id AND session_id = :session_id

-- name: touched
SELECT node_key, touch_count, first_touched_at, last_touched_at
FROM session_nodes
WHERE graph_id = :graph_id AND session_id = :session_id
ORDER BY last_touched_at DESC, node_key
LIMIT :limit

-- name: next_event_id
INSERT INTO graph_counters (graph_id, revision, last_event_id)
VALUES (:graph_id, 0, 1)
ON CONFLICT (graph_id) DO UPDATE SET last_event_id = last_event_id + 1
RETURNING last_event_id

-- name: add_event
INSERT INTO timeline (graph_id, event_id, at, summary, source, tool, node_key, meta)
VALUES (:graph_id, :event_id, :at, :summary, :source, :tool, :node_key, :meta)

-- name: add_term
INSERT INTO timeline_terms (graph_id, term, event_id)
VALUES (:graph_id, :term, :event_id)

-- name: timeline
SELECT event_id, at, summary, source, tool, node_key, meta
FROM timeline
WHERE graph_id = :graph_id AND at >= :start AND at < :end
ORDER BY at DESC, event_id DESC
LIMIT :limit

-- name: timeline_of_node
SELECT event_id, at, summary, source, tool, node_key, meta
FROM timeline
WHERE graph_id = :graph_id AND node_key = :node_key AND at >= :start AND at < :end
ORDER BY at DESC, event_id DESC
LIMIT :limit

-- name: timeline_by_words
-- words: JSON list of [number of the word, term]. CROSS JOIN keeps this order: one range of the index a term.
SELECT event_id, at, summary, source, tool, node_key, meta
FROM timeline
WHERE graph_id = :graph_id
  AND at >= :start
  AND at < :end
  AND (:node_key IS NULL OR node_key = :node_key)
  AND event_id IN (
      SELECT found.event_id
      FROM json_each(:words) AS wanted
      CROSS JOIN timeline_terms AS found
      WHERE found.graph_id = :graph_id AND found.term = json_extract(wanted.value, '$[1]')
      GROUP BY found.event_id
      HAVING count(DISTINCT json_extract(wanted.value, '$[0]')) = :word_count
  )
ORDER BY at DESC, event_id DESC
LIMIT :limit

-- name: forget_events
DELETE FROM timeline
WHERE graph_id = :graph_id AND node_key = :node_key
