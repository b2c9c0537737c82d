"""Node keys: the permanent, case-sensitive name of a memory inside its graph."""

from __future__ import annotations

import re
import unicodedata

from hivemem.domain.text import storable_text
from hivemem.errors import InvalidInput

MAX_KEY_CHARACTERS = 256
USER_PROFILE_KEY = "user_profile"

_CONVENTION = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
_JOINERS = "\u200c\u200d"


def normalise_key(value: str, field: str = "/key") -> str:
    r"""Return the one spelling under which a key is stored.

    The key is trimmed and brought to Unicode NFC, so that the composed and the decomposed spelling of
    a name are one node. Case is kept. Call this once where keys enter, never in look-ups.

    Raises:
        InvalidInput: Empty, longer than 256 characters, or with a control or invisible character.

    Example:
        >>> normalise_key(" cafe\u0301_menu ")
        'café_menu'
    """
    key = unicodedata.normalize("NFC", storable_text(value, field)).strip()
    if not key:
        raise InvalidInput(f"{field} is blank; give the node a key such as 'decision_jwt_auth'.")
    if len(key) > MAX_KEY_CHARACTERS:
        raise InvalidInput(f"{field} has {len(key)} characters; a key has at most {MAX_KEY_CHARACTERS}.")
    if key.isascii() and key.isprintable():
        return key
    for position, character in enumerate(key):
        category = unicodedata.category(character)
        # Joiners are part of the spelling in Persian or Hindi and in emoji, never in Latin words.
        joins = character in _JOINERS and position > 0 and not key[position - 1].isascii()
        if category in ("Cc", "Zl", "Zp") or (category == "Cf" and not joins):
            raise InvalidInput(
                f"{field} holds the invisible character U+{ord(character):04X} at position "
                f"{position}; remove it, or two keys that look the same would differ."
            )
    return key


def convention_warning(key: str) -> str | None:
    """Say how `key` departs from the `type_name` convention, or None when it follows it."""
    if _CONVENTION.fullmatch(key) or key == USER_PROFILE_KEY:
        return None
    return (
        f"key {key!r} is not in the form type_name (lower-case snake case, such as "
        "'person_alice'); it was stored as it is"
    )
