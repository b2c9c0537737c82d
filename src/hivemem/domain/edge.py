"""Relationships: edges between two nodes, hyperedges over three or more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias

from hivemem.domain.keys import normalise_key
from hivemem.domain.node import require_utc
from hivemem.domain.text import JsonObject, empty_object, storable_json, storable_text
from hivemem.errors import InvalidInput

EdgeIdentity: TypeAlias = "tuple[str, str, str]"
"""(from_key, to_key, relationship): the same triple again is the same edge."""

HyperedgeIdentity: TypeAlias = "tuple[str, frozenset[str]]"
"""(relationship, participant keys): the order of participants does not matter."""

MIN_PARTICIPANTS = 3
MIN_SESSION_PARTICIPANTS = 2
"""A conversation that touched two nodes is worth remembering as one."""

SESSION_LABEL_PREFIX = "chat_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A directed relationship between two different nodes, with a sentence as its label.

    `edge_id` is opaque and shares one id space with hyperedges. `write_version` counts from 1.

    Raises:
        InvalidInput: A field breaks its rule.
    """

    edge_id: str
    from_key: str
    to_key: str
    relationship: str
    description: str | None = None
    data: JsonObject = field(default_factory=empty_object)
    write_version: int = 1
    revision: int = 0
    created_at: datetime
    updated_at: datetime

    def __post_init__(self) -> None:
        if not self.edge_id:
            raise InvalidInput("/edge_id is empty.")
        if self.from_key == self.to_key:
            raise InvalidInput(f"/to_key {self.to_key!r} is the node itself; relate two nodes.")
        for key in (self.from_key, self.to_key):
            if normalise_key(key) != key:
                raise InvalidInput(f"key {key!r} is not in its stored form; normalise it first.")
        _check_label_and_text(self.relationship, self.description, self.data)
        require_utc(self.created_at, "/created_at")
        require_utc(self.updated_at, "/updated_at")

    @property
    def identity(self) -> EdgeIdentity:
        """What makes a second edge with other ids a replay of this one."""
        return (self.from_key, self.to_key, self.relationship)


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """One node of a hyperedge; `ordinal` is its position in the request, from 0."""

    node_key: str
    role: str = "participant"
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyperedge:
    """One relationship over at least three different nodes. Immutable but for lost participants.

    One that the server made for a conversation may join two, and grows with the conversation.

    Raises:
        InvalidInput: Too few participants, a repeated one, or a broken field.
    """

    hyperedge_id: str
    relationship: str
    participants: tuple[Participant, ...]
    description: str | None = None
    data: JsonObject = field(default_factory=empty_object)
    write_version: int = 1
    revision: int = 0
    created_at: datetime
    updated_at: datetime

    def __post_init__(self) -> None:
        if not self.hyperedge_id:
            raise InvalidInput("/hyperedge_id is empty.")
        keys = self.keys
        if len(set(keys)) != len(keys) or len(keys) < self._least:
            raise InvalidInput(
                f"a hyperedge joins at least {self._least} different nodes, not {list(keys)!r}."
            )
        for key in keys:
            if normalise_key(key) != key:
                raise InvalidInput(f"key {key!r} is not in its stored form; normalise it first.")
        _check_label_and_text(self.relationship, self.description, self.data)
        require_utc(self.created_at, "/created_at")
        require_utc(self.updated_at, "/updated_at")

    @property
    def keys(self) -> tuple[str, ...]:
        """Participant keys in order."""
        return tuple(participant.node_key for participant in self.participants)

    @property
    def identity(self) -> HyperedgeIdentity:
        """What makes a second hyperedge with another id a replay of this one."""
        return (self.relationship, frozenset(self.keys))

    @property
    def is_session(self) -> bool:
        """Whether the server made it to group the nodes of a conversation."""
        return self.relationship.startswith(SESSION_LABEL_PREFIX)

    @property
    def _least(self) -> int:
        return MIN_SESSION_PARTICIPANTS if self.is_session else MIN_PARTICIPANTS

    def without(self, lost: Iterable[str], at: datetime) -> Hyperedge | None:
        """The hyperedge after the nodes `lost` were forgotten, or None when too few remain.

        Unchanged participants keep their ordinal; `write_version` goes up by one.
        """
        gone = set(lost)
        rest = tuple(p for p in self.participants if p.node_key not in gone)
        if len(rest) < self._least:
            return None
        return replace(self, participants=rest, write_version=self.write_version + 1, updated_at=at)


def _check_label_and_text(label: str, description: str | None, data: JsonObject) -> None:
    if not storable_text(label, "/relationship").strip():
        raise InvalidInput("/relationship is blank; say in a short sentence why the nodes belong.")
    if description is not None:
        storable_text(description, "/description")
    storable_json(data, "/data")
