"""How much one call may carry. Every number can be raised in the settings."""

from __future__ import annotations

from dataclasses import dataclass

from hivemem.domain.text import storable_text
from hivemem.errors import Conflict, InvalidInput

DEFAULT_SESSION = "default"
_MAX_SESSION_CHARACTERS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in code points and counts per call; more is refused with `LimitExceeded`."""

    max_description_characters: int = 2_000_000
    max_search_text_characters: int = 200_000
    max_data_characters: int = 200_000
    """Of a `data` object written as JSON."""
    max_label_characters: int = 2_000
    """Of a relationship's label: a sentence, not a text. It is part of an index."""
    max_query_characters: int = 100_000
    max_relationships_per_call: int = 500
    max_participants: int = 500
    """Of one hyperedge."""
    max_keys_per_call: int = 100
    max_assets: int = 100
    max_asset_characters: int = 2_048
    max_ingest_characters: int = 100_000
    """Of a text that is taken apart into memories."""
    max_import_batch: int = 256
    """Nodes that an import embeds and stores in one transaction."""
    max_graphs_per_user: int = 100
    max_keys_per_user: int = 1_000
    """Of keys that are good; revoked and ended ones do not count."""
    max_organizations_per_user: int = 100
    """Of which one is an owner."""
    max_open_invitations: int = 1_000
    """Of one organization."""
    max_passages_in_request: int = 64
    """Above this, a text is stored at once and embedded in the background, where that runs: a request
    must not wait for minutes of model work."""


def require_room(count: int, setting: str, most: int, what: str) -> None:
    """Let one more of something be made; two that are made at the same moment may both pass.

    Raises:
        Conflict: There are as many as the setting allows.
    """
    if count >= most:
        raise Conflict(
            f"there are {count} {what} already; remove some, or raise {setting}.", code="limit_reached"
        )


def checked_session_id(value: str) -> str:
    """Return the trimmed session id.

    Raises:
        InvalidInput: Blank, longer than 256 characters, or with an unstorable character.
    """
    session_id = storable_text(value, "/session_id").strip()
    if not session_id:
        raise InvalidInput("/session_id is blank; leave it out or name the conversation.")
    if len(session_id) > _MAX_SESSION_CHARACTERS:
        raise InvalidInput(
            f"/session_id has {len(session_id)} characters; use at most {_MAX_SESSION_CHARACTERS}."
        )
    return session_id
