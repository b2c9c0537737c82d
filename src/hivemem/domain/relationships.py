"""Relationship requests: their two forms, and the policy that hyperedges must pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from hivemem.domain.edge import MIN_PARTICIPANTS, SESSION_LABEL_PREFIX
from hivemem.domain.keys import normalise_key
from hivemem.domain.text import JsonObject, empty_object, storable_json, storable_text
from hivemem.errors import InvalidInput

GENERIC_LABELS = frozenset(("relates_to", "connected", "associated", "linked", "related", "related_to"))
MIN_THREE_WAY_DESCRIPTION = 80
"""Characters that the description of a three-participant hyperedge must have."""

MIN_FOUR_WAY_LABEL = 10
"""Characters that the label of a four- or five-participant hyperedge must have."""

_FIELDS = frozenset(
    (
        "from_key",
        "to_key",
        "target_key",
        "participant_keys",
        "nodes",
        "relationship",
        "description",
        "data",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeRequest:
    """A wish for an edge; both keys normalised and different."""

    from_key: str
    to_key: str
    relationship: str
    description: str | None = None
    data: JsonObject = field(default_factory=empty_object)

    @property
    def keys(self) -> tuple[str, ...]:
        """Both ends, source first."""
        return (self.from_key, self.to_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperedgeRequest:
    """A wish for a hyperedge that has passed the policy; at least three different keys, in order."""

    keys: tuple[str, ...]
    relationship: str
    description: str | None = None
    data: JsonObject = field(default_factory=empty_object)


RelationshipRequest: TypeAlias = "EdgeRequest | HyperedgeRequest"


def parse_relationship(
    item: Mapping[str, object], where: str, *, default_from: str | None = None
) -> RelationshipRequest:
    """Read one item of a `relationships` list and apply the policy.

    The presence of `participant_keys` (alias `nodes`) makes it a hyperedge; two distinct participants
    become an edge from the first to the second. `target_key` is an alias of `to_key`.

    Args:
        item: The JSON object sent.
        where: JSON pointer of the item, for messages.
        default_from: Source of an edge without `from_key`; the stored node itself in a store call.

    Raises:
        InvalidInput: A missing, mistyped or unknown field, or a policy violation.
    """
    unknown = sorted(set(item) - _FIELDS)
    if unknown:
        raise InvalidInput(f"{where} has the unknown field {unknown[0]!r}; see the documentation.")
    label = _text(item, "relationship", where)
    if label is None or not label.strip():
        raise InvalidInput(f"{where}/relationship is missing; say why the nodes belong together.")
    label = label.strip()
    description = _text(item, "description", where)
    raw_data = item.get("data")
    data = empty_object() if raw_data is None else storable_json(raw_data, f"{where}/data")
    if label.lower().startswith(SESSION_LABEL_PREFIX):
        raise InvalidInput(
            f"{where}/relationship {label!r} starts with {SESSION_LABEL_PREFIX!r}, which is reserved "
            "for the server's conversation groups; choose another label."
        )
    participants = item.get("participant_keys")
    if participants is None:
        participants = item.get("nodes")
    if participants is None:
        return _edge_request(item, where, default_from, label, description, data)
    if not isinstance(participants, list | tuple):
        raise InvalidInput(f'{where}/participant_keys is not of type "array".')
    keys = _distinct_keys(cast("Sequence[object]", participants), f"{where}/participant_keys")
    _check_policy(keys, label, description, where)
    if len(keys) == 2:
        return EdgeRequest(
            from_key=keys[0],
            to_key=keys[1],
            relationship=label,
            description=description,
            data=data,
        )
    return HyperedgeRequest(keys=keys, relationship=label, description=description, data=data)


def _edge_request(
    item: Mapping[str, object],
    where: str,
    default_from: str | None,
    label: str,
    description: str | None,
    data: JsonObject,
) -> EdgeRequest:
    source = _text(item, "from_key", where) or default_from
    target = _text(item, "to_key", where) or _text(item, "target_key", where)
    if source is None:
        raise InvalidInput(f"{where}/from_key is missing.")
    if target is None:
        raise InvalidInput(f"{where}/to_key is missing; name the node that the edge points to.")
    from_key = normalise_key(source, f"{where}/from_key")
    to_key = normalise_key(target, f"{where}/to_key")
    if from_key == to_key:
        raise InvalidInput(f"{where}/to_key is {to_key!r} itself; an edge joins two nodes.")
    return EdgeRequest(
        from_key=from_key, to_key=to_key, relationship=label, description=description, data=data
    )


def _check_policy(keys: tuple[str, ...], label: str, description: str | None, where: str) -> None:
    if len(keys) < 2:
        raise InvalidInput(
            f"{where}/participant_keys names {len(keys)} distinct nodes; a relationship needs two."
        )
    if label.lower() in GENERIC_LABELS:
        raise InvalidInput(
            f"{where}/relationship {label!r} says nothing about why the nodes belong together; "
            "write a specific label."
        )
    length = len((description or "").strip())
    if len(keys) == MIN_PARTICIPANTS and length < MIN_THREE_WAY_DESCRIPTION:
        raise InvalidInput(
            f"{where}/description has {length} characters; a relationship of three nodes needs at "
            f"least {MIN_THREE_WAY_DESCRIPTION}, or make it two edges."
        )
    if len(keys) in (4, 5) and len(label) < MIN_FOUR_WAY_LABEL:
        raise InvalidInput(
            f"{where}/relationship {label!r} has {len(label)} characters; a relationship of "
            f"{len(keys)} nodes needs a label of at least {MIN_FOUR_WAY_LABEL}."
        )


def _distinct_keys(values: Sequence[object], where: str) -> tuple[str, ...]:
    distinct: dict[str, None] = {}
    for position, value in enumerate(values):
        if not isinstance(value, str):
            raise InvalidInput(f'{where}/{position} is not of type "string".')
        distinct[normalise_key(value, f"{where}/{position}")] = None
    return tuple(distinct)


def _text(item: Mapping[str, object], name: str, where: str) -> str | None:
    value = item.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidInput(f'{where}/{name} is not of type "string".')
    return storable_text(value, f"{where}/{name}")
