"""What a caller may ask `Remember` to store or change, and the check that makes a plan's input of it."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hivemem.domain.edge import MIN_PARTICIPANTS
from hivemem.domain.keys import convention_warning, normalise_key
from hivemem.domain.relationships import EdgeRequest, parse_relationship
from hivemem.domain.text import JsonObject, storable_json, storable_text
from hivemem.domain.writing import (
    STORE_TOOL,
    UPDATE_TOOL,
    IfExists,
    NodeDraft,
    NumberedRelationship,
    RelationshipRefusal,
)
from hivemem.errors import HivememError, InvalidInput, LimitExceeded
from hivemem.service.limits import DEFAULT_SESSION, Limits, checked_session_id

_INVISIBLE = frozenset(("Cc", "Cf", "Zs", "Zl", "Zp"))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRequest:
    """A memory to store, as a caller sends it. None means that a field was not sent.

    `relationships` holds JSON objects as `parse_relationship` reads them. An empty `search_text`
    takes the stored one away; `data` and `assets` replace the stored ones whole.
    """

    key: str
    description: str
    node_type: str | None = None
    data: JsonObject | None = None
    relationships: Sequence[Mapping[str, object]] = ()
    assets: Sequence[str] | None = None
    search_text: str | None = None
    session_id: str = DEFAULT_SESSION
    if_exists: IfExists = IfExists.UPDATE


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRequest:
    """What to change of a node; None means that a field stays. Otherwise as in `StoreRequest`."""

    key: str
    description: str | None = None
    node_type: str | None = None
    data: JsonObject | None = None
    assets: Sequence[str] | None = None
    search_text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedStore:
    """A request that has passed every rule that needs no look at the graph. An update has no session."""

    draft: NodeDraft
    relationships: tuple[NumberedRelationship, ...]
    refusals: tuple[RelationshipRefusal, ...]
    session_id: str | None
    warnings: tuple[str, ...]


def check_store(request: StoreRequest, limits: Limits, tool: str = STORE_TOOL) -> CheckedStore:
    """Normalise `request`; a relationship that breaks a rule becomes a refusal, not an error.

    Raises:
        InvalidInput: A field of the node breaks a rule.
        LimitExceeded: A text, the data or a list is larger than `limits` allow.
    """
    warnings: list[str] = []
    key = normalise_key(request.key)
    if key != request.key:
        warnings.append(f"key {request.key!r} was stored as {key!r}")
    unusual = convention_warning(key)
    if unusual:
        warnings.append(unusual)
    draft = NodeDraft(
        key=key,
        description=_description(request.description, limits),
        node_type=_node_type(request.node_type),
        data=None if request.data is None else checked_data(request.data, "/data", limits),
        search_text=_search_text(request.search_text, limits),
        assets=None if request.assets is None else _assets(request.assets, limits),
        if_exists=request.if_exists,
        tool=tool,
    )
    session_id = checked_session_id(request.session_id)
    relationships, refusals = check_relationships(request.relationships, limits, default_from=key)
    return CheckedStore(
        draft=draft,
        relationships=relationships,
        refusals=refusals,
        session_id=session_id,
        warnings=tuple(warnings),
    )


def check_update(request: UpdateRequest, limits: Limits) -> CheckedStore:
    """Normalise `request`.

    Raises:
        InvalidInput: No field to change, or one that breaks a rule.
        LimitExceeded: A text, the data or the list of assets is larger than `limits` allow.
    """
    sent = (request.description, request.node_type, request.data, request.assets, request.search_text)
    if all(field is None for field in sent):
        raise InvalidInput(
            "/description is missing, and so is every other field that could change; send at least one of "
            "description, node_type, data, assets and search_text."
        )
    draft = NodeDraft(
        key=normalise_key(request.key),
        description=None if request.description is None else _description(request.description, limits),
        node_type=_node_type(request.node_type),
        data=None if request.data is None else checked_data(request.data, "/data", limits),
        search_text=_search_text(request.search_text, limits),
        assets=None if request.assets is None else _assets(request.assets, limits),
        must_exist=True,
        tool=UPDATE_TOOL,
    )
    return CheckedStore(draft=draft, relationships=(), refusals=(), session_id=None, warnings=())


def check_relationships(
    items: Sequence[Mapping[str, object]], limits: Limits, *, default_from: str | None = None
) -> tuple[tuple[NumberedRelationship, ...], tuple[RelationshipRefusal, ...]]:
    """Read a `relationships` list item by item; one that breaks a rule becomes a refusal.

    Raises:
        LimitExceeded: More items than one call may carry.
    """
    if len(items) > limits.max_relationships_per_call:
        raise LimitExceeded(
            f"/relationships has {len(items)} items; one call takes at most "
            f"{limits.max_relationships_per_call}. Send the rest in further calls.",
            limit=limits.max_relationships_per_call,
        )
    wishes: list[NumberedRelationship] = []
    refusals: list[RelationshipRefusal] = []
    for index, item in enumerate(items):
        try:
            wishes.append(_relationship(index, item, limits, default_from))
        except HivememError as error:
            refusals.append(RelationshipRefusal(index=index, code=error.code, detail=error.message))
    return tuple(wishes), tuple(refusals)


def checked_data(value: object, where: str, limits: Limits) -> JsonObject:
    """Return a `data` object that can be stored and is not too large.

    Raises:
        InvalidInput: Not an object, or with a value that JSON cannot carry.
        LimitExceeded: Too many characters when written as JSON.
    """
    data = storable_json(value, where)
    try:
        size = len(json.dumps(data, ensure_ascii=False))
    except ValueError as error:
        # An integer of more digits than Python converts (4,300): no reader could parse it either.
        raise InvalidInput(f"{where} holds a number with too many digits; send it as text.") from error
    if size > limits.max_data_characters:
        raise LimitExceeded(
            f"{where} has {size} characters as JSON; at most {limits.max_data_characters} are stored. "
            "Keep large content in files or in nodes of its own.",
            limit=limits.max_data_characters,
        )
    return data


def _relationship(index: int, item: object, limits: Limits, default_from: str | None) -> NumberedRelationship:
    where = f"/relationships/{index}"
    if not isinstance(item, Mapping):
        raise InvalidInput(f'{where} is not of type "object".')
    request = parse_relationship(item, where, default_from=default_from)
    storable_text(request.relationship, f"{where}/relationship", max_characters=limits.max_label_characters)
    if request.description is not None:
        maximum = limits.max_description_characters
        storable_text(request.description, f"{where}/description", max_characters=maximum)
    checked_data(request.data, f"{where}/data", limits)
    if not isinstance(request, EdgeRequest) and len(request.keys) > limits.max_participants:
        raise LimitExceeded(
            f"{where}/participant_keys names {len(request.keys)} nodes; a relationship joins "
            f"{MIN_PARTICIPANTS} to {limits.max_participants}.",
            limit=limits.max_participants,
        )
    return NumberedRelationship(index=index, request=request)


def _description(value: str, limits: Limits) -> str:
    # Invisible characters alone are no text either: no search could ever find it.
    if not any(unicodedata.category(character) not in _INVISIBLE for character in value):
        raise InvalidInput("/description is blank; write the memory as a sentence or more.")
    return storable_text(value, "/description", max_characters=limits.max_description_characters)


def _node_type(value: str | None) -> str | None:
    if value is None or not value.strip():
        return None
    return storable_text(value, "/node_type", max_characters=256)


def _search_text(value: str | None, limits: Limits) -> str | None:
    if value is None or not value.strip():
        return None if value is None else ""
    return storable_text(value, "/search_text", max_characters=limits.max_search_text_characters)


def _assets(values: Sequence[str], limits: Limits) -> tuple[str, ...]:
    if len(values) > limits.max_assets:
        raise LimitExceeded(
            f"/assets has {len(values)} items; a node has at most {limits.max_assets}.",
            limit=limits.max_assets,
        )
    for position, asset in enumerate(values):
        where = f"/assets/{position}"
        if not storable_text(asset, where, max_characters=limits.max_asset_characters).strip():
            raise InvalidInput(f"{where} is blank; name an uploaded file or a URL.")
    return tuple(dict.fromkeys(values))
