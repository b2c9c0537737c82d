-- name: count_call
INSERT INTO sessions (graph_id, session_id, tool_calls, first_call_at, last_call_at)
VALUES (:graph_id, :session_id, 1, :at, :at)
ON CONFLICT (graph_id, session_id) DO UPDATE SET
    tool_calls = sessions.tool_calls + 1,
    first_call_at = least(sessions.first_call_at, excluded.first_call_at),
    last_call_at = greatest(sessions.last_call_at, excluded.last_call_at)

-- name: touch_nodes
-- Keys that do not exist are passed over. The lock keeps a node from being deleted between being found
-- and being referred to.
INSERT INTO session_nodes (
    graph_id, session_id, node_key, touch_count, first_touched_at, last_touched_at
)
SELECT :graph_id, :session_id, key, 1, :at, :at
FROM (
    SELECT key
    FROM nodes
    WHERE graph_id = :graph_id AND key = ANY (:keys::text[])
    ORDER BY key
    FOR KEY SHARE
) AS existing
ON CONFLICT (graph_id, session_id, node_key) DO UPDATE SET
    touch_count = session_nodes.touch_count + 1,
    first_touched_at = least(session_nodes.first_touched_at, excluded.first_touched_at),
    last_touched_at = greatest(session_nodes.last_touched_at, excluded.last_touched_at)

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

-- name: add_events
INSERT INTO timeline (graph_id, event_id, at, summary, source, tool, node_key, meta)
SELECT :graph_id, event_id, at, summary, source, tool, node_key, meta
FROM unnest(
    :event_id::bigint[], :at::bigint[], :summary::text[], :source::text[], :tool::text[],
    :node_key::text[], :meta::text[]
) AS written (event_id, at, summary, source, tool, node_key, meta)

-- name: add_terms
INSERT INTO timeline_terms (graph_id, event_id, terms)
SELECT :graph_id, event_id, terms
FROM unnest(:event_id::bigint[], :terms::text[]) AS written (event_id, terms)

-- name: event
SELECT at, summary
FROM timeline
WHERE graph_id = :graph_id AND event_id = :event_id

-- name: timeline
SELECT event_id, at, summary, source, tool, node_key, meta
FROM timeline
WHERE graph_id = :graph_id AND at >= :start AND at < :end
ORDER BY at DESC, event_id DESC
LIMIT :limit

-- name: timeline_of_node
SELECT event_id, at, summary, source, tool, node_key, meta
FROM timeline
WHERE graph_id = :graph_id
  AND left(node_key, 256) = left(:node_key, 256)
  AND node_key = :node_key
  AND at >= :start
  AND at < :end
ORDER BY at DESC, event_id DESC
LIMIT :limit

-- name: timeline_by_words
-- A line holds a term of each word; terms stand with a blank around each.
SELECT timeline.event_id, at, summary, source, tool, node_key, meta
FROM timeline
JOIN timeline_terms AS own ON own.graph_id = :graph_id AND own.event_id = timeline.event_id
WHERE timeline.graph_id = :graph_id
  AND at >= :start
  AND at < :end
  AND (:node_key::text IS NULL OR node_key = :node_key)
  AND (
      SELECT count(DISTINCT wanted.word)
      FROM unnest(:word::bigint[], :term::text[]) AS wanted (word, term)
      WHERE position(wanted.term IN own.terms) > 0
  ) = :word_count
ORDER BY at DESC, timeline.event_id DESC
LIMIT :limit

-- name: forget_events
DELETE FROM timeline
WHERE graph_id = :graph_id AND left(node_key, 256) = left(:node_key, 256) AND node_key = :node_key
