-- name: take
-- In one statement, so that servers which count at the same time count right: the second one waits for
-- the row. `allowed` tells what became of this very call.
INSERT INTO rate_limits AS bucket (subject, bucket, full_at, allowed)
VALUES (:subject, :bucket, :first, 1)
ON CONFLICT (subject, bucket) DO UPDATE SET
    full_at = LEAST(GREATEST(bucket.full_at, :now), :latest)
        + CASE WHEN LEAST(GREATEST(bucket.full_at, :now), :latest) + :step <= :latest
            THEN :step ELSE 0 END,
    allowed = CASE WHEN LEAST(GREATEST(bucket.full_at, :now), :latest) + :step <= :latest
        THEN 1 ELSE 0 END
RETURNING full_at, allowed

-- name: remove_full
DELETE FROM rate_limits
WHERE full_at <= :now
