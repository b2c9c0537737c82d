-- The words of the diary, by which it is searched: the index terms of `summary` as the analyser makes them,
-- with a blank around each. A search reads the lines from the newest on until it has enough.
CREATE TABLE timeline_terms (
    graph_id TEXT    NOT NULL,
    event_id INTEGER NOT NULL,
    terms    TEXT    NOT NULL,
    PRIMARY KEY (graph_id, event_id),
    FOREIGN KEY (graph_id, event_id) REFERENCES timeline ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- What agents report of the tokens they used, as JSON; the first report of a turn stays.
CREATE TABLE token_reports (
    graph_id      TEXT    NOT NULL,
    user_id       TEXT    NOT NULL,
    session_id    TEXT    NOT NULL,
    turn_sequence INTEGER NOT NULL,
    event_id      TEXT    NOT NULL,
    report        TEXT    NOT NULL,
    recorded_at   INTEGER NOT NULL,
    PRIMARY KEY (graph_id, user_id, session_id, turn_sequence)
) STRICT;
