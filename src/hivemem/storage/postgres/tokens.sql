-- name: keep
INSERT INTO token_reports (graph_id, user_id, session_id, turn_sequence, event_id, report, recorded_at)
VALUES (:graph_id, :user_id, :session_id, :turn_sequence, :event_id, :report, :recorded_at)
ON CONFLICT (graph_id, user_id, session_id, turn_sequence) DO NOTHING

-- name: kept
SELECT event_id, report, recorded_at
FROM token_reports
WHERE graph_id = :graph_id
  AND user_id = :user_id
  AND session_id = :session_id
  AND turn_sequence = :turn_sequence
