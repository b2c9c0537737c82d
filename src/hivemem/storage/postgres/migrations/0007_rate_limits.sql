-- Several servers count calls together.

-- full_at: when the bucket is full again, in microseconds. allowed: 1 when the last call was let through.
-- Unlogged: losing the counts in a crash fills every bucket, and costs nothing else.
CREATE UNLOGGED TABLE rate_limits (
    subject TEXT COLLATE "C" NOT NULL,
    bucket  TEXT COLLATE "C" NOT NULL,
    full_at BIGINT           NOT NULL,
    allowed BIGINT           NOT NULL,
    PRIMARY KEY (subject, bucket)
);

CREATE INDEX rate_limits_by_end ON rate_limits (full_at);
