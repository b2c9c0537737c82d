"""The 13 canonical node types, and how any other input settles on one of them."""

from __future__ import annotations

from dataclasses import dataclass

CANONICAL_TYPES = (
    "user",
    "person",
    "organization",
    "component",
    "event",
    "decision",
    "concept",
    "artifact",
    "project",
    "technology",
    "preference",
    "fact",
    "skill",
)
"""Types that agents may write."""

PROTECTED_TYPES = frozenset(
    ("user", "person", "organization", "location", "group", "product", "asset", "document", "URL")
)
"""Types that an overview marks as protected."""

_ALIASES = {
    "tool": "technology",
    "tech": "technology",
    "pref": "preference",
    "style": "preference",
    "org": "organization",
    "group": "organization",
    "document": "artifact",
    "file": "artifact",
    "url": "artifact",
    "asset": "artifact",
    "product": "project",
    "location": "concept",
    "research": "concept",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedType:
    """The type a node gets, and what to tell the caller when it is not the one sent."""

    node_type: str
    warning: str | None = None


def resolve_node_type(requested: str | None, key: str) -> ResolvedType:
    """Settle on a canonical type: as sent, by alias, by the key's prefix, else `fact`.

    A missing or unknown type is never an error.

    Example:
        >>> resolve_node_type("tool", "tool_ripgrep").node_type
        'technology'
        >>> resolve_node_type(None, "person_alice").node_type
        'person'
        >>> resolve_node_type("recipe", "soup").node_type
        'fact'
    """
    named = canonical_type(requested) if requested else None
    if named is not None:
        changed = named != requested
        return ResolvedType(
            node_type=named,
            warning=f"node_type {requested!r} was stored as {named!r}" if changed else None,
        )
    by_prefix = canonical_type(key.split("_", 1)[0]) if "_" in key else None
    settled = by_prefix or "fact"
    if not requested:
        return ResolvedType(node_type=settled)
    return ResolvedType(
        node_type=settled,
        warning=(
            f"node_type {requested!r} is not one of {', '.join(CANONICAL_TYPES)}; stored as {settled!r}"
        ),
    )


def canonical_type(name: str) -> str | None:
    """The canonical type that `name` or an alias of it names; None when it names none."""
    folded = name.strip().lower()
    return folded if folded in CANONICAL_TYPES else _ALIASES.get(folded)
