"""What a projection returns: hits of one leg, scores of one node, neighbours.

Tuples with names: a recall makes some hundred of them.
"""

from __future__ import annotations

from typing import NamedTuple

from hivemem.domain.graph import Kind


class PassageHit(NamedTuple):
    """The passage of a node that is nearest to a query vector.

    `score` is the cosine, in [-1, 1]. `source` is `description` or `search_text`; `start` and `end`
    are code-point offsets into it.
    """

    key: str
    score: float
    source: str
    start: int
    end: int


class TermHit(NamedTuple):
    """A node that holds a word of the query. `score` is its BM25, above 0, comparable in one query only."""

    key: str
    score: float


class TermScore(NamedTuple):
    """How well one node matches a query by word.

    `bm25` is 0.0 when it holds no word. `ideal` is what no text can exceed for this query in this
    graph, so `bm25 / ideal` lies in [0, 1). `held` says for each word of the query, in order, whether
    the node holds one of its forms, `as_spelled` whether it holds the main form: the spelling of the
    query, with or without an inflection.
    """

    bm25: float
    ideal: float
    held: tuple[bool, ...]
    as_spelled: tuple[bool, ...]


class Neighbour(NamedTuple):
    """One other node of one relationship, seen from the node that was asked about.

    `edge_id` is the id of an edge or hyperedge, as `kind` says. `direction` is `outgoing` when the
    asked node stands before `key` in the relationship (source of an edge, earlier participant of a
    hyperedge), else `incoming`. `strength` lies in (0, 1].
    """

    edge_id: str
    kind: Kind
    key: str
    relationship: str
    direction: str
    strength: float
