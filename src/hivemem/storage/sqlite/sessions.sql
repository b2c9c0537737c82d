-- name: count_call
INSERT INTO sessions (graph_id, session_id, tool_calls, first_call_at, last_call_at)
VALUES (:graph_id, :session_id, 1, :at, :at)
ON CONFLICT (graph_id, session_id) DO UPDATE SET
    tool_calls = tool_calls + 1,
    first_call_at = min(first_call_at, excluded.first_call_at),
    last_call_at = max(last_call_at, excluded.last_call_at)

-- name: touch_node
-- A key that does not exist is passed over. (WHERE also keeps ON CONFLICT from reading as a join.)
INSERT INTO session_nodes (
    graph_id, session_id, node_key, touch_count, first_touched_at, last_touched_at
)
SELECT graph_id, :session_id, key, 1, :at, :at
FROM nodes
WHERE graph_id = :graph_id AND key = :key
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

-- name: next_event_ids
-- Takes :count numbers; the last of them.
INSERT INTO graph_counters (graph_id, revision, last_event_id)
VALUES (:graph_id, 0, :count)
ON CONFLICT (graph_id) DO UPDATE SET last_event_id = last_event_id + :count
RETURNING last_event_id

-- name: add_event
INSERT INTO timeline (graph_id, event_id, at, summary, source, tool, node_key, meta)
VALUES (:graph_id, :event_id, :at, :summary, :source, :tool, :node_key, :meta)

-- name: add_terms
INSERT INTO timeline_terms (graph_id, event_id, terms)
VALUES (:graph_id, :event_id, :terms)

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
-- words: JSON list of the terms of each word, with a blank around each term. A line holds a term of each.
SELECT timeline.event_id, at, summary, source, tool, node_key, meta
FROM timeline
JOIN timeline_terms AS own ON own.graph_id = :graph_id AND own.event_id = timeline.event_id
WHERE timeline.graph_id = :graph_id
  AND at >= :start
  AND at < :end
  AND (:node_key IS NULL OR node_key = :node_key)
  AND NOT EXISTS (
      SELECT 1
      FROM json_each(:words) AS word
      WHERE NOT EXISTS (SELECT 1 FROM json_each(word.value) AS term WHERE instr(own.terms, term.value) > 0)
  )
ORDER BY at DESC, timeline.event_id DESC
LIMIT :limit

-- name: forget_events
DELETE FROM timeline
WHERE graph_id = :graph_id AND node_key = :node_key
