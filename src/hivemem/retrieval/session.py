"""The conversation's own memories: a nudge, never a verdict."""

from __future__ import annotations

MAX_BOOST = 0.02
"""In relevance: enough to reorder near-ties, too little to lift anything over the floor's margin."""


def session_boost(touch_count: int) -> float:
    """What a node gains by having been touched in this conversation, in [0, MAX_BOOST].

    Example:
        >>> [session_boost(count) for count in (0, 1, 4, 100)]
        [0.0, 0.01, 0.02, 0.02]
    """
    return min(MAX_BOOST, 0.01 * touch_count**0.5)
