-- The words of the diary, by which it is searched: the index terms of `summary` as the analyser makes them,
-- with a blank around each. A search reads the lines from the newest on until it has enough.
CREATE TABLE timeline_terms (
    graph_id TEXT COLLATE "C" NOT NULL,
    event_id BIGINT           NOT NULL,
    terms    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (graph_id, event_id),
    FOREIGN KEY (graph_id, event_id) REFERENCES timeline (graph_id, event_id) ON DELETE CASCADE
);

-- What agents report of the tokens they used, as JSON; the first report of a turn stays.
CREATE TABLE token_reports (
    graph_id      TEXT COLLATE "C" NOT NULL,
    user_id       TEXT COLLATE "C" NOT NULL,
    session_id    TEXT COLLATE "C" NOT NULL,
    turn_sequence BIGINT           NOT NULL,
    event_id      TEXT COLLATE "C" NOT NULL,
    report        TEXT COLLATE "C" NOT NULL,
    recorded_at   BIGINT           NOT NULL,
    PRIMARY KEY (graph_id, user_id, session_id, turn_sequence)
);
